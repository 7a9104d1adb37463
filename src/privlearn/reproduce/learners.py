"""The papers' learners and ours, on one split: what is solved once is kept for every epsilon and every noise draw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.erm import Loss, Problem, minimise
from privlearn.erm.certifiable import least_tolerance
from privlearn.estimators.plan import plan_mechanism
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import DataOracle, Task
from privlearn.randomness import SeededRandomness
from privlearn.reproduce.splits import Split, TargetSplit

Array = NDArray[np.float64]

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
    """A loss on the training rows of a split.

    ``tolerance`` is the solver's; the noise that it costs is the promise's hundredth part (`ObjectivePerturbation`).
    """

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
        return np.ravel(mechanism.run(DataOracle(self._fit), SeededRandomness(np.random.default_rng(seed))))

    def errors(self, mechanism: Any, runs: int, seed: list[int]) -> Iterator[float]:
        """Test errors of so many noise draws."""
        for run in range(runs):
            yield self.split.error(self.run(mechanism, [*seed, run]))

    def _fit(self, linear: Array | None, regularization: float) -> Array:
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
