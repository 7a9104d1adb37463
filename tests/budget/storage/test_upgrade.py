"""From the formats of one version to those of the next: whole or not at all, once, and by nobody who may not.

The next version is `tests/support/next_version.py`, with real revision scripts.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, event
from typer.testing import CliRunner

from privlearn import Ledger
from privlearn.budget import Cost
from privlearn.budget.storage import PARTS, SERVICE, disconnect, excluding
from privlearn.budget.storage.migrations import VERSIONS, pending, read_scripts, upgrade
from privlearn.cli import app, main
from privlearn.errors import LedgerError
from privlearn.guarantee import Guarantee
from privlearn.server import lock_directory
from privlearn.server.holder import Catalog, Owner
from privlearn.server.jobs import queue, run_job
from privlearn.server.store import open_store
from tests.support.forked import fork
from tests.support.next_version import (
    COST,
    contents,
    next_version,
    waiting_request,
    write_ledger,
    write_server,
)
from tests.support.postgresql_cluster import Cluster
from tests.support.raw_store import Refused, execute, is_file

STEPS = {"ledger": (1, 3), "service": (1, 2)}
OLD = {"ledger": [1], "service": [1]}
NEW = {"ledger": [1, 2, 3], "service": [1, 2]}


@pytest.fixture
def store(old_server: Owner, later: None) -> str:
    """Return a server's store that this version wrote, as the next version finds it."""
    return old_server.server.store


def formats(store: str) -> dict[str, list[int]]:
    tables = {name: f"SELECT version FROM {name}_format ORDER BY version" for name in PARTS}
    return {name: [version for (version,) in execute(store, query)] for name, query in tables.items()}


def test_every_format_of_this_version_has_a_script() -> None:
    scripts = read_scripts(VERSIONS)
    assert set(scripts.get_heads()) == {f"{name}_{part.newest}" for name, part in PARTS.items()}
    assert set(scripts.get_bases()) == {f"{name}_1" for name in PARTS}


def test_a_store_of_this_version_needs_no_upgrade(old_server: Owner) -> None:
    store = old_server.server.store
    assert formats(store) == OLD
    assert pending(store) == upgrade(store) == {}


def test_an_older_store_is_refused_and_the_sentence_says_what_to_type(store: str, old_server: Owner) -> None:
    attempts = (
        lambda: open_store(old_server),
        lambda: Ledger.open(store, "clinic"),
        lambda: Ledger.create(store, "new", Guarantee(1.0)),
        lambda: Ledger(store, "clinic").reserve(Cost(Guarantee(0.1)), "a test"),
    )
    for attempt in attempts:
        with pytest.raises(LedgerError, match=r"older privlearn .*`privlearn upgrade .*`"):
            attempt()
    assert formats(store) == OLD


def test_it_is_done_once(store: str) -> None:
    assert pending(store) == STEPS
    assert formats(store) == OLD
    assert upgrade(store) == STEPS
    assert pending(store) == {}
    assert upgrade(store) == {}
    assert formats(store) == NEW


CHANGES = [
    "UPDATE entries SET note = 'another'",
    "DELETE FROM entries",
    "UPDATE budgets SET epsilon = 1000",
    "DELETE FROM ledger_format",
    "UPDATE service_format SET version = 1",
    "DELETE FROM events",
    "UPDATE session_states SET format = 2",
]


def test_rows_can_still_only_be_added(store: str) -> None:
    upgrade(store)
    for change in CHANGES:
        with pytest.raises(Refused, match="append-only"):
            execute(store, change)


def test_entries_and_sums_still_agree(store: str) -> None:
    upgrade(store)
    for name in Ledger.datasets(store):
        ledger = Ledger.open(store, name)
        statement = ledger.statement()
        settled = sum(entry.state != "reserved" for entry in statement.entries)
        assert ledger.check() == len(statement.entries) + settled > 0


def test_rows_still_refer_to_each_other(store: str) -> None:
    """The table of jobs was rebuilt in a file, and others refer to it."""
    upgrade(store)
    with pytest.raises(LedgerError, match=r"(?i)foreign key"), excluding(store, "jobs") as connection:
        connection.exec_driver_sql("DELETE FROM jobs")


def test_everything_is_still_there(store: str) -> None:
    before = contents(store)
    upgrade(store)
    assert contents(store) == before
    assert all(before[table] for table in ("entries", "sums", "jobs", "results", "events", "session_states"))


def test_a_server_goes_on_where_it_was(store: str, old_server: Owner) -> None:
    """A training waited; its cost is charged once, and the request sent again finds it."""
    (waiting,) = execute(store, "SELECT id FROM jobs WHERE idempotency_key = 'a key'")
    upgrade(store)
    open_store(old_server)
    before = Ledger.open(store, "clinic").statement()
    assert queue.submit(store, "alice", waiting_request(), COST, "a key").id == waiting[0]
    job = queue.claim(store)
    assert job is not None
    assert run_job(store, Catalog(old_server), job) == ""
    after = Ledger.open(store, "clinic").statement()
    assert after.spent.epsilon == before.spent.epsilon + COST.epsilon


def test_new_entries_can_have_a_note(store: str) -> None:
    upgrade(store)
    ledger = Ledger.open(store, "clinic").with_note("for the board", file_name="a.privlearn")
    ledger.reserve(Cost(Guarantee(0.1)), "a test").commit()
    new = ledger.statement().entries[-1]
    assert (new.note, new.file_name) == ("for the board", "a.privlearn")


def statements(store: str) -> int:
    """Return the number of statements that an upgrade runs; this one is undone."""
    count = 0

    def count_one(*_: Any) -> None:
        nonlocal count
        count += 1

    event.listen(Engine, "after_cursor_execute", count_one)
    try:
        upgrade(store)
    finally:
        event.remove(Engine, "after_cursor_execute", count_one)
    return count


def killed_after(store: str, number: int) -> None:
    """In a process of its own: the upgrade up to a statement, and then SIGKILL."""
    left = number

    def count_down(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "after_cursor_execute", count_down)
    upgrade(store)


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_after_any_statement_it_is_the_old_or_the_new_one(
    old_server: Owner, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, step: int
) -> None:
    store, before = old_server.server.store, contents(old_server.server.store)
    place = None if is_file(store) else request.getfixturevalue("server").new_place()
    another = write_server(tmp_path_factory.mktemp("another"), place).server.store
    with next_version(tmp_path_factory.mktemp("next") / "versions"):
        total = statements(another)
        disconnect()
        assert total > 10
        for number in (*range(1, total, step), total):
            _, status = os.waitpid(fork(lambda number=number: killed_after(store, number)), 0)  # type: ignore[misc]
            assert os.WTERMSIG(status) == signal.SIGKILL
            assert formats(store) == OLD
        upgrade(store)
    assert formats(store) == NEW
    assert contents(store) == before
    if is_file(store):
        assert execute(store, "PRAGMA integrity_check") == [("ok",)]


def test_of_two_at_the_same_time_one_does_it(store: str) -> None:
    before = contents(store)
    disconnect()
    begin, tell = os.pipe()

    def child() -> None:
        os.close(tell)
        os.read(begin, 1)  # ends for both at once
        assert upgrade(store) in (STEPS, {})

    children = [fork(child) for _ in range(2)]
    os.close(tell)
    os.close(begin)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert formats(store) == NEW
    assert contents(store) == before


@pytest.fixture
def written(server: Cluster, tmp_path: Path) -> str:
    return write_server(tmp_path, server.new_place()).server.store


@pytest.fixture
def postgresql_store(written: str, later: None) -> str:
    return written


def test_it_waits_for_those_who_have_looked_at_the_format(postgresql_store: str) -> None:
    """They would go on to write rows of the old one."""
    with psycopg.connect(postgresql_store) as writer:
        writer.execute("SELECT max(version) FROM ledger_format")
        upgrading = threading.Thread(target=upgrade, args=(postgresql_store,))
        upgrading.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'ledger_format'::regclass"
        while execute(postgresql_store, waiting) == [(0,)]:
            assert upgrading.is_alive()
        writer.execute(
            "INSERT INTO entries (dataset, reservation, kind, time, epsilon, delta, account)"
            " VALUES ('clinic', 'in time', 'reserved', '', 0.1, 0, '')"
        )
    upgrading.join()
    assert formats(postgresql_store) == NEW
    assert execute(postgresql_store, "SELECT count(*) FROM entries WHERE reservation = 'in time'") == [(1,)]


def test_a_role_that_may_only_append_cannot_do_it(server: Cluster, postgresql_store: str) -> None:
    owner = str(psycopg.conninfo.conninfo_to_dict(postgresql_store)["user"])
    name = owner.replace("owner", "analyst")
    server.execute(f"CREATE ROLE {name} LOGIN", f"ALTER ROLE {name} SET search_path = {owner}")
    execute(postgresql_store, f"GRANT USAGE ON SCHEMA {owner} TO {name}")
    execute(postgresql_store, f"GRANT SELECT ON ledger_format, service_format, budgets TO {name}")
    execute(postgresql_store, f"GRANT SELECT, INSERT ON entries, sums TO {name}")
    with pytest.raises(LedgerError, match=r"permission denied|must be owner"):
        upgrade(server.address("postgres", name))
    assert formats(postgresql_store) == OLD
    upgrade(postgresql_store)
    mine = Ledger.open(server.address("postgres", name), "clinic")
    mine.with_note("by a role that was granted its rights before").reserve(Cost(Guarantee(0.1)), "a test")


@pytest.fixture
def ledger_file(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = write_ledger(tmp_path / "my budgets.db")
    request.getfixturevalue("later")
    return path


@pytest.fixture
def read_only() -> Iterator[str]:
    """Make a ledger that every user may read and only the administrator write."""
    with tempfile.TemporaryDirectory() as folder:  # not pytest's own: it keeps others out
        store = Path(write_ledger(Path(folder) / "budgets.db"))
        store.chmod(0o444)
        os.chmod(folder, 0o555)
        yield str(store)
        os.chmod(folder, 0o755)


def test_a_file_that_may_not_be_written_stays_as_it_is(read_only: str, ledger_file: str) -> None:
    upgrade(ledger_file)  # so that all code is read
    before = Path(read_only).read_bytes()
    told, tell = os.pipe()

    def child() -> None:
        if os.geteuid() == 0:  # the administrator may write everything
            os.setuid(pwd.getpwnam("nobody").pw_uid)
        try:
            upgrade(read_only)
        except Exception as error:
            os.write(tell, f"{type(error).__name__}: {error}".encode())

    os.waitpid(fork(child), 0)
    os.close(tell)
    message = os.read(told, 10_000).decode()
    os.close(told)
    assert "cannot be used: attempt to write a readonly database" in message
    assert Path(read_only).read_bytes() == before


def test_what_is_newer_or_no_store_is_left_alone(store: str, tmp_path: Path) -> None:
    execute(store, f"INSERT INTO service_format VALUES ({SERVICE.newest + 1})")
    for attempt in (upgrade, pending):
        with pytest.raises(LedgerError, match="newer privlearn"):
            attempt(store)
    assert formats(store)["ledger"] == [1]
    other = str(tmp_path / "other.db")
    execute(other, "CREATE TABLE patients (name TEXT)")
    for attempt in (upgrade, pending):
        with pytest.raises(LedgerError, match="is not a ledger"):
            attempt(other)
    with pytest.raises(LedgerError, match="no ledger found"):
        upgrade(str(tmp_path / "missing.db"))


def output_of(*words: str) -> str:
    result = CliRunner().invoke(app, ["upgrade", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_the_command(ledger_file: str) -> None:
    before = contents(ledger_file)
    assert output_of(ledger_file, "--check") == "The ledger's format 1 would become 3.\n"
    assert output_of(ledger_file) == "The ledger's format 1 has become 3.\n"
    assert output_of(ledger_file) == "Nothing to do: all formats are those of this version.\n"
    assert contents(ledger_file) == before


def test_the_command_reports_what_it_did_and_not_what_another_did(
    ledger_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = pending(ledger_file)
    upgrade(ledger_file)
    monkeypatch.setattr("privlearn.budget.storage.migrations.pending", lambda _: steps)
    assert output_of(ledger_file) == "Nothing to do: all formats are those of this version.\n"


def test_the_command_for_a_server(store: str, old_server: Owner, tmp_path: Path) -> None:
    owner = str(tmp_path / "owner.toml")
    if old_server.server.ledger is None:
        with (
            lock_directory(old_server.server.directory),
            pytest.raises(LedgerError, match="another server or upgrade runs"),
        ):
            output_of(owner)
        assert formats(store) == OLD
    assert "The service's format 1 has become 2." in output_of(owner)
    open_store(old_server)


def test_the_refusal_can_be_typed(ledger_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["budget", "--ledger", ledger_file])
    command = re.search(r"`privlearn (upgrade .*?)`", " ".join(capsys.readouterr().err.split()))
    assert command is not None
    assert "has become" in output_of(*shlex.split(command[1])[1:])
