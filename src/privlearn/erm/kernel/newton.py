"""Newton's method in the span of the data, for ``sum_i phi_i(z_i) + (1/2) alpha' Q alpha``, ``z = Q alpha``.

With ``r = alpha + phi'(z)`` the gradient is ``Q r``, and Newton's direction solves ``(I + D Q) d = -r``, D the
curvatures. By the push-through identity

    d = (D^-1 + Q)^-1 Q r - r,

a symmetric positive definite system in the rows that have curvature: for losses that are linear in the
distance few rows have any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.erm.descent import flat_length
from privlearn.erm.kernel.gradients import solve_by_gradients
from privlearn.erm.kernel.problem import SignedGram
from privlearn.heavy import linalg

SINGLE_PRECISION_ROWS = 1500  # a smaller system is solved in double precision: it costs little
SINGLE_PRECISION_LIMIT = 1e5  # largest ratio of the system's norm to its ridge
FLAT = 1e-9  # part of the slope along a direction at which the search along it ends: a trial costs little
NO_SLOPE = 1e-14  # relative to its terms: a direction that rounding alone has left


class MarginFunction(Protocol):
    """``phi``: convex in each margin, with a slope that has a derivative almost everywhere."""

    def slope(self, margins: Array) -> Array: ...

    def curvature(self, margins: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class DualPoint:
    """``alpha`` and its margins ``Q alpha``."""

    alpha: Array
    margins: Array


def newton_step(gram: SignedGram, function: MarginFunction, point: DualPoint) -> DualPoint:
    """The minimiser along Newton's direction."""
    residual = point.alpha + function.slope(point.margins)
    pushed = gram.times(residual)
    correction = _solve(gram, function.curvature(point.margins), pushed)
    direction = correction - residual
    change = gram.times(correction) - pushed
    length = _best_length(function, point, direction, change)
    return DualPoint(point.alpha + length * direction, point.margins + length * change)


def _solve(gram: SignedGram, curvatures: Array, right: Array) -> Array:
    """``(D^-1 + Q)^-1 right`` in the rows that have curvature, 0 in the others."""
    solution = np.zeros(gram.count)
    active = np.flatnonzero(curvatures > 1e-14 * np.max(curvatures, initial=0.0))
    if len(active) == 0:
        return solution
    strongest = float(np.max(curvatures)) * gram.largest * len(active) / gram.scale
    single = len(active) > SINGLE_PRECISION_ROWS and strongest < SINGLE_PRECISION_LIMIT
    system = gram.block(active, np.float32 if single else np.float64)
    signs = gram.signs[active]
    ridge = (gram.scale / curvatures[active]).astype(system.dtype)
    pull = (signs * right[active]).astype(system.dtype)
    shares = solve_by_gradients(system, ridge, pull, gram.sketch[active]) if single else None
    if shares is None:
        shares = _solve_with_ridge(system, ridge, pull)
    solution[active] = gram.scale * (signs * shares)
    return solution


def _solve_with_ridge(system: Any, ridge: Any, right: Any) -> Any:
    """Solve ``(diag(ridge) + system) x = right``; if rounding has made it indefinite, a larger ridge cures it."""
    diagonal = system.diagonal().copy()
    while True:
        system[np.diag_indices_from(system)] = diagonal + ridge
        try:
            factor = linalg.cho_factor(system.T, lower=True, check_finite=False)  # .T: as LAPACK lays it out
        except linalg.LinAlgError:
            ridge = ridge * system.dtype.type(10.0)
        else:
            return linalg.cho_solve(factor, right, check_finite=False)


def _best_length(function: MarginFunction, point: DualPoint, direction: Array, change: Array) -> float:
    fixed, square = float(point.margins @ direction), float(direction @ change)

    def slope_and_bend(length: float) -> tuple[float, float]:
        margins = point.margins + length * change
        slope = float(function.slope(margins) @ change) + fixed + length * square
        return slope, float(function.curvature(margins) @ change**2) + square

    start = abs(slope_and_bend(0.0)[0])
    terms = np.abs(function.slope(point.margins)) @ np.abs(change) + np.abs(point.margins) @ np.abs(direction)
    if start <= NO_SLOPE * float(terms) or not square > 0:
        return 1.0
    return flat_length(slope_and_bend, FLAT * start)
