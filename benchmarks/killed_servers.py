"""Servers, training processes and the database killed with SIGKILL at random moments, while analysts go on asking.

    python -m benchmarks.killed_servers [--kills 200] [--servers 2] [--analysts 4] [--seed 0]

Real server processes share a PostgreSQL of their own. Analysts ask them in turns for releases, sessions, evaluations
and answers, under idempotency keys, and try again elsewhere whenever they get no answer. Every other request costs so
much that a second person must approve it; an approver declines some. What is killed: a server with its training
process, a server alone, a training process, every process of the database; each is started again. After every kill, and
at the end, the database is read without privlearn:

- no budget and no share is overspent, no cost is there twice, whatever was received is paid for;
- a point of a session has one answer, a file one content, a key one job;
- nothing that needs approval has a cost before somebody agreed;
- at the end: every job is over, every job that is done has one result and one cost, the sums of the ledger are those of
  its entries, every decision is one line of the audit log, and its lines are a chain.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import signal
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

from privlearn import Ledger
from privlearn.client import Client, Unreachable
from privlearn.errors import BudgetExceeded, LedgerError
from privlearn.server.access.keys import create_key
from privlearn.server.store.log_file import first_head, iterate_events, verify_log
from tests.support.postgresql_cluster import Cluster, cluster
from tests.support.raw_store import execute
from tests.support.real_server import Clinic, RealServer

COST, APPROVED_COST, DELTA = 0.02, 0.03, 1e-10
APPROVAL = f"approval = {{ above = {COST} }}"
OVER = ("done", "failed", "declined")
EPSILON_PER_KILL = 0.1
"""Of the budget: so that it is used up towards the end, and the last ones to ask are refused."""
SHARES = {"alice": 1.0, "bob": 0.25}
KINDS = ("release", "session", "function_release", "evaluate")
KILLS = ("server and its training process", "server", "training process", "database")
POINTS = 30

Found = TypeVar("Found")


class Over(Exception):
    """The benchmark ends."""


class Trial:
    """What everybody knows, and what must not be."""

    def __init__(
        self,
        clinic: Clinic,
        servers: list[RealServer],
        epsilon: float,
        addresses: Sequence[str] = (),
        certificate: Path | None = None,
        rest: float = 0.2,
    ) -> None:
        self.clinic, self.servers, self.epsilon, self.rest = clinic, servers, epsilon, rest
        self.addresses, self.certificate = addresses or [server.url for server in servers], certificate
        self.over, self.decided = threading.Event(), threading.Event()
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.received: set[str] = set()
        self.known: dict[tuple[str, Any], Any] = {}
        self._lock = threading.Lock()

    def learn(self, job: str, what: Any, found: Any) -> None:
        """Something that must be the same whenever it is asked for."""
        with self._lock:
            self.received.add(job)
            if self.known.setdefault((job, what), found) != found:
                self.problems.append(f"{job}: {what} has two answers")

    def check(self) -> None:
        """What must hold at any moment."""
        with self._lock:
            received = set(self.received)  # before the database is read: costs come first
        store = self.clinic.store
        reserved = execute(store, "SELECT reservation, epsilon, account FROM entries WHERE kind = 'reserved'")
        paid = [row[0] for row in execute(store, "SELECT reservation FROM entries WHERE kind = 'committed'")]
        made = {row[0] for row in execute(store, "SELECT id FROM results")}
        self.demand(len(paid) == len(set(paid)), "a cost is committed twice")
        self.demand(len(reserved) == len({row[0] for row in reserved}), "a cost is reserved twice")
        self.demand(made <= {row[0] for row in reserved}, "a result has no cost")
        self.demand(received <= set(paid), "something was received and not paid for")
        undecided = execute(store, "SELECT id FROM jobs WHERE decide_by <> '' AND decided_by = ''")
        self.demand({row[0] for row in undecided}.isdisjoint(paid), "a cost that nobody approved")
        for name, share in SHARES.items():
            spent = sum((Decimal(repr(row[1])) for row in reserved if row[2] == name), Decimal(0))
            self.demand(spent <= Decimal(repr(share * self.epsilon)), f"the share of {name} is overspent")
        total = sum((Decimal(repr(row[1])) for row in reserved), Decimal(0))
        self.demand(total <= Decimal(repr(self.epsilon)), "the budget is overspent")

    def check_end(self) -> None:
        """What must hold when everything is over."""
        store, deadline = self.clinic.store, time.monotonic() + 300
        unfinished = "SELECT count(*) FROM jobs WHERE state NOT IN ('done', 'failed', 'declined')"
        while execute(store, unfinished) != [(0,)]:
            if time.monotonic() > deadline:
                self.problems.append("jobs are not over")
                break
            time.sleep(0.2)
        self.check()
        decided = execute(store, "SELECT count(*) FROM jobs WHERE decided_by = 'bea'")
        self.demand(decided == execute(store, "SELECT count(*) FROM events WHERE actor = 'bea'"), "decisions")
        self.clinic.check_accounts(self.received)
        Ledger.open(store, "clinic").check()
        verify_log(first_head(store), iterate_events(store))

    def demand(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.problems.append(otherwise)


class Person(threading.Thread, ABC):
    """Does one thing after another, with whichever server answers."""

    def __init__(self, trial: Trial, key: str, seed: int, until: threading.Event) -> None:
        super().__init__(daemon=True)
        self._trial, self._random, self._until = trial, random.Random(seed), until
        self._clients = [Client(url, key, verify=trial.certificate, timeout=2.0) for url in trial.addresses]
        self._next = cycle(self._clients)

    @abstractmethod
    def act(self) -> None:
        """One thing, of which nothing is forgotten if a server dies meanwhile."""

    def run(self) -> None:
        while not self._until.is_set():
            try:
                self.act()
            except Over:
                break
            except BudgetExceeded:
                self._trial.counts["refused: no budget"] += 1
                self._until.wait(0.5)
            except Exception as error:
                self._trial.problems.append(f"{type(error).__name__}: {error}")
        for client in self._clients:
            client.close()

    def persist(self, call: Callable[[Client], Found]) -> Found:
        """The same request until somebody answers it."""
        while not self._until.is_set():
            try:
                return call(next(self._next))
            except BudgetExceeded:
                raise
            except (Unreachable, LedgerError):
                self._trial.counts["tried again"] += 1
        raise Over


class Approver(Person):
    """Agrees to most of what waits."""

    def act(self) -> None:
        for case in self.persist(lambda client: client.approvals()):
            decision = self._random.choices(("approve", "decline"), (4, 1))[0]
            try:
                self._decide(case["id"], decision)
            except BudgetExceeded:
                self._decide(case["id"], "decline")
        self._until.wait(self._trial.rest)

    def _decide(self, job: str, decision: Any) -> None:
        self.persist(lambda client: client.decide(job, decision, "as agreed"))
        self._trial.counts[f"decided: {decision}"] += 1


class Analyst(Person):
    """Asks for one thing after another."""

    def __init__(self, trial: Trial, key: str, seed: int) -> None:
        super().__init__(trial, key, seed, trial.over)
        self._release = ""

    def act(self) -> None:
        kind, key = self._random.choice(KINDS if self._release else KINDS[:3]), secrets.token_hex(16)
        cost = self._random.choice((COST, APPROVED_COST))
        job = self.persist(lambda client: self._submit(client, kind, cost, key))
        if self._random.random() < 0.3:
            again = self.persist(lambda client: self._submit(client, kind, cost, key))
            self._trial.demand(again == job, f"{job}: its key is another job's")
        while (record := self.persist(lambda client: client.job(job)))["state"] not in OVER:
            self._trial.over.wait(self._trial.rest)
        self._trial.counts[f"{kind} {record['state']}"] += 1
        if record["state"] == "done":
            self._use(kind, job)

    def _submit(self, client: Client, kind: str, cost: float, key: str) -> str:
        asked: dict[str, Any] = {"epsilon": cost, "delta": DELTA, "idempotency_key": key}
        if cost > COST:
            asked |= {"purpose": "a score for the ward", "legal_basis": "consent"}
        if kind == "evaluate":
            return client.ask("evaluate", "clinic", release=self._release, **asked).id
        if kind == "function_release":
            return client.ask("session", "clinic", learner="kernel", mechanism=kind, **asked).id
        return client.ask(kind, "clinic", learner="logistic", **asked).id

    def _use(self, kind: str, job: str) -> None:
        if kind in ("release", "evaluate"):
            for _ in range(2):
                content = self.persist(lambda client: client.result(job)).content
                self._trial.learn(job, "content", sha256(content).hexdigest())
            self._release = job if kind == "release" else self._release
            return
        for _ in range(3):
            ages = [self._random.randrange(POINTS) for _ in range(3)]
            for age, answer in zip(ages, self.persist(partial(_answers, job, ages)), strict=True):
                self._trial.counts["answers"] += 1
                self._trial.learn(job, age, round(answer, 9) if kind == "session" else answer)


def _answers(session: str, ages: list[int], client: Client) -> list[float]:
    points = {"age": [float(age) for age in ages], "dose": [1.0] * len(ages), "sex": ["male"] * len(ages)}
    found: list[float] = client.session(session).decide(points).column("score").to_pylist()
    return found


def kill(what: str, trial: Trial, database: Cluster, chance: random.Random) -> None:
    """And start it again."""
    server = chance.choice(trial.servers)
    if what == "database":
        postmaster = int((database.folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)  # so that no other child is born
        kill_processes(postmaster, *child_processes(postmaster))
        for lock in (database.folder / "data" / "postmaster.pid", *database.folder.glob(".s.*.lock")):
            lock.unlink()  # where nobody takes note of the dead, the number of one still looks alive
        database.start()
    elif what == "training process":
        kill_processes(
            *(process for process in child_processes(server.pid) if "spawn_main" in _command(process))
        )
    else:
        if what == "server":
            os.kill(server.pid, signal.SIGKILL)  # its training process finds out by itself
            server.await_end()
        else:
            server.kill()
        trial.check()
        server.start()
    for each in trial.servers:
        each.await_ready()


def child_processes(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for file in found for child in file.read_text().split()]


def _command(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_text()


def kill_processes(*processes: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    while any(Path(f"/proc/{process}/exe").exists() for process in processes):
        time.sleep(0.01)


def run(folder: Path, database: Cluster, chosen: argparse.Namespace) -> list[str]:
    chance, epsilon = random.Random(chosen.seed), round(EPSILON_PER_KILL * chosen.kills, 6)
    clinic = Clinic(folder, database.new_place(), epsilon=epsilon, dataset=APPROVAL)
    keys = [clinic.key, create_key(clinic.store, "analyst", "bob")]
    with clinic.servers(chosen.servers) as servers:
        trial = Trial(clinic, servers, epsilon)
        analysts = [Analyst(trial, keys[number % 2], number) for number in range(chosen.analysts)]
        approver = Approver(trial, create_key(clinic.store, "approver", "bea"), chosen.seed, trial.decided)
        for person in (*analysts, approver):
            person.start()
        try:
            for number in range(1, chosen.kills + 1):
                what = KILLS[number % len(KILLS)]
                time.sleep(chance.uniform(0.2, 2.0))
                kill(what, trial, database, chance)
                trial.counts[f"killed: {what}"] += 1
                trial.check()
                print(f"{number:4}  {what}: {len(trial.problems)} problems so far", flush=True)
        finally:
            trial.over.set()
            for analyst in analysts:
                analyst.join()
        trial.check_end()
        trial.decided.set()
        approver.join()
    print(", ".join(f"{count} {what}" for what, count in sorted(trial.counts.items())))
    print(f"epsilon {clinic.spent():g} of {epsilon:g} is spent, {len(trial.received)} results were received")
    return trial.problems


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--analysts", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, cluster() as database:
        problems = run(Path(folder), database, chosen)
    for problem in problems:
        print(f"PROBLEM: {problem}")
    raise SystemExit(len(problems) > 0)


if __name__ == "__main__":
    main()
