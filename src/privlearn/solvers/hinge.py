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
from privlearn.errors import SolverError
from privlearn.imports import linalg
from privlearn.solvers import certifiable
from privlearn.solvers.objective import cholesky
from privlearn.solvers.problem import Problem, Progress, Rows, Solution

MAX_ITERATIONS = 100  # for each share of `TO_THE_BOUNDARY`
# Part of the distance to the boundary that a step goes; the later values restart where the first failed.
TO_THE_BOUNDARY = (0.995, 0.9, 0.5, 0.7)
SMALLEST = 1e-30  # of slacks and relative dual variables
NEGLIGIBLE = 1e-200
"""Rows of at most this weight are left out: quotients by a weight near the smallest number overflow, and the method
would fail on some tables. All of them together change the objective by less than `UNDERFLOW`, which each gap includes:
margins are below 1e5 (`MIN_HINGE_REGULARIZATION`)."""


@dataclass(frozen=True, eq=False, repr=False)
class _State:
    """A point strictly inside the box, or a direction from it."""

    coefficients: Array
    alpha: Array
    above: Array
    below: Array

    def move(self, length: float, step: _State) -> _State:
        """Return the point ``length`` times the step away."""
        return _State(
            self.coefficients + length * step.coefficients,
            self.alpha + length * step.alpha,
            self.above + length * step.above,
            self.below + length * step.below,
        )


def minimise_hinge(
    problem: Problem, gap: float = certifiable.GAP_TOLERANCE, progress: Progress | None = None
) -> Solution:
    """Minimise until the duality gap is certified to be at most ``gap``.

    Examples
    --------
    >>> from privlearn.solvers.losses import Hinge
    >>> rows, signs = np.array([[0.6, 0.8], [0.8, -0.6]]), np.array([1.0, -1.0])
    >>> solution = minimise_hinge(Problem(rows, signs, Hinge(), regularization=0.1, total=2))
    >>> solution.coefficients.round(4).tolist(), solution.distance <= 1e-5
    ([-0.2, 1.4], True)
    """
    certifiable.check_dimension(problem.features.shape[1])
    state, reached, iterations = _InteriorPoint(problem).solve(gap, progress)
    distance = math.sqrt(2.0 * reached / problem.regularization)
    return Solution(state.coefficients, problem.regularization * distance, distance, iterations)


def minimise_dual(problem: Problem, gap: float) -> Array:
    """Return the dual variables, one for each row, for any number of features.

    Examples
    --------
    >>> from privlearn.solvers.losses import Hinge
    >>> problem = Problem(np.eye(2), np.array([1.0, -1.0]), Hinge(), regularization=1.0, total=2)
    >>> minimise_dual(problem, gap=1e-9).round(6)
    array([1., 1.])
    """
    method = _InteriorPoint(problem)
    alpha = np.zeros(len(method.counted))
    alpha[method.counted] = method.solve(gap, None)[0].alpha
    return alpha


class _InteriorPoint:
    """Mehrotra's method on the rows that count; its states have one number per such row (docs/theory/solver.md)."""

    def __init__(self, problem: Problem) -> None:
        weights = np.ones(len(problem.signs)) if problem.row_weights is None else problem.row_weights
        self.counted = weights > NEGLIGIBLE
        features = problem.features if np.all(self.counted) else problem.features[self.counted]
        self._rows = Rows(features, problem.norm_bound)
        self._signs = np.asarray(problem.signs, dtype=np.float64)[self.counted]
        self._bounds = weights = weights[self.counted]
        self._kappa = problem.regularization * problem.total
        linear = np.zeros(self._rows.dimension) if problem.linear is None else problem.linear
        self._shift = problem.total * linear
        self._problem = problem
        self._rounding = certifiable.GapRounding(
            regularization=problem.regularization,
            dimension=self._rows.dimension,
            chain=self._rows.chain,
            mass=float(np.sum(weights)) / problem.total,
            norm_bound=problem.norm_bound,
            linear_norm=float(np.linalg.norm(linear)),
        )

    @np.errstate(all="ignore")  # a warning would depend on the rows
    def solve(self, target: float, progress: Progress | None) -> tuple[_State, float, int]:
        """Return a point with a certified gap, that gap, and the number of iterations."""
        # A failure would depend on the rows, so other step lengths are tried before it is admitted.
        for share in TO_THE_BOUNDARY:
            state = self._start()
            for iteration in range(MAX_ITERATIONS):
                gap = self.certified_gap(state)
                if progress is not None:
                    progress(iteration, gap)
                if gap <= target:
                    return state, gap, iteration
                state = self._advance(state, share)
        raise SolverError(
            f"the minimiser could not certify a duality gap of {target:g} for the hinge loss. "
            "Use a stronger regularization or loss='huber_hinge'"
        )

    def certified_gap(self, state: _State) -> float:
        """Return an upper bound on ``J(w) - min J``: a sum of non-negative terms, so that rounding stays relative."""
        total = self._problem.total
        alpha = np.clip(state.alpha, 0.0, self._bounds)
        size = float(np.linalg.norm(state.coefficients))
        excess = self._margins(state.coefficients) - 1.0
        terms, _ = certifiable.hinge_terms(
            excess, self._rounding.margin_error(size), self._bounds - alpha, alpha
        )
        apart = float(np.linalg.norm(state.coefficients - self._from_alpha(alpha)))
        apart += self._rounding.apart_error(size)
        gap = float(np.sum(terms)) / total + 0.5 * self._problem.regularization * apart**2
        return certifiable.SAFETY * gap + certifiable.UNDERFLOW

    def _start(self) -> _State:
        alpha = 0.5 * self._bounds
        coefficients = self._from_alpha(alpha)
        excess = self._margins(coefficients) - 1.0
        return _State(coefficients, alpha, np.maximum(excess, 0.0) + 1.0, np.maximum(-excess, 0.0) + 1.0)

    def _advance(self, state: _State, share: float) -> _State:
        """Return the corrected step, after a predictor step that determines the centring."""
        upper = self._bounds - state.alpha
        weights = 1.0 / (state.above / state.alpha + state.below / upper)
        # One factorisation serves the predictor and the corrector.
        factor, _ = cholesky(self._rows.gram(weights), self._kappa)
        mean = self._complementarity(state)
        at_alpha, at_upper = -state.alpha * state.above, -upper * state.below
        predictor = self._direction(state, upper, weights, factor, at_alpha, at_upper)
        reached = self._complementarity(state.move(min(1.0, self._longest(state, predictor)), predictor))
        # Mehrotra's rule: where the predictor already gets far, little centring is needed.
        centre = mean * (reached / mean) ** 3
        at_alpha = at_alpha + centre - predictor.alpha * predictor.above
        at_upper = at_upper + centre + predictor.alpha * predictor.below
        step = self._direction(state, upper, weights, factor, at_alpha, at_upper)
        return self._inside(state.move(min(1.0, share * self._longest(state, step)), step))

    def _inside(self, state: _State) -> _State:
        """Return the state with all numbers strictly inside their bounds, which rounding may reach."""
        alpha = np.clip(state.alpha, SMALLEST * self._bounds, (1.0 - 2.0**-52) * self._bounds)
        return replace(
            state,
            alpha=alpha,
            above=np.maximum(state.above, SMALLEST),
            below=np.maximum(state.below, SMALLEST),
        )

    def _direction(
        self, state: _State, upper: Array, weights: Array, factor: Any, at_alpha: Array, at_upper: Array
    ) -> _State:
        excess = self._margins(state.coefficients) - 1.0
        target = at_alpha / state.alpha - at_upper / upper - (excess - state.above + state.below)
        apart = self._kappa * (state.coefficients - self._from_alpha(state.alpha))
        right = self._rows.transpose_times(self._signs * weights * target) - apart
        coefficients = linalg.cho_solve(factor, right, check_finite=False)
        alpha = weights * (target - self._margins(coefficients))
        above = (at_alpha - state.above * alpha) / state.alpha
        below = (at_upper + state.below * alpha) / upper
        return _State(coefficients, alpha, above, below)

    def _complementarity(self, state: _State) -> float:
        products = state.alpha @ state.above + (self._bounds - state.alpha) @ state.below
        return float(products) / (2 * len(state.alpha))

    def _longest(self, state: _State, step: _State) -> float:
        """Return the length of the longest step that stays inside."""
        pairs = (
            (state.alpha, step.alpha),
            (self._bounds - state.alpha, -step.alpha),
            (state.above, step.above),
            (state.below, step.below),
        )
        rates = [float(np.max(-change / value, initial=0.0)) for value, change in pairs]
        return 1.0 / max(*rates, 1e-300)

    def _margins(self, coefficients: Array) -> Array:
        return self._signs * self._rows.times(coefficients)

    def _from_alpha(self, alpha: Array) -> Array:
        return (self._rows.transpose_times(self._signs * alpha) - self._shift) / self._kappa
