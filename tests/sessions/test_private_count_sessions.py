"""Sessions on public points under add/remove neighbours: the number of records reaches nothing but the noise."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from privlearn import Guarantee, InteractivePredictor, KernelLearner, verify
from privlearn.errors import InvalidParameter, VerificationError
from privlearn.guarantee import MAX_TABLE_RATIO
from privlearn.mechanisms.session.function_release import VALUE_JITTER
from privlearn.release import SessionCertificate

EXPECTED = 50
PROMISE = Guarantee(1.0, 1e-6, "add_remove")
POINTS = np.array([[0.6, 0.8], [-0.5, 0.1], [0.0, -1.0], [0.9, -0.2]])
SIZES = (0, 1, 2, 49, 50, 51, MAX_TABLE_RATIO * EXPECTED + 1, 100 * EXPECTED)
MACHINES: list[dict[str, Any]] = [
    {"mechanism": "function_release"},
    {"mechanism": "pinp"},
    {"mechanism": "pinp", "mode": "paper"},
]


def learner(**settings: Any) -> KernelLearner:
    usual: dict[str, Any] = {
        "norm_bound": 1.0,
        "classes": [0, 1],
        "public_points": POINTS,
        "fit_intercept": False,
    }
    usual |= {"guarantee": PROMISE, "expected_records": EXPECTED, "regularization": 0.5}
    return KernelLearner(**usual | settings)


def rows(count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X = np.random.default_rng(1).normal(size=(count, 2))
    return X, (X[:, 0] > 0).astype(int)


def opened(path: Path, X: Any, y: Any, **settings: Any) -> InteractivePredictor:
    machine = {
        "mechanism": settings.pop("mechanism", "function_release"),
        "mode": settings.pop("mode", "tight"),
    }
    return InteractivePredictor(
        learner(**settings).read(X, y), PROMISE, state=path / f"{len(y)}.db", random_state=3, **machine
    )


@pytest.mark.parametrize("machine", MACHINES, ids=str)
@pytest.mark.parametrize("regularization", [0.5, "auto"])
def test_no_size_is_refused_and_none_shows(
    tmp_path: Path, machine: dict[str, Any], regularization: Any
) -> None:
    public = set()
    for X, y in map(rows, SIZES):
        with opened(tmp_path, X, y, regularization=regularization, **machine) as session:
            assert session.predict(POINTS[:2]).shape == (2,)
            public.add(json.dumps(session.certificate.to_dict()))
            assert session.certificate.records == EXPECTED
    assert len(public) == 1
    assert (
        f"{EXPECTED} (public; how many there are is not)"
        in session.certificate.properties["expected records"]
    )
    assert "How many records there are is covered too" in session.certificate.properties["covers"]


def test_all_labels_alike_are_not_refused(tmp_path: Path) -> None:
    with opened(tmp_path, rows(30)[0], np.zeros(30, dtype=int)) as session:
        assert np.isfinite(session.decide(POINTS).scores).all()


@pytest.mark.parametrize("loss", ["huber_hinge", "logistic", "hinge"])
@pytest.mark.parametrize("count", [0, 1, 40, 200])
def test_one_record_more_moves_the_functions_within_the_sensitivity(loss: str, count: int) -> None:
    X, y = rows(count + 1)
    X[-1], y[-1] = POINTS[0], 1
    more, less = (learner(loss=loss).fit(X[:n], y[:n]) for n in (count + 1, count))
    moved = np.linalg.norm(
        np.frombuffer(more.freeze().function_bytes()) - np.frombuffer(less.freeze().function_bytes())
    )
    facts = more.freeze().kernel_task("add_remove")
    assert facts.task.minimiser_sensitivity == pytest.approx(1 / (EXPECTED * 0.5))
    assert 0 < moved <= facts.sensitivity


def test_the_first_record_uses_up_the_guarantee(tmp_path: Path) -> None:
    """An empty table and one record at a public point: the exact delta of one answer is all but the certified one."""
    with opened(tmp_path, POINTS[:0], np.zeros(0, dtype=int)) as without:
        base, scale = (
            float(without.decide(POINTS[0]).scores),
            without.certificate.mechanism.constants()["noise_scale"],
        )
    with opened(tmp_path, POINTS[:1], np.ones(1, dtype=int)) as alone:
        moved = float(alone.decide(POINTS[0]).scores) - base  # the same draws in both
    ratio = moved / (scale * math.sqrt(1.0 + VALUE_JITTER))
    exact = norm.cdf(ratio / 2 - 1 / ratio) - math.e * norm.cdf(-ratio / 2 - 1 / ratio)
    assert 0.97 * PROMISE.delta < exact <= PROMISE.delta


def test_the_solver_answers_for_larger_tables_than_expected() -> None:
    """Its tolerance is certified for 16 times the expected number, so it is looser than for a public number."""
    X, y = rows(EXPECTED)
    public = learner(guarantee=None, expected_records=None).read(X, y).freeze().kernel_task("zero_out")
    private = learner().read(X, y).freeze().kernel_task("add_remove")
    assert private.max_dual_sum == MAX_TABLE_RATIO * public.max_dual_sum
    assert private.task.mass_bound == MAX_TABLE_RATIO


def test_a_reopened_session_goes_on(tmp_path: Path) -> None:
    X, y = rows(60)
    with opened(tmp_path, X, y) as session:
        first = session.decide(POINTS).scores
    with InteractivePredictor.reopen(tmp_path / "60.db", learner().read(X, y), random_state=9) as again:
        assert np.array_equal(again.decide(POINTS).scores, first)


def test_what_must_agree(tmp_path: Path) -> None:
    X, y = rows(20)
    with pytest.raises(InvalidParameter, match="public_points"):
        learner(public_points=None).read(None)
    with pytest.raises(InvalidParameter, match="expected_records=30000"):
        learner(expected_records=None).read(None)
    with pytest.raises(InvalidParameter, match="Leave it out"):
        learner(guarantee=None).read(None)
    for known, promised in ((PROMISE, "zero_out"), (Guarantee(1.0, 1e-6), "add_remove")):
        private = not known.relation.count_is_public
        read = learner(guarantee=known, expected_records=EXPECTED if private else None).read(X, y)
        with pytest.raises(InvalidParameter, match="Pass the session's guarantee"):
            InteractivePredictor(
                read, Guarantee(1.0, 1e-6, promised), state=tmp_path / "s.db", random_state=0
            )
    assert not list(tmp_path.iterdir())


def test_a_certificate_without_public_points_is_not_believed(tmp_path: Path) -> None:
    X, y = rows(20)
    with opened(tmp_path, X, y) as session:
        record = session.certificate.to_dict()
    path = tmp_path / "session.json"
    path.write_text(json.dumps(record))
    verify(path)
    for name in ("landmarks", "public_points"):
        del record["learner"]["encoding"][name]
    with pytest.raises(VerificationError, match="limit on the number of records"):
        SessionCertificate.from_bytes(json.dumps(record).encode())
