"""Newton's method in the span of the data, for ``sum_i phi_i(z_i) + (1/2) alpha' Q alpha``, ``z = Q alpha``.

With ``r = alpha + phi'(z)`` the gradient is ``Q r``, and Newton's direction solves ``(I + D Q) d = -r``, D the second
derivatives. By the push-through identity

    d = (D^-1 + Q)^-1 Q r - r,

a symmetric positive definite system in the rows whose second derivative is not 0: few for losses that are linear far
from their corner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.imports import linalg
from privlearn.solvers.descent import find_step_length
from privlearn.solvers.gradients import solve_by_gradients
from privlearn.solvers.kernel.problem import SignedGram

SINGLE_PRECISION_ROWS = 1500  # a smaller system is solved in double precision: it costs little
SINGLE_PRECISION_LIMIT = 1e5  # maximal ratio of the system's norm to its ridge
FLAT = 1e-9  # part of the first derivative along a direction at which the line search ends: a trial is cheap
NO_DESCENT = 1e-14  # relative to its terms: only rounding errors are left of the derivative


class MarginFunction(Protocol):
    """``phi``: convex in each margin, twice differentiable almost everywhere."""

    def first_derivative(self, margins: Array) -> Array: ...

    def second_derivative(self, margins: Array) -> Array: ...


@dataclass(frozen=True, eq=False, repr=False)
class DualPoint:
    """``alpha`` and its margins ``Q alpha``."""

    alpha: Array
    margins: Array


def newton_step(gram: SignedGram, function: MarginFunction, point: DualPoint) -> DualPoint:
    """Return the minimiser along Newton's direction."""
    residual = point.alpha + function.first_derivative(point.margins)
    pushed = gram.times(residual)
    correction = _solve(gram, function.second_derivative(point.margins), pushed)
    direction = correction - residual
    change = gram.times(correction) - pushed
    length = _best_length(function, point, direction, change)
    return DualPoint(point.alpha + length * direction, point.margins + length * change)


def _solve(gram: SignedGram, second_derivatives: Array, right: Array) -> Array:
    """Return ``(D^-1 + Q)^-1 right`` in the rows with a second derivative, 0 in the others."""
    solution = np.zeros(gram.count)
    active = np.flatnonzero(second_derivatives > 1e-14 * np.max(second_derivatives, initial=0.0))
    if len(active) == 0:
        return solution
    strongest = float(np.max(second_derivatives)) * gram.max_entry * len(active) / gram.scale
    single = len(active) > SINGLE_PRECISION_ROWS and strongest < SINGLE_PRECISION_LIMIT
    system = gram.block(active, np.float32 if single else np.float64)
    signs = gram.signs[active]
    ridge = (gram.scale / second_derivatives[active]).astype(system.dtype)
    pull = (signs * right[active]).astype(system.dtype)
    shares = solve_by_gradients(system, ridge, pull, gram.sketch[active]) if single else None
    if shares is None:
        shares = _solve_with_ridge(system, ridge, pull)
    solution[active] = gram.scale * (signs * shares)
    return solution


def _solve_with_ridge(system: Any, ridge: Any, right: Any) -> Any:
    """Solve ``(diag(ridge) + system) x = right``; raise the ridge if rounding made the system indefinite."""
    diagonal = system.diagonal().copy()
    while True:
        system[np.diag_indices_from(system)] = diagonal + ridge
        try:
            factor = linalg.cho_factor(system.T, lower=True, check_finite=False)  # .T: LAPACK's memory layout
        except linalg.LinAlgError:
            ridge = ridge * system.dtype.type(10.0)
        else:
            return linalg.cho_solve(factor, right, check_finite=False)


def _best_length(function: MarginFunction, point: DualPoint, direction: Array, change: Array) -> float:
    """Return the step length along ``direction``, where ``change`` is the margins' change for length 1."""
    fixed, square = float(point.margins @ direction), float(direction @ change)

    def derivatives(length: float) -> tuple[float, float]:
        margins = point.margins + length * change
        first = float(function.first_derivative(margins) @ change) + fixed + length * square
        return first, float(function.second_derivative(margins) @ change**2) + square

    start = abs(derivatives(0.0)[0])
    terms = np.abs(function.first_derivative(point.margins)) @ np.abs(change) + np.abs(
        point.margins
    ) @ np.abs(direction)
    if start <= NO_DESCENT * float(terms) or not square > 0:
        return 1.0
    return find_step_length(derivatives, FLAT * start)
