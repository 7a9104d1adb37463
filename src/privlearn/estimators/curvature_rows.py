"""Sums of Hessians and squared gradients over rows in memory, exact in any order of the rows; noise comes later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import blocks
from privlearn.estimators.training_rows import ClassTargets, TrainingRows
from privlearn.mechanisms.statistics.curvature import Curvatures, NoisyCurvature
from privlearn.solvers.losses import Loss

UNIT = 2.0**13
"""Factors are cut, towards 0, to multiples of 1 / UNIT: products are whole multiples of 1 / UNIT^2, and so are their
sums, which floating point holds exactly for fewer than 2^27 rows. Cutting makes no factor longer."""


class CurvatureRows(Curvatures):
    """PRIVATE: rows under a release's task.

    A record's Hessian, and its gradient's outer product, are sums of products z z' of factors z that follow from that
    record alone; their squared lengths add up to at most 1 once they are divided by the mechanism's bounds. The same
    holds for a person whose rows are averaged: the Hessian is the mean of theirs, and the gradient, whose outer product
    is taken, is the sum of their weighted gradients, which makes intervals robust against clusters.
    """

    def __init__(self, rows: TrainingRows, mechanism: NoisyCurvature) -> None:
        self._features: Any = rows.features
        self._task = mechanism.task
        self._bounds = np.sqrt([mechanism.hessian_bound, mechanism.gradient_bound])
        count = rows.features.shape[0]
        self._weights = np.ones(count) if rows.weights is None else rows.weights
        self._persons = rows.persons
        if self._task.classes:
            targets = cast(ClassTargets, rows.targets)
            self._labels = targets.labels
            self._base = 0.0 if targets.base is None else targets.base
        else:
            self._signs = rows.targets.signs[0]
            offsets = rows.targets.offsets[0]
            self._offsets = np.zeros(count) if offsets is None else offsets

    def sums(self, coefficients: Array) -> tuple[Array, Array]:
        hessian, gradients = np.zeros((2, self._task.dimension, self._task.dimension))
        factors_of = self._of_classes if self._task.classes else self._of_margin
        persons = None if self._persons is None else int(self._persons.max(initial=-1)) + 1
        of_persons = np.zeros((persons or 0, self._task.dimension))
        for part in blocks(len(self._weights)):
            block = self._features[part]
            features = block if isinstance(block, np.ndarray) else block.toarray()
            # a sum over each row alone: the bits of a matrix product may depend on the number of rows
            scores = np.einsum("ij,kj->ik", features, coefficients)
            first, *seconds = factors_of(part, scores)
            for factor in seconds:
                _add_outer(_join_factors(factor / self._bounds[0], features), hessian)
            rows = _join_factors(first / self._bounds[1], features)
            if self._persons is None:
                _add_outer(rows, gradients)
            else:
                np.add.at(of_persons, self._persons[part], rows)
        # Rounding must not make a person's gradient longer than its bound.
        _add_outer(of_persons / np.maximum(np.linalg.norm(of_persons, axis=1, keepdims=True), 1.0), gradients)
        return hessian / UNIT**2, gradients / UNIT**2

    def _of_margin(self, part: slice, scores: Array) -> Iterator[Array]:
        """Yield the factor of each row in its gradient, then those of its Hessian, of shape (rows, 1)."""
        loss, weights = cast(Loss, self._task.loss), self._weights[part]
        margins = self._signs[part] * scores[:, 0] - self._offsets[part]
        yield (weights * np.clip(loss.first_derivative(margins), -loss.lipschitz, loss.lipschitz))[
            :, np.newaxis
        ]
        yield np.sqrt(weights * np.minimum(loss.second_derivative(margins), loss.smoothness))[:, np.newaxis]

    def _of_classes(self, part: slice, scores: Array) -> Iterator[Array]:
        """Yield the same for softmax, of shape (rows, classes): diag(p) - p p' = sum_k p_k (e_k - p) (e_k - p)'."""
        weights, scores = self._weights[part, np.newaxis], scores + self._base
        powers = np.exp(scores - np.max(scores, axis=1, keepdims=True))
        chances = powers / np.einsum("ik->i", powers)[:, np.newaxis]
        yield weights * (chances - np.eye(self._task.classes)[self._labels[part]])
        for number, corner in enumerate(np.eye(self._task.classes)):
            yield np.sqrt(weights * chances[:, number, np.newaxis]) * (corner - chances)


def _join_factors(factors: Array, features: Array) -> Array:
    """Return each row times its factors, of shape (rows, classes * features)."""
    return np.asarray(np.einsum("ik,ij->ikj", factors, features).reshape(len(features), -1))


def _add_outer(vectors: Array, total: Array) -> None:
    """Add z z' of each vector z, cut to the grid."""
    whole = np.trunc(vectors * UNIT)
    total += whole.T @ whole
