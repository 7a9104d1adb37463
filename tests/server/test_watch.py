"""Readiness tells the truth, and workers come back whatever happens to them."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from privlearn.data import watch_passes
from privlearn.data.sources import TableRows, read_each
from privlearn.errors import StoreUnusable
from privlearn.server.access import Caller
from privlearn.server.jobs import queue, workers
from tests.support.served import Served, serving
from tests.support.service_support import load_clinic

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(load_clinic(tmp_path_factory.mktemp("clinic"))) as running:
        yield running


def readyz(served: Served) -> tuple[int, str]:
    answer = served.alice.get("/readyz")
    return answer.status_code, answer.text


def test_ready(served: Served) -> None:
    assert readyz(served) == (200, "ok\n")


def test_a_full_disk_is_told(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 1 << 40, 1000))
    status, told = readyz(served)
    assert status == 503
    assert "disk of the holder's database is full" in told
    monkeypatch.undo()
    assert readyz(served)[0] == 200


def test_a_disk_that_cannot_be_written_is_told(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert "cannot be written" in readyz(served)[1]


def test_a_database_that_cannot_be_used_is_told(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise StoreUnusable("the ledger at /secret/path cannot be used")

    monkeypatch.setattr(queue, "end_revoked", fail)
    status, told = readyz(served)
    assert status == 503
    assert "secret" not in told


def test_a_database_that_hangs_is_told_and_nobody_hangs_with_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(queue, "end_revoked", lambda _: go_on.wait(60) and None)
    began = time.monotonic()
    asking = [threading.Thread(target=readyz, args=(served,)) for _ in range(5)]
    try:
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        assert "does not answer" in readyz(served)[1]
        assert served.alice.get("/healthz").status_code == 200
        assert time.monotonic() - began < 55
    finally:
        go_on.set()


def test_a_worker_outlives_what_it_cannot_start(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when all descriptors are taken: its process is gone, and no other can be started for a while."""
    (worker,) = served.app.state.service._workers
    failed: list[int] = []

    def no_room() -> Any:
        failed.append(1)
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(workers, "PROCESSES", SimpleNamespace(Pipe=no_room))
        worker._process.kill()
        while len(failed) < 2:
            time.sleep(0.05)
        assert worker._thread.is_alive()
    served.train("release", trial=True)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_workers_thread_that_has_died_is_started_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    (worker,) = served.app.state.service._workers

    def die(*_: Any) -> Any:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(queue, "claim", die)
        dead = worker._thread
        dead.join(30)
        assert not dead.is_alive()
    served.train("release", trial=True)
    assert worker._thread is not dead


def test_a_worker_that_stands_still_is_told(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "STILL_SECONDS", -1.0)
    assert "a worker is stuck" in readyz(served)[1]


def test_a_running_job_is_cancelled_and_the_next_one_runs(tmp_path: Path) -> None:
    owner = load_clinic(tmp_path)
    slow = owner.datasets["clinic"].model_copy(update={"training_seconds": 3600.0})
    with serving(owner.model_copy(update={"datasets": {"clinic": slow}})) as served:
        asked = served.alice.post(
            "/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": 0.5}
        ).json()
        while served.alice.get(f"/v1/jobs/{asked['id']}").json()["state"] != "running":
            time.sleep(0.05)
        service = served.app.state.service
        while not service.running_jobs(Caller("0", "holder")):
            time.sleep(0.05)
        assert [one.job.id for one in service.running_jobs(Caller("0", "holder"))] == [asked["id"]]
        assert service.running_jobs(Caller("1", "analyst", "alice")) == []
        assert served.bob.delete(f"/v1/jobs/{asked['id']}").status_code == 404
        while not served.spent()[1]:
            time.sleep(0.05)
        ended = served.holder.delete(f"/v1/jobs/{asked['id']}").json()
        assert (ended["state"], ended["failure"]) == (
            "failed",
            "cancelled by holder; what it had reserved stays spent",
        )
        assert served.alice.delete(f"/v1/jobs/{asked['id']}").status_code == 409
        served.train("release", trial=True)
        # The job is stored as done before its worker reports itself free, so the list empties a moment later.
        while service.running_jobs(Caller("0", "holder")):
            time.sleep(0.05)


def test_a_training_process_tells_how_far_its_passes_are(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(workers, "LOOK_SECONDS", -1.0)
    with watch_passes(workers._progress_sender(SimpleNamespace(send=told.append))):  # type: ignore[arg-type]
        list(read_each(TableRows(pa.table({"age": [30, 40]})), len))
    assert told == ["pass 1, row 2"]


def test_the_holder_is_warned_once_of_trainings_beyond_their_slot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of such a training reveals how long it took."""
    caplog.set_level("WARNING", "privlearn.service")
    with serving(load_clinic(tmp_path)) as served:  # its slot has a hundredth of a second
        for _ in range(2):
            served.train("release")
        while served.app.state.service.overruns["clinic"] < 2:
            time.sleep(0.05)
        served.train("release", trial=True)
        figures = served.holder.get("/metrics").text
    assert 'privlearn_slot_overruns_total{dataset="clinic"} 2.0' in figures
    assert sum("longer than its first slot" in record.getMessage() for record in caplog.records) == 1
