"""`privlearn serve` as a process of its own, and what the database says about it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from privlearn.estimators.forecast import synthetic_table
from privlearn.server.access import create_key
from privlearn.server.holder import Owner
from privlearn.server.store import first_head, iterate_events, open_store, verify_log
from tests.support.ports import free_port
from tests.support.raw_store import counted, execute
from tests.support.service_support import SCHEMA, write_clinic

READY_SECONDS = 240.0


class RealServer:
    """A server on a free port of this machine, in a group of processes with its training processes."""

    def __init__(self, owner: Path, port: int, largest_file: int | None = None) -> None:
        self.url, self.port = f"http://127.0.0.1:{port}", port
        self._command = [sys.executable, "-m", "privlearn", "serve", str(owner)]
        self.start(largest_file)

    def start(self, largest_file: int | None = None) -> None:
        """Also again, after its end."""
        self._process = subprocess.Popen(
            self._command,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=None if largest_file is None else lambda: _limit_files(largest_file),
        )

    def kill(self) -> None:
        """kill -9 of the server and whatever it started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """As an operator stops it."""
        self._process.terminate()
        self.await_end()

    def await_end(self) -> None:
        self._process.wait(timeout=READY_SECONDS)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def await_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            assert self.runs, "the server ended before it was ready"
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=30):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise AssertionError("the server did not get ready")


class Clinic:
    """A holder's folder with a key for alice, and servers on it; ``dataset`` are more lines about the table."""

    def __init__(
        self,
        folder: Path,
        store: str | None = None,
        epsilon: float = 4.0,
        rows: int = 300,
        dataset: str = "",
        server: str = "",
    ) -> None:
        self._folder, self._place, self._server = folder, store, server
        self._options: dict[str, Any] = {"epsilon": epsilon, "rows": rows, "dataset": dataset}
        self.store = open_store(Owner.load(self._owner(0)))
        self.key = create_key(self.store, "analyst", "alice")

    @contextmanager
    def servers(self, count: int = 1, largest_file: int | None = None) -> Iterator[list[RealServer]]:
        ports = [free_port() for _ in range(count)]
        running = [RealServer(self._owner(port), port, largest_file) for port in ports]
        try:
            for each in running:
                each.await_ready()
            yield running
        finally:
            for each in running:
                if each.runs:
                    each.kill()

    def points(self, count: int) -> pa.Table:
        return synthetic_table(SCHEMA, count, seed=1).drop_columns(["outcome"])

    def spent(self) -> float:
        return float(counted(self.store, "clinic"))

    def check_accounts(self, received: set[str]) -> None:
        """Results, costs and what clients have received are the same things, one to one."""
        jobs = dict(execute(self.store, "SELECT id, state FROM jobs"))
        done = {job for job, state in jobs.items() if state == "done"}
        made = {row[0] for row in execute(self.store, "SELECT id FROM results")}
        paid = [
            row[0] for row in execute(self.store, "SELECT reservation FROM entries WHERE kind = 'committed'")
        ]
        assert len(paid) == len(set(paid))
        assert done == made == set(paid)
        assert received <= done
        verify_log(first_head(self.store), iterate_events(self.store))

    def _owner(self, port: int) -> Path:
        folder = self._folder / str(port)
        folder.mkdir(exist_ok=True)
        state = f'directory = "{self._folder / "state"}"\nport = {port}\n{self._server}'
        many = "\n[limits]\nlong_polls = 100\njobs_per_day = 100000\n"  # alice is fifty clients
        return write_clinic(folder, store=self._place, server=state + many, **self._options)


def _limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
