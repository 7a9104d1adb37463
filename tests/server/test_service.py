"""The facade with real training processes: who sees what, what is refused, what survives."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privlearn.errors import BudgetExceeded, InvalidParameter, LedgerError, PrivlearnError
from privlearn.estimators.forecast import synthetic_table
from privlearn.release import Release
from privlearn.server import Conflict, Forbidden, NotFound, Service, TooLarge
from privlearn.server.access import Caller
from privlearn.server.holder import Owner
from privlearn.server.jobs import Job, Predictions, queue
from privlearn.server.store import events
from tests.support.service_support import SCHEMA, changed, load_clinic, model_request

HOLDER = Caller("k0", "holder")
ALICE = Caller("k1", "analyst", "alice")
BOB = Caller("k2", "analyst", "bob")
NARROW = Caller("k3", "analyst", "alice", frozenset())
"""A key of Alice's for no data set."""
STRANGER = Caller("k4", "analyst", "eve")

RELEASE = model_request("clinic", "release", "logistic", 0.5, 1e-6)
SESSION = changed(RELEASE, kind="session")
KERNEL = changed(SESSION, learner="kernel", mechanism="function_release")
POINTS: pa.Table = synthetic_table(SCHEMA, 12, seed=5).drop_columns(["outcome"])


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Owner:
    return load_clinic(tmp_path_factory.mktemp("clinic"), epsilon=100.0, dataset="accept_weak_privacy = true")


@pytest.fixture(scope="module")
def service(owner: Owner) -> Iterator[Service]:
    running = Service(owner)
    running.start()
    yield running
    running.stop()


def done(service: Service, job: Job, caller: Caller = ALICE) -> Job:
    while job.state not in ("done", "failed"):
        time.sleep(0.02)
        job = service.job(caller, job.id)
    assert job.state == "done", job.failure
    return job


def predict(service: Service, caller: Caller, session_id: str, points: pa.Table = POINTS) -> Predictions:
    return service.predict(caller, service.session(caller, session_id), points)


@pytest.fixture(scope="module")
def session_id(service: Service) -> str:
    return done(service, service.ask(ALICE, SESSION)).id


@pytest.fixture(scope="module")
def release_id(service: Service) -> str:
    return done(service, service.ask(ALICE, RELEASE)).id


def test_a_session_answers_the_same_always(service: Service, session_id: str) -> None:
    first = predict(service, ALICE, session_id)
    again = predict(service, ALICE, session_id)
    assert set(first.predictions) <= {"healthy", "ill"}
    assert np.array_equal(first.scores, again.scores)
    assert set(first.sources) == {"model"}


def test_a_release_is_what_the_certificate_says(service: Service, release_id: str) -> None:
    release = Release.from_bytes(service.fetch(ALICE, release_id)[1])
    info = service.result(ALICE, release_id, "release")
    assert release.certificate.to_dict() == info.certificate
    assert release.certificate.is_private
    assert info.guarantee == release.certificate.guarantee
    assert info.size == len(service.fetch(ALICE, release_id)[1])


@pytest.mark.parametrize("caller", [BOB, NARROW, STRANGER], ids=["another", "narrow key", "stranger"])
def test_what_is_anothers_does_not_exist(
    service: Service, session_id: str, release_id: str, caller: Caller
) -> None:
    questions: list[Callable[[], Any]] = [
        lambda: service.session(caller, session_id),
        lambda: predict(service, caller, session_id),
        lambda: service.close_session(caller, session_id),
        lambda: service.result(caller, release_id, "release"),
        lambda: service.fetch(caller, release_id),
        lambda: service.job(caller, release_id),
    ]
    for question in questions:
        with pytest.raises(NotFound) as foreign:
            question()
        assert "List yours" in str(foreign.value)
    assert service.results(caller, limit=10) == []
    assert service.jobs(caller, 10) == []


def test_what_is_foreign_and_what_is_not_there_are_answered_alike(service: Service, session_id: str) -> None:
    with pytest.raises(NotFound) as foreign:
        service.session(BOB, session_id)
    with pytest.raises(NotFound) as missing:
        service.session(BOB, "0" * 16)
    assert str(foreign.value) == str(missing.value)


@pytest.mark.parametrize("caller", [NARROW, STRANGER])
def test_no_data_set_for_a_key_without_one(service: Service, caller: Caller) -> None:
    assert service.datasets(caller) == []
    for name in ("clinic", "nothing"):
        with pytest.raises(NotFound):
            service.ask(caller, changed(RELEASE, dataset=name))


def test_the_holder_sees_everything_but_asks_no_session_of_others(
    service: Service, session_id: str, release_id: str
) -> None:
    assert session_id in [session.id for session in service.results(HOLDER, "session", limit=10)]
    assert service.fetch(HOLDER, release_id)[1] == service.fetch(ALICE, release_id)[1]
    assert {event.actor for event in service.events(HOLDER)} >= {"alice"}
    with pytest.raises(Forbidden):
        predict(service, HOLDER, session_id)
    with pytest.raises(Forbidden):
        service.events(ALICE)


REFUSED = {
    "infinite epsilon": (changed(RELEASE, epsilon=float("inf")), InvalidParameter),
    "no epsilon": (changed(RELEASE, epsilon=0.0), InvalidParameter),
    "negative delta": (changed(RELEASE, delta=-1e-6), InvalidParameter),
    "unknown learner": (changed(RELEASE, learner="oracle"), NotFound),
    "a kernel machine cannot be released": (changed(KERNEL, kind="release"), InvalidParameter),
    "function release without delta": (changed(KERNEL, delta=0.0), InvalidParameter),
    "points of a kernel machine": (changed(KERNEL, points=POINTS), InvalidParameter),
    "points without a column": (
        changed(RELEASE, learner="kernel", points=POINTS.drop_columns(["age"])), PrivlearnError
    ),
    "more than is left": (changed(RELEASE, epsilon=1000.0), BudgetExceeded),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_costs_nothing(service: Service, case: str) -> None:
    request, error = REFUSED[case]
    before = service.budget(ALICE, "clinic")
    with pytest.raises(error):
        service.ask(ALICE, request)
    after = service.budget(ALICE, "clinic")
    assert (after.spent, after.reserved) == (before.spent, before.reserved)


def test_a_share_is_a_limit_of_its_own(service: Service) -> None:
    with pytest.raises(BudgetExceeded, match="your share"):
        service.ask(BOB, changed(RELEASE, epsilon=26.0))


def test_budgets_show_own_entries(service: Service, release_id: str) -> None:
    mine, others = service.budget(ALICE, "clinic"), service.budget(BOB, "clinic")
    assert release_id in [entry.reservation for entry in service.entries(ALICE, "clinic", 100)]
    assert {entry.account for entry in service.entries(BOB, "clinic", 100)} <= {"bob"}
    assert release_id in [entry.reservation for entry in service.entries(HOLDER, "clinic", 100)]
    assert others.spent == mine.spent
    assert others.share is not None
    assert others.share.total.epsilon == 25.0


def test_a_retried_request_pays_once(service: Service) -> None:
    before = service.budget(ALICE, "clinic").spent.epsilon
    asked = [service.ask(ALICE, RELEASE, "one key") for _ in range(5)]
    assert len({job.id for job in asked}) == 1
    done(service, asked[0])
    assert service.budget(ALICE, "clinic").spent.epsilon - before == pytest.approx(0.5)


def test_a_closed_session_answers_no_more(service: Service) -> None:
    session = done(service, service.ask(ALICE, changed(SESSION, trial=True)))
    predict(service, ALICE, session.id)
    service.close_session(ALICE, session.id)
    with pytest.raises(Conflict, match="closed"):
        predict(service, ALICE, session.id)
    with pytest.raises(Conflict, match="closed"):
        service.close_session(ALICE, session.id)


def test_batches_have_a_limit(service: Service, session_id: str) -> None:
    most = service.owner.limits.batch_rows
    many: pa.Table = synthetic_table(SCHEMA, most + 1, seed=5)
    with pytest.raises(TooLarge):
        predict(service, ALICE, session_id, many)
    with pytest.raises(InvalidParameter):
        predict(service, ALICE, session_id, many.slice(0, 0))
    with pytest.raises(TooLarge):
        service.ask(ALICE, changed(RELEASE, learner="kernel", points=many))


def test_one_server_on_sqlite(service: Service, owner: Owner) -> None:
    with pytest.raises(LedgerError, match="another server or upgrade runs"):
        Service(owner)


def process_of(service: Service) -> int:
    """Once it takes jobs."""
    worker = service._workers[0]
    while not worker._ready:
        time.sleep(0.02)
    assert worker._process is not None
    assert worker._process.pid is not None
    return worker._process.pid


def test_a_killed_training_process_is_replaced_and_its_job_done(service: Service) -> None:
    before = service.budget(ALICE, "clinic").spent.epsilon
    victim = process_of(service)
    os.kill(victim, signal.SIGSTOP)  # so that it is killed while it has the job
    job = service.ask(ALICE, RELEASE)
    while service.job(ALICE, job.id).state != "running":
        time.sleep(0.02)
    os.kill(victim, signal.SIGKILL)
    done(service, job)
    assert service.budget(ALICE, "clinic").spent.epsilon - before == pytest.approx(0.5)


@pytest.mark.parametrize("mechanism", ["function_release", "pinp"])
def test_sessions_on_a_kernel_machine_go_on_after_a_restart(tmp_path: Path, mechanism: Any) -> None:
    owner = load_clinic(tmp_path, rows=80)
    first = Service(owner)
    first.start()
    session = done(first, first.ask(ALICE, changed(KERNEL, mechanism=mechanism)))
    said = predict(first, ALICE, session.id, POINTS.slice(0, 6))
    first.stop()
    second = Service(owner)
    try:
        again = predict(second, ALICE, session.id, POINTS)
        assert np.array_equal(again.scores[:6], said.scores)
        assert again.sources[:6].tolist() == said.sources.tolist()
        assert second.budget(ALICE, "clinic").spent.epsilon == 0.5
    finally:
        second._lock and second._lock.close()


def test_a_server_that_stops_leaves_its_training_for_the_next(tmp_path: Path) -> None:
    owner = load_clinic(tmp_path)
    first = Service(owner)
    first.start()
    while not first._workers[0]._ready:
        time.sleep(0.02)
    os.kill(process_of(first), signal.SIGSTOP)
    job = first.ask(ALICE, RELEASE)
    while first.job(ALICE, job.id).state != "running":
        time.sleep(0.02)
    first.stop()
    second = Service(owner)
    assert second.job(ALICE, job.id).state == "waiting"
    second.start()
    try:
        done(second, job)
        assert second.budget(ALICE, "clinic").spent.epsilon == 0.5
    finally:
        second.stop()


def test_the_worker_waits_out_a_store_that_cannot_be_used(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    claim = queue.claim
    failed: list[int] = []

    def lost(store: str, turns: queue.RoundRobin) -> Any:
        if len(failed) < 2:
            failed.append(1)
            raise LedgerError("no connection")
        return claim(store, turns)

    monkeypatch.setattr(queue, "claim", lost)
    done(service, service.ask(ALICE, changed(RELEASE, trial=True)))
    assert len(failed) == 2


def test_no_job_begins_unrecorded(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """It and its line in the log are one transaction: who is told that nothing was spent can believe it."""

    def fail(*_: object) -> None:
        raise LedgerError("the disk is full")

    before = service.jobs(ALICE, 100)
    monkeypatch.setattr(events, "_append", fail)
    with pytest.raises(LedgerError):
        service.ask(ALICE, RELEASE)
    assert service.jobs(ALICE, 100) == before
