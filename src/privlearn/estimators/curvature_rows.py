"""The sums that noisy curvature is made of, over rows in memory: exact, whatever the order of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encode.arrays import blocks
from privlearn.erm.losses import Loss
from privlearn.estimators.goal import ClassGoal, TrainingRows
from privlearn.mechanisms.statistics.curvature import Curvatures, NoisyCurvature

UNIT = 2.0**13
"""Factors are cut, towards 0, to multiples of 1 / UNIT: products are whole multiples of 1 / UNIT^2, and so are their
sums, which floating point holds exactly for fewer than 2^27 rows. Cutting makes no factor longer."""


class CurvatureRows(Curvatures):
    """PRIVATE: rows under a release's task.

    A record's Hessian, and its gradient's outer product, are sums of products z z' of factors z that follow from that
    record alone; their squared lengths add up to at most 1 once they are divided by the mechanism's bounds.
    """

    def __init__(self, rows: TrainingRows, mechanism: NoisyCurvature) -> None:
        self._features: Any = rows.features
        self._task = mechanism.task
        self._bounds = np.sqrt([mechanism.hessian_bound, mechanism.gradient_bound])
        count = rows.features.shape[0]
        self._weights = np.ones(count) if rows.weights is None else rows.weights
        if self._task.classes:
            self._labels = cast(ClassGoal, rows.goal).labels
        else:
            self._signs = rows.goal.signs[0]
            offsets = rows.goal.offsets[0]
            self._offsets = np.zeros(count) if offsets is None else offsets

    def sums(self, coefficients: Array) -> tuple[Array, Array]:
        hessian, gradients = np.zeros((2, self._task.dimension, self._task.dimension))
        factors_of = self._of_classes if self._task.classes else self._of_margin
        for part in blocks(len(self._weights)):
            block = self._features[part]
            features = block if isinstance(block, np.ndarray) else block.toarray()
            # a sum over each row alone: the bits of a matrix product may depend on the number of rows
            scores = np.einsum("ij,kj->ik", features, coefficients)
            slope, *curvatures = factors_of(part, scores)
            for factor in curvatures:
                _add_products(factor / self._bounds[0], features, hessian)
            _add_products(slope / self._bounds[1], features, gradients)
        return hessian / UNIT**2, gradients / UNIT**2

    def _of_margin(self, part: slice, scores: Array) -> Iterator[Array]:
        """What multiplies each row in its gradient, then in the factors of its Hessian: here one number."""
        loss, weights = cast(Loss, self._task.loss), self._weights[part]
        margins = self._signs[part] * scores[:, 0] - self._offsets[part]
        yield (weights * np.clip(loss.derivative(margins), -loss.lipschitz, loss.lipschitz))[:, np.newaxis]
        yield np.sqrt(weights * np.minimum(loss.curvature(margins), loss.smoothness))[:, np.newaxis]

    def _of_classes(self, part: slice, scores: Array) -> Iterator[Array]:
        """The same for softmax, a number per class: diag(p) - p p' = sum over k of p_k (e_k - p) (e_k - p)'."""
        weights = self._weights[part, np.newaxis]
        powers = np.exp(scores - np.max(scores, axis=1, keepdims=True))
        chances = powers / np.einsum("ik->i", powers)[:, np.newaxis]
        yield weights * (chances - np.eye(self._task.classes)[self._labels[part]])
        for number, corner in enumerate(np.eye(self._task.classes)):
            yield np.sqrt(weights * chances[:, number, np.newaxis]) * (corner - chances)


def _add_products(factors: Array, features: Array, total: Array) -> None:
    """Add z z' of each row, where z joins the row times its factor, class by class."""
    joined = np.einsum("ik,ij->ikj", factors, features).reshape(len(features), -1)
    whole = np.trunc(joined * UNIT)
    total += whole.T @ whole
