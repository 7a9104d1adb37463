"""Several numbers at once: one problem each, whose costs compose under one promise."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

from privlearn import (
    DataError,
    Guarantee,
    InteractivePredictor,
    InvalidParameter,
    KernelLearner,
    PrivateRegressor,
    Release,
    ReleaseError,
    plan,
    verify,
)
from privlearn.arrays import Array
from privlearn.mechanisms import ObjectivePerturbation, Task
from privlearn.solvers import Huber

rng = np.random.default_rng(2)
X = rng.uniform(-1.0, 1.0, size=(6000, 3))
Y = np.column_stack([20.0 + 5.0 * X[:, 0], -X[:, 1]]) + rng.normal(size=(6000, 2)) * [1.0, 0.2]
BOUNDS = [(10.0, 30.0), (-2.0, 2.0)]
FACTS: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "norm_bound": 1.8, "random_state": 0}


@pytest.mark.parametrize("kernel", [{}, {"kernel": "rbf"}])
def test_both_are_learnt_and_read_back(kernel: dict[str, Any], tmp_path: Path) -> None:
    model = PrivateRegressor(**FACTS, **kernel, target_bounds=BOUNDS).fit(X, Y)
    found = model.predict(X)
    assert found.shape == (6000, 2)
    assert np.all((1.0 - ((found - Y) ** 2).mean(axis=0) / Y.var(axis=0)) > 0.6)
    assert model.score(X, Y) > 0.6
    assert model.certificate_.task.problems == 2
    model.release_.save(tmp_path / "two.privlearn")
    assert verify(tmp_path / "two.privlearn").claimed == model.certificate_.guarantee
    read = Release.load(tmp_path / "two.privlearn")
    assert read.to_bytes() == model.release_.to_bytes()
    assert np.array_equal(read.model.predict(X), found)


def test_coefficients_are_in_the_units_of_the_numbers() -> None:
    model = PrivateRegressor(**FACTS, target_bounds=BOUNDS).fit(X, Y)
    short = X[np.linalg.norm(X, axis=1) < 1.0] / 2.0
    assert model.predict(short) == pytest.approx(short @ model.coef_.T + model.intercept_)


def test_without_a_promise_each_is_learnt_as_if_alone() -> None:
    facts = FACTS | {"epsilon": math.inf, "delta": 0.0}
    together = PrivateRegressor(**facts, target_bounds=BOUNDS).fit(X, Y).predict(X)
    for place, bounds in enumerate(BOUNDS):
        alone = PrivateRegressor(**facts, target_bounds=bounds).fit(X, Y[:, place])
        assert together[:, place] == pytest.approx(alone.predict(X), abs=1e-6)


@pytest.mark.parametrize(
    ("bounds", "y", "error"),
    [
        (BOUNDS, Y[:, 0], DataError),
        (BOUNDS, Y[:, :1], DataError),
        (BOUNDS, np.where(Y > 0, np.nan, Y), DataError),
        (BOUNDS, Y[:-1], DataError),
        ([(10.0, 30.0), (2.0, -2.0)], Y, InvalidParameter),
        ([(10.0, 30.0), 2.0], Y, InvalidParameter),
    ],
)
def test_what_does_not_fit_is_refused(bounds: Any, y: Array, error: type[Exception]) -> None:
    with pytest.raises(error):
        PrivateRegressor(**FACTS, target_bounds=bounds).fit(X, y)


def test_a_forged_pair_of_bounds_is_refused() -> None:
    release = PrivateRegressor(**FACTS, target_bounds=BOUNDS).fit(X, Y).release_
    for bounds in ((10.0, 30.0), ((10.0, 30.0),), ((10.0, 30.0), (2.0, -2.0))):
        model: Any = dataclasses.replace(cast(Any, release.model), target_bounds=bounds)
        with pytest.raises(ReleaseError):
            Release.from_bytes(dataclasses.replace(release, model=model).to_bytes())


def test_plans_and_sessions_take_them(tmp_path: Path) -> None:
    facts = {name: fact for name, fact in FACTS.items() if name != "random_state"}
    assert plan(PrivateRegressor(**facts, target_bounds=BOUNDS), 6000, 3).mechanism.task.problems == 2
    promise = Guarantee(2.0, 1e-5)
    learner = KernelLearner(norm_bound=1.8, target_bounds=BOUNDS, guarantee=promise).fit(X[:300], Y[:300])
    with InteractivePredictor(learner, promise, state=tmp_path / "session", random_state=0) as session:
        assert session.predict(X[:5]).shape == (5, 2)
        assert session.predict(X[0]).shape == (2,)


def log_densities(mechanism: ObjectivePerturbation, grid: Array, targets: tuple[Array, Array]) -> list[Array]:
    """Return log-densities of the minimiser over rows of 1, on a line, for either table's targets."""
    loss, strength = mechanism.task.loss, mechanism.task.total * mechanism.effective_regularization
    assert isinstance(loss, Huber)
    found = []
    for of_table in targets:
        residuals = grid[:, np.newaxis] - of_table
        noise = -loss.first_derivative(residuals).sum(axis=1) - strength * grid
        slope = strength + loss.second_derivative(residuals).sum(axis=1)
        found.append(stats.norm.logpdf(noise, scale=mechanism.noise_scale) + np.log(slope))
    return found


def divergence(mechanism: ObjectivePerturbation, epsilon: float) -> float:
    """Return the exact divergence of two numbers learnt on a line, by quadrature over both minimisers.

    The tables: targets 0 and 0 of both numbers, and a record with targets 1 and -1 that is there or left out.
    """
    grid, width = np.linspace(-1.5, 1.5, 2001, retstep=True)
    both = [
        log_densities(mechanism, grid, (np.array([0.0, 0.0, extreme]), np.zeros(2)))
        for extreme in (1.0, -1.0)
    ]
    losses = np.add.outer(*(here - there for here, there in both))
    weights = np.multiply.outer(*(np.exp(here) * width for here, _ in both))
    assert weights.sum() == pytest.approx(1.0, rel=1e-3)
    return float(np.sum(weights * np.maximum(0.0, -np.expm1(epsilon - losses))))


def test_two_problems_together_keep_the_promise_on_a_line() -> None:
    """The exact divergence is below delta; above it if the noise is that of one problem, or halved."""
    epsilon, delta = 1.0, 0.05
    facts = Task(Huber(0.2), 3, 1, 2, 30.0, 1e-9, "zero_out")
    promise = Guarantee(epsilon, delta, "zero_out")
    mechanism = ObjectivePerturbation.calibrate(facts, promise, "gaussian", "tight")
    assert (
        0.1 * delta < divergence(mechanism, epsilon) <= delta
    )  # a record has one sign, the bound allows both
    alone = ObjectivePerturbation.calibrate(
        dataclasses.replace(facts, problems=1), promise, "gaussian", "tight"
    )
    for scale in (alone.noise_scale, mechanism.noise_scale / 2.0):
        cheaper = dataclasses.replace(mechanism, noise_scale=scale)
        assert not cheaper.spends() <= promise
    assert (
        divergence(dataclasses.replace(mechanism, noise_scale=mechanism.noise_scale / 2.0), epsilon) > delta
    )
    assert 1.4 < mechanism.noise_scale / alone.noise_scale < 1.7  # sqrt(2), and a little for so large a delta
