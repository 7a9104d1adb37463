"""What the holder changes while the server runs: within owner.toml, in the log, and known to every process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from privlearn import Ledger
from privlearn.errors import BudgetExceeded, DataError, InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.release import SessionCertificate
from privlearn.server import AccessRefused, Conflict, Forbidden, NotFound, Service
from privlearn.server.access import Caller, authenticate, create_key, list_keys
from privlearn.server.changes import analysts, change_transaction, datasets, keys
from privlearn.server.holder import Catalogs, Owner, Share, with_console_state
from privlearn.server.jobs import queue, run_job
from privlearn.server.store import first_head, iterate_events, verify_log
from privlearn.server.store.events import events
from privlearn.server.timing import now
from tests.support.console_support import BUDGET, HOLDER, load_console, write_console
from tests.support.service_support import SCHEMA, model_request

CAROL = Caller("fedcba9876543210", "analyst", "carol")
SHARE = Share(epsilon=1.0, delta=1e-7)
WARD = ("ward", "exports/ward.csv", "exports/ward.schema.yaml")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    running = Service(load_console(tmp_path))
    yield running
    running.stop()


@pytest.fixture
def ward(service: Service) -> Service:
    """Return a service with a data set of the console, and carol, who has a share of it."""
    datasets.add_dataset(service, HOLDER, *WARD, BUDGET)
    analysts.add_analyst(service, HOLDER, "carol", "Carol Ng")
    analysts.give_share(service, HOLDER, "carol", "ward", SHARE)
    return service


def names(service: Service, caller: Caller) -> list[str]:
    return [offered.name for offered in service.datasets(caller)]


def last_line(service: Service) -> tuple[str, str, dict[str, Any]]:
    line = events(service.store, 1)[0]
    verify_log(first_head(service.store), iterate_events(service.store))
    return line.action, line.dataset, line.details


def run_next(service: Service) -> None:
    """As a training process does that looks at the console before each job."""
    job = queue.claim(service.store)
    assert job is not None
    assert run_job(service.store, Catalogs(service.owner, service.catalogs.record_counts).now, job) == ""


# --- analysts and shares ---


def test_an_analyst_sees_what_there_is_a_share_of(service: Service) -> None:
    analysts.add_analyst(service, HOLDER, "carol", "Carol Ng")
    assert last_line(service) == (
        "added an analyst",
        "",
        {"by": HOLDER.key_id, "analyst": "carol", "title": "Carol Ng"},
    )
    assert names(service, CAROL) == []
    analysts.give_share(service, HOLDER, "carol", "clinic", SHARE)
    assert names(service, CAROL) == ["clinic"]
    share = service.budget(CAROL, "clinic").share
    assert share is not None
    assert share.total.epsilon == 1.0
    analysts.rename_analyst(service, HOLDER, "carol", "Dr Ng")
    assert analysts.find_analyst(service, "carol").title == "Dr Ng"
    analysts.withdraw_share(service, HOLDER, "carol", "clinic")
    assert names(service, CAROL) == []
    assert last_line(service)[0] == "withdrew a share"


def test_some_names_are_nobodys(service: Service) -> None:
    for name in ("holder", "monitor", "", "a b", "../x", "x" * 65, "ä"):
        with pytest.raises(InvalidParameter):
            analysts.add_analyst(service, HOLDER, name)


def test_a_name_that_approval_takes_for_anothers_is_refused(service: Service) -> None:
    analysts.add_analyst(service, HOLDER, "carol")
    for name in ("Alice", "CAROL"):
        with pytest.raises(Conflict, match="approvals cannot tell this name"):
            analysts.add_analyst(service, HOLDER, name)


def test_a_share_is_raised_with_a_reason_and_within_the_total(service: Service) -> None:
    analysts.add_analyst(service, HOLDER, "carol")
    analysts.give_share(service, HOLDER, "carol", "clinic", SHARE)
    raised = Share(epsilon=2.0, delta=1e-7)
    with pytest.raises(InvalidParameter, match="reason"):
        analysts.give_share(service, HOLDER, "carol", "clinic", raised)
    analysts.give_share(service, HOLDER, "carol", "clinic", raised, "a second study")
    action, dataset, told = last_line(service)
    assert (action, dataset) == ("gave a share", "clinic")
    assert (told["epsilon"], told["epsilon_before"], told["reason"]) == (2.0, 1.0, "a second study")
    for beyond in (Share(epsilon=4.1), Share(epsilon=1.0, delta=1e-4)):
        with pytest.raises(InvalidParameter, match="whole budget"):
            analysts.give_share(service, HOLDER, "carol", "clinic", beyond, "more")
    analysts.give_share(service, HOLDER, "carol", "clinic", Share(epsilon=0.1))  # less needs none


def test_a_share_that_is_spent_stays_spent_when_it_is_given_again(ward: Service) -> None:
    ward.ask(CAROL, model_request("ward", "release", "logistic", 1.0))
    run_next(ward)
    analysts.withdraw_share(ward, HOLDER, "carol", "ward")
    analysts.give_share(ward, HOLDER, "carol", "ward", SHARE)
    with pytest.raises(BudgetExceeded):
        ward.ask(CAROL, model_request("ward", "release", "logistic", 0.5))


def test_a_disabled_analyst_is_shut_out_and_what_waits_ends_unpaid(ward: Service) -> None:
    key = create_key(ward.store, "analyst", "carol")
    caller = authenticate(ward.store, key)
    by_key = ward.ask(caller, model_request("ward", "release", "logistic", 0.5))
    by_provider = ward.ask(
        Caller("openid:carol", "analyst", "carol"), model_request("ward", "release", "svm", 0.5)
    )
    analysts.disable_analyst(ward, HOLDER, "carol")
    assert "disabled" in queue.find(ward.store, by_provider.id).failure  # at once, not when its turn comes
    assert last_line(ward)[0] == "disabled an analyst"
    with pytest.raises(AccessRefused):
        authenticate(ward.store, key)
    assert names(ward, CAROL) == []
    while (job := queue.claim(ward.store)) is not None:
        run_job(ward.store, Catalogs(ward.owner, ward.catalogs.record_counts).now, job)
    for asked in (by_key, by_provider):
        ended = queue.find(ward.store, asked.id)
        assert ended.state == "failed"
        assert "nothing was spent" in ended.failure
    assert Ledger.open(ward.store, "ward").standing().spent.epsilon == 0
    with pytest.raises(Conflict):
        keys.issue_key(ward, HOLDER, "analyst", "carol")
    analysts.enable_analyst(ward, HOLDER, "carol")
    assert names(ward, CAROL) == ["ward"]
    with pytest.raises(AccessRefused):
        authenticate(ward.store, key)


# --- the file wins ---


DECLARED: list[Callable[[Service], Any]] = [
    lambda service: analysts.add_analyst(service, HOLDER, "alice"),
    lambda service: analysts.rename_analyst(service, HOLDER, "alice", "A"),
    lambda service: analysts.disable_analyst(service, HOLDER, "alice"),
    lambda service: analysts.give_share(service, HOLDER, "bob", "clinic", SHARE),
    lambda service: analysts.withdraw_share(service, HOLDER, "bob", "clinic"),
    lambda service: datasets.add_dataset(service, HOLDER, "clinic", *WARD[1:], BUDGET),
    lambda service: datasets.refresh_dataset(service, HOLDER, "clinic", WARD[1]),
    lambda service: datasets.retire_dataset(service, HOLDER, "clinic"),
]


def test_what_the_file_declares_is_changed_there(service: Service) -> None:
    for change in DECLARED:
        with pytest.raises(Conflict, match=r"declared in owner\.toml, which takes precedence"):
            change(service)
    assert events(service.store) == []


def test_a_file_that_declares_it_later_wins(ward: Service, tmp_path: Path) -> None:
    analysts.give_share(ward, HOLDER, "alice", "ward", SHARE)
    analysts.give_share(ward, HOLDER, "carol", "clinic", SHARE)
    path = tmp_path / "owner.toml"
    declared = "\n[analysts.carol]\nclinic = { epsilon = 0.25 }\n"
    path.write_text(path.read_text() + declared)
    merged = with_console_state(Owner.load(path))
    assert merged.analysts["carol"] == {"clinic": Share(epsilon=0.25), "ward": SHARE}
    assert set(merged.analysts["alice"]) == {"clinic", "ward"}


def test_a_console_that_only_shows(tmp_path: Path) -> None:
    service = Service(load_console(tmp_path, console="changes = false"))
    try:
        with pytest.raises(Forbidden, match="read-only"):
            analysts.add_analyst(service, HOLDER, "carol")
        with pytest.raises(Forbidden):
            datasets.add_dataset(service, HOLDER, *WARD, BUDGET)
    finally:
        service.stop()
    assert Ledger.datasets(service.store) == ["clinic"]


def test_nobody_but_the_holder_changes_anything(service: Service) -> None:
    alice = Caller("1", "analyst", "alice")
    with pytest.raises(Forbidden):
        analysts.add_analyst(service, alice, "mallory")
    with pytest.raises(Forbidden):
        keys.issue_key(service, alice, "analyst", "alice")
    with pytest.raises(Forbidden):
        datasets.add_dataset(service, alice, *WARD, BUDGET)


# --- keys ---


def test_a_key_is_rotated_and_the_old_one_ends_after_the_overlap(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = now() + timedelta(days=90)
    old = keys.issue_key(service, HOLDER, "analyst", "alice", ["clinic"], ends)
    old_id = authenticate(service.store, old).key_id
    new = keys.rotate_key(service, HOLDER, old_id, 2.0, ends)
    action, _, told = last_line(service)
    assert (action, told["key"], told["of"]) == ("rotated a key", old_id, "alice")
    assert new.split("_", 2)[2] not in str(told)
    assert authenticate(service.store, new).datasets == frozenset({"clinic"})
    assert authenticate(service.store, old).analyst == "alice"
    later = now() + timedelta(hours=2, seconds=1)
    monkeypatch.setattr("privlearn.server.access.keys.now", lambda: later)
    with pytest.raises(AccessRefused):
        authenticate(service.store, old)
    assert authenticate(service.store, new).analyst == "alice"
    with pytest.raises(Conflict):
        keys.rotate_key(service, HOLDER, old_id, 2.0, ends)


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Somebody does this after the next change of a key was checked, and before it is made."""

    def later(*args: Any, **told: Any) -> Any:
        monkeypatch.setattr(keys, "change_transaction", change_transaction)
        act()
        return change_transaction(*args, **told)

    monkeypatch.setattr(keys, "change_transaction", later)


def test_whoever_is_disabled_meanwhile_gets_no_key(ward: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda: analysts.disable_analyst(ward, HOLDER, "carol"))
    with pytest.raises(Conflict, match="is disabled"):
        keys.issue_key(ward, HOLDER, "analyst", "carol")
    assert list_keys(ward.store) == []


def test_a_key_has_one_heir_and_a_revoked_one_none(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (keys.issue_key(service, HOLDER, "monitor").split("_")[1] for _ in range(2))
    meanwhile(monkeypatch, lambda: keys.revoke_key(service, HOLDER, first))
    with pytest.raises(Conflict, match="no longer valid"):
        keys.rotate_key(service, HOLDER, first, 1.0)
    meanwhile(monkeypatch, lambda: keys.rotate_key(service, HOLDER, second, 1.0))
    with pytest.raises(Conflict, match="already rotated"):
        keys.rotate_key(service, HOLDER, second, 1.0)
    assert len(list_keys(service.store)) == 3


def test_without_an_overlap_the_old_key_ends_at_once_and_never_later_than_it_would(service: Service) -> None:
    soon, late = now() + timedelta(hours=1), now() + timedelta(days=9)
    first = keys.issue_key(service, HOLDER, "monitor", expires=soon)
    second = keys.issue_key(service, HOLDER, "monitor", expires=late)
    for key, overlap in ((first, 48.0), (second, 0.0)):
        keys.rotate_key(service, HOLDER, key.split("_")[1], overlap, late)
    ends = {info.caller.key_id: info.expires for info in list_keys(service.store)}
    assert ends[first.split("_")[1]] == soon.isoformat(timespec="microseconds")
    with pytest.raises(AccessRefused):
        authenticate(service.store, second)


def test_the_holders_own_keys_are_the_shells(service: Service) -> None:
    own = create_key(service.store, "holder").split("_")[1]
    with pytest.raises(Forbidden, match="shell"):
        keys.rotate_key(service, HOLDER, own, 1.0)
    with pytest.raises(Conflict, match="your own request"):
        keys.revoke_key(service, Caller(own, "holder"), own)
    keys.revoke_key(service, HOLDER, own)
    assert last_line(service)[0] == "revoked a key"


def test_one_press_makes_one_key(service: Service) -> None:
    keys.issue_key(service, HOLDER, "analyst", "alice", key_id="00000000000000aa")
    with pytest.raises(Conflict, match="shown only once"):
        keys.issue_key(service, HOLDER, "analyst", "alice", key_id="00000000000000aa")
    assert len(list_keys(service.store)) == 1


# --- data sets ---


def test_a_data_set_is_added_under_a_budget_and_trained_on(ward: Service) -> None:
    assert ward.catalog.find("ward").records == 200
    assert Ledger.open(ward.store, "ward").standing().total.epsilon == 3.0
    lines = [line for line in events(ward.store) if line.action == "added a data set"]
    assert (lines[0].dataset, lines[0].details["epsilon"], lines[0].details["records"]) == ("ward", 3.0, 200)
    job = ward.ask(CAROL, model_request("ward", "release", "logistic", 0.5))
    run_next(ward)
    assert ward.job(CAROL, job.id).state == "done"
    assert Ledger.open(ward.store, "ward").standing().spent.epsilon == 0.5


ELSEWHERE = [
    "../secret.csv",
    "exports/../secret.csv",
    "exports//etc/passwd",
    "/etc/passwd",
    "exports/link.csv",
    "exports/linked",
    "exports/*.csv",
    "exports/nothing.csv",
    "exports/" + "x" * 300,
    "state/privlearn.db",
    "",
]


def test_no_file_outside_the_sources_is_read_or_told_of(service: Service, tmp_path: Path) -> None:
    (tmp_path / "exports" / "link.csv").symlink_to(tmp_path / "secret.csv")
    (tmp_path / "exports" / "linked").mkdir()
    (tmp_path / "exports" / "linked" / "a.csv").symlink_to(tmp_path / "secret.csv")
    for table in ELSEWHERE:
        with pytest.raises(NotFound, match=r"^there is no such file in the console's sources"):
            datasets.add_dataset(service, HOLDER, "ward", table, WARD[2], BUDGET)
    assert not any("link" in name or "secret" in name for name in service.owner.console.tables())


def test_sources_are_listed(service: Service) -> None:
    console = service.owner.console
    wards = ["exports/2027", "exports/2027/east.csv", "exports/2027/ward.csv", "exports/east.csv"]
    assert console.tables() == [*wards, "exports/ward.csv"]
    assert console.schemas() == ["exports/other.schema.yaml", "exports/ward.schema.yaml"]
    assert Owner.model_fields["console"].get_default(call_default_factory=True).sources == {}


def test_one_table_has_one_budget(ward: Service) -> None:
    with pytest.raises(Conflict, match="already served as ward"):
        datasets.add_dataset(ward, HOLDER, "again", *WARD[1:], BUDGET)
    datasets.add_dataset(ward, HOLDER, "next", "exports/2027/ward.csv", WARD[2], BUDGET)
    with pytest.raises(Conflict, match="already served as next"):
        datasets.refresh_dataset(ward, HOLDER, "ward", "exports/2027")


DATASET = """
[datasets.{name}]
table = "{table}"
schema = "exports/ward.schema.yaml"
epsilon = 1.0
delta = 1e-6
"""


def declare(folder: Path, name: str, table: str) -> Owner:
    with (folder / "owner.toml").open("a") as file:
        file.write(DATASET.format(name=name, table=table))
    return Owner.load(folder / "owner.toml")


@pytest.mark.parametrize("table", ["exports/w*.csv", "exports/**/*.csv", "twin.csv"])
def test_one_file_has_one_budget_by_whatever_name(tmp_path: Path, table: str) -> None:
    """A pattern, and a second name of the same file on the disk."""
    write_console(tmp_path)
    (tmp_path / "twin.csv").hardlink_to(tmp_path / "exports" / "ward.csv")
    service = Service(declare(tmp_path, "declared", table))
    with pytest.raises(Conflict, match="already served as declared"):
        datasets.add_dataset(service, HOLDER, *WARD, BUDGET)
    service.stop()


@pytest.mark.parametrize("table", ["exports/ward.csv", "exports/w*.csv", "exports/w*"])
def test_a_server_does_not_start_with_a_table_that_the_console_serves(
    ward: Service, tmp_path: Path, table: str
) -> None:
    owner = declare(tmp_path, "declared", table)
    with pytest.raises(InvalidParameter, match=r"datasets.declared: the console serves .* as ward"):
        Catalogs(owner)


def test_the_holder_s_file_may_declare_what_the_console_serves_under_its_name(
    ward: Service, tmp_path: Path
) -> None:
    assert "ward" in Catalogs(declare(tmp_path, "ward", "exports/ward.csv")).now


def test_a_name_that_had_a_budget_has_it_still(service: Service) -> None:
    Ledger.create(service.store, "ward", Guarantee(1.0, 1e-6))
    with pytest.raises(Conflict, match="a budget cannot be changed"):
        datasets.add_dataset(service, HOLDER, *WARD, BUDGET)
    assert "ward" not in service.catalog


def test_a_new_version_is_paid_from_the_same_budget(ward: Service) -> None:
    ward.ask(CAROL, model_request("ward", "release", "logistic", 0.75))
    run_next(ward)
    assert datasets.refresh_dataset(ward, HOLDER, "ward", "exports/2027/ward.csv", "", "yearly") == 2
    action, dataset, told = last_line(ward)
    assert (action, dataset, told["version"], told["records"]) == ("refreshed a data set", "ward", 2, 230)
    offered = ward.catalog.find("ward")
    assert (offered.version, offered.records) == (2, 230)
    standing = Ledger.open(ward.store, "ward").standing()
    assert (standing.total.epsilon, standing.spent.epsilon) == (3.0, 0.75)
    job = ward.ask(CAROL, model_request("ward", "release", "logistic", 0.25))
    run_next(ward)
    assert ward.job(CAROL, job.id).version == 2
    assert Ledger.open(ward.store, "ward").standing().spent.epsilon == 1.0
    with pytest.raises(BudgetExceeded):
        ward.ask(CAROL, model_request("ward", "release", "logistic", 0.25))


def test_another_schema_is_no_new_version(ward: Service) -> None:
    with pytest.raises(Conflict, match="the schema is different"):
        datasets.refresh_dataset(ward, HOLDER, "ward", "exports/2027/ward.csv", "exports/other.schema.yaml")
    assert ward.catalog.find("ward").version == 1
    datasets.refresh_dataset(ward, HOLDER, "ward", "exports/2027/ward.csv", "exports/ward.schema.yaml")


def test_a_job_and_a_session_keep_the_version_they_were_asked_on(service: Service) -> None:
    kernel = {"kernel": {"model": "svm", "kernel": "rbf", "gamma": 0.5}}
    datasets.add_dataset(service, HOLDER, *WARD, {**BUDGET, "learners": kernel})
    analysts.give_share(service, HOLDER, "alice", "ward", Share(epsilon=3.0, delta=1e-6))
    alice = Caller("1", "analyst", "alice")
    asked = model_request("ward", "session", "kernel", 1.0, 1e-7, "function_release")
    job = service.ask(alice, asked)
    datasets.refresh_dataset(service, HOLDER, "ward", "exports/2027/ward.csv")  # while it waits
    run_next(service)
    session = service.session(alice, job.id)
    assert session.version == 1
    assert SessionCertificate.from_dict(session.certificate).task.total == 200
    points = service.catalog.find("ward").synthetic(3).drop_columns(["outcome"])
    first = service.predict(alice, service.session(alice, job.id), points)
    service._sessions.discard(job.id)  # and reads its table again
    again = service.predict(alice, service.session(alice, job.id), points)
    assert first.scores.tolist() == again.scores.tolist()


def test_a_retired_data_set_does_nothing_new_and_keeps_what_there_is(ward: Service) -> None:
    job = ward.ask(CAROL, model_request("ward", "session", "logistic", 0.5))
    waiting = ward.ask(CAROL, model_request("ward", "release", "logistic", 0.25))
    run_next(ward)
    datasets.retire_dataset(ward, HOLDER, "ward", "the study is over")
    assert last_line(ward)[0] == "retired a data set"
    for trial in (False, True):
        with pytest.raises(InvalidParameter, match="retired"):
            ward.ask(CAROL, model_request("ward", "release", "logistic", 0.1, trial=trial))
    points = ward.catalog.find("ward").synthetic(2).drop_columns(["outcome"])
    assert len(ward.predict(CAROL, ward.session(CAROL, job.id), points).predictions) == 2
    run_next(ward)
    assert ward.job(CAROL, waiting.id).state == "done"
    with pytest.raises(Conflict, match="is retired"):
        datasets.refresh_dataset(ward, HOLDER, "ward", "exports/2027/ward.csv")


def test_rows_that_do_not_fit_make_no_data_set(service: Service, tmp_path: Path) -> None:
    (tmp_path / "exports" / "bad.csv").write_text("age,dose,sex,outcome\n1,2,Mallory,ill\n")
    with pytest.raises(DataError) as refused:
        datasets.add_dataset(service, HOLDER, "bad", "exports/bad.csv", WARD[2], BUDGET)
    assert "Mallory" not in str(refused.value)
    assert Ledger.datasets(service.store) == ["clinic"]


def test_where_the_count_is_private_the_expected_one_is_kept(service: Service) -> None:
    private = {**BUDGET, "neighbours": "add_remove", "expected_records": 250}
    datasets.add_dataset(service, HOLDER, *WARD, private)
    assert service.catalogs.console_state.datasets["ward"].version().records == 250
    assert service.catalog.find("ward").size == "250 expected records"


def test_every_process_that_shares_the_database_knows(ward: Service, tmp_path: Path) -> None:
    elsewhere = Catalogs(ward.owner, ward.catalogs.record_counts)
    assert elsewhere.now.find("ward").records == 200
    datasets.refresh_dataset(ward, HOLDER, "ward", "exports/2027/ward.csv")
    analysts.give_share(ward, HOLDER, "carol", "clinic", SHARE)
    assert elsewhere.now.find("ward").version == 1
    elsewhere.refresh()
    assert elsewhere.now.find("ward").version == 2
    assert [offered.name for offered in elsewhere.now.visible_to(CAROL)] == ["clinic", "ward"]
    ward.stop()
    started_again = Service(Owner.load(tmp_path / "owner.toml"))
    try:
        assert names(started_again, CAROL) == ["clinic", "ward"]
        assert started_again.catalog.find("ward").version == 2
    finally:
        started_again.stop()


def test_the_file_may_retire_too(tmp_path: Path) -> None:
    service = Service(Owner.load(write_console(tmp_path, dataset="retired = true")))
    try:
        with pytest.raises(InvalidParameter, match="retired"):
            service.ask(Caller("1", "analyst", "alice"), model_request("clinic", "release", "logistic", 0.1))
    finally:
        service.stop()


def test_a_schema_in_the_database_means_what_its_file_did(ward: Service) -> None:
    assert ward.catalog.find("ward").schema.digest == SCHEMA.model_copy(update={"name": "ward"}).digest


def test_a_file_may_leave_all_of_it_to_the_console(tmp_path: Path) -> None:
    write_console(tmp_path)
    (tmp_path / "owner.toml").write_text('[console]\nsources = { exports = "exports" }\n')
    service = Service(Owner.load(tmp_path / "owner.toml"))
    try:
        datasets.add_dataset(service, HOLDER, *WARD, BUDGET)
        assert names(service, HOLDER) == ["ward"]
    finally:
        service.stop()


def test_a_refused_data_set_leaves_no_budget(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another holder adds the same name while the rows are read."""
    count = datasets._count

    def add_first(*args: Any) -> int:
        monkeypatch.setattr(datasets, "_count", count)
        datasets.add_dataset(service, HOLDER, "other", *WARD[1:], BUDGET)
        return count(*args)

    monkeypatch.setattr(datasets, "_count", add_first)
    with pytest.raises(Conflict, match="already served as other"):
        datasets.add_dataset(service, HOLDER, *WARD, BUDGET)
    assert "ward" not in Ledger.datasets(service.store)
    assert "other" in Ledger.datasets(service.store)


def test_names_that_differ_by_case_only_are_refused(service: Service) -> None:
    with pytest.raises(Conflict, match="case only"):
        datasets.add_dataset(service, HOLDER, "Clinic", *WARD[1:], BUDGET)


def test_the_lock_is_the_owners_alone(service: Service) -> None:
    lock = service.owner.server.directory / "server.lock"
    assert lock.stat().st_mode & 0o077 == 0
