"""Descend along proposed directions until the gradient norm is certified.

A direction costs passes over the rows; a step length costs none, because the margins are linear along it:
``margins(w + t p) = margins(w) + t (margins(w + p) - margins(w))``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.erm.objective import Point
from privlearn.erm.problem import Progress, Solution
from privlearn.errors import SolverError

MAX_ITERATIONS = (
    10_000  # many times what the worst table known takes: slow is better than to tell two tables apart
)
MAX_TRIALS = 100  # step lengths along one direction
MAX_HALVINGS = 30  # step lengths that are compared by the gradient
SUFFICIENT = 0.8  # a full step is kept if it leaves at most this part of the slope along it


class Smooth(Protocol):
    """What is descended: `objective.Objective` or the multinomial one."""

    regularization: float
    linear: Array

    def at(self, coefficients: Array) -> Point: ...

    def certified_norm(self, point: Point) -> float: ...

    def rounding(self, point: Point) -> float: ...

    def slope(self, one: Point, other: Point, length: float) -> tuple[float, float]: ...


class Directions(Protocol):
    """Where the next step comes from."""

    def propose(self, point: Point) -> Array:
        """A direction of descent at ``point``."""
        ...

    def learn(self, before: Point, after: Point) -> None:
        """See what the step did."""
        ...


def descend(
    objective: Smooth,
    directions: Directions,
    start: Array,
    tolerance: float,
    progress: Progress | None = None,
    most: int = MAX_ITERATIONS,
) -> Solution:
    """Minimise; raise `SolverError` if ``tolerance`` cannot be certified in so many steps."""
    point = objective.at(start)
    for iteration in range(most):
        certified = objective.certified_norm(point)
        if progress is not None:
            progress(iteration, certified)
        if certified <= tolerance:
            distance = certified / objective.regularization
            return Solution(point.coefficients, certified, distance, iteration)
        if point.norm <= objective.rounding(
            point
        ):  # then no tolerance of `certifiable.least_tolerance` is left
            break
        after = _step(objective, point, directions.propose(point))
        directions.learn(point, after)
        point = after
    raise not_certified(tolerance)


def not_certified(tolerance: float) -> SolverError:
    """The same advice for every solver."""
    return SolverError(
        f"the minimiser could not certify a gradient norm of {tolerance:g}: "
        "ask for a larger tolerance or a stronger regularization"
    )


def _step(objective: Smooth, point: Point, direction: Array) -> Point:
    """The full step if it is good enough, else the minimiser along the direction."""
    full = objective.at(point.coefficients + direction)
    slope = float(point.gradient @ direction)
    rounding = 1e-14 * (1.0 + abs(point.value))
    if full.value <= point.value + rounding and abs(full.gradient @ direction) <= SUFFICIENT * abs(slope):
        return full
    length = _exact_length(objective, point, direction, full)
    del full  # its margins are as many as the rows
    after = objective.at(point.coefficients + length * direction)
    if after.value < point.value - rounding:
        return after
    return _smaller_gradient(objective, point, direction, after)


def _smaller_gradient(objective: Smooth, point: Point, direction: Array, otherwise: Point) -> Point:
    """A step by the gradient's norm, where values are too close for rounding to compare them.

    Along Newton's direction the norm falls at first, since the Hessian maps it to minus the gradient.
    """
    for halvings in range(MAX_HALVINGS):
        after = objective.at(point.coefficients + 0.5**halvings * direction)
        if after.norm < point.norm:
            return after
    return otherwise


def _exact_length(objective: Smooth, point: Point, direction: Array, full: Point) -> float:
    """Root of the slope along ``direction``: Newton's method kept inside a bracket."""
    square = objective.regularization * float(direction @ direction)
    fixed = objective.regularization * float(point.coefficients @ direction) + float(
        objective.linear @ direction
    )

    def slope_and_bend(length: float) -> tuple[float, float]:
        slope, bend = objective.slope(point, full, length)
        return slope + fixed + length * square, bend + square

    return flat_length(slope_and_bend, 1e-3 * abs(float(point.gradient @ direction)))


def flat_length(slope_and_bend: Callable[[float], tuple[float, float]], small_enough: float) -> float:
    """Where the slope of a convex function of the step length is at most ``small_enough``."""
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(MAX_TRIALS):
        slope, bend = slope_and_bend(length)
        if abs(slope) <= small_enough:
            break
        low, high = (length, high) if slope < 0 else (low, length)
        length = _inside(length - slope / bend, low, high)
    return length


def _inside(length: float, low: float, high: float) -> float:
    """``length`` if it is well inside the bracket, else the bracket's middle."""
    if high == np.inf:
        return min(length, 10.0 * low)
    reach = high - low
    return length if low + 0.01 * reach < length < high - 0.01 * reach else low + 0.5 * reach
