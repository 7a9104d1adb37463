"""Newton steps for smooth losses: dense, or without ever forming the Hessian, and without columns that no row uses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.erm.certifiable import SAFETY, UNIT_ROUNDOFF
from privlearn.erm.objective import Objective, Point, cholesky
from privlearn.erm.problem import Problem, Solution
from privlearn.heavy import linalg, sparse

MAX_PRODUCTS = 2000  # Hessian products for one direction
TIGHTEST = 1e-2  # relative residual asked of directions while the steps are good
POOR = 0.5  # a step that leaves more of the gradient than this was poor
MOST_PRECISE = 1e-8  # relative residual that conjugate gradients can still reach


class Curved(Protocol):
    """An objective whose Hessian is known by its products."""

    def curvatures(self, point: Point) -> Any:
        """Of each row; or, where rows are elsewhere, of which points they are."""
        ...

    def curvatures_between(self, one: Point, other: Point) -> Any: ...

    def hessian_product(self, curvatures: Any, vector: Array) -> Array: ...

    def preconditioner(self, curvatures: Any) -> Callable[[Array], Array]:
        """Multiplication by something near the Hessian's inverse, positive definite."""
        ...


class ConjugateGradients:
    """Truncated Newton directions (see `descent.Directions`), preconditioned as the objective knows best."""

    def __init__(self, objective: Curved) -> None:
        self._objective = objective
        self._precondition: Callable[[Array], Array] | None = None
        self._loosest = self._precision = 0.25
        self._jumped_from: Point | None = None

    def propose(self, point: Point) -> Array:
        if self._jumped_from is None:
            curvatures = self._objective.curvatures(point)
        else:
            curvatures = self._objective.curvatures_between(self._jumped_from, point)
        if self._precondition is None:
            self._precondition = self._objective.preconditioner(curvatures)
        return conjugate_gradients(
            lambda search: self._objective.hessian_product(curvatures, search),
            self._precondition,
            -point.gradient,
            self._precision * point.norm,
        )

    def learn(self, before: Point, after: Point) -> None:
        """Ask for more precise directions as the steps become good, and for ever after a poor one.

        A loose direction leaves out where the objective is flattest; if it is loosened again after each good step,
        the descent may zigzag without end.
        """
        left = after.norm / before.norm
        self._jumped_from = before if left > POOR else None
        if left > POOR:
            self._precondition = None  # curvatures have changed
            self._loosest = max(0.5 * self._loosest, MOST_PRECISE)
        self._precision = min(self._loosest, max(TIGHTEST, left))


def conjugate_gradients(
    product_with: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    wanted: Array,
    residual_norm: float,
) -> Array:
    """A vector whose product is near what is wanted, up to a residual of that norm."""
    found = np.zeros_like(wanted)
    residual = wanted.copy()
    scaled = precondition(residual)
    search, energy = scaled.copy(), float(residual @ scaled)
    for _ in range(MAX_PRODUCTS):
        if float(np.linalg.norm(residual)) <= residual_norm:
            break
        product = product_with(search)
        length = energy / float(search @ product)
        found += length * search
        residual -= length * product
        scaled = precondition(residual)
        energy, previous = float(residual @ scaled), energy
        search = scaled + (energy / previous) * search
    return found


def two_loops(
    pairs: Sequence[tuple[Array, Array]], inverse: Callable[[Array], Array], gradient: Array
) -> Array:
    """L-BFGS around an approximate inverse of the Hessian: steps, and the changes of the gradient that they made."""
    vector, shares = gradient.copy(), []
    for step, change in reversed(pairs):
        shares.append(float(step @ vector) / float(step @ change))
        vector -= shares[-1] * change
    vector = inverse(vector)
    for (step, change), share in zip(pairs, reversed(shares), strict=True):
        vector += (share - float(change @ vector) / float(step @ change)) * step
    return vector


SINGLE_PRECISION_LIMIT = 1e-6  # relative size of Lambda below which single precision would drown it
SLOW = 0.1  # a step that leaves more of the gradient than this asks for a new Hessian


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
        if not float(direction @ point.gradient) < 0:  # single precision was not enough
            self._single = False
            self._factorise(point)
            direction = -self._apply_inverse(point.gradient)
        return direction

    def learn(self, before: Point, after: Point) -> None:
        step, change = after.coefficients - before.coefficients, after.gradient - before.gradient
        self._jumped_from = before if after.norm > POOR * before.norm else None
        if after.norm > SLOW * before.norm:
            self._factor = None
        elif float(step @ change) > 0:
            self._pairs.append((step, change))

    def _factorise(self, point: Point) -> None:
        self._pairs = []
        gram = self._gram(point)
        self._factor, ridge = cholesky(gram, self._objective.regularization)
        if self._single and ridge > self._objective.regularization:
            self._single = False
            self._factorise(point)

    def _gram(self, point: Point) -> Array:
        kind = np.float32 if self._single else np.float64
        if self._jumped_from is None:
            curvatures = self._objective.curvatures(point)
        else:
            curvatures = self._objective.curvatures_between(self._jumped_from, point)
        return self._objective.gram(curvatures, kind)

    def _apply_inverse(self, gradient: Array) -> Array:
        return two_loops(
            self._pairs, lambda vector: linalg.cho_solve(self._factor, vector, check_finite=False), gradient
        )


WORTHWHILE = 0.5  # renumbering copies the column indices: only if this share of the columns or less is in use


def used_columns(problem: Problem) -> NDArray[np.intp] | None:
    """The columns in use, in order, or None if leaving out the others would gain little."""
    if not sparse.issparse(problem.features):
        return None
    features: Any = problem.features
    present = np.zeros(features.shape[1], dtype=bool)
    present[features.indices] = True
    present[0] = True  # a problem has at least one column
    used = np.flatnonzero(present)
    return used if len(used) <= WORTHWHILE * len(present) else None


def restrict(problem: Problem, used: NDArray[np.intp]) -> Problem:
    """The problem in the used columns alone; the values are shared, the indices renumbered."""
    features = problem.features
    number = np.zeros(features.shape[1], dtype=features.indices.dtype)
    number[used] = np.arange(len(used))
    parts = (features.data, number[features.indices], features.indptr)
    kept = sparse.csr_array(parts, shape=(features.shape[0], len(used)))
    return replace(problem, features=kept, linear=None if problem.linear is None else problem.linear[used])


def extend(problem: Problem, used: NDArray[np.intp], found: Solution) -> Solution:
    """The solution in all columns, with the certificate of both parts."""
    if problem.linear is None:
        coefficients, rest = np.zeros(problem.features.shape[1]), 0.0
    else:
        coefficients = -problem.linear / problem.regularization
        rest = SAFETY * UNIT_ROUNDOFF * float(np.linalg.norm(problem.linear))
    coefficients[used] = found.coefficients
    norm = math.hypot(found.gradient_norm, rest)
    return Solution(coefficients, norm, norm / problem.regularization, found.iterations)
