"""Where the hinge's solver starts: two rows at a time, exactly, until no margin is far from where it belongs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privlearn.solvers.kernel import SignedGram
from privlearn.solvers.kernel.hinge import NEAR, _PairSearch, descend_in_pairs
from tests.support.erm_problems import simulate

Vector = NDArray[np.float64]


def gram_of(features: Vector, constant: float) -> Vector:
    squares = np.sum(features**2, axis=1)
    gram = np.exp(features @ features.T - squares / 2 - squares[:, np.newaxis] / 2)
    return np.asarray((gram + gram.T) / 2 + constant)


def violation(alpha: Vector, margins: Vector, weights: Vector) -> float:
    """Return how far the worst row is from its condition: margin 1, or above it at 0, or below it at the weight."""
    rising, falling = np.where(alpha < weights, 1 - margins, 0), np.where(alpha > 0, margins - 1, 0)
    return float(max(np.max(rising), np.max(falling)))


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    constant=st.sampled_from([0.0, 1.0, 1e3]),
    exponent=st.floats(-3, 3),
    equal=st.booleans(),
)
def test_two_rows_are_put_where_they_are_best_together(
    seed: int, constant: float, exponent: float, equal: bool
) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(2, 2))
    features[1] = features[0] if equal else features[1]
    signs, weights, scale = rng.choice([-1.0, 1.0], 2), rng.uniform(0.1, 2.0, 2), 10.0**exponent
    signed = SignedGram(gram_of(features, constant), signs, scale)
    pair = _PairSearch(signed, weights)
    pair.shares = signs * weights * rng.choice([0.0, 0.3, 0.6, 1.0], 2)
    pair.pull = signs * (1.0 - signed.times(signs * pair.shares))
    pair.move(0, 1)
    alpha = signs * pair.shares
    margins = signed.times(alpha)
    np.testing.assert_allclose(signs * (1.0 - margins), pair.pull, atol=1e-11 * (1 + constant) / scale)
    assert np.all((alpha >= 0) & (alpha <= weights))
    assert violation(alpha, margins, weights) <= 1e-9 * (1 + (1 + constant) / scale)


@pytest.mark.parametrize("constant", [0.0, 1e3])
@pytest.mark.parametrize("regularization", [1e-1, 1e-2])
def test_no_margin_is_left_far_from_where_it_belongs(constant: float, regularization: float) -> None:
    features, signs = simulate(400, 4)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 400)
    signed = SignedGram(gram_of(features, constant), signs, regularization * 400)
    found = descend_in_pairs(signed, weights)
    np.testing.assert_allclose(found.margins, signed.times(found.alpha), atol=1e-9)
    assert np.all((found.alpha >= 0) & (found.alpha <= weights))
    assert violation(found.alpha, found.margins, weights) <= NEAR


def test_a_row_that_the_kernel_does_not_see_goes_to_its_bound() -> None:
    gram = np.diag([1.0, 0.0, 1.0])
    found = descend_in_pairs(SignedGram(gram, np.array([1.0, -1.0, -1.0]), 2.0), np.array([1.0, 0.7, 3.0]))
    np.testing.assert_allclose(found.alpha, [1.0, 0.7, 2.0], atol=2 * NEAR)
    assert found.margins[1] == 0.0
