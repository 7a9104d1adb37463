"""Estimators as black boxes: ours pass, and a toy passes until a defect is planted in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privlearn import Guarantee, PrivateLogisticRegression
from privlearn.arrays import Array
from privlearn.audit import AuditReport, audit_estimator
from privlearn.errors import InvalidParameter

BOUND = 5.0


class NoisyMeans:
    """One clipped sum per class, with Laplace noise: epsilon 1 for neighbours that exchange a row."""

    scale = 2.0 * BOUND  # a row moves one class's sum by up to 2 bounds, or two classes' by one each
    classes: tuple[int, ...] = (0, 1)

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def fit(self, X: Array, y: NDArray[Any]) -> NoisyMeans:
        clipped = np.clip(X[:, 0], -BOUND, BOUND)
        sums = np.array([clipped[y == label].sum() for label in self.classes])
        self.coef_ = (sums + self.noise(len(sums)))[:, np.newaxis]
        return self

    def noise(self, size: int) -> Array:
        return self.rng.laplace(scale=self.scale, size=size)


class Threefold(NoisyMeans):
    classes = (0, 1, 2)


class HalfNoise(NoisyMeans):
    scale = BOUND / 2.0


class SharedNoise(Threefold):
    def noise(self, size: int) -> Array:
        return np.full(size, super().noise(1)[0])


class Forgetful(NoisyMeans):
    """Its seed does not reach the generator."""

    def __init__(self, seed: int) -> None:
        super().__init__(0)


class Observant(NoisyMeans):
    """Takes its classes from the data."""

    def fit(self, X: Array, y: NDArray[Any]) -> Observant:
        super().fit(X, y)
        self.classes_ = np.unique(y[X[:, 0] != 0])
        return self


class Talkative(NoisyMeans):
    """Tells how often it had to clip."""

    def fit(self, X: Array, y: NDArray[Any]) -> Talkative:
        super().fit(X, y)
        self.n_rows_ = int(np.count_nonzero(X))
        return self


class Scoring(NoisyMeans):
    """Has no coefficients, only predictions."""

    def fit(self, X: Array, y: NDArray[Any]) -> Scoring:
        super().fit(X, y)
        self._sums = self.__dict__.pop("coef_")[:, 0]
        return self

    def predict(self, X: Array) -> Array:
        return np.full(len(X), self._sums.sum())


def audited(make: Any, **settings: Any) -> AuditReport:
    return audit_estimator(make, Guarantee(1.0), **{"norm_bound": BOUND, "runs": 1000} | settings)


def failed(report: AuditReport) -> set[str]:
    return {finding.check for finding in report.failures}


@pytest.mark.parametrize("make", [NoisyMeans, Scoring])
def test_a_correct_estimator_passes(make: Any) -> None:
    report = audited(make)
    assert report.passed, report


def test_three_classes_with_noise_of_their_own_pass() -> None:
    report = audited(Threefold, labels=(0, 1, 2), runs=200)
    assert report.passed, report
    assert {"independent noise", "fresh noise"} <= {finding.check for finding in report.findings}


@pytest.mark.parametrize(
    ("make", "settings", "reasons"),
    [
        (HalfNoise, {"confidence": 0.99}, {"empirical epsilon"}),
        (SharedNoise, {"labels": (0, 1, 2), "runs": 200}, {"independent noise", "empirical epsilon"}),
        (Forgetful, {"runs": 64}, {"fresh noise"}),
        (Observant, {"runs": 64}, {"replay"}),
    ],
)
def test_planted_defects_fail(make: Any, settings: dict[str, Any], reasons: set[str]) -> None:
    assert failed(audited(make, **settings)) == reasons


def test_exact_attributes_that_differ_are_noted() -> None:
    report = audited(Talkative, runs=64)
    (note,) = [finding for finding in report.findings if finding.status == "noted"]
    assert "n_rows_" in note.why
    assert report.passed


def test_zero_out_is_tested_as_what_it_implies() -> None:
    """Half the noise promises 4 for an exchange: what epsilon 2 for a deletion implies."""
    report = audit_estimator(HalfNoise, Guarantee(2.0, 0.0, "zero_out"), norm_bound=BOUND, runs=500)
    assert report.passed, report
    assert failed(audit_estimator(HalfNoise, Guarantee(0.5, 0.0, "zero_out"), norm_bound=BOUND, runs=1000))


def test_add_remove_is_tested_on_tables_of_other_lengths() -> None:
    """Half the noise promises 2 for a record more or less."""
    report = audit_estimator(HalfNoise, Guarantee(2.0, 0.0, "add_remove"), norm_bound=BOUND, runs=500)
    assert report.passed, report
    assert failed(audit_estimator(HalfNoise, Guarantee(0.5, 0.0, "add_remove"), norm_bound=BOUND, runs=1000))


def test_an_exact_count_is_noted_under_add_remove() -> None:
    report = audit_estimator(Talkative, Guarantee(1.0, 0.0, "add_remove"), norm_bound=BOUND, runs=64)
    (note,) = [finding for finding in report.findings if finding.status == "noted"]
    assert "n_rows_" in note.why


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_our_own_estimator_passes_under_add_remove(mechanism: str) -> None:
    def make(seed: int) -> PrivateLogisticRegression:
        return PrivateLogisticRegression(
            epsilon=1.0,
            neighbours="add_remove",
            expected_records=6,
            mechanism=mechanism,
            norm_bound=100.0,
            classes=[0, 1],
            regularization=0.2,
            random_state=seed,
        )

    report = audit_estimator(make, Guarantee(1.0, 0.0, "add_remove"), norm_bound=100.0, runs=300)
    assert report.passed, report


def test_our_own_estimator_passes() -> None:
    def make(seed: int) -> PrivateLogisticRegression:
        return PrivateLogisticRegression(
            epsilon=1.0, norm_bound=100.0, classes=[0, 1], regularization=0.2, random_state=seed
        )

    report = audited(make, norm_bound=100.0, runs=100)
    assert report.passed, report
    assert all(finding.status == "passed" for finding in report.findings)


@pytest.mark.parametrize("settings", [{"runs": 10}, {"norm_bound": 0.0}, {"labels": (1,)}, {"n_features": 0}])
def test_settings_that_say_nothing_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        audited(NoisyMeans, **settings)


def test_an_estimator_without_output_is_refused() -> None:
    class Mute(NoisyMeans):
        def fit(self, X: Array, y: NDArray[Any]) -> Mute:
            return self

    with pytest.raises(InvalidParameter, match="neither coefficients nor predictions"):
        audited(Mute)
