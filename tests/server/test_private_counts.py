"""A served data set under add/remove: analysts see what the holder expects, whatever the table holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from privlearn.errors import InvalidParameter, SchemaError
from privlearn.guarantee import Guarantee
from privlearn.server import Service
from privlearn.server.access import Caller
from privlearn.server.api.datasets import DataSetAnswer
from privlearn.server.job_kinds.training import estimate_training
from privlearn.server.jobs import queue, results
from privlearn.server.jobs import running as training
from tests.support.service_support import changed, load_clinic, model_request

ALICE = Caller("k1", "analyst", "alice")
MODEL = model_request("clinic", "release", "logistic", 1.0, 1e-6)
SESSION = changed(MODEL, kind="session", learner="kernel", mechanism="function_release")
PRIVATE = 'neighbours = "add_remove"\nexpected_records = 400'


def test_everything_shown_is_what_is_expected(tmp_path: Path) -> None:
    shown = []
    for rows in (300, 301):
        folder = tmp_path / str(rows)
        folder.mkdir()
        service = Service(load_clinic(folder, rows=rows, dataset=PRIVATE))
        offered = service.catalog.find("clinic")
        assert (offered.records, offered.size) == (400, "400 expected records")
        assert service.catalog.check() == {"clinic": 400}
        job = service.ask(ALICE, MODEL)
        trial = service.ask(ALICE, changed(MODEL, trial=True))
        for _ in range(2):
            claimed = queue.claim(service.store)
            assert claimed is not None
            assert training.run_job(service.store, service.catalog, claimed) == ""
        found = [results.find(service.store, None, each.id).certificate for each in (job, trial)]
        recipe, promise = offered.learners["logistic"], Guarantee(1.0, 1e-6, "add_remove")
        told = estimate_training(offered, recipe, promise)
        shown.append((DataSetAnswer.of(offered).model_dump(), found, told))
        with pytest.raises(InvalidParameter, match="would reveal that number"):
            service.ask(ALICE, SESSION)
        assert service._lock is not None
        service._lock.close()
    assert shown[0] == shown[1]


@pytest.mark.parametrize("trial", [False, True])
@pytest.mark.parametrize(
    ("learner", "with_points"), [("logistic", False), ("kernel", False), ("kernel", True)]
)
def test_every_estimate_is_of_what_is_expected(
    tmp_path: Path, trial: bool, learner: str, with_points: bool
) -> None:
    told = []
    for rows in (300, 301):
        folder = tmp_path / str(rows)
        folder.mkdir()
        service = Service(load_clinic(folder, rows=rows, dataset=PRIVATE))
        points = service.catalog.find("clinic").synthetic(20).drop_columns(["outcome"])
        wanted = changed(MODEL, trial=trial, learner=learner, points=points if with_points else None)
        told.append([service.estimate(ALICE, changed(wanted, kind=kind)) for kind in ("release", "session")])
        assert service._lock is not None
        service._lock.close()
    assert told[0] == told[1]
    assert [each["rows"] for each in told[0]] == [400, 400]


def test_a_session_may_answer_from_a_model(tmp_path: Path) -> None:
    service = Service(load_clinic(tmp_path, dataset=PRIVATE))
    service.ask(ALICE, changed(SESSION, mechanism="model"))
    claimed = queue.claim(service.store)
    assert claimed is not None
    assert training.run_job(service.store, service.catalog, claimed) == ""
    assert service._lock is not None
    service._lock.close()


@pytest.mark.parametrize("dataset", ['neighbours = "add_remove"', "expected_records = 400"])
def test_the_holders_file_says_both_or_neither(dataset: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="expected_records"):
        load_clinic(tmp_path, dataset=dataset)
