"""The papers' learners, the splits of their tables, and sparse rows seen through public points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from privlearn.arrays import Array
from privlearn.estimators.calibration import calibrate_mechanism
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.oracle import PrecomputedMinimisers
from privlearn.mechanisms.release.tddl import TestDataDependentLearner
from privlearn.mechanisms.task import Task
from privlearn.randomness import SeededRandomness
from privlearn.solvers.certifiable import min_tolerance
from privlearn.solvers.losses import Loss
from privlearn.solvers.problem import Problem
from privlearn.solvers.solve import minimise

DELTA = 1e-6
DEFAULT, DEFAULT_DELTA = "default", f"default, delta = {DELTA:g}"
METHODS: dict[str, dict[str, Any]] = {
    "output": {"mechanism": "output", "noise": "norm_gamma", "calibration": "cms11"},
    "objective": {"mechanism": "objective", "noise": "norm_gamma", "calibration": "cms11"},
    DEFAULT: {"mechanism": "auto", "noise": "auto", "calibration": "tight", "regularization": "auto"},
    DEFAULT_DELTA: {"mechanism": "auto", "noise": "auto", "calibration": "tight", "regularization": "auto"},
}
"""CMS11's two, then ours with the same guarantee, and with a delta."""


class Learner:
    """A loss on the training rows of a split. Implements `MinimiserOracle`.

    ``tolerance`` is the solver's; the noise for it takes a hundredth of the guarantee (`ObjectivePerturbation`).
    """

    points = None

    def __init__(self, split: Split | TargetSplit, loss: Loss, tolerance: float = 1e-10) -> None:
        self.split = split
        self._tolerance = tolerance
        self._loss = loss
        self._minimisers: dict[float, Array] = {}

    def plain(self, regularization: float) -> Array:
        """Return the minimiser without privacy."""
        if regularization not in self._minimisers:
            self._minimisers[regularization] = self._solve(None, regularization)
        return self._minimisers[regularization]

    def calibrate(self, method: str, epsilon: float, regularization: float | None = None) -> Any:
        """Return one of `METHODS`, calibrated for these rows."""
        fixed = {} if regularization is None else {"regularization": regularization}
        settings = METHODS[method] | fixed
        total, dimension = self.split.rows.shape
        task = Task(self._loss, total, dimension, 1, 1.0, self._tolerance, "replace_one")
        delta = DELTA if method == DEFAULT_DELTA else 0.0
        return calibrate_mechanism(task, Guarantee(epsilon, delta), **settings)

    def run(self, mechanism: Any, seed: Any) -> Array:
        """Return the coefficients of one run of a calibrated mechanism."""
        return np.ravel(mechanism.run(self, SeededRandomness(np.random.default_rng(seed))))

    def errors(self, mechanism: Any, runs: int, seed: list[int]) -> Iterator[float]:
        """Yield the test error of each of ``runs`` noise draws."""
        for run in range(runs):
            yield self.split.error(self.run(mechanism, [*seed, run]))

    def minimise(self, linear: Array | None, regularization: float) -> Array:
        """Return the minimiser, of shape (1, d)."""
        minimiser = self.plain(regularization) if linear is None else self._solve(linear[0], regularization)
        return minimiser[np.newaxis]

    def _solve(self, linear: Array | None, regularization: float) -> Array:
        split, total = self.split, len(self.split.signs)
        problem = Problem(
            split.rows, split.signs, self._loss, regularization, total, linear=linear, offsets=split.offsets
        )
        norm = 0.0 if linear is None else float(np.linalg.norm(linear))
        minimum = min_tolerance(self._loss, regularization, dimension=split.rows.shape[1], linear_norm=norm)
        return minimise(problem, tolerance=max(self._tolerance, minimum)).coefficients


INSIDE = 1.0 - 2.0**-40
"""Factor that keeps scaled rows in the unit ball when they are rounded."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows in the unit ball, dense or CSR, with their signs."""

    rows: Any
    signs: Array
    test_rows: Any
    test_signs: Array
    offsets: None = None

    def error(self, coefficients: Array) -> float:
        """Return the share of test rows whose sign is predicted wrongly."""
        return float(np.mean((self.test_rows @ coefficients.ravel() > 0) != (self.test_signs > 0)))


@dataclass(frozen=True, eq=False)
class TargetSplit:
    """A split for regression: targets in [-1, 1] instead of signs."""

    rows: Any
    offsets: Array
    test_rows: Any
    test_targets: Array

    @property
    def signs(self) -> Array:
        """Ones: rows of a regression have no sign."""
        return np.ones(len(self.offsets))

    def error(self, coefficients: Array) -> float:
        """Return the norm of the residuals on the test rows, with predictions clamped to the targets' range."""
        predicted = np.clip(self.test_rows @ coefficients.ravel(), -1.0, 1.0)
        return float(np.linalg.norm(predicted - self.test_targets))


def folds(rows: Any, signs: Array, count: int, random: np.random.Generator) -> Iterator[Split]:
    """Yield splits in which each part is the test part once."""
    parts = np.array_split(random.permutation(len(signs)), count)
    for fold, part in enumerate(parts):
        rest = np.concatenate([other for number, other in enumerate(parts) if number != fold])
        yield Split(rows[rest], signs[rest], rows[part], signs[part])


def paper_rows(table: pa.Table, target: str, positive: str) -> tuple[Any, Array]:
    """Return CSR rows, and signs: categories one-hot, columns divided by their maximum, rows by their norm.

    Taking categories and maxima from the data is not private; the paper did it.
    """
    names = [name for name in table.column_names if name != target]
    rows = sparse.hstack([_columns(table[name]) for name in names], format="csr")
    norms = np.sqrt(rows.multiply(rows).sum(axis=1))
    rows = sparse.csr_array(sparse.diags_array(INSIDE / norms) @ rows)
    return rows, np.where(pc.equal(table[target], positive).to_numpy(), 1.0, -1.0)


def sample(load: Callable[[], tuple[Any, Array]], count: int | None, seed: Any) -> tuple[Any, Array]:
    """Return all rows, or a random sample of ``count``."""
    rows, signs = load()
    if count is None or count >= len(signs):
        return rows, signs
    indices = np.random.default_rng(seed).permutation(len(signs))[:count]
    return rows[indices], signs[indices]


def _columns(column: pa.ChunkedArray) -> Any:
    if pa.types.is_string(column.type):
        codes = pc.dictionary_encode(column.combine_chunks())
        indices = codes.indices.to_numpy()
        count = len(indices)
        cells = np.ones(count), (np.arange(count), indices)
        return sparse.csr_array(cells, (count, len(codes.dictionary)))
    values = column.to_numpy().astype(np.float64)
    maximum = values.max()
    return sparse.csr_array((values / maximum if maximum > 0 else values)[:, np.newaxis])


class PublicSpan:
    """The span of public points, CSR rows in the unit ball: TDDL neither asks nor answers anything outside it."""

    def __init__(self, points: Any) -> None:
        squares, left = np.linalg.eigh((points @ points.T).toarray())
        positive = squares > squares[-1] * len(squares) * 1e-12
        self._points, self._left, self._singular = points, left[:, positive], np.sqrt(squares[positive])

    @property
    def dimension(self) -> int:
        """Dimension of the span."""
        return int(self._singular.size)

    def parts(self, rows: Any) -> Array:
        """Return the rows' projections, of shape (rows, dimension): landmark features of the linear kernel."""
        return np.asarray((rows @ self._points.T) @ (self._left / self._singular)) * INSIDE

    def tddl(self, minimiser: Array, task: Task, guarantee: Guarantee, seed: list[int]) -> Array:
        """Run JT13 Algorithm 2 on a minimiser over all columns; return coefficients over all columns."""
        probes = self._left * self._singular
        mechanism = TestDataDependentLearner.calibrate(task, guarantee, "laplace", "jt13", points=len(probes))
        inside = self._left.T @ (self._points @ minimiser) / self._singular
        randomness = SeededRandomness(np.random.default_rng(seed))
        model = np.ravel(mechanism.run(PrecomputedMinimisers(inside[np.newaxis], probes), randomness))
        return np.asarray(self._points.T @ (self._left @ (model / self._singular)))
