"""Three parties and a coordinator as processes started from the shell, in one folder, on a free port."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.csv

from privlearn.guarantee import Guarantee
from privlearn.ledger import Ledger
from privlearn.multiparty.run.identity import write_certificate
from tests.support.ports import free_port
from tests.support.run_cases import IDENTITIES, KEYS, SCHEMA, SIZES, TABLES

DEADLINE_SECONDS = 240.0
PATIENCE_SECONDS = 30


class Site:
    """The folder, with everything that a run needs; processes are ended with it."""

    def __init__(self, folder: Path, **plan: Any) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.port = free_port()
        SCHEMA.save(folder / "census.schema.yaml")
        write_certificate(folder / "coordinator.crt", folder / "coordinator.tls.key", ["127.0.0.1"])
        for name, identity in IDENTITIES.items():
            identity.write(folder / f"{name}.key")
        for name in SIZES:
            self._prepare_party(name)
        self._write("plan.toml", {"schema": "census.schema.yaml", "epsilon": 2.0, "delta": 1e-5} | plan)
        with (folder / "plan.toml").open("a") as file:
            for title, table in (("parties", SIZES), ("keys", KEYS)):
                file.write(f"[{title}]\n" + "".join(f"{key} = {value!r}\n" for key, value in table.items()))

    def _prepare_party(self, name: str) -> None:
        pyarrow.csv.write_csv(TABLES[name], self.folder / f"{name}.csv")
        Ledger.create(self.folder / f"{name}.ledger", SCHEMA.name, Guarantee(2.0, 1e-5))
        settings = {
            "name": name,
            "plan": "plan.toml",
            "identity": f"{name}.key",
            "coordinator": f"127.0.0.1:{self.port}",
            "certificate": "coordinator.crt",
            "ledger": f"{name}.ledger",
            "max_epsilon": 2.0,
            "max_delta": 1e-5,
            "model": f"{name}.privlearn",
            "patience_seconds": 120,
        }
        self._write(f"{name}.toml", settings)

    def _write(self, name: str, settings: dict[str, Any]) -> None:
        text = "".join(f"{key} = {value!r}\n" for key, value in settings.items())
        (self.folder / name).write_text(text)

    def start(self) -> None:
        self._start(
            "coordinator",
            "coordinate",
            "plan.toml",
            "--port",
            str(self.port),
            "--patience",
            str(PATIENCE_SECONDS),
        )
        for name in SIZES:
            self._start(name, "party", f"{name}.toml", "--data", f"{name}.csv")

    def _start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "privlearn", *arguments], cwd=self.folder, stdout=log, stderr=log
            )

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
        return Ledger.open(self.folder / f"{name}.ledger", SCHEMA.name).statement().spent.epsilon

    def end(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
