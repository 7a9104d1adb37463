"""What holds for a server: connections that break, settings that it must not impose, and what a role may do."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from privlearn import Ledger
from privlearn.budget import Cost, Reservation
from privlearn.budget import tables as stores
from privlearn.budget.reservation import append
from privlearn.budget.storage import disconnect
from privlearn.cli import app
from privlearn.errors import LedgerError
from privlearn.guarantee import Guarantee
from tests.support.forked import fork
from tests.support.postgresql_cluster import Cluster
from tests.support.raw_store import execute

COST = Cost(Guarantee(0.1, 1e-8))
TOTAL = Guarantee(1.0, 1e-6)


@pytest.fixture
def ledger(server: Cluster) -> Ledger:
    return Ledger.create(server.new_place(), "census", TOTAL)


def role(ledger: Ledger) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(ledger.store)["user"])


def test_settings_of_every_transaction_that_writes(ledger: Ledger) -> None:
    """The server's own defaults are the harmful ones, see HOSTILE; a power cut cannot be tried here."""
    with stores.writing(ledger.store, "census") as connection:
        settings = {name: connection.exec_driver_sql(f"SHOW {name}").scalar() for name in SETTINGS}
    assert settings == SETTINGS


SETTINGS = {
    "transaction_isolation": "read committed",
    "transaction_read_only": "off",
    "synchronous_commit": "on",
    "extra_float_digits": "3",
    "lock_timeout": "30s",
    "idle_in_transaction_session_timeout": "30s",
    "fsync": "on",
}


def test_a_stronger_synchronous_commit_is_kept(server: Cluster, ledger: Ledger) -> None:
    server.execute(f"ALTER ROLE {role(ledger)} SET synchronous_commit = remote_apply")
    disconnect()
    with stores.writing(ledger.store, "census") as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "remote_apply"


def test_reading_sees_one_state_and_cannot_write(ledger: Ledger) -> None:
    with stores.reading(ledger.store) as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "repeatable read"
    with (
        pytest.raises(LedgerError, match="read-only transaction"),
        stores.reading(ledger.store) as connection,
    ):
        append(connection, dataset="census", kind="opened")


def test_data_sets_do_not_wait_for_each_other(ledger: Ledger) -> None:
    other = Ledger.create(ledger.store, "another", TOTAL)
    with stores.writing(ledger.store, "census"):
        other.reserve(COST, "meanwhile").commit()
        with psycopg.connect(ledger.store) as rival:
            rival.execute("SET lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                rival.execute(
                    "SELECT pg_advisory_xact_lock((classid::bigint << 32) | objid::bigint)"
                    " FROM pg_locks WHERE locktype = 'advisory'"
                )


def test_triggers_fire_in_sessions_that_ask_for_none(server: Cluster, ledger: Ledger) -> None:
    with psycopg.connect(server.address("postgres", "postgres")) as administrator:
        administrator.execute("SET session_replication_role = replica")
        with pytest.raises(psycopg.IntegrityError, match="append-only"):
            administrator.execute(f"DELETE FROM {role(ledger)}.entries")


def test_a_connection_lost_before_the_commit_records_nothing(server: Cluster, ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"terminating connection|server closed"):
        write_and_lose_the_connection(server, ledger)
    assert ledger.statement().entries == ()
    ledger.reserve(COST, "the lock is free again").commit()


def write_and_lose_the_connection(server: Cluster, ledger: Ledger) -> None:
    with stores.writing(ledger.store, "census") as connection:
        append(
            connection, dataset="census", kind="reserved", reservation="x", epsilon=0.1, delta=0.0, account=""
        )
        backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        server.execute(f"SELECT pg_terminate_backend({backend}, 10000)")


def backend_of(store: str) -> int:
    with stores.reading(store) as connection:
        return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def test_a_connection_is_kept_and_replaced_when_it_was_lost(server: Cluster, ledger: Ledger) -> None:
    kept = backend_of(ledger.store)
    assert backend_of(ledger.store) == kept
    server.execute(f"SELECT pg_terminate_backend({kept}, 10000)")
    ledger.reserve(COST, "by a fresh connection").commit()
    assert backend_of(ledger.store) != kept
    assert ledger.statement().spent.epsilon == 0.1


def test_a_transaction_inside_another_does_not_wait_for_it(ledger: Ledger) -> None:
    """Also when more are open than connections are kept."""
    with ExitStack() as stack:
        backends = [
            stack.enter_context(stores.reading(ledger.store))
            .exec_driver_sql("SELECT pg_backend_pid()")
            .scalar()
            for _ in range(12)
        ]
        ledger.reserve(COST, "the innermost").commit()
    assert len(set(backends)) == 12


def test_a_forked_process_has_connections_of_its_own(ledger: Ledger) -> None:
    mine = backend_of(ledger.store)

    def child() -> None:
        assert backend_of(ledger.store) != mine
        ledger.reserve(COST, "the child").commit()
        disconnect()

    assert os.waitpid(fork(child), 0)[1] == 0
    assert backend_of(ledger.store) == mine
    assert ledger.statement().spent.epsilon == 0.1


def test_a_server_that_is_down_refuses_and_forgets_nothing(server: Cluster, ledger: Ledger) -> None:
    reservation = ledger.reserve(COST, "a test")
    with reservation:
        server.stop()
        try:
            for attempt in (reservation.commit, ledger.statement, lambda: ledger.reserve(COST, "another")):
                with pytest.raises(LedgerError, match=r"cannot be used: .*Check that the server runs"):
                    attempt()
        finally:
            server.start()
        assert ledger.statement().reserved.epsilon == 0.1
        reservation.commit()
    assert ledger.statement().spent.epsilon == 0.1


def test_a_server_that_does_not_sync_is_refused(server: Cluster, ledger: Ledger) -> None:
    set_fsync(server, ledger, "off")
    try:
        with pytest.raises(LedgerError, match="fsync = on"):
            ledger.reserve(COST, "a test")
        assert ledger.statement().entries == ()
    finally:
        set_fsync(server, ledger, "on")


def set_fsync(server: Cluster, ledger: Ledger, value: str) -> None:
    server.execute(f"ALTER SYSTEM SET fsync = {value}", "SELECT pg_reload_conf()")
    for _ in range(1000):  # a running server takes up a new setting in its own time
        if execute(ledger.store, "SHOW fsync") == [(value,)]:
            return
    raise AssertionError("the server did not take up the setting")


@contextmanager
def proxy_that_loses_the_answer(folder: Path) -> Iterator[int]:
    """Open a port that leads to the server, and hangs up before the client learns of its commit."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=_serve, args=(listener, folder))
        server.start()
        yield listener.getsockname()[1]
        disconnect()
        listener.shutdown(socket.SHUT_RDWR)
        server.join()


def _serve(listener: socket.socket, folder: Path) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            with client, socket.socket(socket.AF_UNIX) as upstream:
                upstream.connect(str(folder / ".s.PGSQL.5432"))
                _forward(client, upstream)


def _forward(client: socket.socket, upstream: socket.socket) -> None:
    written = committing = False
    while True:
        for source in select.select([client, upstream], [], [])[0]:
            content = source.recv(65536)
            if not content or (source is upstream and committing):
                return
            written |= b"INSERT INTO" in content
            committing = written and b"COMMIT" in content
            (upstream if source is client else client).sendall(content)


def test_a_commit_whose_answer_is_lost_counts(server: Cluster, ledger: Ledger) -> None:
    """The caller gets an error, lets nothing out, and the cost counts; a repeated commit changes nothing."""
    with proxy_that_loses_the_answer(server.folder) as port:
        far = Ledger(f"postgresql://{role(ledger)}@127.0.0.1:{port}/postgres?sslmode=disable", "census")
        with pytest.raises(LedgerError, match="may have been recorded"):
            far.reserve(COST, "lost on the way back")
        (entry,) = ledger.statement().entries
        assert entry.state == "reserved"

        reservation = Reservation(far.store, "census", entry.reservation)
        with pytest.raises(LedgerError, match="a commit may be tried again"):
            reservation.commit()
        committed = ledger.statement()
        assert committed.spent.epsilon == 0.1
        reservation.commit()  # writes nothing this time, so its answer is not lost
        assert ledger.statement() == committed


ANALYST = """
    GRANT SELECT ON ledger_format, budgets TO analyst;
    GRANT SELECT, INSERT ON entries, sums, answers TO analyst;
"""


def test_an_analyst_s_role_can_append_and_nothing_else(server: Cluster, ledger: Ledger) -> None:
    analyst = server.new_place()
    name = role(Ledger(analyst, "census"))
    server.execute(
        f"ALTER ROLE {name} SET search_path = {role(ledger)}",
        f"GRANT USAGE ON SCHEMA {role(ledger)} TO {name}",
    )
    with pytest.raises(LedgerError, match="permission denied"):
        Ledger.open(analyst, "census")
    execute(ledger.store, ANALYST.replace("analyst", name))
    mine = Ledger.open(analyst, "census")
    mine.reserve(COST, "an analyst").commit()
    assert mine.statement() == ledger.statement()
    with pytest.raises(LedgerError, match="permission denied"):
        Ledger.create(analyst, "a budget of my own", Guarantee(1000.0))
    for change in ("DELETE FROM entries", "TRUNCATE entries", "DROP TABLE entries", "UPDATE budgets SET epsilon = 9",
                   "ALTER TABLE entries DISABLE TRIGGER ALL", "DROP FUNCTION ledger_append_only"):  # fmt: skip
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            execute(analyst, change)


def test_the_page_grants_what_is_tested() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "budget.md"
    for line in ANALYST.split("\n"):
        assert line.strip() in page.read_text(encoding="utf-8")


def test_a_password_comes_from_the_environment_and_is_never_shown(
    server: Cluster, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.execute(
        f"CREATE ROLE guarded LOGIN PASSWORD 'right-secret' IN ROLE {role(ledger)}",
        f"ALTER ROLE guarded SET search_path = {role(ledger)}",
    )
    address = server.address("postgres", "guarded")
    monkeypatch.setenv("PGPASSWORD", "wrong-secret")
    with pytest.raises(LedgerError, match="password authentication failed") as refusal:
        Ledger.open(address, "census")
    error: BaseException | None = refusal.value
    while error is not None:
        assert "wrong-secret" not in f"{error!r} {error}"
        error = error.__cause__ or error.__context__
    monkeypatch.setenv("PGPASSWORD", "right-secret")
    opened = Ledger.open(address, "census")
    assert "secret" not in repr(opened) + repr(opened.reserve(COST, "a test").__dict__) + str(
        opened.statement()
    )


def test_a_database_that_is_not_there(server: Cluster) -> None:
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger.create(server.address("nowhere", "postgres"), "census", TOTAL)


def test_addresses_are_written_in_one_way(ledger: Ledger) -> None:
    driver = ledger.store.replace("postgresql://", "postgresql+psycopg://")
    assert Ledger.open(driver, "census") == ledger
    for address, advice in {
        "postgresql://me@host": "names no database",
        "postgresql://me@host/db?host=a&host=b": "once each",
        "postgresql://me@host/db?application_name=x": "Leave out others",
    }.items():
        with pytest.raises(LedgerError, match=advice):
            Ledger.open(address, "census")


def test_the_command_line_takes_an_address(server: Cluster) -> None:
    store = server.new_place()
    made = CliRunner().invoke(app, ["budget", "create", "census", "--ledger", store, "--epsilon", "1"])
    assert made.exit_code == 0, made.output
    shown = CliRunner().invoke(app, ["budget", "show", "--ledger", store])
    assert shown.exit_code == 0
    assert "census" in shown.output
