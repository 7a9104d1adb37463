"""Two server processes, one PostgreSQL, fifty clients: they spend what there is, and all of it is accounted for.

Releases run at once; sessions wait for somebody who approves them at whichever server answers.
"""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from privlearn.client import Client, TrainingFailed, Unreachable
from privlearn.errors import BudgetExceeded
from privlearn.server.access import create_key
from tests.support.postgresql_cluster import Cluster
from tests.support.raw_store import execute
from tests.support.real_server import READY_SECONDS, Clinic, RealServer

CLIENTS = 50
SESSIONS = "{ session = 0.0 }"
POINTS = {"age": [20.0, 70.0], "dose": [1.0, 9.0], "sex": ["male", "female"]}


class Analyst(threading.Thread):
    """Asks until there is no budget left, now for a release, now for a session."""

    def __init__(self, number: int, clinic: Clinic, servers: list[RealServer], cost: float) -> None:
        super().__init__()
        self._clients = [Client(server.url, clinic.key, timeout=5.0) for server in servers]
        self._number = number
        self._cost = cost
        self.received: set[str] = set()
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            for turn in range(1000):
                self.received.add(self._ask(self._number + turn, secrets.token_hex(16)))
        except BudgetExceeded:
            pass
        except Exception as error:
            refused_late = isinstance(error, TrainingFailed) and "nothing was spent" in str(error).lower()
            self.failure = None if refused_late else error  # room when it was asked, none when it began
        finally:
            for client in self._clients:
                client.close()

    def _ask(self, turn: int, key: str) -> str:
        """Return the id of the new job. If a server is gone, send the same request to the other, under the same key."""
        for attempt in range(20):
            client = self._clients[(turn // 2 + attempt) % len(self._clients)]
            with suppress(Unreachable):
                return self._release(client, key) if turn % 2 else self._session(client, key)
        raise AssertionError("no server answers")

    def _release(self, client: Client, key: str) -> str:
        made = client.train("clinic", "release", epsilon=self._cost, learner="logistic", idempotency_key=key)
        assert client.download(made).certificate.guarantee.epsilon == self._cost
        return made

    def _session(self, client: Client, key: str) -> str:
        words: dict[str, Any] = {"purpose": "a test", "legal_basis": "none is needed"}
        made = client.open_session(
            "clinic", epsilon=self._cost, learner="logistic", idempotency_key=key, **words
        )
        assert len(made.predict(POINTS)) == 2
        return made.id


class Approver(threading.Thread):
    """Approves whatever waits, at one server or the other, until nobody asks any more."""

    def __init__(self, clinic: Clinic, servers: list[RealServer]) -> None:
        super().__init__()
        key = create_key(clinic.store, "approver", "bea")
        self._clients = [Client(server.url, key, timeout=1.0) for server in servers]
        self.over = threading.Event()
        self.approved: list[str] = []

    def run(self) -> None:
        turn = 0
        while not self.over.wait(0.05):
            turn += 1
            client = self._clients[turn % len(self._clients)]
            with suppress(Unreachable):
                for waiting in client.approvals():
                    self._decide(client, waiting["id"])
        for client in self._clients:
            client.close()

    def _decide(self, client: Client, job: str) -> None:
        try:
            client.decide(job, "approve")
            self.approved.append(job)
        except BudgetExceeded:
            client.decide(job, "decline", "there is no room any more")


def let_them_ask(
    clinic: Clinic, servers: list[RealServer], cost: float, *, kill_after: int | None = None
) -> set[str]:
    """Return what all clients together have received, once the budget is gone."""
    analysts = [Analyst(number, clinic, servers, cost) for number in range(CLIENTS)]
    approver = Approver(clinic, servers)
    for person in (approver, *analysts):
        person.start()
    if kill_after is not None:
        await_results(clinic, kill_after)
        servers[0].kill()
    for analyst in analysts:
        analyst.join()
    approver.over.set()
    approver.join()
    assert approver.approved
    assert [analyst.failure for analyst in analysts if analyst.failure is not None] == []
    assert sum(len(analyst.received) for analyst in analysts) == len(
        set().union(*(a.received for a in analysts))
    )
    return set().union(*(analyst.received for analyst in analysts))


def await_results(clinic: Clinic, count: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while len(execute(clinic.store, "SELECT id FROM jobs WHERE state = 'done'")) < count:
        assert time.monotonic() < deadline, "no results"
        time.sleep(0.02)


def spend_everything(folder: Path, place: str, results: int, kill_after: int | None = None) -> None:
    cost = 0.05
    clinic = Clinic(folder, place, epsilon=results * cost, dataset=f"approval = {{ above = {SESSIONS} }}")
    with clinic.servers(2) as servers:
        received = let_them_ask(clinic, servers, cost, kill_after=kill_after)
        assert len(received) == results
        assert clinic.spent() == pytest.approx(results * cost, abs=1e-12)
        clinic.check_accounts(received)


@pytest.mark.slow  # the next test has fifty clients and two servers too
def test_fifty_clients_use_up_one_budget_on_two_servers(server: Cluster, tmp_path: Path) -> None:
    spend_everything(tmp_path, server.new_place(), results=30)


def test_one_of_two_servers_is_killed_and_the_other_goes_on(server: Cluster, tmp_path: Path) -> None:
    spend_everything(tmp_path, server.new_place(), results=30, kill_after=10)


@pytest.mark.slow
@pytest.mark.parametrize("kill_after", [None, 50])
def test_four_hundred_results(server: Cluster, tmp_path: Path, kill_after: int | None) -> None:
    spend_everything(tmp_path, server.new_place(), results=400, kill_after=kill_after)
