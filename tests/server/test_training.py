"""A training pays once and makes one result, wherever its process dies."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from privlearn import Ledger
from privlearn.budget import Reservation, reservation
from privlearn.data.sources import TableRows
from privlearn.errors import DataError, SolverError
from privlearn.estimators.forecast import synthetic_table
from privlearn.estimators.kernel_machine import KernelMachine
from privlearn.guarantee import Guarantee
from privlearn.release import Release
from privlearn.server import timing
from privlearn.server.holder import Catalog, OfferedDataSet
from privlearn.server.jobs import Job, queue, results
from privlearn.server.jobs import running as training
from privlearn.server.store import open_store
from privlearn.server.store.log_file import json_lines
from privlearn.sessions import SharedStore
from tests.support.service_support import SCHEMA, load_clinic, model_request

CELL = "0.123456789"
"""What an error of a library might quote."""


class Killed(BaseException):
    """The process is gone: nobody catches this."""


class Place:
    """A store with one data set, and jobs run in this process."""

    def __init__(self, owner: Any) -> None:
        self.store = open_store(owner)
        self.catalog = Catalog(owner, Catalog(owner).check())  # records are counted at the server's start

    def submit(self, kind: Any = "release", mechanism: Any = "model", **options: Any) -> Job:
        learner = "logistic" if mechanism == "model" else "kernel"
        request = model_request("clinic", kind, learner, 1.0, 1e-6, mechanism, **options)
        return queue.submit(self.store, "alice", request, Guarantee(1.0, 1e-6), "")

    def run(self) -> str:
        job = queue.claim(self.store)
        assert job is not None
        return training.run_job(self.store, self.catalog, job)

    def spent(self) -> tuple[float, float]:
        """Committed, and still reserved."""
        statement = Ledger.open(self.store, "clinic").statement()
        return statement.spent.epsilon, statement.reserved.epsilon

    def see(self, job: Job) -> Job:
        return queue.find(self.store, job.id)


@pytest.fixture
def place(store: str, tmp_path: Path) -> Place:
    return Place(load_clinic(tmp_path, store=store))


KINDS = [("release", "model"), ("session", "model"), ("session", "function_release"), ("session", "pinp")]


@pytest.fixture(params=KINDS, ids="-".join)
def job(request: pytest.FixtureRequest, place: Place) -> Job:
    return place.submit(*request.param)


def found(place: Place) -> list[str]:
    return [result.id for result in results.find_all(place.store, "alice")]


def test_a_training_is_paid_and_found(place: Place, job: Job) -> None:
    assert place.run() == ""
    assert place.see(job).state == "done"
    assert place.spent() == (1.0, 0.0)
    assert found(place) == [job.id]


def dying(module: Any, name: str, *, after: bool) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a function that makes the process die in ``name``, once: before or after it has done its work."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        original = getattr(module, name)

        def fatal(*args: Any, **options: Any) -> Any:
            monkeypatch.setattr(module, name, original)
            if after:
                original(*args, **options)
            raise Killed

        monkeypatch.setattr(module, name, fatal)

    return plant


DEATHS = {
    "before the charge": dying(Ledger, "reserve", after=False),
    "after the charge": dying(Ledger, "reserve", after=True),
    "before the result is stored": dying(results, "store_result", after=False),
    "after the result is stored": dying(results, "store_result", after=True),
    "before the commit": dying(Reservation, "commit", after=False),
    "after the commit": dying(Reservation, "commit", after=True),
    "before the end": dying(queue, "finish", after=False),
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_job_goes_on_after_its_process_died(
    place: Place, job: Job, death: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    DEATHS[death](monkeypatch)
    with pytest.raises(Killed):
        place.run()
    assert found(place) == []
    assert sum(place.spent()) <= 1.0
    queue.expire_leases(place.store)
    assert place.run() == ""
    assert place.see(job).state == "done"
    assert place.spent() == (1.0, 0.0)
    assert found(place) == [job.id]


def test_two_that_run_one_job_make_one_result(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """One stood still while the other, which took the job over, was done."""
    job = place.submit()
    stored = results.store_result

    def overtaken(*args: Any) -> None:
        monkeypatch.setattr(results, "store_result", stored)
        queue.expire_leases(place.store)
        assert place.run() == ""
        first.append(results.content_of(place.store, job.id))
        stored(*args)

    first: list[bytes] = []
    monkeypatch.setattr(results, "store_result", overtaken)
    place.run()
    assert place.spent() == (1.0, 0.0)
    assert results.content_of(place.store, job.id) == first[0]


def test_two_that_open_one_session_open_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a kill -9 of the server, whose training process lives on while the next server takes the job up."""
    job = place.submit("session", "function_release")
    create = SharedStore.create

    def overtaken(self: SharedStore, header: dict[str, Any], function: bytes) -> Any:
        monkeypatch.setattr(SharedStore, "create", create)
        self.create(header, function).close()
        return self.create(header, function)

    monkeypatch.setattr(SharedStore, "create", overtaken)
    assert place.run() == ""
    assert found(place) == [job.id]
    assert place.spent() == (1.0, 0.0)


def test_a_trial_costs_nothing_and_says_so(place: Place) -> None:
    job = place.submit(trial=True)
    assert place.run() == ""
    place.see(job)
    assert place.spent() == (0.0, 0.0)
    release = Release.from_bytes(results.content_of(place.store, job.id))
    assert "made-up rows" in str(release.certificate.to_dict()["encoding"])


def test_no_room_is_said_and_nothing_spent(place: Place) -> None:
    submitted = [place.submit() for _ in range(5)]
    for _ in submitted:
        place.run()
    ended = [place.see(job) for job in submitted]
    assert [job.state for job in ended] == ["done"] * 4 + ["failed"]
    assert "Nothing was spent" in ended[-1].failure
    assert place.spent() == (4.0, 0.0)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    """Return a function that makes reading the rows raise an error."""

    def plant(error: Exception) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(OfferedDataSet, "open_rows", refuse)

    return plant


@pytest.mark.parametrize("error", [SolverError("no convergence"), ValueError(f"cell {CELL}")])
def test_an_error_tells_the_analyst_nothing(place: Place, broken: Any, error: Exception) -> None:
    job = place.submit()
    broken(error)
    reason = place.run()
    assert CELL not in reason
    assert place.see(job).failure == f"{queue.FAILED}; its cost stands"


def test_the_cost_is_reserved_before_a_row_is_read(
    place: Place, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails while rows are read depends on them: it is paid for, and nobody's clock tells when it failed."""
    reserved = []

    def read(*_: object) -> None:
        reserved.append(place.spent())
        raise DataError("column 'age' has missing cells")

    monkeypatch.setattr(OfferedDataSet, "open_rows", read)
    place.run()
    assert reserved == [(0.0, 1.0)]
    assert place.see(job).failure.endswith("its cost stands")


def test_a_table_of_another_size_is_not_trained_on(
    place: Place, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reserved cost follows from the number of records at the server's start."""
    whole = OfferedDataSet.read_rows(place.catalog.find(job.dataset))
    monkeypatch.setattr(OfferedDataSet, "open_rows", lambda _: TableRows(whole.slice(1)))
    assert "number of records has changed" in place.run()
    assert place.see(job).failure.endswith("its cost stands")


def test_an_error_after_the_charge_leaves_the_cost(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    job = place.submit()
    monkeypatch.setattr(results, "store_result", lambda *_: 1 / 0)
    assert place.run() == "ZeroDivisionError"
    assert place.see(job).failure.endswith("its cost stands")
    assert place.spent() == (0.0, 1.0)


@pytest.mark.parametrize("mechanism", ["function_release", "pinp"])
def test_a_kernel_machine_is_solved_after_the_charge(
    place: Place, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """Whether and when it is solved depends on the records."""
    charged = []

    def fail(_: KernelMachine) -> None:
        charged.append(place.spent())
        raise SolverError("no convergence")

    monkeypatch.setattr(KernelMachine, "solve", fail)
    job = place.submit("session", mechanism)
    assert place.run() == "no convergence"
    assert charged == [(0.0, 1.0)]
    assert place.see(job).failure.endswith("its cost stands")


def test_a_reservation_that_is_gone_ends_the_job(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder cancelled it with the library. No later attempt could commit, so the analyst's next job runs."""
    job, next_job = place.submit(), place.submit()
    stored = results.store_result

    def cancel_after(*args: Any) -> None:
        stored(*args)
        Reservation(place.store, "clinic", job.id).cancel()

    monkeypatch.setattr(results, "store_result", cancel_after)
    assert "cannot be committed" in place.run()
    monkeypatch.setattr(results, "store_result", stored)
    ended = place.see(job)
    assert (ended.state, ended.failure) == ("failed", f"{queue.FAILED}; nothing was spent")
    assert place.run() == ""
    assert found(place) == [next_job.id]


def test_a_job_that_cannot_even_be_given_up_ends_and_lets_others_run(place: Place) -> None:
    """Its process died before `run_job`, in every attempt."""
    job, next_job = place.submit(), place.submit()
    for _ in range(queue.MAX_ATTEMPTS + 1):
        assert queue.claim(place.store) is not None
        queue.requeue(place.store, job.id, count_attempt=True)
    assert queue.claim(place.store) is None
    assert place.see(job).failure == f"{queue.FAILED}; nothing was spent"
    assert place.run() == ""
    assert found(place) == [next_job.id]


def test_a_job_that_was_cancelled_before_its_charge_costs_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, price = place.submit(), training.price_job

    def cancel_first(*args: Any) -> Any:
        queue.cancel(place.store, job.id, "alice")
        return price(*args)

    monkeypatch.setattr(training, "price_job", cancel_first)
    place.run()
    assert place.see(job).failure == "cancelled by alice; nothing was spent"
    assert place.spent() == (0.0, 0.0)


def test_only_the_holder_reads_why_a_job_failed(place: Place, broken: Any) -> None:
    """The reason may name columns, describe cells and quote paths: it is not in the log that auditors export."""
    job = place.submit()
    broken(DataError("column 'age' has cells that are not numbers in /srv/private/clinic.csv"))
    place.run()
    line = "".join(json_lines(place.store))
    assert job.id in line
    assert "column" not in line
    assert "private" not in line
    assert "cells that are not numbers" in queue.read_reason(place.store, job.id)
    assert "numbers" not in str(place.see(job))


def test_public_points_become_landmarks(place: Place) -> None:
    points: pa.Table = synthetic_table(SCHEMA, 20, seed=3).drop_columns(["outcome"])
    request = model_request("clinic", "release", "kernel", 1.0, 1e-6, points=points)
    job = queue.submit(place.store, "alice", request, Guarantee(1.0, 1e-6), "")
    assert place.run() == ""
    place.see(job)
    release = Release.from_bytes(results.content_of(place.store, job.id))
    assert len(release.model.arrays()["public_points"]) == 20


@pytest.mark.parametrize("fails", [False, True])
def test_a_training_ends_with_its_slot(place: Place, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """Until then nothing moves: not the job, not the budget."""
    slept: list[float] = []
    asked: list[Job] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        assert place.see(asked[0]).state == "running"
        assert place.spent()[0] == 0.0
        assert found(place) == []

    monkeypatch.setattr(time, "sleep", sleep)
    if fails:
        monkeypatch.setattr(results, "store_result", lambda *_: 1 / 0)
    offered = place.catalog.find("clinic")
    slow = offered.settings.model_copy(update={"training_seconds": 3600.0})
    monkeypatch.setattr(place.catalog, "find", lambda *_: replace(offered, settings=slow))
    asked.append(place.submit())
    place.run()
    assert len(slept) == 1
    assert 3500.0 < slept[0] <= 3600.0
    assert place.see(asked[0]).state == ("failed" if fails else "done")


@pytest.mark.parametrize("dies", ["before the charge", "after the charge"])
def test_a_job_that_keeps_dying_is_given_up_at_the_end_of_a_slot(
    place: Place, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    """That its process dies may depend on the records, so it ends like every other failure, and says what it cost."""
    job = place.submit()
    for _ in range(queue.MAX_ATTEMPTS):
        DEATHS[dies](monkeypatch)
        with pytest.raises(Killed):
            place.run()
        queue.expire_leases(place.store)
    waited: list[float] = []
    monkeypatch.setattr(training, "wait_for_end_of_slot", lambda began, _: waited.append(began))
    before = time.monotonic()
    assert "ended 3 times" in place.run()
    ended = place.see(job)
    (began,) = waited
    assert before <= began <= time.monotonic()
    spent = "its cost stands" if dies == "after the charge" else "nothing was spent"
    assert ended.failure == f"{queue.FAILED}; {spent}"
    assert place.spent() == (0.0, 1.0 if dies == "after the charge" else 0.0)


def test_no_time_that_is_shown_lies_inside_a_slot(
    place: Place, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost is reserved before rows are read; when the result was made would tell how long they took."""
    clock = datetime.now(UTC) + timedelta(hours=1)

    def sleep(seconds: float) -> None:
        nonlocal clock
        clock += timedelta(seconds=seconds)

    def now() -> datetime:  # every look at the clock takes a moment, as work does
        nonlocal clock
        clock += timedelta(microseconds=37)
        return clock

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return now()

    steady = SimpleNamespace(sleep=sleep, monotonic=lambda: now().timestamp())
    for module in (training, timing):
        monkeypatch.setattr(module, "time", steady)
    for module in (queue, timing):
        monkeypatch.setattr(module, "now", now)
    monkeypatch.setattr(reservation, "datetime", Clock)
    clinic = place.catalog.find("clinic")
    monkeypatch.setitem(clinic.settings.__dict__, "training_seconds", 8.0)
    place.run()
    ended = place.see(job)
    shown = results.find_all(place.store, "alice")
    (entry,) = Ledger.open(place.store, "clinic").statement().entries
    start = datetime.fromisoformat(ended.started)
    for text, seconds in ((entry.settled_at, 8.0), (shown[0].created, 8.0)):
        assert 0.0 <= (datetime.fromisoformat(text) - start).total_seconds() - seconds < 0.01


@pytest.mark.parametrize("removed", ["datasets", "analysts"])
def test_what_the_holder_took_away_meanwhile_fails_the_job(tmp_path: Path, removed: str) -> None:
    owner = load_clinic(tmp_path)
    place = Place(owner)
    job = place.submit()
    place.catalog = Catalog(owner.model_copy(update={removed: {}}))
    assert "clinic" in place.run()
    assert place.see(job).failure.endswith("nothing was spent")
