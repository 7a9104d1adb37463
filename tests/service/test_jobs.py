"""Jobs are rows: whoever holds a lease runs one, and a retried request is the same job."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from privlearn.guarantee import Guarantee
from privlearn.service import timing
from privlearn.service.jobs import queue
from privlearn.service.jobs.requests import Job, JobRequest, points_from_bytes
from privlearn.service.refusals import Conflict, NotFound, TooMany
from privlearn.service.store.store import open_store
from tests.support.service_support import load_clinic, model_request

REQUEST = model_request("clinic", "release", "logistic", 0.5)
PROMISE = Guarantee(0.5)


@pytest.fixture
def place(store: str, tmp_path: Path) -> str:
    return open_store(load_clinic(tmp_path, store=store))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have passed, for jobs alone."""
    passed = [0.0]
    start = timing.now()
    monkeypatch.setattr(queue, "now", lambda: start + timedelta(seconds=passed[0]))
    return passed


def submit(place: str, analyst: str = "alice", key: str = "", request: JobRequest = REQUEST) -> Job:
    return queue.submit(place, analyst, request, PROMISE, key)


def test_the_same_key_is_the_same_job(place: str) -> None:
    first = submit(place, key="k1")
    assert submit(place, key="k1").id == first.id
    assert submit(place, key="k2").id != first.id
    assert submit(place, "bob", key="k1").id != first.id
    assert len({submit(place).id, submit(place).id}) == 2


@pytest.mark.parametrize("changed", [{"epsilon": 0.6}, {"trial": True}, {"points": pa.table({"age": [1.0]})}])
def test_a_key_for_another_request_is_refused(place: str, changed: dict[str, Any]) -> None:
    submit(place, key="k1")
    with pytest.raises(Conflict, match="another request"):
        submit(place, key="k1", request=replace(REQUEST, **changed))


def test_points_come_back(place: str) -> None:
    points = pa.table({"age": [1.0, 2.0]})
    job = submit(place, request=replace(REQUEST, points=points))
    assert points_from_bytes(queue.stored_points(place, job.id)) == points


@pytest.mark.parametrize("failure", ["", "it failed"])
def test_points_of_a_job_that_is_done_are_not_kept(place: str, failure: str) -> None:
    job = submit(place, request=replace(REQUEST, points=pa.table({"age": [1.0]})))
    queue.claim(place)
    queue.finish(place, job.id, failure)
    assert (queue.stored_points(place, job.id) is None) == (not failure)


def test_jobs_are_counted_by_state(place: str) -> None:
    for _ in range(3):
        submit(place)
    queue.claim(place)
    assert queue.count_by_state(place) == {"waiting": 2, "running": 1, "done": 0, "failed": 0}


def test_the_oldest_is_claimed_first_and_once(place: str) -> None:
    submitted = [submit(place).id for _ in range(3)]
    claimed = [queue.claim(place) for _ in range(4)]
    assert [job and job.id for job in claimed] == [*submitted, None]


def test_a_lease_that_ends_lets_another_go_on(place: str, clock: list[float]) -> None:
    job = submit(place)
    queue.claim(place)
    clock[0] = queue.LEASE_SECONDS - 1.0
    assert queue.claim(place) is None
    queue.extend(place, job.id)
    clock[0] = queue.LEASE_SECONDS + 1.0
    assert queue.claim(place) is None
    clock[0] = 2.0 * queue.LEASE_SECONDS + 1.0
    again = queue.claim(place)
    assert again is not None
    assert again.id == job.id


def test_attempts_are_counted(place: str) -> None:
    job = submit(place)
    for number in range(1, queue.MOST_ATTEMPTS + 2):
        claimed = queue.claim(place)
        assert claimed is not None
        assert claimed.attempts == number
        queue.give_back(place, job.id, count_attempt=True)


def test_stopping_on_purpose_is_no_attempt(place: str) -> None:
    job = submit(place)
    for _ in range(2 * queue.MOST_ATTEMPTS):
        assert queue.claim(place) is not None
        queue.give_back(place, job.id, count_attempt=False)
    assert queue.find(place, job.id).state == "waiting"


@pytest.mark.parametrize("failure", ["", "it failed"])
def test_a_late_end_of_a_job_that_is_over_changes_nothing(place: str, failure: str) -> None:
    job = submit(place)
    queue.claim(place)
    queue.finish(place, job.id, failure)
    queue.finish(place, job.id, "too late")
    over = queue.find(place, job.id)
    assert (over.state, over.failure) == ("failed" if failure else "done", failure)
    assert over.finished


def test_so_many_may_wait(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST_WAITING", 2)
    submit(place, key="k1")
    submit(place)
    with pytest.raises(TooMany, match="waiting"):
        submit(place)
    submit(place, "bob")
    submit(place, key="k1")


def test_an_unknown_job_is_not_found(place: str) -> None:
    with pytest.raises(NotFound):
        queue.find(place, "0" * 16)


@pytest.mark.parametrize(("took", "seen"), [(0.0, 1.0), (0.99, 1.0), (1.01, 2.0), (3.0, 4.0), (100.0, 128.0)])
def test_slots_double(took: float, seen: float) -> None:
    start = timing.now()
    assert timing.end_of_slot(start, start + timedelta(seconds=took), 1.0) == start + timedelta(seconds=seen)
