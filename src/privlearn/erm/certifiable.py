"""What the solver can prove on every table, from public numbers alone: docs/theory/solver.md, "Every table".

A solver that proves its tolerance on one table and gives up on a neighbouring one tells them apart, whatever noise is
added afterwards. So the tolerance is chosen first, at a distance from the worst that rounding can do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from privlearn.erm.losses import Loss, LossFacts
from privlearn.errors import InvalidParameter

DENSE_BLOCK = 1024  # rows; a block of a few hundred columns stays in the cache between its two products
SPARSE_BLOCK = 65536  # rows; each block costs one pass over a vector as long as the number of columns
PIECE = 1024  # terms of a row's product that are added up in a chain
MOST_LEVELS = 40  # of a pairwise sum over blocks: more than any memory holds
UNIT_ROUNDOFF = 2.0**-53
SAFETY = 1.01  # covers the rounding of the bound itself, NORM_SLACK and products of two gammas
UNDERFLOW = 1e-150  # more than underflow takes from a gradient and from the squares in its norm
GAP_TOLERANCE = 1e-12  # asked for by default: it bounds the distance to the minimiser, whatever the data
DIMENSION_LIMIT = 4000  # of the hinge loss
ROOM = 4.0  # tolerances over the bound on rounding errors: three parts are left for the solver
GAP_ROOM = 10.0  # the same for the hinge, whose method is more easily disturbed
MOST_GROWTH = 0.05  # of a relative rounding error on its way to the minimiser, in the worst of conditions
LEAST_FOR_HINGE = 1e-9  # Lambda over the weight bound; below, the interior point method was seen to fail


def product_chain(dimension: int) -> int:
    """Most additions that a row's product with a vector passes through in `row_products`."""
    return dimension if dimension <= PIECE else PIECE + -(-dimension // PIECE)


def longest_chain() -> int:
    """The largest ``Rows.chain``."""
    return max(DENSE_BLOCK, SPARSE_BLOCK) + MOST_LEVELS


def gamma(operations: float) -> float:
    """Higham's ``gamma_k = k u / (1 - k u)``: relative error of k roundings in a chain."""
    return operations * UNIT_ROUNDOFF / (1.0 - operations * UNIT_ROUNDOFF)


@dataclass(frozen=True)
class Rounding:
    """Bound on |computed gradient - exact gradient|, from numbers that say little or nothing of the rows.

    Parameters
    ----------
    loss : LossFacts
    regularization : float
    dimension : int
        Number of columns.
    chain : int
        ``Rows.chain``.
    mass : float
        Sum of the rows' weights over N.
    norm_bound : float
        Of a row.
    linear_norm : float
    largest_offset : float
    classes : int, default=0
        Of the multinomial loss.
    """

    loss: LossFacts
    regularization: float
    dimension: int
    chain: int
    mass: float
    norm_bound: float
    linear_norm: float
    largest_offset: float
    classes: int = 0

    def bound(self, size: float) -> float:
        """At coefficients of that norm; affine in it, and larger where any of the numbers is."""
        sum_error = gamma(self.chain + 8) * self.loss.lipschitz
        data_term = self.norm_bound * self.mass * (self._slope_error(size) + sum_error)
        other_terms = gamma(4) * (self.regularization * size + self.linear_norm)
        return SAFETY * (data_term + other_terms) + UNDERFLOW

    def _slope_error(self, size: float) -> float:
        largest = self.norm_bound * size
        margin_error = gamma(product_chain(self.dimension) + 2) * (largest + self.largest_offset)
        if not self.classes:
            return self.loss.smoothness * margin_error + self.loss.derivative_rounding
        return softmax_slope_error(self.classes, margin_error, largest)


def softmax_slope_error(classes: int, margin_error: float, largest: float) -> float:
    """Bound on the error of a row's computed probabilities less its class, in Euclidean norm.

    Its margins, of norm at most ``largest``, are off by ``margin_error`` in that norm; probabilities move by at most
    half as much.
    """
    margin_error += UNIT_ROUNDOFF * (1.0 + math.sqrt(classes)) * largest
    return 0.5 * margin_error + gamma(product_chain(classes) + 16)


@dataclass(frozen=True)
class GapRounding:
    """What rounding may add to the duality gap, from numbers that say little or nothing of the rows.

    ``mass`` is the sum of the rows' weights over N; the other names are those of `Rounding`.
    """

    regularization: float
    dimension: int
    chain: int
    mass: float
    norm_bound: float
    linear_norm: float

    def margin_error(self, size: float) -> float:
        """Of a computed ``margin - 1`` at coefficients of that norm."""
        return SAFETY * gamma(product_chain(self.dimension) + 2) * (self.norm_bound * size + 1.0)

    def apart_error(self, size: float) -> float:
        """Of the computed ``|w - w(alpha)|``."""
        pull = (self.norm_bound * self.mass + self.linear_norm) / self.regularization
        return SAFETY * gamma(self.chain + 8) * (pull + size)

    def bound(self, size: float) -> float:
        """The certified gap where the computed one is zero, if every row lies at the corner."""
        apart = 0.5 * self.regularization * self.apart_error(size) ** 2
        return SAFETY * (self.mass * self.margin_error(size) + apart) + UNDERFLOW


def check_dimension(dimension: int) -> None:
    """Refuse more columns than a matrix of their square is worth."""
    if dimension > DIMENSION_LIMIT:
        raise InvalidParameter(
            f"the hinge loss is solved for up to {DIMENSION_LIMIT} features: take loss='huber_hinge' for more"
        )


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
        largest_offset=farthest(loss),
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
    return float(cast(Loss, loss).value(np.array([farthest(loss)]))[0])


def farthest(loss: LossFacts) -> float:
    """The largest offset: that of a target in [-1, 1]."""
    return 1.0 if loss.sees == "residual" else 0.0


def certified_distance(loss: LossFacts, regularization: float, tolerance: float, gap: float) -> float:
    """Public bound on the distance to the exact minimiser whenever `minimise` returns; free of the data."""
    if math.isinf(loss.smoothness):
        return math.sqrt(2.0 * gap / regularization)
    return tolerance / regularization
