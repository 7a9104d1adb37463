"""Two servers on one PostgreSQL behind nginx, as docs/how-to/serve.md has it: first one is restarted while analysts
ask, then the other one is stopped."""

from __future__ import annotations

import ssl
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import httpx2
import pytest

from privlearn.budget.storage import SERVICE
from privlearn.client import Client
from privlearn.server.store import first_head, iterate_events, verify_log
from tests.support.nginx import PROGRAM, nginx
from tests.support.postgresql_cluster import Cluster
from tests.support.raw_store import execute
from tests.support.real_server import Clinic

COST = 0.01
POINTS = 40

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs nginx: run tests/install_debian.sh as root")


class Load:
    """Analysts who go on asking through the proxy. Who asks for a release tries again, as the client does; the others
    count every answer."""

    def __init__(self, url: str, certificate: Path, key: str) -> None:
        trusted = ssl.create_default_context(cafile=str(certificate))
        access = {"Authorization": f"Bearer {key}"}
        self._http = httpx2.Client(base_url=url, verify=trusted, headers=access, timeout=60, trust_env=False)
        self._client = Client(url, key, verify=certificate)
        opened = {"learner": "kernel", "mechanism": "function_release"}
        self._session = self._client.open_session("clinic", epsilon=COST, delta=1e-7, **opened).id
        self.statuses: Counter[int] = Counter()
        self.scores: defaultdict[int, set[float]] = defaultdict(set)
        self.made: set[str] = {self._session}
        self.failures: list[Exception] = []

    @contextmanager
    def under_way(self) -> Iterator[None]:
        over = threading.Event()
        works = (self._ask, self._ask, self._read, self._train, self._train)
        threads = [threading.Thread(target=self._repeat, args=(work, over)) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()
            self._client.close()
            self._http.close()

    def _repeat(self, work: Callable[[int], None], over: threading.Event) -> None:
        for number in count():
            if over.is_set():
                return
            try:
                work(number)
            except Exception as error:
                self.failures.append(error)
            over.wait(0.1)

    def _ask(self, number: int) -> None:
        """A point of the session; from the second round on it was answered before, perhaps by the other server."""
        age = number % POINTS
        rows = [{"age": age, "dose": 1.0, "sex": "male"}]
        answer = self._http.post(f"/v1/sessions/{self._session}/predictions", json={"rows": rows})
        self.statuses[answer.status_code] += 1
        if answer.is_success:
            self.scores[age].update(answer.json()["scores"])

    def _read(self, _: int) -> None:
        self.statuses[self._http.get("/v1/jobs").status_code] += 1

    def _train(self, _: int) -> None:
        self.made.add(self._client.train("clinic", "release", epsilon=COST, learner="logistic"))


@pytest.mark.slow
def test_nobody_notices_a_rolling_restart(server: Cluster, tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, server.new_place(), server="behind_proxy = true")
    with (
        clinic.servers(2) as servers,
        nginx(tmp_path, [each.port for each in servers]) as (url, certificate),
    ):
        load = Load(url, certificate, clinic.key)
        first, second = servers
        with load.under_way():
            first.stop()
            first.start()
            first.await_ready()
            second.stop()
            made = len(load.made)
            while len(load.made) == made and not load.failures:
                time.sleep(0.05)
        assert load.failures == []
        assert set(load.statuses) == {200}
        assert {len(scores) for scores in load.scores.values()} == {1}
        clinic.check_accounts(load.made)
        assert clinic.spent() == pytest.approx(COST * len(load.made))
        assert execute(clinic.store, "SELECT max(attempts) FROM jobs") == [(1,)]
        verify_log(first_head(clinic.store), iterate_events(clinic.store))
        give_it_to_another_version(clinic, server)
        first.await_end()


def give_it_to_another_version(clinic: Clinic, server: Cluster) -> None:
    """While no server reaches the database its tables get a newer format."""
    role = clinic.store.removeprefix("postgresql://").partition("@")[0]
    server.execute(
        f"ALTER ROLE {role} NOLOGIN",
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'",
        f"INSERT INTO {role}.service_format VALUES ({SERVICE.newest + 1})",
        f"ALTER ROLE {role} LOGIN",
    )
