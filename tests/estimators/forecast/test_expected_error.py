"""The expected error on the reference problem: its ends are known, and simulated scores agree with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privlearn import PrivateLogisticRegression, PrivateRegressor, plan
from privlearn.data import census_schema
from privlearn.estimators.forecast import LOG_ODDS_DEVIATION, TARGET_DEVIATION, Spectrum, reference_problem
from privlearn.estimators.forecast.expected_error import error_rate, expected_error, sampling_variances
from privlearn.solvers import Logistic, loss_from_name

ISOTROPIC = Spectrum(np.full(5, 0.2), np.full(5, 0.2))


def test_a_perfect_score_and_none() -> None:
    assert error_rate(1.0) == pytest.approx(0.22, abs=0.01)
    assert error_rate(0.0) == pytest.approx(0.5)


@pytest.mark.parametrize("correlation", [0.3, 0.8])
def test_simulated_scores_agree(correlation: float) -> None:
    generator = np.random.default_rng(1)
    truth = generator.normal(size=400_000)
    labels = generator.random(truth.size) < 1.0 / (1.0 + np.exp(-LOG_ODDS_DEVIATION * truth))
    scores = correlation * truth + np.sqrt(1.0 - correlation**2) * generator.normal(size=truth.size)
    assert error_rate(correlation) == pytest.approx(np.mean((scores > 0) != labels), abs=0.003)


def test_without_noise_and_regularization_nothing_is_lost() -> None:
    for name in ("logistic", "huber"):
        loss = loss_from_name(name)
        told = expected_error(loss, 10**12, 0.0, 1e-12, ISOTROPIC, reference_problem(loss))
        assert told.excess == pytest.approx(0.0, abs=0.02 * (told.guessing - told.best))
        assert told.excess >= 0.0


@pytest.mark.parametrize("name", ["logistic", "huber_hinge", "huber", "multinomial"])
def test_noise_and_fewer_records_cost(name: str) -> None:
    loss = loss_from_name(name)
    problem = reference_problem(loss)
    usual = expected_error(loss, 1000, 0.1, 1e-3, ISOTROPIC, problem)
    assert expected_error(loss, 1000, 0.5, 1e-3, ISOTROPIC, problem).excess > usual.excess
    assert expected_error(loss, 100, 0.1, 1e-3, ISOTROPIC, problem).excess > usual.excess


def test_what_another_draw_of_records_changes() -> None:
    """A logistic regression without regularization, trained again and again on the reference problem."""
    from sklearn.linear_model import LogisticRegression

    generator, records = np.random.default_rng(2), 1500
    truth = generator.normal(size=5)
    truth *= LOG_ODDS_DEVIATION / np.linalg.norm(truth * np.sqrt(0.2))
    tests = generator.normal(size=(300, 5)) * np.sqrt(0.2)
    scores = []
    for _ in range(60):
        rows = generator.normal(size=(records, 5)) * np.sqrt(0.2)
        labels = generator.random(records) < 1.0 / (1.0 + np.exp(-rows @ truth))
        fitted = LogisticRegression(C=np.inf, fit_intercept=False).fit(rows, labels)
        scores.append(tests @ fitted.coef_[0])
    seen = np.mean(np.var(scores, axis=0))
    told = sampling_variances(records, ISOTROPIC, 0.0, reference_problem(Logistic())).sum()
    assert told == pytest.approx(seen, rel=0.5)  # curvature is a chord


def test_a_number_is_told_in_its_units() -> None:
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "norm_bound": 1.0}
    narrow = plan(PrivateRegressor(target_bounds=(0.0, 1.0), **settings), 5000, 5).expected_error
    wide = plan(PrivateRegressor(target_bounds=(0.0, 1000.0), **settings), 5000, 5).expected_error
    assert wide.best == pytest.approx(500 * TARGET_DEVIATION)
    assert wide.excess == pytest.approx(1000 * narrow.excess)


def test_more_epsilon_is_less_error() -> None:
    few = plan(PrivateLogisticRegression(epsilon=0.1, delta=1e-6, schema=census_schema()), 2000)
    assert few.expected_error.excess > few.at(epsilon=1.0).expected_error.excess > 0.0
