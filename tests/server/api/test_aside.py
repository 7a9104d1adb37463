"""What takes seconds keeps nobody else waiting, however much of it is asked for."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from privlearn.errors import SessionError
from privlearn.server import Service
from privlearn.server.http.capacity import HEAVY_AT_ONCE
from tests.support.served import Served, serving
from tests.support.service_support import load_clinic

THREADS = 40
"""Of the application, for everything else."""


@pytest.mark.parametrize("what", ["estimate", "release", "page", "job"])
def test_answers_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    go_on, inside = threading.Event(), []

    def slow(*_: Any, **__: Any) -> Any:
        inside.append(what)
        go_on.wait()
        raise SessionError("enough")

    monkeypatch.setattr(Service, {"release": "ask", "job": "job"}.get(what, "estimate"), slow)
    with serving(load_clinic(tmp_path), training=False) as served:
        cookies = signed_in(served)
        asking = [
            threading.Thread(target=ask, args=(served, what, cookies), daemon=True)
            for _ in range(THREADS + 10)
        ]
        for thread in asking:
            thread.start()
        try:
            while len(inside) < HEAVY_AT_ONCE // 2:
                time.sleep(0.01)
            time.sleep(0.5)
            assert served.bob.get("/v1/me", timeout=60.0).status_code == 200
            assert len(inside) == HEAVY_AT_ONCE // 2  # of one analyst
        finally:
            go_on.set()
            for thread in asking:
                thread.join()


def signed_in(served: Served) -> httpx2.Cookies:
    key = served.alice.headers["Authorization"].split()[1]
    with httpx2.Client(base_url=served.url, trust_env=False) as browser:
        browser.post("/sign-in", data={"key": key}, headers={"Sec-Fetch-Site": "same-origin"})
        return browser.cookies


def ask(served: Served, what: str, cookies: httpx2.Cookies) -> None:
    headers = {"Authorization": served.alice.headers["Authorization"]}
    with httpx2.Client(
        base_url=served.url, headers=headers, cookies=cookies, timeout=60.0, trust_env=False
    ) as client:
        if what == "estimate":
            client.post("/v1/estimates", json={"kind": "session", "dataset": "clinic", "epsilon": 0.5})
        elif what == "release":
            client.post("/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": 0.5})
        elif what == "job":
            client.get(f"/jobs/{'0' * 16}")
        else:
            client.get("/desk/clinic/train", params={"epsilon": "0.5"})
