"""Losses without a known sign: the noise of the theorem, and the promise on the exact law of the release.

The minimiser w of J(w) + <b, w>/N satisfies b = -sum of slope(<w, x> - y) x - N Lambda w, so on a line w has density
p(b(w)) (sum of curvatures x^2 + N Lambda). Records are pairs (x, y); one with x = 0 is a deleted one.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from combinations import Plan
from numpy.typing import NDArray
from scipy import integrate, stats
from scipy.optimize import brentq

from privlearn import PrivateRegressor
from privlearn.erm import ClippedSquare, Huber
from privlearn.guarantee import Neighbours

Array = NDArray[np.float64]
Record = tuple[float, float]

EPSILON, DELTA, ALARM = 1.3, 1e-4, 1e-6
DIRECTIONS = {"zero_out": 1, "replace_one": 2}
LOSSES = [Huber(0.2), Huber(0.02), ClippedSquare(0.5)]
both_relations = pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def free_delta(epsilon: float, ratio: float, directions: int) -> float:
    """E max(0, 1 - exp(epsilon - ratio^2/2 - ratio X)), X the norm of a normal vector: by quadrature."""
    law = stats.chi(directions)
    start = max((epsilon - ratio**2 / 2.0) / ratio, 0.0)
    value, _ = integrate.quad(
        lambda x: -math.expm1(epsilon - ratio**2 / 2.0 - ratio * x) * law.pdf(x), start, start + 40.0
    )
    return float(value)


def free_ratio(epsilon: float, delta: float, directions: int) -> float:
    return float(brentq(lambda m: free_delta(epsilon, m, directions) - delta, 1e-3, 10.0, xtol=1e-13))


@both_relations
@every_loss
def test_scale_is_that_of_the_theorem(neighbours: Neighbours, loss: Any) -> None:
    plan = Plan("objective", "gaussian", "tight", neighbours)
    mechanism = plan.calibrate(EPSILON, DELTA, loss=loss, total=1000, regularization=0.5)
    slack = math.log1p(loss.smoothness / 500.0)
    ratio = free_ratio(0.999 * EPSILON - slack, 0.999 * DELTA, DIRECTIONS[neighbours])
    expected = (2.0 if neighbours == "replace_one" else 1.0) * loss.lipschitz / ratio
    assert mechanism.noise_scale == pytest.approx(expected, rel=1e-6)


@both_relations
@pytest.mark.parametrize("loss", ["huber", "clipped_square"])
def test_released_coefficients_have_that_noise(neighbours: Neighbours, loss: str) -> None:
    """With features of zeros the minimiser is -b / (N Lambda), so the release is noise alone."""
    d, n, strength = 400, 50, 200.0
    model = PrivateRegressor(
        epsilon=EPSILON,
        delta=DELTA,
        neighbours=neighbours,
        mechanism="objective",
        loss=loss,
        norm_bound=1.0,
        target_bounds=(-1.0, 1.0),
        fit_intercept=False,
        regularization=strength,
        random_state=11,
    ).fit(np.zeros((n, d)), np.linspace(-1.0, 1.0, n))
    steepest, curvature = (1.0, 5.0) if loss == "huber" else (0.5, 1.0)
    slack = math.log1p(curvature / (n * strength))
    ratio = free_ratio(0.999 * EPSILON - slack, 0.999 * DELTA, DIRECTIONS[neighbours])
    scale = (2.0 if neighbours == "replace_one" else 1.0) * steepest / ratio / (n * strength)
    law = stats.chi2(d)
    for factor in (1.0, 0.5, 2.0):
        found = float(np.sum((factor * model.coefficients_ / scale) ** 2))
        assert (law.ppf(ALARM) < found < law.isf(ALARM)) == (factor == 1.0)  # the check bites


def log_density(records: list[Record], w: Array, mechanism: Any) -> Array:
    loss, scale = mechanism.task.loss, mechanism.noise_scale
    kappa = mechanism.task.total * mechanism.effective_regularization
    noise, jacobian = -kappa * w, np.full_like(w, kappa)
    for x, y in records:
        noise -= loss.derivative(w * x - y) * x
        jacobian += loss.curvature(w * x - y) * x**2
    if mechanism.noise == "gaussian":
        return np.asarray(stats.norm.logpdf(noise, scale=scale) + np.log(jacobian))
    return -np.abs(noise) / scale - math.log(2.0 * scale) + np.log(jacobian)


def neighbours_on_a_line(neighbours: Neighbours) -> list[tuple[list[Record], list[Record]]]:
    rest: list[list[Record]] = [[(0.0, 0.0)] * 2, [(1.0, 1.0), (-1.0, 0.3)], [(1.0, 0.0), (0.3, -1.0)]]
    removed, flipped = (0.0, 0.0), (1.0, -1.0)
    changed = {
        "zero_out": [((1.0, 1.0), removed), ((1.0, 0.0), removed), ((-0.5, 0.2), removed)],
        "replace_one": [((1.0, 1.0), flipped), ((1.0, 0.0), flipped), ((1.0, 0.05), (1.0, -0.05))],
    }[neighbours]
    return [([one, *others], [other, *others]) for (one, other), others in itertools.product(changed, rest)]


def axis(mechanism: Any, deviations: float) -> Array:
    kappa = mechanism.task.total * mechanism.effective_regularization
    half = (deviations * mechanism.noise_scale + 3.0 * mechanism.task.loss.lipschitz) / kappa
    return np.linspace(-half, half, 40_001)


def worst_delta(mechanism: Any, neighbours: Neighbours) -> float:
    w = axis(mechanism, 9.0)
    width, factor, worst = w[1] - w[0], math.exp(mechanism.guarantee.epsilon), 0.0
    for pair in neighbours_on_a_line(neighbours):
        first, second = (np.exp(log_density(records, w, mechanism)) for records in pair)
        assert first.sum() * width == pytest.approx(1.0, abs=1e-3)  # the change of variables is right
        for p, q in ((first, second), (second, first)):
            worst = max(worst, float(np.maximum(p - factor * q, 0.0).sum() * width))
    return worst


def halved(mechanism: Any) -> Any:
    return dataclasses.replace(mechanism, noise_scale=mechanism.noise_scale / 2.0)


@both_relations
@every_loss
@pytest.mark.parametrize("regularization", [0.05, 3.0, 100.0])  # raised to keep the slack; between; strong
def test_gaussian_promise_on_a_line(neighbours: Neighbours, loss: Any, regularization: float) -> None:
    plan = Plan("objective", "gaussian", "tight", neighbours)
    mechanism = plan.calibrate(1.0, 0.01, loss=loss, total=3, dimension=1, regularization=regularization)
    assert worst_delta(mechanism, neighbours) <= 0.01
    if regularization == 100.0:
        assert worst_delta(halved(mechanism), neighbours) > 0.01


@both_relations
@every_loss
@pytest.mark.parametrize("calibration", ["tight", "cms11"])
@pytest.mark.parametrize("regularization", [0.05, 100.0])
def test_pure_promise_on_a_line(
    neighbours: Neighbours, loss: Any, calibration: str, regularization: float
) -> None:
    plan = Plan("objective", "norm_gamma", calibration, neighbours)
    mechanism = plan.calibrate(1.5, loss=loss, total=3, dimension=1, regularization=regularization)

    def worst(mechanism: Any) -> float:
        w = axis(mechanism, 200.0)
        ratios = (
            log_density(one, w, mechanism) - log_density(other, w, mechanism)
            for one, other in neighbours_on_a_line(neighbours)
        )
        return max(float(np.abs(ratio).max()) for ratio in ratios)

    assert worst(mechanism) <= 1.5
    if regularization == 100.0:
        assert worst(halved(mechanism)) > 1.5


@both_relations
@every_loss
@pytest.mark.parametrize("order", [2.0, 10.0])
def test_renyi_cost_covers_the_exact_one(neighbours: Neighbours, loss: Any, order: float) -> None:
    plan = Plan("objective", "gaussian", "tight", neighbours)
    mechanism = plan.calibrate(1.0, 0.01, loss=loss, total=3, dimension=1, regularization=1000.0)

    def worst(mechanism: Any) -> float:
        w, found = axis(mechanism, 12.0), 0.0
        for one, other in neighbours_on_a_line(neighbours):
            for pair in ((one, other), (other, one)):
                p, q = (log_density(records, w, mechanism) for records in pair)
                moment = np.exp(order * p + (1.0 - order) * q).sum() * (w[1] - w[0])
                found = max(found, math.log(moment) / (order - 1.0))
        return found

    assert worst(mechanism) <= mechanism.renyi(order)
    assert worst(halved(mechanism)) > mechanism.renyi(order)
