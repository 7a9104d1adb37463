"""Tolerances that the solver can prove on every table, from public numbers alone.

A solver that proves its tolerance on one table and fails on a neighbouring one reveals which of them it was given, for
any noise added afterwards. So the tolerance is chosen first, well above the worst case of rounding
(docs/theory/solver.md, "Every table").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.solvers.losses import Loss, LossProperties

DENSE_BLOCK = 1024  # rows; a block of a few hundred columns stays in the cache between its two products
SPARSE_BLOCK = 65536  # rows; each block costs one pass over a vector as long as the number of columns
PIECE = 1024  # terms of a row's product that are added in a chain
MAX_LEVELS = 40  # of a pairwise sum over blocks: more than any memory holds
UNIT_ROUNDOFF = 2.0**-53  # of doubles
SAFETY = 1.01  # covers the rounding of the bound itself, NORM_SLACK and products of two gammas
UNDERFLOW = 1e-150  # bounds the effect of underflow on a gradient and on the squares in its norm
GAP_TOLERANCE = 1e-12  # default; it bounds the distance to the minimiser on any data
DIMENSION_LIMIT = 4000  # of the hinge loss
SOLVER_MARGIN = 4.0  # tolerance over the bound on rounding errors: three quarters are left for the solver
GAP_MARGIN = 10.0  # the same for the hinge, whose method is more sensitive
# How much the rounding bound may grow, relative to the tolerance, over the distance that the tolerance allows:
MAX_GROWTH = 0.05
MIN_HINGE_REGULARIZATION = 1e-9  # Lambda over the weight bound; below it the interior point method may fail


def product_chain(dimension: int) -> int:
    """Return the maximal number of chained additions in a row's product with a vector (`row_products`)."""
    return dimension if dimension <= PIECE else PIECE + -(-dimension // PIECE)


def max_chain() -> int:
    """Return the largest ``Rows.chain``."""
    return max(DENSE_BLOCK, SPARSE_BLOCK) + MAX_LEVELS


def gamma(operations: float) -> float:
    """Return Higham's ``gamma_k = k u / (1 - k u)``: relative error of k roundings in a chain."""
    return operations * UNIT_ROUNDOFF / (1.0 - operations * UNIT_ROUNDOFF)


@dataclass(frozen=True)
class Rounding:
    """Bound on |computed gradient - exact gradient|, from numbers that reveal little or nothing about the rows.

    Parameters
    ----------
    loss : LossProperties
    regularization : float
    dimension : int
        Number of columns.
    chain : int
        ``Rows.chain``.
    mass : float
        Sum of the rows' weights over N.
    norm_bound : float
        Bound on a row's norm.
    linear_norm : float
    max_offset : float
    classes : int, default=0
        Number of classes of the multinomial loss.
    """

    loss: LossProperties
    regularization: float
    dimension: int
    chain: int
    mass: float
    norm_bound: float
    linear_norm: float
    max_offset: float
    classes: int = 0

    def bound(self, size: float) -> float:
        """Return the bound at coefficients of a norm; affine in it, and increasing in all numbers."""
        sum_error = gamma(self.chain + 8) * self.loss.lipschitz
        data_term = self.norm_bound * self.mass * (self._derivative_error(size) + sum_error)
        other_terms = gamma(4) * (self.regularization * size + self.linear_norm)
        return SAFETY * (data_term + other_terms) + UNDERFLOW

    def _derivative_error(self, size: float) -> float:
        max_margin = self.norm_bound * size
        margin_error = gamma(product_chain(self.dimension) + 2) * (max_margin + self.max_offset)
        if not self.classes:
            return self.loss.smoothness * margin_error + self.loss.derivative_rounding
        return softmax_derivative_error(self.classes, margin_error, max_margin + self.max_offset)


def softmax_derivative_error(classes: int, margin_error: float, max_margin: float) -> float:
    """Return a bound on the error of a row's computed probabilities minus its class, in Euclidean norm.

    Its margins, of norm at most ``max_margin``, are off by ``margin_error`` in that norm; probabilities move by at most
    half as much.
    """
    margin_error += UNIT_ROUNDOFF * (1.0 + math.sqrt(classes)) * max_margin
    return 0.5 * margin_error + gamma(product_chain(classes) + 16)


@dataclass(frozen=True)
class GapRounding:
    """Bound on the rounding error of the duality gap, from numbers that reveal little or nothing about the rows.

    ``mass`` is the sum of the rows' weights over N; the other names are those of `Rounding`.
    """

    regularization: float
    dimension: int
    chain: int
    mass: float
    norm_bound: float
    linear_norm: float

    def margin_error(self, size: float) -> float:
        """Return the error of a computed ``margin - 1`` at coefficients of a norm."""
        return SAFETY * gamma(product_chain(self.dimension) + 2) * (self.norm_bound * size + 1.0)

    def apart_error(self, size: float) -> float:
        """Return the error of the computed ``|w - w(alpha)|``."""
        pull = (self.norm_bound * self.mass + self.linear_norm) / self.regularization
        return SAFETY * gamma(self.chain + 8) * (pull + size)

    def bound(self, size: float) -> float:
        """Return the certified gap where the computed one is zero, if every row lies at the corner."""
        apart = 0.5 * self.regularization * self.apart_error(size) ** 2
        return SAFETY * (self.mass * self.margin_error(size) + apart) + UNDERFLOW


def hinge_terms(excess: Array, error: float, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the rows' terms of the duality gap, and how fast each may grow with an error of its margin.

    ``excess`` is the computed margin minus 1, right to within ``error``. A row's term is its distance from the corner
    times its derivative on that side: ``low`` below the corner, ``high`` above. Near the corner the larger one counts.
    """
    growth = np.where(excess < -error, low, np.where(excess > error, high, np.maximum(low, high)))
    return low * np.maximum(-excess, 0.0) + high * np.maximum(excess, 0.0) + growth * error, growth


def check_dimension(dimension: int) -> None:
    """Raise InvalidParameter for more columns than the hinge's d x d systems allow."""
    if dimension > DIMENSION_LIMIT:
        raise InvalidParameter(
            f"the hinge loss is solved for up to {DIMENSION_LIMIT} features. Use loss='huber_hinge' for more"
        )


def minimiser_norm_bound(
    loss: LossProperties,
    regularization: float,
    *,
    dimension: int,
    weight_bound: float = 1.0,
    linear_norm: float = 0.0,
    prior_norm: float = 0.0,
) -> float:
    """Return a bound on |w| of the exact minimiser w over rows of norm at most 1; of |w - w0| for a public model w0.

    Its gradient vanishes: Lambda w is minus the linear term b and a mean of gradients, each of norm at most weight L.
    And J(w) <= J(0), so strong convexity gives
    J(0) >= J(w) + Lambda |w|^2 / 2 >= Lambda |w|^2 - |b| |w|, where J(0) <= weight l(0) for a margin loss, weight l(1)
    for the residual of a target in [-1, 1], and weight log K for K classes; this wins by far when Lambda is small. A
    public model's scores, of size at most |w0|, add to the arguments of the losses.

    Examples
    --------
    >>> from privlearn.solvers.losses import Logistic
    >>> round(minimiser_norm_bound(Logistic(), 0.01, dimension=5), 3)
    8.326
    """
    # Both bounds hold on any rows; which one is smaller depends on public numbers only.
    by_gradient = (loss.lipschitz * weight_bound + linear_norm) / regularization
    half = linear_norm / (2.0 * regularization)
    at_zero = _at_zero(loss, dimension, prior_norm) * weight_bound / regularization
    return min(by_gradient, half + math.sqrt(half**2 + at_zero))


def min_tolerance(
    loss: LossProperties,
    regularization: float,
    *,
    dimension: int,
    weight_bound: float = 1.0,
    linear_norm: float = 0.0,
    prior_norm: float = 0.0,
) -> float:
    """Return the gradient norm that `minimise` proves for any rows of norm at most 1, or infinity.

    Parameters
    ----------
    loss : LossProperties
        With a bounded second derivative.
    regularization : float
    dimension : int
        Number of coefficients.
    weight_bound : float, default=1.0
        The rows' weights add up to at most this times N.
    linear_norm : float, default=0.0
        Bound on the norm of the linear term.
    prior_norm : float, default=0.0
        Norm of the public model whose scores are offsets.

    Examples
    --------
    >>> from privlearn.solvers.losses import Logistic
    >>> 0 < min_tolerance(Logistic(), 0.01, dimension=100) < 1e-10
    True
    """
    max_norm = minimiser_norm_bound(
        loss,
        regularization,
        dimension=dimension,
        weight_bound=weight_bound,
        linear_norm=linear_norm,
        prior_norm=prior_norm,
    )
    rounding = Rounding(
        loss=loss,
        regularization=regularization,
        dimension=dimension,
        chain=max_chain(),
        mass=weight_bound,
        norm_bound=1.0,
        linear_norm=linear_norm,
        max_offset=max_target_offset(loss) + (1.0 + 2.0**-20) * prior_norm,
        classes=dimension if loss.argument == "classes" else 0,
    )
    # The returned point is up to tolerance / Lambda longer than the minimiser, and the bound is affine in its norm.
    needed = SOLVER_MARGIN * rounding.bound(max_norm)
    growth = SOLVER_MARGIN * (rounding.bound(1.0) - rounding.bound(0.0)) / regularization
    return needed / (1.0 - growth) if growth < MAX_GROWTH else math.inf


def min_gap(regularization: float, *, dimension: int, weight_bound: float = 1.0) -> float:
    """Return the duality gap that `minimise` proves for the hinge on any rows, without a linear term."""
    rounding = GapRounding(
        regularization=regularization,
        dimension=dimension,
        chain=max_chain(),
        mass=weight_bound,
        norm_bound=1.0,
        linear_norm=0.0,
    )
    # A gap of at most J(0) <= weight puts w within sqrt(2 weight / Lambda) of the minimiser.
    max_norm = (1.0 + math.sqrt(2.0)) * math.sqrt(weight_bound / regularization)
    needed = GAP_MARGIN * rounding.bound(max_norm)
    return needed if regularization >= MIN_HINGE_REGULARIZATION * weight_bound else math.inf


def _at_zero(loss: LossProperties, dimension: int, prior_norm: float) -> float:
    """Return the maximal loss of a record at w = 0."""
    if loss.argument == "classes":
        return math.log(dimension) + 2.0 * prior_norm  # there are no more classes than coefficients
    reach = max_target_offset(loss) + prior_norm
    return float(np.max(cast(Loss, loss).value(np.array([-reach, reach]))))


def max_target_offset(loss: LossProperties) -> float:
    """Return the largest offset: that of a target in [-1, 1]."""
    return 1.0 if loss.argument == "residual" else 0.0


def certified_distance(loss: LossProperties, regularization: float, tolerance: float, gap: float) -> float:
    """Return a public bound on the distance to the exact minimiser whenever `minimise` returns."""
    if math.isinf(loss.smoothness):
        return math.sqrt(2.0 * gap / regularization)
    return tolerance / regularization
