"""What the solver can prove on every table, from public numbers alone: docs/theory/solver.md, "Every table".

A solver that proves its tolerance on one table and gives up on a neighbouring one tells them apart, whatever noise is
added afterwards. So the tolerance is chosen first, at a distance from the worst that rounding can do.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from privlearn.erm.hinge import GapRounding
from privlearn.erm.losses import Loss, LossFacts
from privlearn.erm.objective import Rounding
from privlearn.erm.problem import longest_chain

ROOM = 4.0  # tolerances over the bound on rounding errors: three parts are left for the solver
GAP_ROOM = 10.0  # the same for the hinge, whose method is more easily disturbed
MOST_GROWTH = 0.05  # of a relative rounding error on its way to the minimiser, in the worst of conditions
LEAST_FOR_HINGE = 1e-9  # Lambda over the weight bound; below, the interior point method was seen to fail


def longest_minimiser(
    loss: LossFacts,
    regularization: float,
    *,
    dimension: int,
    weight_bound: float = 1.0,
    linear_norm: float = 0.0,
) -> float:
    """No exact minimiser w over rows of norm at most 1 is longer.

    Its gradient vanishes: Lambda w is minus the linear term b and a mean of gradients, each of norm at most weight L.
    And it is better than 0: strong convexity gives
    J(0) >= J(w) + Lambda |w|^2 / 2 >= Lambda |w|^2 - |b| |w|, where J(0) <= weight l(0) for a margin loss, weight l(1)
    for the residual of a target in [-1, 1], and weight log K for K classes; this wins by far when Lambda is small.
    """
    by_gradient = (loss.lipschitz * weight_bound + linear_norm) / regularization
    half = linear_norm / (2.0 * regularization)
    at_zero = _at_zero(loss, dimension) * weight_bound / regularization
    return min(by_gradient, half + math.sqrt(half**2 + at_zero))


def least_tolerance(
    loss: LossFacts,
    regularization: float,
    *,
    dimension: int,
    weight_bound: float = 1.0,
    linear_norm: float = 0.0,
) -> float:
    """The gradient norm that `minimise` proves for any rows of norm at most 1; infinite if there is none in float64.

    Parameters
    ----------
    loss : LossFacts
        With bounded curvature.
    regularization : float
    dimension : int
        Number of coefficients.
    weight_bound : float, default=1.0
        The rows' weights add up to at most this times N.
    linear_norm : float, default=0.0
        Bound on the norm of the linear term.
    """
    longest = longest_minimiser(
        loss, regularization, dimension=dimension, weight_bound=weight_bound, linear_norm=linear_norm
    )
    rounding = Rounding(
        loss=loss,
        regularization=regularization,
        dimension=dimension,
        chain=longest_chain(),
        mass=weight_bound,
        norm_bound=1.0,
        linear_norm=linear_norm,
        largest_offset=_farthest(loss),
        classes=dimension if loss.sees == "classes" else 0,
    )
    # The point returned is up to tolerance / Lambda longer than the minimiser, and the bound is affine in its length.
    needed = ROOM * rounding.bound(longest)
    growth = ROOM * (rounding.bound(1.0) - rounding.bound(0.0)) / regularization
    return needed / (1.0 - growth) if growth < MOST_GROWTH else math.inf


def least_gap(regularization: float, *, dimension: int, weight_bound: float = 1.0) -> float:
    """The same for the hinge, without a linear term: the duality gap that `minimise` proves."""
    rounding = GapRounding(
        regularization=regularization,
        dimension=dimension,
        chain=longest_chain(),
        mass=weight_bound,
        norm_bound=1.0,
        linear_norm=0.0,
    )
    # A gap of at most J(0) <= weight puts w within sqrt(2 weight / Lambda) of the minimiser.
    longest = (1.0 + math.sqrt(2.0)) * math.sqrt(weight_bound / regularization)
    needed = GAP_ROOM * rounding.bound(longest)
    return needed if regularization >= LEAST_FOR_HINGE * weight_bound else math.inf


def _at_zero(loss: LossFacts, dimension: int) -> float:
    """The most that a record's loss can be at w = 0."""
    if loss.sees == "classes":
        return math.log(dimension)  # there are no more classes than coefficients
    return float(cast(Loss, loss).value(np.array([_farthest(loss)]))[0])


def _farthest(loss: LossFacts) -> float:
    """The largest offset: that of a target in [-1, 1]."""
    return 1.0 if loss.sees == "residual" else 0.0
