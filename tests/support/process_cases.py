"""Three parties and a coordinator as processes started from the shell, in one folder, on a free port."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.csv

from privlearn import Ledger
from privlearn.budget import CompositionName, Statement
from privlearn.guarantee import Guarantee
from privlearn.parties.run import write_certificate
from tests.support.ports import free_port
from tests.support.run_cases import IDENTITIES, SCHEMA, SIZES, TABLES

DEADLINE_SECONDS = 400.0


class Site:
    """The folder, with everything that a run needs; processes are ended with it.

    ``budget`` is each party's, with ``composition``; other keywords are the plan's.
    """

    identities, sizes, tables = IDENTITIES, SIZES, TABLES
    wait_seconds = 300
    coordinator_wait_seconds = 90
    coordinator_timeout_seconds = 30

    def __init__(
        self,
        folder: Path,
        composition: CompositionName = "basic",
        budget: Guarantee = Guarantee(4.0, 1e-5),  # noqa: B008 - frozen
        **plan: Any,
    ) -> None:
        self.folder = folder
        self._budget, self._composition = budget, composition
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.port = free_port()
        SCHEMA.save(folder / "census.schema.yaml")
        write_certificate(folder / "coordinator.crt", folder / "coordinator.tls.key", ["127.0.0.1"])
        for name, identity in self.identities.items():
            identity.write(folder / f"{name}.key")
        for name in self.sizes:
            self._prepare_party(name)
        self._write("plan.toml", {"schema": "census.schema.yaml", "epsilon": 2.0, "delta": 1e-5} | plan)
        with (folder / "plan.toml").open("a") as file:
            keys = {name: str(identity.public) for name, identity in self.identities.items()}
            for title, table in (("parties", self.sizes), ("keys", keys)):
                file.write(f"[{title}]\n" + "".join(f"{key} = {value!r}\n" for key, value in table.items()))

    def _prepare_party(self, name: str) -> None:
        pyarrow.csv.write_csv(self.tables[name], self.folder / f"{name}.csv")
        ledger = self.folder / f"{name}.ledger"
        Ledger.create(ledger, SCHEMA.name, self._budget, composition=self._composition)
        settings = {
            "name": name,
            "plan": "plan.toml",
            "min_colluding": 0,
            "identity": f"{name}.key",
            "coordinator": f"127.0.0.1:{self.port}",
            "certificate": "coordinator.crt",
            "ledger": f"{name}.ledger",
            "max_epsilon": 4.0,
            "max_delta": 1e-5,
            "model": f"{name}.privlearn",
            "wait_seconds": self.wait_seconds,
            "timeout_seconds": 300,
        }
        self._write(f"{name}.toml", settings)

    def _write(self, name: str, settings: dict[str, Any]) -> None:
        words = {True: "true", False: "false"}
        text = "".join(
            f"{key} = {words[value] if isinstance(value, bool) else repr(value)}\n"
            for key, value in settings.items()
        )
        (self.folder / name).write_text(text)

    def start(self) -> None:
        for name in ("coordinator", *self.sizes):
            self.start_one(name)

    def start_one(self, name: str, *more: str) -> None:
        """A process; a second one of the same name writes where the first one stopped."""
        if name == "coordinator":
            timeout = str(self.coordinator_timeout_seconds)
            arguments = [
                "coordinate",
                "plan.toml",
                "--port",
                str(self.port),
                "--timeout",
                timeout,
                "--wait",
                str(self.coordinator_wait_seconds),
                *more,
            ]
        else:
            arguments = ["party", f"{name}.toml", "--data", f"{name}.csv"]
        self.processes[name] = self._process(arguments, self.folder / f"{name}.log")

    def _process(self, arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as screen:
            command = [sys.executable, "-m", "privlearn", *arguments]
            return subprocess.Popen(command, cwd=self.folder, stdout=screen, stderr=screen)

    def kill(self, name: str) -> None:
        """With no chance to say or write anything more."""
        self.processes[name].kill()
        self.processes[name].wait()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def await_line(self, name: str, text: str) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while text not in self.log(name):
            assert self.processes[name].poll() is None, self.log(name)
            assert time.monotonic() < deadline, self.log(name)
            time.sleep(0.02)

    def exit_code(self, name: str) -> int:
        return self.processes[name].wait(timeout=DEADLINE_SECONDS)

    def spent(self, name: str) -> float:
        return self.statement(name).spent.epsilon

    def statement(self, name: str) -> Statement:
        return Ledger.open(self.folder / f"{name}.ledger", SCHEMA.name).statement()

    def end(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
