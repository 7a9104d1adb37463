"""Descend along proposed directions until the gradient norm is certified.

A direction costs passes over the rows; a step length costs none, because the margins are linear along it:
``margins(w + t p) = margins(w) + t (margins(w + p) - margins(w))``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import SolverError
from privlearn.solvers.objective import Point, SmoothObjective
from privlearn.solvers.problem import Progress, Solution

MAX_ITERATIONS = 10_000  # far more than any known table needs: a failure would depend on the rows
MAX_TRIALS = 100  # step lengths along one direction
MAX_HALVINGS = 30  # step lengths that are compared by the gradient
SUFFICIENT = 0.8  # a full step is accepted if at most this part of the derivative along it is left


class Directions(Protocol):
    """Proposes search directions."""

    def propose(self, point: Point) -> Array:
        """Return the next search direction at ``point``."""
        ...

    def update(self, before: Point, after: Point) -> None:
        """Learn from a completed step."""
        ...


def descend(
    objective: SmoothObjective,
    directions: Directions,
    start: Array,
    tolerance: float,
    progress: Progress | None = None,
    max_iterations: int = MAX_ITERATIONS,
) -> Solution:
    """Minimise; raise `SolverError` if ``tolerance`` cannot be certified in ``max_iterations`` steps."""
    point = objective.at(start)
    for iteration in range(max_iterations):
        certified = objective.certified_norm(point)
        if progress is not None:
            progress(iteration, certified)
        if certified <= tolerance:
            distance = certified / objective.regularization
            return Solution(point.coefficients, certified, distance, iteration)
        if point.gradient_norm <= objective.rounding(point):
            break  # rounding hides the rest; `certifiable.min_tolerance` is larger
        after = _step(objective, point, directions.propose(point))
        directions.update(point, after)
        point = after
    raise not_certified(tolerance)


def not_certified(tolerance: float) -> SolverError:
    """Return the error of a solver that misses its tolerance."""
    return SolverError(
        f"the minimiser could not certify a gradient norm of {tolerance:g}: "
        "use a larger tolerance or a stronger regularization"
    )


def _step(objective: SmoothObjective, point: Point, direction: Array) -> Point:
    """Return the full step if it is good enough, else the minimiser along the direction."""
    full = objective.at(point.coefficients + direction)
    derivative = float(point.gradient @ direction)
    # Near the minimiser, values differ by less than their rounding; there the derivative along the step decides.
    rounding = 1e-14 * (1.0 + abs(point.value))
    if full.value <= point.value + rounding and abs(full.gradient @ direction) <= SUFFICIENT * abs(
        derivative
    ):
        return full
    length = _exact_length(objective, point, direction, full)
    del full  # frees one number per row
    after = objective.at(point.coefficients + length * direction)
    if after.value < point.value - rounding:
        return after
    return _smaller_gradient(objective, point, direction, after)


def _smaller_gradient(objective: SmoothObjective, point: Point, direction: Array, fallback: Point) -> Point:
    """Return a step with a smaller gradient norm, where values are too close for rounding to compare them.

    Along Newton's direction the norm decreases at first, since the Hessian maps it to minus the gradient.
    """
    for halvings in range(MAX_HALVINGS):
        after = objective.at(point.coefficients + 0.5**halvings * direction)
        if after.gradient_norm < point.gradient_norm:
            return after
    return fallback


def _exact_length(objective: SmoothObjective, point: Point, direction: Array, full: Point) -> float:
    """Return the minimiser's step length along ``direction``, roughly: Newton's method inside a bracket."""
    square = objective.regularization * float(direction @ direction)
    fixed = objective.regularization * float(point.coefficients @ direction) + float(
        objective.linear @ direction
    )

    def derivatives(length: float) -> tuple[float, float]:
        first, second = objective.line_derivatives(point, full, length)
        return first + fixed + length * square, second + square

    # A rough minimum is enough, because the next direction corrects the rest.
    return find_step_length(derivatives, 1e-3 * abs(float(point.gradient @ direction)))


def find_step_length(derivatives: Callable[[float], tuple[float, float]], small_enough: float) -> float:
    """Return a step length where the first derivative of a convex function is at most ``small_enough``."""
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(MAX_TRIALS):
        first, second = derivatives(length)
        if abs(first) <= small_enough:
            break
        low, high = (length, high) if first < 0 else (low, length)
        length = _inside(length - first / second, low, high)
    return length


def _inside(length: float, low: float, high: float) -> float:
    """Return ``length`` if it is well inside the bracket, else the bracket's middle."""
    if high == np.inf:
        # Without an upper end: a tiny second derivative proposes steps of almost any length.
        return min(length, 10.0 * low)
    # A step next to an end would shrink the bracket too slowly.
    reach = high - low
    return length if low + 0.01 * reach < length < high - 0.01 * reach else low + 0.5 * reach
