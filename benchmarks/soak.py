"""An hour of mixed load on a whole deployment, with a part of it killed every two minutes.

    PYTHONPATH=. python benchmarks/soak.py [--minutes 60] [--pause 120] [--analysts 4] [--rest 0.2] [--seed 0]

nginx with the settings of docs/how-to/serve.md in front of two servers on one PostgreSQL, all on this machine.
Analysts ask through nginx as in `benchmarks.killed_servers`, an approver decides, and one more analyst asks a small
session for predictions, whose times are measured; everybody rests for --rest seconds between requests. In turn these
are killed and started again: a server with its training process, a server, a training process, the database, nginx;
the database is stopped for ten seconds; and, as root on Linux, the cable to the database, in a network namespace of
its own, is pulled for ten seconds. After every kill and at the end the ledger is checked as in
`benchmarks.killed_servers`. The last lines are the figures: answers, times, memory of the servers, the ledger.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import numpy as np
from killed_servers import (
    APPROVAL,
    COST,
    KILLS,
    Analyst,
    Approver,
    Trial,
    child_processes,
    kill,
    kill_processes,
)
from soak_network import Cable, cable, possible
from sqlalchemy import make_url

from privlearn.client import Client, Unreachable
from privlearn.errors import LedgerError
from privlearn.server.access.keys import create_key
from tests.support.nginx import PROGRAM, nginx
from tests.support.postgresql_cluster import Cluster, cluster
from tests.support.real_server import Clinic, RealServer

PARTS = (*KILLS, "nginx", "database stopped for ten seconds")
PULLED = "cable pulled for ten seconds"
CUT_SECONDS = 10.0
MEGABYTE = 1 << 20


class Proxy:
    """nginx as a process that can be killed and started again."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self.url = folder, url
        self._own: list[subprocess.Popen[bytes]] = []

    def kill(self) -> None:
        master = int((self._folder / "nginx.pid").read_text())
        kill_processes(master, *child_processes(master))
        log, settings = self._folder / "error.log", self._folder / "nginx.conf"
        self._own.append(subprocess.Popen([str(PROGRAM), "-p", self._folder, "-c", settings, "-e", log]))

    def end(self) -> None:
        for process in self._own:
            process.terminate()
            process.wait()


class Meter(threading.Thread):
    """Asks a session of a small model again and again, and samples the memory of the servers."""

    def __init__(self, trial: Trial, client: Client) -> None:
        super().__init__(daemon=True)
        self._trial, self._client = trial, client
        self.seconds: list[float] = []
        self.failures = 0
        self.memory: list[tuple[float, ...]] = []

    def run(self) -> None:
        session = self._client.open_session("clinic", learner="logistic", epsilon=COST)
        point, sampled = {"age": 40.0, "dose": 1.0, "sex": "male"}, 0.0
        first = session.predict(point)
        while not self._trial.over.wait(self._trial.rest):
            began = time.monotonic()
            try:
                self._trial.demand(session.predict(point) == first, "a prediction has changed")
                self.seconds.append(time.monotonic() - began)
            except (Unreachable, LedgerError):
                self.failures += 1
            if began - sampled > 5.0:
                sampled = began
                self.memory.append(tuple(_memory(server) for server in self._trial.servers))

    def report(self) -> str:
        p50, p99, top = 1000 * np.percentile(self.seconds, [50, 99, 100])
        sizes = np.array(self.memory)
        tenth = max(len(sizes) // 10, 1)
        first, last = sizes[tenth : 2 * tenth].max(axis=0), sizes[-tenth:].max(axis=0)
        return (
            f"{len(self.seconds)} predictions in turn: p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {top / 1000:.1f} s; "
            f"{self.failures} without an answer\n"
            f"memory of the servers: {first.astype(int).tolist()} MB early, {last.astype(int).tolist()} MB at the end, "
            f"{int(sizes.max())} MB at most"
        )


def _memory(server: RealServer) -> float:
    """Return the resident megabytes of a server process without its training processes; 0 while it is dead."""
    with suppress(OSError, IndexError, ProcessLookupError):
        pages = int(Path(f"/proc/{server.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE
    return 0.0


def disturb(
    part: str, trial: Trial, database: Cluster, proxy: Proxy, line: Cable | None, chance: random.Random
) -> None:
    if part == "nginx":
        proxy.kill()
    elif part == PULLED:
        assert line is not None
        with line.pulled():
            time.sleep(CUT_SECONDS)
    elif part in KILLS:
        kill(part, trial, database, chance)
    else:
        with stopped(database):
            time.sleep(CUT_SECONDS)


@contextmanager
def stopped(database: Cluster) -> Iterator[None]:
    """Stop every process of the database: connections stay open and nothing answers."""
    postmaster = int((database.folder / "data" / "postmaster.pid").read_text().split()[0])
    processes = (postmaster, *child_processes(postmaster))
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def run(folder: Path, database: Cluster, line: Cable | None, chosen: argparse.Namespace) -> list[str]:
    parts = PARTS if line is None else (*PARTS, PULLED)
    chance, epsilon = random.Random(chosen.seed), 10.0 * chosen.minutes
    dataset = f"{APPROVAL}\naccept_weak_privacy = true"
    place = database.new_place()
    if line is not None:
        place = line.address(str(make_url(place).username))
    clinic = Clinic(folder, place, epsilon=epsilon, dataset=dataset)
    keys = [clinic.key, create_key(clinic.store, "analyst", "bob")]
    approver_key = create_key(clinic.store, "approver", "bea")
    with (
        clinic.servers(2) as servers,
        nginx(folder, [server.port for server in servers]) as (url, certificate),
    ):
        proxy = Proxy(folder, url)
        trial = Trial(clinic, servers, epsilon, [url], certificate, chosen.rest)
        analysts = [Analyst(trial, keys[number % 2], number) for number in range(chosen.analysts)]
        approver = Approver(trial, approver_key, chosen.seed, trial.decided)
        meter = Meter(trial, Client(url, clinic.key, verify=certificate, timeout=30.0))
        for person in (*analysts, approver, meter):
            person.start()
        end = time.monotonic() + 60.0 * chosen.minutes
        for number in range(10_000):
            time.sleep(min(chosen.pause, max(end - time.monotonic(), 0.0)))
            if time.monotonic() >= end:
                break
            part = parts[number % len(parts)]
            disturb(part, trial, database, proxy, line, chance)
            trial.counts[f"killed: {part}"] += 1
            trial.check()
            print(f"{number + 1:4}  {part}: problems so far: {sorted(set(trial.problems))}", flush=True)
        trial.over.set()
        for person in (*analysts, meter):
            person.join()
        print(meter.report(), flush=True)
        trial.check_end()
        trial.decided.set()
        approver.join()
        proxy.end()
    print(", ".join(f"{count} {what}" for what, count in sorted(trial.counts.items())))
    print(f"epsilon {clinic.spent():g} of {epsilon:g} is spent, {len(trial.received)} results were received")
    return trial.problems


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--pause", type=float, default=120.0)
    parser.add_argument("--analysts", type=int, default=4)
    parser.add_argument("--rest", type=float, default=0.2, help="seconds between the requests of one person")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster() as database,
        cable(database.folder) if possible() else nullcontext() as line,
    ):
        problems = run(Path(folder), database, line, chosen)
    for problem in problems:
        print(f"PROBLEM: {problem}")
    raise SystemExit(len(problems) > 0)


if __name__ == "__main__":
    main()
