"""Losses without a known sign: the noise of the theorem, and the promise on the exact law of the release."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.optimize import brentq

from privlearn import PrivateRegressor
from privlearn.audit import Grid, objective_densities, worst_pairs
from privlearn.guarantee import RELATIONS
from privlearn.solvers import Huber, loss_from_name, losses_of
from tests.support.combinations import Plan

EPSILON, DELTA, ALARM = 1.3, 1e-4, 1e-6
LOSSES = [*map(loss_from_name, losses_of("residual")), Huber(0.02)]
STEEPEST_AND_CURVATURE = {"huber": (1.0, 5.0), "clipped_square": (0.5, 1.0)}
every_relation = pytest.mark.parametrize("neighbours", RELATIONS)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def free_delta(epsilon: float, ratio: float) -> float:
    """E max(0, 1 - exp(epsilon - ratio^2/2 - ratio |Z|)), Z a normal number: by quadrature."""
    start = max((epsilon - ratio**2 / 2.0) / ratio, 0.0)
    value, _ = integrate.quad(
        lambda x: -math.expm1(epsilon - ratio**2 / 2.0 - ratio * x) * stats.halfnorm.pdf(x),
        start,
        start + 40.0,
    )
    return float(value)


def free_ratio(epsilon: float, delta: float) -> float:
    return float(brentq(lambda m: free_delta(epsilon, m) - delta, 1e-3, 10.0, xtol=1e-13))


@every_relation
@every_loss
def test_scale_is_that_of_the_theorem(neighbours: str, loss: Any) -> None:
    plan = Plan("objective", "gaussian", "tight", neighbours)
    mechanism = plan.calibrate(EPSILON, DELTA, loss=loss, total=1000, regularization=0.5)
    slack = math.log1p(loss.smoothness / 500.0)
    # With a tenth of its ratio for the solver's tolerance beside it.
    ratio = free_ratio(EPSILON - slack, DELTA) / math.hypot(1.0, 0.1)
    expected = (2.0 if neighbours == "replace_one" else 1.0) * loss.lipschitz / ratio
    assert mechanism.noise_scale == pytest.approx(expected, rel=1e-6)


@every_relation
@pytest.mark.parametrize("loss", losses_of("residual"))
def test_released_coefficients_have_that_noise(neighbours: str, loss: str) -> None:
    """With features of zeros the minimiser is -b / (N Lambda), so the release is noise alone."""
    d, n, strength = 400, 50, 200.0
    model = PrivateRegressor(
        epsilon=EPSILON,
        delta=DELTA,
        neighbours=neighbours,
        expected_records=n if neighbours == "add_remove" else None,
        mechanism="objective",
        loss=loss,
        norm_bound=1.0,
        target_bounds=(-1.0, 1.0),
        fit_intercept=False,
        regularization=strength,
        random_state=11,
    ).fit(np.zeros((n, d)), np.linspace(-1.0, 1.0, n))
    steepest, curvature = STEEPEST_AND_CURVATURE[loss]
    slack = math.log1p(curvature / (n * strength))
    # With a tenth of its ratio for the solver's tolerance beside it.
    ratio = free_ratio(EPSILON - slack, DELTA) / math.hypot(1.0, 0.1)
    scale = (2.0 if neighbours == "replace_one" else 1.0) * steepest / ratio / (n * strength)
    law = stats.chi2(d)
    for factor in (1.0, 0.5, 2.0):
        found = float(np.sum((factor * model.coefficients_ / scale) ** 2))
        assert (law.ppf(ALARM) < found < law.isf(ALARM)) == (factor == 1.0)  # the check bites


def grid(mechanism: Any, deviations: float) -> Grid:
    return Grid.covering(mechanism, 3, 40_001, deviations)


def worst_delta(mechanism: Any) -> float:
    found = [
        objective_densities(mechanism, pair, grid(mechanism, 9.0)) for pair in worst_pairs(mechanism.task)
    ]
    assert max(laws.lost_mass for laws in found) < 1e-3  # the change of variables is right
    return max(laws.delta(mechanism.guarantee.epsilon) for laws in found)


def halved(mechanism: Any) -> Any:
    return dataclasses.replace(mechanism, noise_scale=mechanism.noise_scale / 2.0)


@every_relation
@every_loss
@pytest.mark.parametrize("regularization", [0.05, 3.0, 100.0])  # raised to keep the slack; between; strong
def test_gaussian_promise_on_a_line(neighbours: str, loss: Any, regularization: float) -> None:
    plan = Plan("objective", "gaussian", "tight", neighbours)
    mechanism = plan.calibrate(1.0, 0.01, loss=loss, total=3, dimension=1, regularization=regularization)
    assert worst_delta(mechanism) <= 0.01
    if regularization == 100.0:
        assert worst_delta(halved(mechanism)) > 0.01


@every_relation
@every_loss
@pytest.mark.parametrize("calibration", ["tight", "cms11"])
@pytest.mark.parametrize("regularization", [0.05, 100.0])
def test_pure_promise_on_a_line(neighbours: str, loss: Any, calibration: str, regularization: float) -> None:
    plan = Plan("objective", "norm_gamma", calibration, neighbours)
    mechanism = plan.calibrate(1.5, loss=loss, total=3, dimension=1, regularization=regularization)

    def worst(mechanism: Any) -> float:
        wide = grid(mechanism, 200.0)
        return max(
            objective_densities(mechanism, pair, wide).worst_loss for pair in worst_pairs(mechanism.task)
        )

    assert worst(mechanism) <= 1.5
    if regularization == 100.0:
        assert worst(halved(mechanism)) > 1.5


@every_relation
@every_loss
@pytest.mark.parametrize("order", [2.0, 10.0])
def test_renyi_cost_covers_the_exact_one(neighbours: str, loss: Any, order: float) -> None:
    plan = Plan("objective", "gaussian", "tight", neighbours)
    mechanism = plan.calibrate(1.0, 0.01, loss=loss, total=3, dimension=1, regularization=1000.0)

    def worst(mechanism: Any) -> float:
        found = 0.0
        for pair in worst_pairs(mechanism.task):
            laws = objective_densities(mechanism, pair, grid(mechanism, 12.0))
            for p, q in ((laws.first, laws.second), (laws.second, laws.first)):
                moment = np.exp(order * p + (1.0 - order) * q).sum() * laws.cell
                found = max(found, math.log(moment) / (order - 1.0))
        return found

    assert worst(mechanism) <= mechanism.renyi(order)
    assert worst(halved(mechanism)) > mechanism.renyi(order)
