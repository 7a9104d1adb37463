"""From the formats of version 0.1 to those of this one: whole or not at all, once, and by nobody who may not."""

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
from sqlalchemy import Engine, event, inspect
from typer.testing import CliRunner

from privlearn.cli import app, main
from privlearn.errors import LedgerError
from privlearn.guarantee import Guarantee
from privlearn.ledger import Cost, Ledger
from privlearn.service.holder.datasets import Catalog
from privlearn.service.holder.settings import Owner
from privlearn.service.jobs import queue
from privlearn.service.jobs.training import run_job
from privlearn.service.service import only_server
from privlearn.service.store.store import open_store
from privlearn.sessions import SharedStore
from privlearn.storage import disconnect, excluding, reading
from privlearn.storage.formats import LEDGER, PARTS, SERVICE
from privlearn.storage.migrations import _scripts, pending, upgrade
from tests.support.forked import fork
from tests.support.old_stores import (
    EXPECTED,
    FIXTURES,
    old_postgresql_server,
    old_sqlite_server,
    same,
    unpack,
)
from tests.support.postgresql_cluster import Cluster
from tests.support.raw_store import Refused, execute, is_file
from tests.support.service_support import model_request
from tests.support.stored_facts import facts_of_ledger, facts_of_server, holder

STEPS = {"ledger": (LEDGER.oldest, LEDGER.newest), "service": (SERVICE.oldest, SERVICE.newest)}


@pytest.fixture
def store(old_server: Owner) -> str:
    """A server's store that version 0.1 wrote."""
    return old_server.server.store


def expected(store: str) -> Any:
    return EXPECTED["server_sqlite" if is_file(store) else "server_postgresql"]


def formats(store: str) -> dict[str, list[int]]:
    tables = {name: f"SELECT version FROM {name}_format ORDER BY version" for name in PARTS}
    return {name: [version for (version,) in execute(store, query)] for name, query in tables.items()}


OLD = {name: [part.oldest] for name, part in PARTS.items()}
NEW = {name: list(range(part.oldest, part.newest + 1)) for name, part in PARTS.items()}


def test_an_older_store_is_refused_and_the_sentence_says_what_to_type(old_server: Owner) -> None:
    store = old_server.server.store
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


def test_every_format_has_a_script() -> None:
    scripts = _scripts()
    assert set(scripts.get_heads()) == {f"{name}_{part.newest}" for name, part in PARTS.items()}
    assert set(scripts.get_bases()) == {f"{name}_{part.oldest}" for name, part in PARTS.items()}


def structure(store: str) -> dict[str, Any]:
    """Everything that the tables are made of, but their rows."""
    with reading(store) as connection:
        found = inspect(connection)
        return {name: _of_table(found, name) for name in sorted(found.get_table_names())} | {
            "triggers": sorted(map(_plainly, execute(store, _TRIGGERS[connection.dialect.name])))
        }


def _of_table(found: Any, name: str) -> Any:
    columns = [
        (column["name"], str(column["type"]), column["nullable"], column["default"], column.get("identity"))
        for column in found.get_columns(name)
    ]
    return (
        columns,
        found.get_pk_constraint(name),
        found.get_foreign_keys(name),
        sorted(map(str, found.get_unique_constraints(name))),
        sorted(_expression(constraint["sqltext"]) for constraint in found.get_check_constraints(name)),
        sorted(map(_index, found.get_indexes(name))),
    )


def _index(found: dict[str, Any]) -> str:
    options = {option: _expression(str(value)) for option, value in found["dialect_options"].items()}
    return str([found["name"], found["column_names"], bool(found["unique"]), sorted(options.items())])


def _plainly(row: tuple[Any, ...]) -> str:
    return re.sub(r"\b(public|owner_\w+)\.", "", str(row))


def _expression(text: str) -> str:
    """Without the casts and brackets that PostgreSQL shows in other places when a dump is read back."""
    return re.sub(r"::(character varying|text)(\[\])?|[()]", "", text)


_TRIGGERS = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname, tgenabled, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal"
    " AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)",
}


def test_the_tables_are_as_this_version_makes_them(
    old_server: Owner, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "new").mkdir()
    place = request.getfixturevalue("server").new_place() if old_server.server.ledger else None
    fresh = open_store(holder(FIXTURES, tmp_path / "new", place))
    SharedStore(fresh, "a session").check_free()  # makes the tables of sessions
    upgrade(old_server.server.store)
    found, wanted = structure(old_server.server.store), structure(fresh)
    assert sorted(found) == sorted(wanted)
    for table in wanted:
        assert found[table] == wanted[table], table


CHANGES = [
    "UPDATE entries SET note = 'another'",
    "DELETE FROM entries",
    "UPDATE budgets SET epsilon = 1000",
    "DELETE FROM ledger_format",
    "UPDATE service_format SET version = 1",
    "DELETE FROM events",
    "UPDATE session_answers SET scores = memory",
]


def test_rows_can_still_only_be_added(store: str) -> None:
    upgrade(store)
    for change in CHANGES:
        with pytest.raises(Refused, match="append-only"):
            execute(store, change)


def test_older_entries_have_their_sums(store: str) -> None:
    upgrade(store)
    for name in Ledger.datasets(store):
        ledger = Ledger.open(store, name)
        statement = ledger.statement()
        settled = sum(entry.state != "reserved" for entry in statement.entries)
        assert ledger.check() == len(statement.entries) + settled > 0


def test_rows_still_refer_to_each_other(store: str) -> None:
    """The table of jobs was made anew in a file, and others refer to it."""
    upgrade(store)
    with pytest.raises(LedgerError, match=r"(?i)foreign key"), excluding(store, "jobs") as connection:
        connection.exec_driver_sql("DELETE FROM jobs")


def test_a_server_goes_on_where_it_was(old_server: Owner) -> None:
    """One training was running when its process died, another one waited; their costs are paid once."""
    upgrade(old_server.server.store)
    store, catalog = open_store(old_server), Catalog(old_server)
    before = Ledger.open(store, "clinic").statement()
    queue.expire_leases(store)
    while (job := queue.claim(store)) is not None:
        assert run_job(store, catalog, job) == ""
    after = Ledger.open(store, "clinic").statement()
    assert after.entries[: len(before.entries)] == before.entries
    assert after.spent.epsilon == before.spent.epsilon + 0.5
    assert after.reserved == before.reserved


def test_a_request_that_is_sent_again_finds_its_job(store: str) -> None:
    """Its key names one job for ever."""
    (made,) = execute(store, "SELECT id FROM jobs WHERE idempotency_key = 'a key'")
    upgrade(store)
    request = model_request("clinic", "release", "logistic", 0.5, 1e-7)
    assert queue.submit(store, "alice", request, Guarantee(0.5, 1e-7), "a key").id == made[0]


def test_new_entries_can_have_a_note(store: str) -> None:
    upgrade(store)
    ledger = Ledger.open(store, "clinic").with_note("for the board", file_name="a.privlearn")
    ledger.reserve(Cost(Guarantee(0.1)), "a test").commit()
    *old, new = ledger.statement().entries
    assert (new.note, new.file_name) == ("for the board", "a.privlearn")
    assert {(entry.note, entry.file_name) for entry in old} == {("", "")}


def statements(store: str) -> int:
    """How many an upgrade runs; this one is undone."""
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
    store = old_server.server.store
    another = tmp_path_factory.mktemp("another")
    if is_file(store):
        total = statements(old_sqlite_server(another).server.store)
    else:
        total = statements(old_postgresql_server(another, request.getfixturevalue("server")).server.store)
    disconnect()
    assert total > 10
    for number in (*range(1, total, step), total):
        _, status = os.waitpid(fork(lambda number=number: killed_after(store, number)), 0)  # type: ignore[misc]
        assert os.WTERMSIG(status) == signal.SIGKILL
        assert formats(store) == OLD
    upgrade(store)
    assert formats(store) == NEW
    assert same(facts_of_server(old_server), expected(store))
    if is_file(store):
        assert execute(store, "PRAGMA integrity_check") == [("ok",)]


def test_of_two_at_the_same_time_one_does_it(old_server: Owner) -> None:
    store = old_server.server.store
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
    assert same(facts_of_server(old_server), expected(store))


@pytest.fixture
def postgresql_store(server: Cluster, tmp_path: Path) -> str:
    return old_postgresql_server(tmp_path, server).server.store


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
    assert "in time" in [
        entry.reservation for entry in Ledger.open(postgresql_store, "clinic").statement().entries
    ]


def test_a_role_that_may_only_append_cannot_do_it(server: Cluster, postgresql_store: str) -> None:
    database = str(psycopg.conninfo.conninfo_to_dict(postgresql_store)["dbname"])
    name = database.replace("holder", "analyst")
    server.execute(f"CREATE ROLE {name} LOGIN")
    execute(postgresql_store, f"GRANT SELECT ON ledger_format, service_format, budgets TO {name}")
    execute(postgresql_store, f"GRANT SELECT, INSERT ON entries TO {name}")
    with pytest.raises(LedgerError, match=r"permission denied|must be owner"):
        upgrade(server.address(database, name))
    assert formats(postgresql_store) == OLD
    upgrade(postgresql_store)
    mine = Ledger.open(server.address(database, name), "clinic")
    mine.with_note("by a role that was granted its rights before").reserve(Cost(Guarantee(0.1)), "a test")


@pytest.fixture
def read_only() -> Iterator[str]:
    """A ledger that everybody may read and only the administrator write."""
    with tempfile.TemporaryDirectory() as folder:  # not pytest's own: it keeps others out
        store = unpack("budgets.db", Path(folder) / "budgets.db")
        store.chmod(0o444)
        os.chmod(folder, 0o555)
        yield str(store)
        os.chmod(folder, 0o755)


def test_a_file_that_may_not_be_written_stays_as_it_is(read_only: str, tmp_path: Path) -> None:
    upgrade(str(unpack("budgets.db", tmp_path / "budgets.db")))  # so that all code is read
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
    assert formats(store)["ledger"] == [LEDGER.oldest]
    other = str(tmp_path / "other.db")
    execute(other, "CREATE TABLE patients (name TEXT)")
    for attempt in (upgrade, pending):
        with pytest.raises(LedgerError, match="is not a ledger"):
            attempt(other)
    with pytest.raises(LedgerError, match="there is no ledger"):
        upgrade(str(tmp_path / "missing.db"))


def told(*words: str) -> str:
    result = CliRunner().invoke(app, ["upgrade", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_the_command(tmp_path: Path) -> None:
    store = str(unpack("budgets.db", tmp_path / "budgets.db"))
    assert told(store, "--check") == "The ledger's format 2 would become 6.\n"
    assert told(store) == "The ledger's format 2 has become 6.\n"
    assert told(store) == "Nothing to do: the formats are those of this version.\n"
    assert same(facts_of_ledger(store), EXPECTED["ledger"])


def test_the_command_for_a_server(old_server: Owner, tmp_path: Path) -> None:
    owner = str(tmp_path / "owner.toml")
    if old_server.server.ledger is None:
        with only_server(old_server.server.folder), pytest.raises(LedgerError, match="another server runs"):
            told(owner)
        assert formats(old_server.server.store) == OLD
    assert f"The service's format 1 has become {SERVICE.newest}." in told(owner)
    open_store(old_server)


def test_the_refusal_can_be_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = unpack("budgets.db", tmp_path / "my budgets.db")
    with pytest.raises(SystemExit):
        main(["budget", "--ledger", str(store)])
    command = re.search(r"`privlearn (upgrade .*?)`", " ".join(capsys.readouterr().err.split()))
    assert command is not None
    assert "has become" in told(*shlex.split(command[1])[1:])
