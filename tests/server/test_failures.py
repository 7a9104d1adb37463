"""A full disk, a lost database, a killed server: what was asked is refused or finished, every cost has its result."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from privlearn.client import Client, Unreachable
from privlearn.errors import LedgerError
from tests.support.postgresql_cluster import Cluster
from tests.support.raw_store import execute
from tests.support.real_server import Clinic

COST = 0.1


class Requests:
    """Releases that are asked for at the same time, each under a key of its own."""

    def __init__(self, client: Client, count: int) -> None:
        self._client = client
        self._names = [f"request-{number}" for number in range(count)]
        self.received: set[str] = set()

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """They end with the server: what it did not answer until then is lost to them."""
        threads = [threading.Thread(target=self._ask, args=(name,)) for name in self._names]
        for thread in threads:
            thread.start()
        yield
        for thread in threads:
            thread.join()

    def repeat(self, client: Client) -> None:
        """The same requests again, of another server."""
        self._client = client
        for name in self._names:
            self._ask(name)

    def _ask(self, name: str) -> None:
        with suppress(LedgerError, Unreachable):
            made = self._client.train("clinic", "release", epsilon=COST, idempotency_key=name)
            self.received.add(made)


def results_in(clinic: Clinic) -> int:
    return len(execute(clinic.store, "SELECT id FROM results"))


def await_standstill(clinic: Clinic) -> None:
    """Some results, and then no more for three seconds."""
    found, since = 0, time.monotonic()
    while found == 0 or time.monotonic() - since < 3.0:
        if results_in(clinic) != found:
            found, since = results_in(clinic), time.monotonic()
        time.sleep(0.1)


def test_a_full_disk_is_waited_out(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, epsilon=4.0)
    room = Path(clinic.store).stat().st_size + 40_000
    with clinic.servers(largest_file=room) as [full], Client(full.url, clinic.key, timeout=1.0) as client:
        requests = Requests(client, 10)
        with requests.under_way():
            await_standstill(clinic)
            full.kill()
        assert 0 < results_in(clinic) < 10, "the disk was never full, or always"
    with clinic.servers() as [roomy], Client(roomy.url, clinic.key) as client:
        requests.repeat(client)
        assert len(requests.received) == 10
        clinic.check_accounts(requests.received)
        assert clinic.spent() == pytest.approx(10 * COST)
    assert execute(clinic.store, "PRAGMA integrity_check") == [("ok",)]


def test_lost_connections_to_the_database(server: Cluster, tmp_path: Path) -> None:
    """Every connection of the server is cut, again and again, while clients ask."""
    place = server.new_place()
    clinic = Clinic(tmp_path, place, epsilon=4.0)
    role = place.removeprefix("postgresql://").partition("@")[0]
    over = threading.Event()
    cut = threading.Thread(target=_cut, args=(server, role, over))
    with clinic.servers() as [running], Client(running.url, clinic.key, timeout=60.0) as client:
        session = client.open_session(
            "clinic", epsilon=COST, delta=1e-6, learner="kernel", mechanism="function_release"
        )
        requests = Requests(client, 5)
        cut.start()
        with requests.under_way():
            answers = [session.decide(clinic.points(count)) for count in range(1, 6)]
            over.set()
        cut.join()
        assert len(requests.received) == 5
        assert [session.decide(clinic.points(count)) for count in range(1, 6)] == answers
        clinic.check_accounts(requests.received)
        assert clinic.spent() == pytest.approx(6 * COST)


def _cut(server: Cluster, role: str, over: threading.Event) -> None:
    with psycopg.connect(server.address("postgres", "postgres"), autocommit=True) as connection:
        pause = 0.3
        while not over.wait(pause):
            pause *= 1.2  # on a busy machine something gets done between two cuts at last
            connection.execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"
            )


@pytest.mark.slow
def test_a_killed_server_goes_on_where_it_was(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, epsilon=4.0)
    with clinic.servers() as [killed], Client(killed.url, clinic.key, timeout=1.0) as client:
        session = client.open_session(
            "clinic", epsilon=COST, delta=1e-6, learner="kernel", mechanism="function_release"
        )
        answers = session.decide(clinic.points(5))
        requests = Requests(client, 5)
        with requests.under_way():
            while results_in(clinic) == 0:
                time.sleep(0.01)
            killed.kill()
    with clinic.servers() as [again], Client(again.url, clinic.key) as client:
        requests.repeat(client)
        assert len(requests.received) == 5
        assert client.session(session.id).decide(clinic.points(5)) == answers
        clinic.check_accounts(requests.received)
        assert clinic.spent() == pytest.approx(6 * COST)
