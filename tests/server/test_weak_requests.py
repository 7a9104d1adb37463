"""The holder decides whether promises that are hardly private may leave; analysts are told what they are worth."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from privlearn import Ledger
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.server import Service
from privlearn.server.access import Caller
from privlearn.server.jobs import JobRequest, queue, results
from privlearn.server.jobs import running as training
from tests.support.served import serving
from tests.support.service_support import changed, load_clinic, model_request

ALICE = Caller("k1", "analyst", "alice")
WEAK = model_request("clinic", "release", "logistic", 30.0, 1e-6)
KERNEL = changed(WEAK, kind="session", learner="kernel", mechanism="function_release")
ACCEPTED = "accept_weak_privacy = true"


@contextmanager
def resting(folder: Path, **options: Any) -> Iterator[Service]:
    """Return a service whose workers are not started: the tests run its jobs themselves."""
    made = Service(load_clinic(folder, **options))
    yield made
    assert made._lock is not None
    made._lock.close()


def run_next(service: Service) -> str:
    claimed = queue.claim(service.store)
    assert claimed is not None
    return training.run_job(service.store, service.catalog, claimed)


@pytest.fixture(params=["", ACCEPTED], ids=["not said", "accepted"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    with resting(tmp_path, epsilon=100.0, dataset=request.param) as made:
        yield made


@pytest.mark.parametrize(
    "request_", [WEAK, KERNEL, changed(WEAK, trial=True)], ids=["model", "kernel", "trial"]
)
def test_only_the_holder_can_allow_it(service: Service, request_: JobRequest) -> None:
    allowed = service.owner.datasets["clinic"].accept_weak_privacy
    if not allowed:
        with pytest.raises(InvalidParameter, match=r"hardly private.* The holder does not allow that"):
            service.ask(ALICE, request_)
        assert not service.jobs(ALICE, 10)
        return
    job = service.ask(ALICE, request_)
    assert run_next(service) == ""
    assert "hardly private" in results.find(service.store, None, job.id).certificate["weakness"]


def test_a_promise_is_judged_by_the_number_of_records(tmp_path: Path) -> None:
    with resting(tmp_path, rows=300) as service:
        offered = service.catalog.find("clinic")
        assert offered.weakness(Guarantee(1.0, 1.0 / 300)) is not None
        assert offered.weakness(Guarantee(1.0, 0.9 / 300)) is None


def test_a_job_that_the_holder_no_longer_allows_fails_unpaid(tmp_path: Path) -> None:
    with resting(tmp_path, epsilon=100.0, dataset=ACCEPTED) as service:
        job = service.ask(ALICE, WEAK)
    with resting(tmp_path, epsilon=100.0) as strict:
        assert "hardly private" in run_next(strict)
        assert strict.job(ALICE, job.id).state == "failed"
        assert not Ledger.open(strict.store, "clinic").statement().entries


def test_a_trial_is_judged_by_the_records_and_not_by_its_made_up_rows(tmp_path: Path) -> None:
    """The latter are more here: 1/2000 < delta < 1/300."""
    with resting(tmp_path, rows=300) as service:
        service.ask(ALICE, changed(WEAK, epsilon=1.0, delta=1e-3, trial=True))
        assert run_next(service) == ""


def test_interface_and_pages_say_it(tmp_path: Path) -> None:
    owner = load_clinic(tmp_path, epsilon=100.0, dataset=ACCEPTED)
    with serving(owner, training=False) as served:
        asked = {"learner": "logistic", "epsilon": 30.0, "delta": 1e-6}
        told = served.alice.post(
            "/v1/estimates", json={"kind": "session", "dataset": "clinic"} | asked
        ).json()
        assert "hardly private" in told["weakness"]
        strong = served.alice.post(
            "/v1/estimates", json={"kind": "session", "dataset": "clinic"} | asked | {"epsilon": 1.0}
        ).json()
        assert strong["weakness"] is None
        key = served.alice.headers["Authorization"].removeprefix("Bearer ")
        served.alice.post("/sign-in", data={"key": key}, headers={"Sec-Fetch-Site": "same-origin"})
        form = {"face": "session", "learner": "logistic", "epsilon": "30", "delta": "1e-6"}
        page = served.alice.get("/desk/clinic/train", params=form).text
        assert re.search("This guarantee is hardly private: epsilon 30 is above 20", page)
        strong_page = served.alice.get("/desk/clinic/train", params=form | {"epsilon": "1"}).text
        assert "hardly private" not in strong_page
