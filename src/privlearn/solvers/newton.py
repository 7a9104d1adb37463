"""Newton directions for smooth losses, in three classes:

- `FactorisedHessian`: few columns, so that a d x d matrix can be factorised; L-BFGS pairs correct an old factor.
- `ConjugateGradients`: many columns; the Hessian is available through its products with vectors.
- `SampledHessian`: many sparse columns, or softmax on encoded rows; the same, with the Hessian of a sample of the rows.

A sample is used when one pass over all rows is expensive. Its Hessian is close to the full one; every full step reveals
how it differs, and L-BFGS pairs correct for that. Directions affect only the number of passes: the certificate is
computed from a gradient over all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.imports import linalg
from privlearn.solvers.descent import Directions
from privlearn.solvers.gradients import conjugate_gradients
from privlearn.solvers.objective import Objective, Point, SmoothObjective, cholesky

TIGHTEST = 1e-2  # smallest relative residual of a direction, until a step is poor
POOR_STEP_RATIO = 0.5  # a step that leaves more than this part of the gradient is poor
MIN_RESIDUAL = 1e-8  # relative residual that conjugate gradients can still reach


class ConjugateGradients:
    """Truncated Newton directions (see `descent.Directions`), with the objective's preconditioner."""

    def __init__(self, objective: SmoothObjective) -> None:
        self._objective = objective
        self._precondition: Callable[[Array], Array] | None = None
        self._loosest = self._precision = 0.25
        self._jumped_from: Point | None = None

    def propose(self, point: Point) -> Array:
        if self._jumped_from is None:
            second_derivatives = self._objective.second_derivatives(point)
        else:
            second_derivatives = self._objective.second_derivatives_between(self._jumped_from, point)
        if self._precondition is None:
            self._precondition = self._objective.preconditioner(second_derivatives)
        direction: Array
        direction, _ = conjugate_gradients(
            lambda search: self._objective.hessian_product(second_derivatives, search),
            self._precondition,
            -point.gradient,
            self._precision * point.gradient_norm,
        )
        return direction

    def update(self, before: Point, after: Point) -> None:
        """Request more precise directions as the steps become good, and permanently after a poor one.

        An imprecise direction misses the flattest directions; if precision were reduced again after each good step,
        the descent might zigzag forever.
        """
        left = after.gradient_norm / before.gradient_norm
        self._jumped_from = before if left > POOR_STEP_RATIO else None
        if left > POOR_STEP_RATIO:
            self._precondition = None  # the Hessian has changed
            self._loosest = max(0.5 * self._loosest, MIN_RESIDUAL)
            self._objective.single = self._objective.single and self._loosest >= TIGHTEST
        # Good steps are near the minimiser, where precise directions pay off; elsewhere they waste products.
        self._precision = min(self._loosest, max(TIGHTEST, left))


def lbfgs_two_loop(
    pairs: Sequence[tuple[Array, Array]], inverse: Callable[[Array], Array], gradient: Array
) -> Array:
    """Return L-BFGS's product: ``pairs`` of steps and gradient changes correct an approximate inverse Hessian."""
    # The notation of Nocedal and Wright 2006, Algorithm 7.4: step is s, change is y, a share is alpha.
    vector, shares = gradient.copy(), []
    for step, change in reversed(pairs):
        shares.append(float(step @ vector) / float(step @ change))
        vector -= shares[-1] * change
    vector = inverse(vector)
    for (step, change), share in zip(pairs, reversed(shares), strict=True):
        vector += (share - float(change @ vector) / float(step @ change)) * step
    return vector


SINGLE_PRECISION_LIMIT = 1e-6  # relative size of Lambda below which single precision would lose it
SLOW = 0.1  # after a step that leaves more than this part of the gradient the Hessian is recomputed


class FactorisedHessian:
    """Newton and quasi-Newton directions (see `descent.Directions`)."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        strongest = objective.loss.smoothness * objective.norm_bound**2
        self._single = objective.regularization > SINGLE_PRECISION_LIMIT * strongest
        self._factor: Any = None
        self._jumped_from: Point | None = None
        self._pairs: list[tuple[Array, Array]] = []

    def propose(self, point: Point) -> Array:
        if self._factor is None:
            self._factorise(point)
        direction = -self._apply_inverse(point.gradient)
        # Also true for NaN, which a failed factorisation leaves.
        if not float(direction @ point.gradient) < 0:  # single precision was not enough
            self._single = False
            self._factorise(point)
            direction = -self._apply_inverse(point.gradient)
        return direction

    def update(self, before: Point, after: Point) -> None:
        step, change = after.coefficients - before.coefficients, after.gradient - before.gradient
        self._jumped_from = before if after.gradient_norm > POOR_STEP_RATIO * before.gradient_norm else None
        if after.gradient_norm > SLOW * before.gradient_norm:
            self._factor = None
        # A pair without positive curvature would make the approximate inverse indefinite.
        elif float(step @ change) > 0:
            self._pairs.append((step, change))

    def _factorise(self, point: Point) -> None:
        self._pairs = []
        gram = self._gram(point)
        self._factor, ridge = cholesky(gram, self._objective.regularization)
        # A larger ridge than Lambda means that single precision lost the small eigenvalues.
        if self._single and ridge > self._objective.regularization:
            self._single = False
            self._factorise(point)

    def _gram(self, point: Point) -> Array:
        kind = np.float32 if self._single else np.float64
        if self._jumped_from is None:
            second_derivatives = self._objective.second_derivatives(point)
        else:
            second_derivatives = self._objective.second_derivatives_between(self._jumped_from, point)
        return self._objective.gram(second_derivatives, kind)

    def _apply_inverse(self, gradient: Array) -> Array:
        return lbfgs_two_loop(
            self._pairs, lambda vector: linalg.cho_solve(self._factor, vector, check_finite=False), gradient
        )


# Relative residual of the inner solve. Solving more precisely is wasted: the sample's Hessian
# itself is off by more than this.
INNER_TOLERANCE = 0.03

MAX_POOR_STEPS = 4  # consecutive steps that reduce the gradient too little before the fallback takes over


class SampledHessian(Directions):
    """Quasi-Newton directions around a sampled Hessian, with a fallback.

    Parameters
    ----------
    sample : SmoothObjective
        The objective restricted to a sample of rows in memory.
    start : array of shape (d,)
        Point near the minimiser at which the sample's second derivatives are evaluated.
    make_fallback : callable
        Creates the directions to use once the sampled ones stop making progress.
    """

    def __init__(
        self, sample: SmoothObjective, start: Array, make_fallback: Callable[[], Directions]
    ) -> None:
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
