"""nginx with the settings of docs/how-to/serve.md, before servers on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from privlearn.parties.run import write_certificate
from tests.support.doc_pages import ROOT
from tests.support.ports import free_port

PAGE = ROOT / "docs" / "how-to" / "serve.md"
PROGRAM = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")


@contextmanager
def nginx(folder: Path, ports: list[int]) -> Iterator[tuple[str, Path]]:
    """Run the proxy; yield its address and its certificate."""
    port, certificate, key = free_port(), folder / "proxy.pem", folder / "proxy.key"
    write_certificate(certificate, key, ["127.0.0.1"])
    (folder / "nginx.conf").write_text(_settings(folder, ports, port, certificate, key))
    assert PROGRAM is not None
    running = subprocess.Popen(
        [PROGRAM, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"]
    )
    url = f"https://127.0.0.1:{port}"
    try:
        _await(url, running)
        yield url, certificate
    finally:
        running.terminate()
        running.wait(timeout=60)


def _settings(folder: Path, ports: list[int], port: int, certificate: Path, key: Path) -> str:
    (block,) = re.findall(r"^```nginx\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for written, here in [
        (":8383", f":{ports[0]}"),
        (":8384", f":{ports[1]}"),
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("learner.example", "127.0.0.1"),
        ("/etc/nginx/learner.pem", str(certificate)),
        ("/etc/nginx/learner.key", str(key)),
    ]:
        assert block.count(written) == 1, written
        block = block.replace(written, here)
    return whole_settings(folder, block)


def whole_settings(folder: Path, block: str) -> str:
    """Return settings around those of `http`, with which nginx runs in a separate directory."""
    places = "".join(
        f"{kind}_temp_path {folder / kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""  # only root's own processes reach a test's folder
    process = f"daemon off;\n{user}\npid {folder / 'nginx.pid'};\nevents {{}}\n"
    return f"{process}http {{\naccess_log off;\n{places}{block}}}\n"


def _await(url: str, running: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert running.poll() is None, "nginx did not start"
        try:
            httpx2.get(url, verify=False, trust_env=False)
            return
        except httpx2.TransportError:
            time.sleep(0.05)
    raise AssertionError("nginx did not answer")
