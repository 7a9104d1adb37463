"""Gaussian objective perturbation, replace-one: the aligned pair of records is the worst (docs/theory/objective.md).

One record's gradient is -p a with p in [0, 1], the other's -q (-c): at most, the privacy loss is
G = max(0, <a,b> + |a|^2/2, <c,b> + |c|^2/2, <a+c,b> + |a+c|^2/2) for b ~ N(0, I), |a|, |c| <= r = L / sigma. Only the
plane of a and c matters. The theorem: E[(1 - exp(t - G))_+] <= HS(t, 2 r) for all t >= 0, with equality for a = c.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from privlearn.arrays import Array
from tests.support.combinations import hockey_stick

AXIS = np.linspace(-8.0, 8.0, 401)
WIDTH = AXIS[1] - AXIS[0]
FIRST, SECOND = np.meshgrid(AXIS, AXIS, indexing="ij")
MASS = np.exp(-(FIRST**2 + SECOND**2) / 2.0) * WIDTH**2 / (2.0 * math.pi)
RELATIVE_ERROR = 2e-3  # of the quadrature, whose integrand has kinks


def largest_loss(a: Array, c: Array) -> Array:
    vertices = (a, c, a + c)
    losses = [v[0] * FIRST + v[1] * SECOND + (v @ v) / 2.0 for v in vertices]
    return np.maximum(np.maximum(losses[0], losses[1]), np.maximum(losses[2], 0.0))


def divergence(loss: Array, t: float) -> float:
    return float(np.sum(MASS * np.maximum(-np.expm1(t - loss), 0.0)))


def polar(norm: float, angle: float) -> Array:
    return norm * np.array([math.cos(angle), math.sin(angle)])


@pytest.mark.parametrize("r", [0.1, 0.4, 1.0, 1.8])
@pytest.mark.parametrize(("first", "second"), [(1.0, 1.0), (1.0, 0.7), (1.0, 0.2)])
def test_no_pair_is_worse_than_the_aligned_one(r: float, first: float, second: float) -> None:
    for angle in np.linspace(0.0, math.pi, 13):
        loss = largest_loss(polar(r * first, 0.3), polar(r * second, 0.3 + angle))
        for deviations in (0.0, 0.5, 1.0, 2.0, 3.5):
            t = deviations * 2.0 * r
            assert divergence(loss, t) <= hockey_stick(t, 2.0 * r) * (1.0 + RELATIVE_ERROR), (angle, t)


@pytest.mark.parametrize("r", [0.1, 0.4, 1.0, 1.8])
@pytest.mark.parametrize("deviations", [0.0, 0.5, 1.0, 2.0, 3.5])
def test_the_aligned_pair_attains_the_bound(r: float, deviations: float) -> None:
    t = deviations * 2.0 * r
    aligned = divergence(largest_loss(polar(r, 0.3), polar(r, 0.3)), t)
    assert aligned == pytest.approx(hockey_stick(t, 2.0 * r), rel=RELATIVE_ERROR)


def test_the_bound_would_notice_a_smaller_sensitivity() -> None:
    assert divergence(largest_loss(polar(0.4, 0.3), polar(0.4, 0.3)), 0.8) > 1.1 * hockey_stick(
        0.8, 1.9 * 0.4
    )
