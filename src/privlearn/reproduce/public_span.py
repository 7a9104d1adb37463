"""Sparse rows with very many columns, seen through a few public points: TDDL asks and answers nothing outside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.oracle import Solved
from privlearn.mechanisms.release.tddl import TestDataDependentLearner
from privlearn.mechanisms.task import Task
from privlearn.randomness import SeededRandomness
from privlearn.reproduce.learners import INSIDE


class PublicSpan:
    """The span of public points, CSR rows in the unit ball."""

    def __init__(self, points: Any) -> None:
        squares, left = np.linalg.eigh((points @ points.T).toarray())
        kept = squares > squares[-1] * len(squares) * 1e-12
        self._points, self._left, self._singular = points, left[:, kept], np.sqrt(squares[kept])

    @property
    def dimension(self) -> int:
        return int(self._singular.size)

    def parts(self, rows: Any) -> Array:
        """The rows' parts in the span: landmark features of the linear kernel."""
        return np.asarray((rows @ self._points.T) @ (self._left / self._singular)) * INSIDE

    def tddl(self, minimiser: Array, task: Task, promise: Guarantee, seed: list[int]) -> Array:
        """JT13 Algorithm 2 on a minimiser over all columns; so are the coefficients that it returns."""
        probes = self._left * self._singular
        mechanism = TestDataDependentLearner.calibrate(task, promise, "laplace", "jt13", points=len(probes))
        inside = self._left.T @ (self._points @ minimiser) / self._singular
        randomness = SeededRandomness(np.random.default_rng(seed))
        model = np.ravel(mechanism.run(Solved(inside[np.newaxis], probes), randomness))
        return np.asarray(self._points.T @ (self._left @ (model / self._singular)))
