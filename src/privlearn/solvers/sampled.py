"""Search directions from a Hessian estimated on a sample of the rows.

Used when one pass over all rows is expensive. The sample's Hessian is close to the full one; every full step reveals
how it differs, and L-BFGS pairs correct for that. Directions affect only the number of passes: the certificate is
computed from a gradient over all rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privlearn.arrays import Array
from privlearn.solvers.descent import Directions
from privlearn.solvers.newton import POOR_STEP_RATIO, conjugate_gradients, lbfgs_two_loop
from privlearn.solvers.objective import Objective, Point

# Relative residual of the inner solve. Solving more precisely is wasted: the sample's Hessian
# itself is off by more than this.
INNER_TOLERANCE = 0.03

MAX_POOR_STEPS = 4  # consecutive steps that reduce the gradient too little before the fallback takes over


class SampledHessian(Directions):
    """Quasi-Newton directions around a sampled Hessian, with a fallback.

    Parameters
    ----------
    sample : Objective
        The objective restricted to a sample of rows in memory.
    start : array of shape (d,)
        Point near the minimiser at which the sample's second derivatives are evaluated.
    make_fallback : callable
        Creates the directions to use once the sampled ones stop making progress.
    """

    def __init__(self, sample: Objective, start: Array, make_fallback: Callable[[], Directions]) -> None:
        self._sample = sample
        self._second_derivatives = sample.second_derivatives(sample.at(start))
        self._precondition = sample.preconditioner(self._second_derivatives)
        self._pairs: list[tuple[Array, Array]] = []
        self._make_fallback = make_fallback
        self._fallback: Directions | None = None
        self._poor_steps = 0

    def propose(self, point: Point) -> Array:
        if self._fallback is not None:
            return self._fallback.propose(point)
        return -lbfgs_two_loop(self._pairs, self._solve_sample, point.gradient)

    def update(self, before: Point, after: Point) -> None:
        """Learn from a completed step; switch to the fallback after too many poor ones."""
        if self._fallback is not None:
            self._fallback.update(before, after)
            return
        step, change = after.coefficients - before.coefficients, after.gradient - before.gradient
        if float(step @ change) > 0:  # L-BFGS needs a positive product
            self._pairs.append((step, change))
        is_poor = after.gradient_norm > POOR_STEP_RATIO * before.gradient_norm
        self._poor_steps = self._poor_steps + 1 if is_poor else 0
        if self._poor_steps == MAX_POOR_STEPS:
            self._fallback = self._make_fallback()

    def _solve_sample(self, vector: Array) -> Array:
        """Solve ``H x = vector`` approximately, where H is the sample's Hessian."""
        solution: Array
        solution, _ = conjugate_gradients(
            lambda direction: self._sample.hessian_product(self._second_derivatives, direction),
            self._precondition,
            vector,
            INNER_TOLERANCE * float(np.linalg.norm(vector)),
        )
        return solution
