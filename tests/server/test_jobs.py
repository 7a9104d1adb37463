"""Jobs are rows: whoever holds a lease runs one, and a retried request is the same job."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from privlearn.guarantee import Guarantee
from privlearn.server import Conflict, NotFound, TooMany, timing
from privlearn.server.access import create_key, revoke_key
from privlearn.server.holder import Limits
from privlearn.server.jobs import Job, JobRequest, points_from_bytes, queue, workers
from privlearn.server.store import open_store
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
    monkeypatch.setattr(queue, "clock", lambda *_: start + timedelta(seconds=passed[0]))
    return passed


def submit(
    place: str, analyst: str = "alice", key: str = "", request: JobRequest = REQUEST, **options: Any
) -> Job:
    return queue.submit(place, analyst, request, PROMISE, key, **options)


def test_the_same_key_is_the_same_job(place: str) -> None:
    first = submit(place, key="k1")
    assert submit(place, key="k1").id == first.id
    assert submit(place, key="k2").id != first.id
    assert submit(place, "bob", key="k1").id != first.id
    assert len({submit(place).id, submit(place).id}) == 2


@pytest.mark.parametrize("changed", [{"epsilon": 0.6}, {"trial": True}, {"points": pa.table({"age": [1.0]})}])
def test_a_key_for_another_request_is_refused(place: str, changed: dict[str, Any]) -> None:
    submit(place, key="k1")
    with pytest.raises(Conflict, match="a different request"):
        submit(place, key="k1", request=replace(REQUEST, **changed))


def test_points_come_back(place: str) -> None:
    points = pa.table({"age": [1.0, 2.0]})
    job = submit(place, request=replace(REQUEST, points=points))
    assert points_from_bytes(queue.read_points(place, job.id)) == points


@pytest.mark.parametrize("failure", ["", "it failed"])
def test_points_of_a_job_that_is_done_are_not_kept(place: str, failure: str) -> None:
    job = submit(place, request=replace(REQUEST, points=pa.table({"age": [1.0]})))
    queue.claim(place)
    queue.finish(place, job.id, failure)
    assert (queue.read_points(place, job.id) is None) == (not failure)


def test_jobs_are_counted_by_state(place: str) -> None:
    for _ in range(3):
        submit(place)
    queue.claim(place)
    others = dict.fromkeys(("waiting_for_approval", "done", "failed", "declined"), 0)
    assert queue.count_by_state(place) == {"waiting": 2, "running": 1} | others


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
    for number in range(1, queue.MAX_ATTEMPTS + 2):
        claimed = queue.claim(place)
        assert claimed is not None
        assert claimed.attempts == number
        queue.requeue(place, job.id, count_attempt=True)


def test_stopping_on_purpose_is_no_attempt(place: str) -> None:
    job = submit(place)
    for _ in range(2 * queue.MAX_ATTEMPTS):
        assert queue.claim(place) is not None
        queue.requeue(place, job.id, count_attempt=False)
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


def test_so_many_may_wait(place: str) -> None:
    limits = Limits(waiting_jobs=2)
    submit(place, key="k1", limits=limits)
    submit(place, limits=limits)
    with pytest.raises(TooMany, match="waiting"):
        submit(place, limits=limits)
    submit(place, "bob", limits=limits)
    submit(place, key="k1", limits=limits)


def test_so_many_may_be_asked_for_in_a_day(place: str, clock: list[float]) -> None:
    limits = Limits(jobs_per_day=2, trials_per_day=1)
    for _ in range(2):
        submit(place, limits=limits)
        clock[0] += 3600.0
    with pytest.raises(TooMany, match="2 jobs on the records within a day"):
        submit(place, limits=limits)
    submit(place, request=replace(REQUEST, trial=True), limits=limits)
    with pytest.raises(TooMany, match="1 jobs on synthetic rows within a day"):
        submit(place, request=replace(REQUEST, trial=True), limits=limits)
    submit(place, "bob", limits=limits)
    clock[0] += 23.5 * 3600.0
    submit(place, limits=limits)


def test_analysts_take_turns(place: str) -> None:
    for _ in range(4):
        submit(place)
    submit(place, "bob")
    submit(place, "bob")
    submit(place, "carol")
    turns = queue.RoundRobin()
    claimed = [queue.claim(place, turns) for _ in range(7)]
    assert [job and job.analyst for job in claimed] == [
        "alice",
        "bob",
        "carol",
        "alice",
        "bob",
        "alice",
        "alice",
    ]


def test_a_job_that_waits_is_cancelled(place: str) -> None:
    job = submit(place)
    ended = queue.cancel(place, job.id, "alice")
    assert (ended.state, ended.failure) == ("failed", "cancelled by alice; nothing was spent")
    assert queue.claim(place) is None
    with pytest.raises(Conflict, match="over"):
        queue.cancel(place, job.id, "alice")


def test_a_job_that_runs_is_cancelled_and_whoever_runs_it_notices(place: str) -> None:
    job = submit(place)
    queue.claim(place)
    assert queue.extend(place, job.id)
    ended = queue.cancel(place, job.id, "holder")
    assert ended.failure == "cancelled by holder; nothing was spent"
    assert not queue.extend(place, job.id)
    queue.finish(place, job.id)
    assert queue.find(place, job.id).state == "failed"


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_job_that_ends_while_its_lease_is_checked_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    owner = load_clinic(tmp_path)
    place, (ours, theirs) = open_store(owner), multiprocessing.Pipe()
    worker = workers.Worker(owner, {}, queue.RoundRobin())
    monkeypatch.setattr(worker, "_pipe", ours, raising=False)
    monkeypatch.setattr(workers, "LOOK_SECONDS", 0.01)
    submit(place)
    job = queue.claim(place)
    assert job is not None

    def end_first(store: str, job_id: str) -> bool:
        if is_cancelled:
            theirs.send("pass 7")
        else:
            queue.finish(store, job_id, "failed", "why")
            theirs.send(("", "why"))
        return False

    monkeypatch.setattr(queue, "extend", end_first)
    assert worker._await(job) == (None if is_cancelled else ("", "why"))


def test_what_a_revoked_key_asked_for_and_waits_is_never_run(place: str) -> None:
    key_id = create_key(place, "analyst", "alice").split("_")[1]
    running, waiting = submit(place, key_id=key_id), submit(place, key_id=key_id)
    other = submit(place)
    assert queue.claim(place) is not None
    revoke_key(place, key_id)
    claimed = queue.claim(place)
    assert claimed is not None
    assert claimed.id == other.id
    assert queue.find(place, waiting.id).failure == "the key that requested it was revoked; nothing was spent"
    assert queue.find(place, running.id).state == "running"


@pytest.mark.parametrize("jump", [36_000.0, -36_000.0])
def test_a_clock_that_jumps_does_not_strand_a_job(place: str, clock: list[float], jump: float) -> None:
    """Its process is gone; a lease that a clock set back has made hours long is not waited for."""
    job = submit(place)
    queue.claim(place)
    clock[0] += jump
    again = queue.claim(place)
    assert again is not None
    assert again.id == job.id
    queue.extend(place, job.id)
    assert queue.claim(place) is None


def test_another_machine_whose_clock_is_ahead_takes_no_job_away(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(place)
    queue.claim(place)
    monkeypatch.setattr(queue, "now", lambda: timing.now() + timedelta(hours=1))
    assert queue.claim(place) is None


def test_an_unknown_job_is_not_found(place: str) -> None:
    with pytest.raises(NotFound):
        queue.find(place, "0" * 16)


@pytest.mark.parametrize(("took", "seen"), [(0.0, 1.0), (0.99, 1.0), (1.01, 2.0), (3.0, 4.0), (100.0, 128.0)])
def test_slots_double(took: float, seen: float) -> None:
    assert timing.end_of_slot(5.0, 5.0 + took, 1.0) == 5.0 + seen
