"""`privlearn keys`, and the demonstration whose keys it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from privlearn.server import AccessRefused
from privlearn.server.access import authenticate
from privlearn.server.holder import Catalog, Owner, demo
from privlearn.server.holder.demo import demo_keys, write_demo
from privlearn.server.store import open_store
from privlearn.server.store.events import events
from tests.support.cli_support import Run


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(demo, "_PEOPLE", {"census": (300, 1), "village": (200, 2)})
    return write_demo(tmp_path / "demo")


def test_a_key_stands_alone_on_stdout(run: Run, owner: Path) -> None:
    made = run("keys", "create", owner, "--analyst", "alice", "--dataset", "village", "--days", 30)
    assert made.code == 0
    store = Owner.load(owner).server.store
    caller = authenticate(store, made.stdout.strip())
    assert (caller.analyst, caller.datasets) == ("alice", frozenset({"village"}))
    assert made.stdout.strip() not in made.stderr
    assert f"privlearn keys revoke {owner} {caller.key_id}" in made.stderr


def test_keys_are_listed_without_secrets_and_revoked(run: Run, owner: Path) -> None:
    key = run("keys", "create", owner, "--holder").stdout.strip()
    store, key_id = Owner.load(owner).server.store, key.split("_")[1]
    assert authenticate(store, key).is_holder
    listed = run("keys", "list", owner)
    assert key_id in listed.stdout
    assert "valid" in listed.stdout
    assert key.split("_", 2)[2] not in listed.told
    assert run("keys", "revoke", owner, key_id).code == 0
    assert "revoked" in run("keys", "list", owner).stdout
    with pytest.raises(AccessRefused):
        authenticate(store, key)
    logged = events(store)
    assert [event.action for event in logged] == ["revoked a key", "created a key"]
    assert key.split("_", 2)[2] not in repr(logged)


def test_approvers_and_auditors_have_names(run: Run, owner: Path) -> None:
    store = Owner.load(owner).server.store
    for role, more in (("approver", ("--dataset", "village")), ("auditor", ())):
        caller = authenticate(store, run("keys", "create", owner, f"--{role}", "bea", *more).stdout.strip())
        assert (caller.role, caller.person, caller.analyst) == (role, "bea", "")
        assert f"bea, {role}" in run("keys", "list", owner).stdout
        assert events(store)[0].details["role"] == role


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ((), 2, "--auditor NAME, --holder or --monitor"),
        (("--holder", "--analyst", "alice"), 2, "--auditor NAME, --holder or --monitor"),
        (("--holder", "--monitor"), 2, "--auditor NAME, --holder or --monitor"),
        (("--approver", "bea", "--auditor", "bea"), 2, "--auditor NAME, --holder or --monitor"),
        (("--approver", "holder"), 2, "the role and name"),
        (("--approver", "bea\ncarl"), 2, "one line"),
        (("--holder", "--dataset", "census"), 2, "cannot be restricted to data sets"),
        (("--analyst", "eve"), 2, "[analysts.eve]"),
        (("--analyst", "bob", "--dataset", "village"), 2, "Use one of: census"),
        (("--analyst", "bob", "--days", 0), 2, "expires must be in the future"),
    ],
)
def test_keys_that_are_not_made(
    run: Run, owner: Path, arguments: tuple[object, ...], code: int, told: str
) -> None:
    refused = run("keys", "create", owner, *arguments)
    assert refused.code == code
    assert told in refused.stderr
    assert not refused.stdout


def test_what_is_not_there_is_said(run: Run, owner: Path, tmp_path: Path) -> None:
    assert "keys list" in run("keys", "revoke", owner, "0123").stderr
    assert run("keys", "list", tmp_path / "nowhere.toml").code == 1


def test_the_demonstration_is_written_once_and_works(owner: Path) -> None:
    first = demo_keys(owner)
    settings = Owner.load(owner)
    catalog = Catalog(settings)
    catalog.check()
    seen = {
        name: [offered.name for offered in catalog.visible_to(authenticate(settings.server.store, key))]
        for name, key in first.items()
    }
    assert seen == {"holder": ["census", "village"], "alice": ["census", "village"], "bob": ["census"]}
    assert catalog.find("village").records == 200
    before = owner.stat().st_mtime_ns
    assert write_demo(owner.parent) == owner
    assert owner.stat().st_mtime_ns == before
    assert authenticate(settings.server.store, demo_keys(owner)["alice"]).analyst == "alice"


def test_ids_are_whole_in_a_narrow_terminal(run: Run, owner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    key = run("keys", "create", owner, "--analyst", "alice").stdout.strip()
    assert key.split("_")[1] in run("keys", "list", owner).stdout


def test_the_budgets_of_a_server_are_found_by_its_file(run: Run, owner: Path) -> None:
    open_store(Owner.load(owner))
    for command in (["budget"], ["budget", "show"], ["budget", "check"]):
        shown = run(*command, "--ledger", owner)
        assert (shown.code, "census" in shown.stdout) == (0, True), shown.stderr
