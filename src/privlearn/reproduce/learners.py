"""The papers' learners, and the splits of their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from privlearn.arrays import Array
from privlearn.erm.certifiable import least_tolerance
from privlearn.erm.losses import Loss
from privlearn.erm.problem import Problem
from privlearn.erm.solve import minimise
from privlearn.estimators.plan import plan_mechanism
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.task import Task
from privlearn.randomness import SeededRandomness

DELTA = 1e-6
DEFAULT, DEFAULT_DELTA = "default", f"default, delta = {DELTA:g}"
METHODS: dict[str, dict[str, Any]] = {
    "output": {"mechanism": "output", "noise": "norm_gamma", "calibration": "cms11"},
    "objective": {"mechanism": "objective", "noise": "norm_gamma", "calibration": "cms11"},
    DEFAULT: {"mechanism": "auto", "noise": "auto", "calibration": "tight", "regularization": "auto"},
    DEFAULT_DELTA: {"mechanism": "auto", "noise": "auto", "calibration": "tight", "regularization": "auto"},
}
"""CMS11's two, then ours with the same promise, and with a delta."""


class Learner:
    """A loss on the training rows of a split. Implements `Minimises`.

    ``tolerance`` is the solver's; the noise that it costs is the promise's hundredth part (`ObjectivePerturbation`).
    """

    points = None

    def __init__(self, split: Split | TargetSplit, loss: Loss, tolerance: float = 1e-10) -> None:
        self.split = split
        self._tolerance = tolerance
        self._loss = loss
        self._minimisers: dict[float, Array] = {}

    def plain(self, regularization: float) -> Array:
        """The minimiser without privacy."""
        if regularization not in self._minimisers:
            self._minimisers[regularization] = self._solve(None, regularization)
        return self._minimisers[regularization]

    def plan(self, method: str, epsilon: float, regularization: float | None = None) -> Any:
        """One of `METHODS` calibrated for these rows."""
        settings = (
            METHODS[method]
            if regularization is None
            else METHODS[method] | {"regularization": regularization}
        )
        total, dimension = self.split.rows.shape
        task = Task(self._loss, total, dimension, 1, 1.0, self._tolerance, "replace_one")
        delta = DELTA if method == DEFAULT_DELTA else 0.0
        return plan_mechanism(task, Guarantee(epsilon, delta), **settings)

    def run(self, mechanism: Any, seed: Any) -> Array:
        """Coefficients of one run of what `plan` made."""
        return np.ravel(mechanism.run(self, SeededRandomness(np.random.default_rng(seed))))

    def errors(self, mechanism: Any, runs: int, seed: list[int]) -> Iterator[float]:
        """Test errors of so many noise draws."""
        for run in range(runs):
            yield self.split.error(self.run(mechanism, [*seed, run]))

    def minimise(self, linear: Array | None, regularization: float) -> Array:
        found = self.plain(regularization) if linear is None else self._solve(linear[0], regularization)
        return found[np.newaxis]

    def _solve(self, linear: Array | None, regularization: float) -> Array:
        split, total = self.split, len(self.split.signs)
        problem = Problem(
            split.rows, split.signs, self._loss, regularization, total, linear=linear, offsets=split.offsets
        )
        norm = 0.0 if linear is None else float(np.linalg.norm(linear))
        least = least_tolerance(self._loss, regularization, dimension=split.rows.shape[1], linear_norm=norm)
        return minimise(problem, tolerance=max(self._tolerance, least)).coefficients


INSIDE = 1.0 - 2.0**-40
"""Scaled rows stay in the unit ball when rounded."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows in the unit ball, dense or CSR, with their signs."""

    rows: Any
    signs: Array
    test_rows: Any
    test_signs: Array
    offsets: None = None

    def error(self, coefficients: Array) -> float:
        """Share of test rows whose sign is predicted wrongly."""
        return float(np.mean((self.test_rows @ coefficients.ravel() > 0) != (self.test_signs > 0)))


@dataclass(frozen=True, eq=False)
class TargetSplit:
    """The same for regression: targets in [-1, 1] instead of signs."""

    rows: Any
    offsets: Array
    test_rows: Any
    test_targets: Array

    @property
    def signs(self) -> Array:
        return np.ones(len(self.offsets))

    def error(self, coefficients: Array) -> float:
        """Norm of the residuals on the test rows, of predictions clamped to the targets' range."""
        predicted = np.clip(self.test_rows @ coefficients.ravel(), -1.0, 1.0)
        return float(np.linalg.norm(predicted - self.test_targets))


def folds(rows: Any, signs: Array, count: int, random: np.random.Generator) -> Iterator[Split]:
    """Each part is the test part once."""
    parts = np.array_split(random.permutation(len(signs)), count)
    for place, part in enumerate(parts):
        rest = np.concatenate([other for number, other in enumerate(parts) if number != place])
        yield Split(rows[rest], signs[rest], rows[part], signs[part])


def paper_rows(table: pa.Table, target: str, positive: str) -> tuple[Any, Array]:
    """Categories one-hot, each column divided by its maximum, each row by its norm; CSR rows, and signs.

    Reading categories and maxima off the data is not private; it is done because the paper did.
    """
    names = [name for name in table.column_names if name != target]
    rows = sparse.hstack([_columns(table[name]) for name in names], format="csr")
    norms = np.sqrt(rows.multiply(rows).sum(axis=1))
    rows = sparse.csr_array(sparse.diags_array(INSIDE / norms) @ rows)
    return rows, np.where(pc.equal(table[target], positive).to_numpy(), 1.0, -1.0)


def sample(load: Callable[[], tuple[Any, Array]], count: int | None, seed: Any) -> tuple[Any, Array]:
    """All rows, or so many of them."""
    rows, signs = load()
    if count is None or count >= len(signs):
        return rows, signs
    chosen = np.random.default_rng(seed).permutation(len(signs))[:count]
    return rows[chosen], signs[chosen]


def _columns(column: pa.ChunkedArray) -> Any:
    if pa.types.is_string(column.type):
        codes = pc.dictionary_encode(column.combine_chunks())
        places = codes.indices.to_numpy()
        ones = np.ones(len(places))
        return sparse.csr_array(
            (ones, (np.arange(len(places)), places)), (len(places), len(codes.dictionary))
        )
    values = column.to_numpy().astype(np.float64)
    largest = values.max()
    return sparse.csr_array((values / largest if largest > 0 else values)[:, np.newaxis])
