"""What a server bears: attacks on its memory, its time and its fairness, while others go on asking.

    python benchmarks/attacks.py [--only NAME ...] [--seconds 8]

A server of made-up records with default limits, as a process of its own. One after another, each attack is let loose
while the monitor asks /healthz and another analyst, bob, asks for data sets and estimates. A line per attack: the
server's peak memory, the longest wait for /healthz, bob's medians beside those of a quiet server, and every status that
the attacker and bob have seen. The attackers are in `benchmarks/attackers.py`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MAX_MEMORY = 8 << 30
"""Of address space: so that a server that does not stop growing ends, and not the machine."""
OWNER = """
[server]
port = 0
{server}

[datasets.census]
table = "census.csv"
schema = "census.schema.yaml"
epsilon = 1000.0
delta = 1e-3
training_seconds = 0.4

[datasets.census.learners.logistic]
model = "logistic"

[datasets.census.learners.smooth]
model = "svm"
kernel = "rbf"

[analysts.alice]
census = {{ epsilon = 500.0, delta = 5e-4 }}

[analysts.bob]
census = {{ epsilon = 500.0, delta = 5e-4 }}
"""
ESTIMATE = {"kind": "session", "dataset": "census", "learner": "logistic", "epsilon": 1.0, "delta": 1e-6}


class Target:
    """The server under attack, and what is needed to call it."""

    def __init__(self, process: int, port: int, keys: dict[str, str]) -> None:
        self.process, self.port, self.keys = process, port, keys
        self.statuses: Counter[str] = Counter()
        self.session = ""

    def resident(self) -> int:
        """Bytes of memory that the server's own process has at the moment."""
        status = Path(f"/proc/{self.process}/status").read_text()
        return 1024 * int(re.findall(r"VmRSS:\s+(\d+)", status)[0])

    def call(
        self,
        method: str,
        path: str,
        who: str = "",
        body: Any = None,
        headers: dict[str, str] | None = None,
        timeout: float = 120.0,
    ) -> tuple[int, bytes]:
        """One request over a connection of its own."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        sent = dict(headers or {})
        if who:
            sent["Authorization"] = f"Bearer {self.keys[who]}"
        if isinstance(body, dict | list):
            body, sent = json.dumps(body).encode(), {"Content-Type": "application/json"} | sent
        try:
            line.request(method, path, body, sent)
            answer = line.getresponse()
            return answer.status, answer.read()
        finally:
            line.close()

    def attack(self, *request: Any, **options: Any) -> bytes:
        """The same, its status noted; what breaks off is noted too."""
        try:
            status, content = self.call(*request, **options)
        except (OSError, http.client.HTTPException) as error:
            status, content = type(error).__name__, b""  # type: ignore[assignment]
        self.statuses[str(status)] += 1
        return content

    def trained(self, kind: str, **request: Any) -> str:
        """The id of what alice has had trained."""
        wanted = {"kind": kind, "dataset": "census", "learner": "logistic", "epsilon": 0.01, "delta": 1e-8}
        status, content = self.call("POST", "/v1/jobs", "alice", wanted | request)
        if status != 202:
            raise RuntimeError(content.decode())
        job: dict[str, Any] = json.loads(content)
        while job["state"] not in ("done", "failed"):
            job = json.loads(self.call("GET", f"/v1/jobs/{job['id']}?wait=20", "alice")[1])
        return str(job["result"])


class Others:
    """Everybody else, while an attack goes on: their waits, and the server's memory."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._over = threading.Event()
        self.peak = 0
        self.seconds: dict[str, list[float]] = {"healthz": [], "datasets": [], "estimate": []}
        self.statuses: Counter[int] = Counter()

    @contextmanager
    def watching(self) -> Iterator[None]:
        asking: list[Callable[[], object]] = [
            self._measure,
            lambda: self._ask("healthz", "GET", "/healthz"),
            lambda: self._ask("datasets", "GET", "/v1/datasets", "bob"),
            lambda: self._ask("estimate", "POST", "/v1/estimates", "bob", ESTIMATE),
        ]
        threads = [threading.Thread(target=self._again, args=(each,)) for each in asking]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def median(self, what: str) -> float:
        return statistics.median(self.seconds[what] or [float("inf")])

    def _again(self, ask: Callable[[], object]) -> None:
        while not self._over.is_set():
            ask()
            self._over.wait(0.05)

    def _measure(self) -> None:
        self.peak = max(self.peak, self._target.resident())

    def _ask(self, name: str, *request: Any) -> None:
        began = time.monotonic()
        try:
            status, _ = self._target.call(*request)
        except (OSError, http.client.HTTPException):
            status = 0
        self.seconds[name].append(time.monotonic() - began)
        self.statuses[status] += 1


@contextmanager
def attacked_server(folder: Path, server: str = "") -> Iterator[Target]:
    """`privlearn serve` with default limits on 5,000 made-up people; SIGKILL at the end, whatever happened to it."""
    from privlearn.data import write_table
    from privlearn.data.datasets import census_schema, simulated_census
    from privlearn.server.access.keys import create_key
    from privlearn.server.holder.settings import Owner
    from privlearn.server.store.store import open_store

    write_table(simulated_census(5000, 1), folder / "census.csv")
    census_schema().save(folder / "census.schema.yaml")
    owner = folder / "owner.toml"
    owner.write_text(OWNER.format(server=server))
    store = open_store(Owner.load(owner))
    keys = {name: create_key(store, "analyst", name) for name in ("alice", "bob")}
    keys["holder"] = create_key(store, "holder")
    process = subprocess.Popen(
        [sys.executable, "-m", "privlearn", "serve", str(owner)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=(folder / "server.log").open("wb"),
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY)),
    )
    try:
        assert process.stdout is not None
        announced = re.search(rb"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        if announced is None:
            raise RuntimeError((folder / "server.log").read_text()[-2000:])
        yield Target(process.pid, int(announced[1]), keys)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(target: Target, name: str, attack: Callable[[Target], str], quiet: Others) -> bool:
    """Let it loose, print its line, and say whether the server bore it."""
    target.statuses.clear()
    others, remark = Others(target), ""
    with others.watching():
        time.sleep(0.3)
        began = time.monotonic()
        remark = attack(target)
        elapsed = time.monotonic() - began
        time.sleep(max(0.5, 3.0 - elapsed))
    ratios = {what: others.median(what) / quiet.median(what) for what in ("datasets", "estimate")}
    wait = max(others.seconds["healthz"])
    broken = [code for code in (*target.statuses, *map(str, others.statuses)) if code in ("0", "500", "502")]
    held = others.peak < 600 << 20 and wait < 0.5 and max(ratios.values()) < 3.0 and not broken
    seen = " ".join(f"{code}:{count}" for code, count in sorted(target.statuses.items()))
    bob = " ".join(f"{code}:{count}" for code, count in sorted(others.statuses.items()))
    print(
        f"| {name} | {elapsed:.1f} | {others.peak >> 20} | {wait:.2f} | {ratios['datasets']:.1f} | "
        f"{ratios['estimate']:.1f} | {seen} | {bob} | {'held' if held else 'FELL'} {remark} |",
        flush=True,
    )
    return held


def main() -> None:
    from attackers import ATTACKS

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--seconds", type=float, default=8.0, help="that the quiet server is watched")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, attacked_server(Path(folder)) as target:
        target.session = target.trained("session")
        target.call("POST", "/v1/estimates", "bob", ESTIMATE)  # the first one takes seconds
        quiet = Others(target)
        with quiet.watching():
            time.sleep(options.seconds)
        print(
            f"quiet: {quiet.peak >> 20} MB, healthz at most {max(quiet.seconds['healthz']):.3f} s, medians: data sets "
            f"{1000 * quiet.median('datasets'):.1f} ms, estimate {1000 * quiet.median('estimate'):.1f} ms\n",
        )
        print(
            "| attack | s | peak MB | healthz s | data sets | estimates | attacker's statuses | others' | |"
            "\n|---|---|---|---|---|---|---|---|---|"
        )
        held = [run(target, name, ATTACKS[name], quiet) for name in options.only]
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
