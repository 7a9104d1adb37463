"""The application on a port of this machine, in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import uvicorn

from privlearn import Ledger
from privlearn.parties import listen
from privlearn.server import Service
from privlearn.server.access import create_key
from privlearn.server.holder import Owner
from privlearn.server.jobs import workers
from privlearn.server.server import configuration, make_app
from tests.support.forked import child_context, warm_up
from tests.support.waiting import until

workers.PROCESSES = (
    child_context()
)  # a new interpreter reads the library for three seconds, before every training


@dataclass
class Served:
    """A running server and clients that hold its keys."""

    url: str
    store: str
    app: Any
    alice: httpx2.Client
    bob: httpx2.Client
    holder: httpx2.Client

    def spent(self) -> tuple[float, float]:
        """Epsilon of the clinic that is spent, and that is reserved."""
        statement = Ledger.open(self.store, "clinic").statement()
        return statement.spent.epsilon, statement.reserved.epsilon

    def train(self, kind: str, **request: Any) -> str:
        """Ask as alice, wait, and return the result's id."""
        answer = self.alice.post(
            "/v1/jobs", json={"kind": kind, "dataset": "clinic", "epsilon": 0.5} | request
        )
        assert answer.status_code == 202, answer.text
        return self.finished(answer.json()["id"])["result"]

    def finished(self, job_id: str) -> dict[str, Any]:
        job = {"state": "waiting"}
        while job["state"] not in ("done", "failed", "declined"):
            job = self.alice.get(f"/v1/jobs/{job_id}", params={"wait": 10}).json()
        assert job["state"] == "done", job
        return job


@contextmanager
def serving(owner: Owner, *, training: bool = True) -> Iterator[Served]:
    """Serve as long as the block lasts; without ``training`` whatever is asked for waits."""
    service = Service(owner)
    if training:
        warm_up()
    else:
        service._workers = []
    app = make_app(service)
    with listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(configuration(app, owner))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        until(lambda: server.started or not thread.is_alive(), 120, "the server did not start")
        assert thread.is_alive(), "the server ended before it was ready"
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        clients = {
            "alice": _client(url, create_key(service.store, "analyst", "alice")),
            "bob": _client(url, create_key(service.store, "analyst", "bob")),
            "holder": _client(url, create_key(service.store, "holder")),
        }
        try:
            yield Served(url, service.store, app, **clients)
        finally:
            for client in clients.values():
                client.close()
            server.should_exit = True
            thread.join(timeout=120)
            assert not thread.is_alive(), "the server did not stop within 120 s"


def _client(url: str, key: str) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.Client(base_url=url, headers=headers, timeout=60.0, trust_env=False)
