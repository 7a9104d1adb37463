"""`privlearn serve`, as typed."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from privlearn.client import Client, Unreachable
from privlearn.data import census_schema, simulated_census, write_table
from privlearn.server.access import create_key
from privlearn.server.holder import Owner
from tests.support.cli_support import Run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the service needs POSIX locks")


class Running:
    """A server in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "privlearn", "serve", *map(str, arguments)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline()
        found = re.search(r"https?://\S+", self.first_line)
        assert found, self.first_line + self.process.communicate()[1]
        self.url = found.group()

    def lines(self, count: int) -> list[str]:
        assert self.process.stdout is not None
        return [self.process.stdout.readline() for _ in range(count)]

    def end(self, signal_number: int = signal.SIGTERM) -> tuple[int, str]:
        """Return the exit code, and the lines of the log."""
        self.process.send_signal(signal_number)
        logged = self.process.communicate(timeout=60)[1]
        return self.process.returncode, logged


@contextmanager
def running(*arguments: object) -> Iterator[Running]:
    server = Running(*arguments)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


def get(url: str, key: str, **options: Any) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.get(url, headers=headers, trust_env=False, timeout=60.0, **options)


@pytest.fixture
def owner(tmp_path: Path) -> Path:
    write_table(simulated_census(300, seed=1), tmp_path / "census.csv")
    census_schema().save(tmp_path / "census.schema.yaml")
    return write_owner(tmp_path)


def write_owner(folder: Path, server: str = "") -> Path:
    census = 'table = "census.csv"\nschema = "census.schema.yaml"\nepsilon = 1.0'
    (folder / "owner.toml").write_text(f"[server]\nport = 0\n{server}\n[datasets.census]\n{census}\n")
    return folder / "owner.toml"


def test_the_demonstration_serves_until_it_is_told_to_end(tmp_path: Path) -> None:
    with running("--demo", "--port", 0, "--directory", tmp_path / "demo") as server:
        keys = {line.split()[3]: line.split()[-1] for line in server.lines(3)}
        assert set(keys) == {"holder", "alice", "bob"}
        assert get(f"{server.url}/v1/me", keys["alice"]).json()["analyst"] == "alice"
        asked = httpx2.post(
            f"{server.url}/v1/jobs",
            json={"kind": "session", "dataset": "village", "epsilon": 0.5},
            headers={"Authorization": f"Bearer {keys['alice']}"},
            trust_env=False,
        )
        code, logged = server.end()
    assert code == 0
    assert all(json.loads(line)["level"] in ("info", "warning") for line in logged.splitlines())
    with running("--demo", "--port", 0, "--directory", tmp_path / "demo") as server:
        job = get(f"{server.url}/v1/jobs/{asked.json()['id']}?wait=30", keys["alice"]).json()
        assert job["state"] == "done"
        budget = get(f"{server.url}/v1/datasets/village/budget", keys["alice"]).json()
        assert budget["spent"]["epsilon"] == 0.5
        assert server.end(signal.SIGINT)[0] == 0


def test_with_tls_nothing_is_sent_in_the_clear(
    owner: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(owner.parent)
    assert run("identity", "coordinator", "--host", "127.0.0.1").code == 0
    write_owner(owner.parent, 'tls_certificate = "coordinator.crt"\ntls_key = "coordinator.tls.key"\n')
    trusted = ssl.create_default_context(cafile=str(owner.parent / "coordinator.crt"))
    with running(owner) as server:
        assert server.url.startswith("https://127.0.0.1:")
        answer = httpx2.get(f"{server.url}/healthz", verify=trusted, trust_env=False)
        assert answer.headers["strict-transport-security"].startswith("max-age=")
        with pytest.raises(httpx2.TransportError):
            httpx2.get(server.url.replace("https", "http") + "/healthz", trust_env=False)
        key = create_key(Owner.load(owner).server.store, "holder")
        with Client(server.url, key, verify=owner.parent / "coordinator.crt") as client:
            assert client.me()["role"] == "holder"
        with Client(server.url, key) as stranger, pytest.raises(Unreachable, match="certificate"):
            stranger.me()


def test_a_folder_has_one_server(owner: Path, run: Run) -> None:
    with running(owner):
        second = run("serve", owner)
    assert second.code == 1
    assert "postgresql" in second.stderr


def test_a_port_has_one_server(owner: Path, run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = run("serve", owner, "--port", taken.getsockname()[1])
    assert found.code == 2
    assert "cannot listen" in found.stderr


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ('host = "0.0.0.0"', "tls_certificate"),
        ('tls_certificate = "census.csv"\ntls_key = "census.csv"', "certificate"),
    ],
    ids=["unencrypted", "no certificate"],
)
def test_what_would_be_overheard_is_not_served(owner: Path, run: Run, server: str, told: str) -> None:
    found = run("serve", write_owner(owner.parent, server))
    assert found.code in (1, 2)
    assert told in found.stderr


@pytest.mark.parametrize("arguments", [(), ("--demo", "owner.toml"), ("owner.toml", "--directory", "x")])
def test_it_must_be_clear_what_to_serve(run: Run, arguments: tuple[str, ...]) -> None:
    found = run("serve", *arguments)
    assert found.code == 2
    assert "--demo" in found.stderr


def test_the_description_can_be_printed(run: Run) -> None:
    from privlearn.server import bare_app

    assert json.loads(run("serve", "--openapi").stdout) == bare_app().openapi()


def test_what_is_missing_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    found = run("serve", "--demo")
    assert found.code == 2
    assert "privlearn[service]" in found.stderr
