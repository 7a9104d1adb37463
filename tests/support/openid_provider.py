"""A provider of OpenID Connect as a process of its own, in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ports import free_port

_SCRIPT = Path(__file__).with_name("canaille_server.py")
_PYTHON = Path(sys.prefix) / "provider" / "bin" / "python"
PASSWORD = "correct-horse-battery"
SECRET = "the client's secret"
PEOPLE = {"alice": "researchers", "olga": "owners", "mallory": "visitors"}
"""Each with the group that the provider says they are in."""


@contextmanager
def running_provider(return_address: str, log: Path) -> Iterator[str]:
    """Run a provider for the length of a block; yield the issuer's address."""
    if not _PYTHON.exists():
        pytest.skip("needs a provider: `make test` installs one")
    port = free_port()
    issuer = f"http://localhost:{port}"
    told = json.dumps(
        {"port": port, "return": return_address, "secret": SECRET, "password": PASSWORD, "people": PEOPLE}
    )
    command = [str(_PYTHON), str(_SCRIPT), told]
    with log.open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            _await(f"{issuer}/.well-known/openid-configuration", process)
            yield issuer
        finally:
            process.kill()


def _await(address: str, process: subprocess.Popen[bytes], seconds: float = 240.0) -> None:
    for _ in range(int(seconds * 5)):
        assert process.poll() is None, "the provider has ended"
        try:
            urllib.request.urlopen(address, timeout=5.0).close()
            return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError("the provider does not answer")
