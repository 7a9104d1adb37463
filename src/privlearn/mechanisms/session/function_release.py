"""Function release: a Gaussian path added to a kernel machine, drawn where it is asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privlearn.accounting import MARGIN, Curve, GaussianCurve, gaussian_delta, gaussian_ratio
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.features.kernel import KERNEL_ROUNDING
from privlearn.guarantee import Guarantee
from privlearn.heavy import linalg
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.session.task import KernelTask, SessionMechanism
from privlearn.randomness import GaussianIntegers, Integers

FACTOR_BITS = 40
DRAW_BITS = 20
PATH_BITS = FACTOR_BITS + DRAW_BITS
FACTOR_JITTER = 2.0**-16
VALUE_JITTER = 2.0**-14
CAPACITY = 2**15
"""Number of different points that a path can be asked at; up to there the rounding bounds are below the jitter."""

MOST_PATHS = 128
"""Up to here the discrete law is as near the Gaussian's as the guarantee's margin allows."""

BLOCK = 128
"""Rows of L kept together: few enough that a triangle stays in the cache, and that little of one is empty."""


@dataclass(frozen=True, eq=False)
class PathStep:
    """What one new point adds: its row of L (multiples of 2^-40), and of each path its draw x and the noise in units
    of 2^-60."""

    row: Array
    draws: tuple[int, ...]
    noises: tuple[int, ...]


class GaussianPaths:
    """The past of some independent paths: rows of L and draws. Both are needed to go on, and neither may leave."""

    def __init__(self, count: int = 1) -> None:
        self._beside: list[Array] = []  # of each block of rows what lies left of the diagonal's triangle
        self._triangles: list[Array] = []  # the identity where no row is yet
        self._draws = np.zeros((count, BLOCK), dtype=np.int64)  # grows by doubling
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def draw(self, cross: Array, own: Array, randomness: GaussianIntegers) -> list[PathStep]:
        """Draw the paths at m new points; `remember` each step once it is durable.

        Parameters
        ----------
        cross : array of shape (m, len(self))
            Kernel between the new points and the past ones, in the order they were asked.
        own : array of shape (m, m)
            Kernel among the new points.
        """
        rows = self._new_rows(cross, own)
        shape = (len(own), len(self._draws))
        draws = _integers(2.0**DRAW_BITS, shape, randomness)
        jitter = _integers(VALUE_JITTER**0.5 * 2.0**PATH_BITS, shape, randomness)
        known, steps = np.hstack([self._draws[:, : len(self)], np.transpose(draws)]), []
        for row, new, extras in zip(rows, draws, jitter, strict=True):
            sums = _exact_sums(known[:, : len(row)], np.ldexp(row, FACTOR_BITS).astype(np.int64))
            noises = tuple(total + extra for total, extra in zip(sums, extras, strict=True))
            steps.append(PathStep(row, tuple(new), noises))
        return steps

    def remember(self, row: Array, draws: Sequence[int]) -> None:
        """Append a point's row and draws to the past."""
        number, place = divmod(len(self), BLOCK)
        if place == 0:
            self._beside.append(np.zeros((BLOCK, number * BLOCK)))
            self._triangles.append(np.eye(BLOCK))
        self._beside[-1][place] = row[: number * BLOCK]
        self._triangles[-1][place, : place + 1] = row[number * BLOCK :]
        if len(self) == self._draws.shape[1]:
            self._draws = np.hstack([self._draws, np.zeros_like(self._draws)])
        self._draws[:, len(self)] = draws
        self._length += 1

    def _new_rows(self, cross: Array, own: Array) -> list[Array]:
        """Rows of the Cholesky factor of the kernel matrix plus `FACTOR_JITTER`, each rounded to its grid."""
        left = _to_grid(self._solve(cross.T).T)
        # From the rounded rows, so that their rounding stays out of the new points' own variances.
        rest = own - left @ left.T
        rest.flat[:: len(rest) + 1] += FACTOR_JITTER
        right = _to_grid(_factor(rest))
        return [np.concatenate([left[i], right[i, : i + 1]]) for i in range(len(own))]

    def _solve(self, targets: Array) -> Array:
        """L^-1 targets, block by block: the blocks are never joined into one matrix."""
        solved = np.zeros((BLOCK * len(self._triangles), targets.shape[1]))
        solved[: len(targets)] = targets
        for number, (beside, triangle) in enumerate(zip(self._beside, self._triangles, strict=True)):
            start, stop = number * BLOCK, min((number + 1) * BLOCK, len(self))
            solved[start:stop] -= beside[: stop - start] @ solved[:start]
            _substitute(triangle, solved[start : start + BLOCK])
        return solved[: len(targets)]


def rounding_bound(points: int) -> float:
    """Bound on the norm of (kernel matrix + `FACTOR_JITTER`) - L L' at so many points.

    Backward error of conventional Cholesky factorisation and substitution (Higham 2002, Theorems 8.5 and 10.3, with
    a factor 4 for blocking), rounding of L to its grid, and rounding of kernel values; 1.01 covers the jitter.
    """
    factorisation = 4.0 * points * (points + 1) * 2.0**-53
    grid = points * math.sqrt(points) * 2.0 ** -(FACTOR_BITS + 1)
    return 1.01 * (factorisation + grid + points * KERNEL_ROUNDING)


def _integers(scale: float, shape: tuple[int, int], randomness: GaussianIntegers) -> list[list[int]]:
    """Exact draws, one row per point and one column per path."""
    drawn: list[list[int]] = randomness.discrete_gaussian(scale, shape[0] * shape[1]).reshape(shape).tolist()
    return drawn


def _exact_sums(draws: Integers, factors: Integers) -> list[int]:
    """draws @ factors, a path each. Halves of the factors' 41 bits apart: up to `CAPACITY` terms with draws below 2^27,
    128 deviations, no sum reaches 2^63."""
    high, low = factors >> DRAW_BITS, factors & (2**DRAW_BITS - 1)
    return [
        (int(upper) << DRAW_BITS) + int(lower) for upper, lower in zip(draws @ high, draws @ low, strict=True)
    ]


def _substitute(triangle: Array, targets: Array) -> None:
    """triangle^-1 targets, in place. BLAS takes columns, so that rows need no copy; it is quicker with a single one."""
    if targets.shape[1] == 1:
        targets[:, 0] = linalg.blas.dtrsv(triangle.T, targets[:, 0], trans=1)
    else:
        targets[:] = linalg.blas.dtrsm(1.0, triangle.T, targets, trans_a=1)


def _factor(matrix: Array) -> Array:
    """The Cholesky factor; NumPy's own takes ten times as long as the root that a single point needs."""
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
    Then the answers at up to T different points, chosen adaptively, each function's with a path of its own, are
    together (epsilon, delta)-private with delta(epsilon) = HS(epsilon, sqrt(K (D^2 + T (2 r)^2 / jitter)) /
    noise_scale), HS the hockey-stick divergence of two normals at that distance. The noise in an answer does not grow
    with T: T stands only beside the rounding error r, of the order of 1e-10. The same point is looked up, never drawn
    again. K is 1 for two classes and for a number. Several classes, each against the rest, have K functions. The
    functions of the softmax loss move by at most D together, so that K D^2 becomes D^2, with L = sqrt(2) in D.

    The argument, also for what is computed in integers and in floating point: docs/theory/function-release.md.
    """

    noise_scale: float

    name: ClassVar[str] = "function_release"
    title: ClassVar[str] = "function release from one Gaussian-process path"
    page: ClassVar[str] = "function-release"
    noise: ClassVar[str] = "gaussian"
    chosen_constants: ClassVar[tuple[str, ...]] = ("noise_scale",)
    floating_point: ClassVar[str] = (
        "exact: integer Gaussian draws through a public integer matrix. Its rounding, that of kernel values (at most "
        "2^-38 of the kernel's bound, assumed of a kernel of one's own) and that of f are inside the guarantee"
    )

    def __post_init__(self) -> None:
        if self.facts.functions > MOST_PATHS:
            raise InvalidParameter(
                f"function release answers for at most {MOST_PATHS} classes: join rare ones"
            )

    @classmethod
    def calibrate(cls, facts: KernelTask, guarantee: Guarantee) -> FunctionRelease:
        """The least noise that keeps the promise; looks at public facts only."""
        if not guarantee.is_private:
            return cls(facts, guarantee, 0.0)
        if guarantee.delta == 0:
            raise InvalidParameter("function release needs delta > 0: pass Guarantee(epsilon, 1e-6)")
        ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta) * (1.0 - MARGIN)
        return cls(facts, guarantee, _distance(facts) / (ratio - _grid_ratio(facts)))

    @property
    def answer_deviation(self) -> float:
        return self.noise_scale

    def spends(self) -> Guarantee:
        """The guarantee recomputed from the constants alone."""
        if not self.guarantee.is_private:
            return self.guarantee
        epsilon = self.guarantee.epsilon
        delta = gaussian_delta(self._ratio, epsilon)
        return Guarantee(epsilon, delta, self.guarantee.neighbours)

    def curve(self) -> Curve:
        """Of the one Gaussian mechanism that the whole session amounts to."""
        return GaussianCurve(self._ratio)

    def renyi(self, order: float) -> float:
        """Renyi divergence of the given order that the whole session may cost."""
        return order * self._ratio**2 / 2.0

    def answer(self, value: float, noise: int) -> float:
        """The value plus the path's noise there, added as integers: what leaves is a function of their sum."""
        if not self.guarantee.is_private:
            return value
        step = math.ldexp(self.noise_scale, -PATH_BITS)
        return (round(value / step) + noise) * step

    def constants(self) -> dict[str, Any]:
        """Every number the theorem speaks of, for the certificate."""
        return self.facts.constants() | {
            "functions": self.facts.functions,
            "points": CAPACITY,
            "factor_jitter": FACTOR_JITTER,
            "value_jitter": VALUE_JITTER,
            "noise_scale": self.noise_scale,
        }

    @property
    def _ratio(self) -> float:
        return _distance(self.facts) / self.noise_scale + _grid_ratio(self.facts)


def _grid_ratio(facts: KernelTask) -> float:
    """What rounding the values to the noise's grid adds to the ratio."""
    return 2.0**-PATH_BITS * math.sqrt(facts.functions * CAPACITY / VALUE_JITTER)


def _distance(facts: KernelTask) -> float:
    """How far one person moves all answers together, in the norm of the noise's law at scale 1."""
    problems, functions = facts.task.problems, facts.functions
    rounding = 2.0 * facts.evaluation_error * math.sqrt(functions / problems * (CAPACITY / VALUE_JITTER))
    return math.sqrt(problems) * math.hypot(facts.sensitivity, rounding)
