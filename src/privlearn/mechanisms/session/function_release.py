"""Function release: a Gaussian path added to a kernel machine, drawn only at the queried points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.accounting import MARGIN, Curve, GaussianCurve, gaussian_delta, gaussian_ratio
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.features.kernel import KERNEL_ROUNDING
from privlearn.guarantee import Guarantee
from privlearn.imports import linalg
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.session.task import KernelTask, SessionMechanism
from privlearn.randomness import GaussianIntegers, Integers

FACTOR_BITS = 40
"""Entries of the Cholesky factor L are multiples of 2^-40."""
DRAW_BITS = 20
"""Draws are integers of deviation 2^20, so each stands for a normal number in units of 2^-20."""
PATH_BITS = FACTOR_BITS + DRAW_BITS
"""Values of a path, L times the draws, are integers in units of 2^-60."""
FACTOR_JITTER = 2.0**-16
"""Added to the kernel matrix's diagonal, so that it has a Cholesky factor in spite of rounding."""
VALUE_JITTER = 2.0**-14
"""Variance of independent noise in each value, which covers their rounding (docs/theory/function-release.md)."""
CAPACITY = 2**15
"""Maximal number of different points of a path; up to there the rounding bounds are below the jitter."""

MAX_PATHS = 128
"""Up to here the discrete distribution is as near the Gaussian as the guarantee's margin allows."""

BLOCK = 128
"""Rows of L stored together: few enough that a triangle stays in the cache, and the last one wastes little memory."""


@dataclass(frozen=True, eq=False)
class PathStep:
    """One new point: its row of L (multiples of 2^-40), and for each path its draw and its noise in units of 2^-60."""

    row: Array
    draws: tuple[int, ...]
    noises: tuple[int, ...]


class GaussianPaths:
    """Independent paths at the points so far: rows of L, and draws. Both are secret, and needed to continue."""

    def __init__(self, count: int = 1) -> None:
        self._left: list[Array] = []  # of each block of rows, the part left of the diagonal's triangle
        self._triangles: list[Array] = []  # the identity where there are no rows yet
        self._draws = np.zeros((count, BLOCK), dtype=np.int64)  # grows by doubling
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def draw(self, cross: Array, own: Array, randomness: GaussianIntegers) -> list[PathStep]:
        """Draw the paths at m new points; `remember` each step once it is durable.

        Parameters
        ----------
        cross : array of shape (m, len(self))
            Kernel between the new points and the past ones, in the order of their queries.
        own : array of shape (m, m)
            Kernel among the new points.
        """
        rows = self._new_rows(cross, own)
        shape = (len(own), len(self._draws))
        draws = _integers(2.0**DRAW_BITS, shape, randomness)
        jitter = _integers(VALUE_JITTER**0.5 * 2.0**PATH_BITS, shape, randomness)
        # Old draws and the new ones: a new point's noise is its row of L times all of them.
        known, steps = np.hstack([self._draws[:, : len(self)], np.transpose(draws)]), []
        for row, new, extras in zip(rows, draws, jitter, strict=True):
            sums = _exact_sums(known[:, : len(row)], np.ldexp(row, FACTOR_BITS).astype(np.int64))
            noises = tuple(total + extra for total, extra in zip(sums, extras, strict=True))
            steps.append(PathStep(row, tuple(new), noises))
        return steps

    def remember(self, row: Array, draws: Sequence[int]) -> None:
        """Append a point's row and draws to the past."""
        number, row_in_block = divmod(len(self), BLOCK)
        if row_in_block == 0:
            self._left.append(np.zeros((BLOCK, number * BLOCK)))
            self._triangles.append(np.eye(BLOCK))
        self._left[-1][row_in_block] = row[: number * BLOCK]
        self._triangles[-1][row_in_block, : row_in_block + 1] = row[number * BLOCK :]
        if len(self) == self._draws.shape[1]:
            self._draws = np.hstack([self._draws, np.zeros_like(self._draws)])
        self._draws[:, len(self)] = draws
        self._length += 1

    def _new_rows(self, cross: Array, own: Array) -> list[Array]:
        """Return rows of the Cholesky factor of the kernel matrix plus `FACTOR_JITTER`, each rounded to its grid."""
        left = _to_grid(self._solve(cross.T).T)
        # Uses the rounded rows, so that their rounding does not affect the new points' own variances.
        rest = own - left @ left.T
        rest.flat[:: len(rest) + 1] += FACTOR_JITTER
        right = _to_grid(_factor(rest))
        return [np.concatenate([left[i], right[i, : i + 1]]) for i in range(len(own))]

    def _solve(self, targets: Array) -> Array:
        """Return L^-1 targets, block by block: the blocks are never joined into one matrix."""
        solved = np.zeros((BLOCK * len(self._triangles), targets.shape[1]))
        solved[: len(targets)] = targets
        for number, (left, triangle) in enumerate(zip(self._left, self._triangles, strict=True)):
            start, stop = number * BLOCK, min((number + 1) * BLOCK, len(self))
            solved[start:stop] -= left[: stop - start] @ solved[:start]
            _substitute(triangle, solved[start : start + BLOCK])
        return solved[: len(targets)]


def rounding_bound(points: int) -> float:
    """Return a bound on the norm of (kernel matrix + `FACTOR_JITTER`) - L L' at a number of points.

    Backward error of conventional Cholesky factorisation and substitution (Higham 2002, Theorems 8.5 and 10.3, with
    a factor 4 for blocking), rounding of L to its grid, and rounding of kernel values; 1.01 covers the jitter.
    """
    factorisation = 4.0 * points * (points + 1) * 2.0**-53
    grid = points * math.sqrt(points) * 2.0 ** -(FACTOR_BITS + 1)
    return 1.01 * (factorisation + grid + points * KERNEL_ROUNDING)


def _integers(scale: float, shape: tuple[int, int], randomness: GaussianIntegers) -> list[list[int]]:
    """Return exact draws, one row per point and one column per path."""
    drawn: list[list[int]] = randomness.discrete_gaussian(scale, shape[0] * shape[1]).reshape(shape).tolist()
    return drawn


def _exact_sums(draws: Integers, factors: Integers) -> list[int]:
    """Return draws @ factors for each path, exactly.

    The halves of the factors' 41 bits are summed separately: for up to `CAPACITY` terms with draws below 2^27, 128
    deviations, no sum reaches 2^63.
    """
    high, low = factors >> DRAW_BITS, factors & (2**DRAW_BITS - 1)
    return [
        (int(upper) << DRAW_BITS) + int(lower) for upper, lower in zip(draws @ high, draws @ low, strict=True)
    ]


def _substitute(triangle: Array, targets: Array) -> None:
    """Replace targets by triangle^-1 targets. The transpose avoids a copy; dtrsv is faster for a single column."""
    if targets.shape[1] == 1:
        targets[:, 0] = linalg.blas.dtrsv(triangle.T, targets[:, 0], trans=1)
    else:
        targets[:] = linalg.blas.dtrsm(1.0, triangle.T, targets, trans_a=1)


def _factor(matrix: Array) -> Array:
    """Return the Cholesky factor; the root of a single number is ten times as fast as NumPy's factorisation."""
    if len(matrix) == 1 and matrix[0, 0] > 0.0:
        return np.sqrt(matrix)
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def _to_grid(values: Array) -> Array:
    return np.ldexp(np.rint(np.ldexp(values, FACTOR_BITS)), -FACTOR_BITS)


@register_mechanism
@dataclass(frozen=True)
class FunctionRelease(SessionMechanism):
    """Answer f(z) + noise_scale (g(z) + jitter), g one path of the Gaussian process whose covariance is the kernel.

    **Theorem** (Hall, Rinaldo and Wasserman 2012; the curve is Balle and Wang's of 2018). Let one person move each of
    K functions by at most D in the norm of the kernel's space, and each computed value be within r of its function's.
    Then the answers at up to T different points, chosen adaptively, each function with its own path, are
    together (epsilon, delta)-private with delta(epsilon) = HS(epsilon, sqrt(K (D^2 + T (2 r)^2 / jitter)) /
    noise_scale), HS the hockey-stick divergence of two normals at that distance. The noise in an answer does not grow
    with T: T only multiplies the rounding error r, of the order of 1e-10. A repeated point is looked up, never drawn
    again. K is 1 for two classes and for a number. Several classes, each against the rest, have K functions. The
    functions of the softmax loss move by at most D together, so that K D^2 becomes D^2, with L = sqrt(2) in D.

    The argument, also for integer and floating-point computations: docs/theory/function-release.md.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> from privlearn.mechanisms.task import Task
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> session = KernelTask(task, solver_distance=1e-9)
    >>> mechanism = FunctionRelease.calibrate(session, Guarantee(1.0, 1e-6))
    >>> round(mechanism.answer_deviation, 4)
    0.0845
    >>> mechanism.spends() <= Guarantee(1.0, 1e-6)
    True
    """

    noise_scale: float

    name = "function_release"
    title = "function release from one Gaussian-process path"
    page = "function-release"
    noise = "gaussian"
    calibrated_constants = ("noise_scale",)
    floating_point = (
        "exact: integer Gaussian draws through a public integer matrix. Its rounding, that of kernel values (at most "
        "2^-38 of the kernel's bound, assumed of a kernel of one's own) and that of f are inside the guarantee"
    )

    def __post_init__(self) -> None:
        if self.kernel_task.functions > MAX_PATHS:
            raise InvalidParameter(
                f"function release answers for at most {MAX_PATHS} classes. Merge rare ones."
            )

    @classmethod
    def calibrate(cls, kernel_task: KernelTask, guarantee: Guarantee) -> FunctionRelease:
        if not guarantee.is_private:
            return cls(kernel_task, guarantee, 0.0)
        if guarantee.delta == 0:
            raise InvalidParameter("function release needs delta > 0. Pass Guarantee(epsilon, 1e-6)")
        ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta) * (1.0 - MARGIN)
        return cls(kernel_task, guarantee, _distance(kernel_task) / (ratio - _grid_ratio(kernel_task)))

    @property
    def answer_deviation(self) -> float:
        return self.noise_scale

    def spends(self) -> Guarantee:
        if not self.guarantee.is_private:
            return self.guarantee
        epsilon = self.guarantee.epsilon
        delta = gaussian_delta(self._ratio, epsilon)
        return Guarantee(epsilon, delta, self.guarantee.neighbours)

    def curve(self) -> Curve:
        """Return the curve of the one Gaussian mechanism equivalent to the whole session."""
        return GaussianCurve(self._ratio)

    def renyi(self, order: float) -> float:
        return order * self._ratio**2 / 2.0

    def answer(self, value: float, noise: int) -> float:
        """Return the value plus the path's noise, added as integers: the answer is a function of their sum."""
        if not self.guarantee.is_private:
            return value
        step = math.ldexp(self.noise_scale, -PATH_BITS)
        # Adding floats would leave low bits of the value in the answer.
        return (round(value / step) + noise) * step

    def constants(self) -> dict[str, Any]:
        return self.kernel_task.constants() | {
            "functions": self.kernel_task.functions,
            "points": CAPACITY,
            "factor_jitter": FACTOR_JITTER,
            "value_jitter": VALUE_JITTER,
            "noise_scale": self.noise_scale,
        }

    @property
    def _ratio(self) -> float:
        return _distance(self.kernel_task) / self.noise_scale + _grid_ratio(self.kernel_task)


def _grid_ratio(kernel_task: KernelTask) -> float:
    """Return what rounding the values to the noise's grid adds to the ratio."""
    return 2.0**-PATH_BITS * math.sqrt(kernel_task.functions * CAPACITY / VALUE_JITTER)


def _distance(kernel_task: KernelTask) -> float:
    """Return the sensitivity of all answers together, in the norm of the noise's covariance at scale 1."""
    problems, functions = kernel_task.task.problems, kernel_task.functions
    rounding = (
        2.0 * kernel_task.evaluation_error * math.sqrt(functions / problems * (CAPACITY / VALUE_JITTER))
    )
    return math.sqrt(problems) * math.hypot(kernel_task.sensitivity, rounding)
