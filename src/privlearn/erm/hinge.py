"""The hinge loss, to a certified duality gap.

Mehrotra's predictor-corrector method on the dual, a quadratic programme in a box: with ``a_i = sign_i x_i``,

    minimise (kappa/2) |w|^2 - sum_i alpha_i,  kappa w = sum_i alpha_i a_i - shift,  0 <= alpha_i <= weight_i,

``kappa = Lambda N``, ``shift = N linear``. Slacks ``above, below >= 0`` satisfy ``<a_i, w> - 1 = above_i -
below_i``. Every step solves one d x d system. The argument for the gap is in docs/theory/solver.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.erm.certifiable import GAP_TOLERANCE, SAFETY, UNDERFLOW, GapRounding, check_dimension
from privlearn.erm.objective import cholesky
from privlearn.erm.problem import Problem, Progress, Rows, Solution
from privlearn.errors import SolverError
from privlearn.heavy import linalg

MAX_ITERATIONS = 100
# Part of the way that a step goes; the later ones begin again where the first got stuck.
TO_THE_BOUNDARY = (0.995, 0.9, 0.5, 0.7)
LEAST = 1e-30  # no slack or relative dual variable is smaller


@dataclass(frozen=True, eq=False)
class _State:
    """A point strictly inside the box, or a direction from it."""

    coefficients: Array
    alpha: Array
    above: Array
    below: Array

    def moved(self, length: float, step: _State) -> _State:
        return _State(
            self.coefficients + length * step.coefficients,
            self.alpha + length * step.alpha,
            self.above + length * step.above,
            self.below + length * step.below,
        )


def minimise_hinge(
    problem: Problem, gap: float = GAP_TOLERANCE, progress: Progress | None = None
) -> Solution:
    """Minimise until the duality gap is certified to be at most ``gap``."""
    check_dimension(problem.features.shape[1])
    state, reached, iterations = _InteriorPoint(problem).solve(gap, progress)
    distance = math.sqrt(2.0 * reached / problem.regularization)
    return Solution(state.coefficients, problem.regularization * distance, distance, iterations)


def minimise_dual(problem: Problem, gap: float) -> Array:
    """The same for as many features as there may be: the dual variables, one for each row of positive weight."""
    return _InteriorPoint(problem).solve(gap, None)[0].alpha


class _InteriorPoint:
    def __init__(self, problem: Problem) -> None:
        features, signs, weights = _rows_that_count(problem)
        self._rows = Rows(features, problem.norm_bound)
        self._signs = signs
        self._bounds = weights
        self._kappa = problem.regularization * problem.total
        linear = np.zeros(self._rows.dimension) if problem.linear is None else problem.linear
        self._shift = problem.total * linear
        self._problem = problem
        self._rounding = GapRounding(
            regularization=problem.regularization,
            dimension=self._rows.dimension,
            chain=self._rows.chain,
            mass=float(np.sum(weights)) / problem.total,
            norm_bound=problem.norm_bound,
            linear_norm=float(np.linalg.norm(linear)),
        )

    def solve(self, goal: float, progress: Progress | None) -> tuple[_State, float, int]:
        """A point whose gap is certified, that gap, and the number of iterations."""
        for share in TO_THE_BOUNDARY:
            state = self._start()
            for iteration in range(MAX_ITERATIONS):
                gap = self.certified_gap(state)
                if progress is not None:
                    progress(iteration, gap)
                if gap <= goal:
                    return state, gap, iteration
                state = self._advance(state, share)
        raise SolverError(
            f"the minimiser could not certify a duality gap of {goal:g} for the hinge loss: "
            "ask for a stronger regularization or take loss='huber_hinge'"
        )

    def certified_gap(self, state: _State) -> float:
        """Upper bound on ``J(w) - min J``: a sum of non-negative terms, so that rounding stays relative."""
        total = self._problem.total
        alpha = np.clip(state.alpha, 0.0, self._bounds)
        size = float(np.linalg.norm(state.coefficients))
        excess = self._margins(state.coefficients) - 1.0
        low, high = self._bounds - alpha, alpha
        margin_error = self._rounding.margin_error(size)
        slopes = np.where(
            excess < -margin_error, low, np.where(excess > margin_error, high, np.maximum(low, high))
        )
        terms = low * np.maximum(-excess, 0.0) + high * np.maximum(excess, 0.0) + slopes * margin_error
        apart = float(np.linalg.norm(state.coefficients - self._from_alpha(alpha)))
        apart += self._rounding.apart_error(size)
        gap = float(np.sum(terms)) / total + 0.5 * self._problem.regularization * apart**2
        return SAFETY * gap + UNDERFLOW

    def _start(self) -> _State:
        alpha = 0.5 * self._bounds
        coefficients = self._from_alpha(alpha)
        excess = self._margins(coefficients) - 1.0
        return _State(coefficients, alpha, np.maximum(excess, 0.0) + 1.0, np.maximum(-excess, 0.0) + 1.0)

    def _advance(self, state: _State, share: float) -> _State:
        """One predictor step to see how far the centre may be moved, then the corrected step."""
        room = self._bounds - state.alpha
        weights = 1.0 / (state.above / state.alpha + state.below / room)
        factor, _ = cholesky(self._rows.gram(weights), self._kappa)
        mean = self._complementarity(state)
        at_alpha, at_room = -state.alpha * state.above, -room * state.below
        predictor = self._direction(state, room, weights, factor, at_alpha, at_room)
        reached = self._complementarity(state.moved(min(1.0, self._longest(state, predictor)), predictor))
        centre = mean * (reached / mean) ** 3
        at_alpha = at_alpha + centre - predictor.alpha * predictor.above
        at_room = at_room + centre + predictor.alpha * predictor.below
        step = self._direction(state, room, weights, factor, at_alpha, at_room)
        return self._inside(state.moved(min(1.0, share * self._longest(state, step)), step))

    def _inside(self, state: _State) -> _State:
        """Rounding may put a number that is nearly at its bound upon it: keep it off."""
        alpha = np.clip(state.alpha, LEAST * self._bounds, (1.0 - 2.0**-52) * self._bounds)
        return replace(
            state, alpha=alpha, above=np.maximum(state.above, LEAST), below=np.maximum(state.below, LEAST)
        )

    def _direction(
        self, state: _State, room: Array, weights: Array, factor: Any, at_alpha: Array, at_room: Array
    ) -> _State:
        excess = self._margins(state.coefficients) - 1.0
        target = at_alpha / state.alpha - at_room / room - (excess - state.above + state.below)
        apart = self._kappa * (state.coefficients - self._from_alpha(state.alpha))
        right = self._rows.transposed_times(self._signs * weights * target) - apart
        coefficients = linalg.cho_solve(factor, right, check_finite=False)
        alpha = weights * (target - self._margins(coefficients))
        above = (at_alpha - state.above * alpha) / state.alpha
        below = (at_room + state.below * alpha) / room
        return _State(coefficients, alpha, above, below)

    def _complementarity(self, state: _State) -> float:
        products = state.alpha @ state.above + (self._bounds - state.alpha) @ state.below
        return float(products) / (2 * len(state.alpha))

    def _longest(self, state: _State, step: _State) -> float:
        """Longest step that stays inside."""
        pairs = (
            (state.alpha, step.alpha),
            (self._bounds - state.alpha, -step.alpha),
            (state.above, step.above),
            (state.below, step.below),
        )
        with np.errstate(divide="ignore"):
            rates = [float(np.max(-change / value, initial=0.0)) for value, change in pairs]
        return 1.0 / max(*rates, 1e-300)

    def _margins(self, coefficients: Array) -> Array:
        return self._signs * self._rows.times(coefficients)

    def _from_alpha(self, alpha: Array) -> Array:
        return (self._rows.transposed_times(self._signs * alpha) - self._shift) / self._kappa


def _rows_that_count(problem: Problem) -> tuple[Any, Array, Array]:
    """Rows of weight zero have an empty box: leave them out."""
    signs = np.asarray(problem.signs, dtype=np.float64)
    if problem.row_weights is None:
        return problem.features, signs, np.ones(len(signs))
    counts = problem.row_weights > 0
    if np.all(counts):
        return problem.features, signs, problem.row_weights
    return problem.features[counts], signs[counts], problem.row_weights[counts]
