"""`MemoryOracle`: answers a mechanism's queries over rows in memory, exactly; the mechanism adds the noise.

Sums that are released with noise are sums of whole multiples of a unit: they do not depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import blocks, distances
from privlearn.data.sources.row_source import row_blocks
from privlearn.estimators.training_rows import ClassTargets, NumberTargets, Progress, TrainingRows
from privlearn.mechanisms.oracle import DataOracle
from privlearn.mechanisms.statistics.centring import Centre, Centres
from privlearn.mechanisms.statistics.locations import CountsTargets, Grid
from privlearn.mechanisms.statistics.score_counts import CountsScores
from privlearn.mechanisms.statistics.statistic import UNIT, CountsClasses, count
from privlearn.mechanisms.task import Task
from privlearn.release.encoders import RawEncoder
from privlearn.release.model import row_scores
from privlearn.solvers.losses import Loss
from privlearn.solvers.multinomial import minimise_multinomial, multinomial_gradient
from privlearn.solvers.problem import Problem, Rows
from privlearn.solvers.solve import minimise


class MemoryOracle(DataOracle, Centres, CountsClasses, CountsScores, CountsTargets):
    """Query rows in this process, under a task.

    Parameters
    ----------
    rows : TrainingRows
    task : Task
        Its loss, and what the solver has to certify.
    progress : callable, optional
    """

    def __init__(self, rows: TrainingRows, task: Task, progress: Progress | None = None) -> None:
        self._rows = rows
        self._task = task
        self._progress = progress
        self._distances: tuple[Array, Array] | None = None

    @property
    def total(self) -> int:
        return self._rows.total

    @property
    def points(self) -> Array | None:
        return self._rows.points

    def minimise(self, linear: Array | None, regularization: float) -> Array:
        if self._task.loss.argument == "classes":
            return self._minimise_together(linear, regularization)
        signs = self._rows.targets.signs
        return np.array(
            [
                self._minimiser(signs, number, None if linear is None else linear[number], regularization)
                for number in range(len(signs))
            ]
        )

    def gradients(self, coefficients: Array) -> Array:
        targets = self._rows.targets
        if self._task.loss.argument == "classes":
            margins = self._margins(coefficients.reshape(self._task.classes, -1))
            classes = cast(ClassTargets, targets)
            margins = margins if classes.base is None else margins + classes.base
            return multinomial_gradient(self._blocks, classes.labels, self._weights, margins).reshape(1, -1)
        problems = zip(targets.signs, targets.offsets, self._margins(coefficients).T, strict=True)
        return np.array([self._gradient(*problem) for problem in problems])

    def second_moments(self) -> Array:
        return self._blocks.gram(self._weights)

    def mistakes(self, coefficients: Array) -> float:
        """Return the number of wrong predictions; for numbers, absolute errors as parts of the target's range.

        A record counts at most 1; where a person's rows are averaged, all of them together do. Row weights count in
        units of their cap. Each row's part is cut to a multiple of 2^-20, so that the sum is exact in any order: sums
        of whole numbers, below 2^53 for all tables of fewer than 2^33 rows.
        """
        scores = [row_scores(block, coefficients) for _, block in row_blocks(self._rows.features)]
        parts = self._rows.targets.errors(np.concatenate(scores))
        weights = self._rows.counted
        if weights is not None:
            parts = parts * weights
        return float(np.floor(parts * UNIT).astype(np.int64).sum()) / UNIT

    def sum_of_rows(self) -> Array:
        total = np.zeros(self._without_constant, dtype=np.int64)
        for features, weights in self._dense_parts():
            # Cut towards 0: the rounding of many rows of one person must not add up.
            # Sums of whole numbers below 2^53 are exact in any order.
            total += np.trunc(features * (UNIT * weights[:, np.newaxis])).sum(axis=0).astype(np.int64)
        return np.asarray(total / UNIT)

    def rows_within(self, centre: Centre) -> float:
        inside = self._distances_from(centre.mean) <= centre.radius
        return float(count(np.where(inside, 0, -1), 1, self._rows.person_weights)[0])

    def _distances_from(self, mean: Array) -> Array:
        """PRIVATE: return all rows' distances from a mean, cached: one mean is queried with several radii."""
        if self._distances is None or self._distances[0] is not mean:
            parts = [distances(features, mean) for features, _ in self._dense_parts()]
            self._distances = mean, np.concatenate([np.zeros(0), *parts])
        return self._distances[1]

    def score_counts(self, coefficients: Array, edges: Array) -> Array:
        targets = cast(ClassTargets, self._rows.targets)
        offset = 0.0 if targets.base is None else targets.base[0]  # a public model's, next to another loss
        scores = [
            row_scores(block, coefficients)[:, 0] + offset for _, block in row_blocks(self._rows.features)
        ]
        width = len(edges) + 1
        cells = targets.labels * width + np.searchsorted(edges, np.concatenate([np.zeros(0), *scores]))
        if targets.ignored is not None:
            cells = np.where(targets.ignored, -1, cells)
        return count(cells, 2 * width, self._rows.counted).reshape(2, width)

    def class_counts(self) -> Array:
        targets = cast(ClassTargets, self._rows.targets)
        cells = targets.labels.astype(np.int64)
        if targets.ignored is not None:
            cells[targets.ignored] = -1
        return count(cells, len(targets.classes), self._rows.counted)

    def target_counts(self, grids: Sequence[Grid]) -> Array:
        columns = zip(grids, cast(NumberTargets, self._rows.targets).values, strict=True)
        return np.concatenate([grid.count(column, self._rows.counted) for grid, column in columns])

    @property
    def _without_constant(self) -> int:
        encoder = cast(RawEncoder, self._rows.encoder)
        return encoder.dimension - encoder.fit_intercept

    def _dense_parts(self) -> Iterator[tuple[Array, Array]]:
        """Yield rows without the constant feature, and how many rows each stands for: 1 except in rehearsals."""
        weights = self._rows.person_weights
        for rows, block in row_blocks(self._rows.features):
            for part in blocks(len(block)):
                features = block[part, : self._without_constant]
                yield features, np.ones(len(features)) if weights is None else weights[rows][part]

    @cached_property
    def _blocks(self) -> Rows:
        return Rows(self._rows.features, 1.0)

    @cached_property
    def _weights(self) -> Array:
        weights = self._rows.weights
        return np.ones(self._blocks.count) if weights is None else weights

    @property
    def _loss(self) -> Loss:
        return cast(Loss, self._task.loss)

    def _margins(self, coefficients: Array) -> Array:
        """Return each row's margins, computed alone: coefficients may be chosen so that the last bit decides."""
        margins = np.empty((self._blocks.count, len(coefficients)))
        for rows, block in self._blocks:
            margins[rows] = row_scores(block, coefficients)
        return margins

    def _gradient(self, signs: NDArray[np.int8], offsets: Array | None, scores: Array) -> Array:
        margins = signs * scores
        slopes = self._loss.first_derivative(margins if offsets is None else margins - offsets)
        return self._blocks.transpose_times(signs * self._weights * slopes)

    def _minimiser(
        self, signs: list[NDArray[np.int8]], number: int, linear: Array | None, regularization: float
    ) -> Array:
        rows = self._rows
        problem = Problem(
            rows.features,
            signs[number],
            self._loss,
            regularization,
            rows.total,
            rows.weights,
            linear,
            offsets=self._offsets(signs, number),
        )
        task = self._within_reach(regularization, linear)
        progress = self._progress_of(number, len(signs))
        return minimise(problem, tolerance=task.tolerance, gap=task.gap, progress=progress).coefficients

    def _offsets(self, signs: list[NDArray[np.int8]], number: int) -> Array | None:
        """Return what the loss subtracts from a problem's margins: targets, less the scores of a public model.

        With w = w0 + u, loss(sign <w, x> - target) is loss(sign <u, x> - (target - sign <w0, x>)): each row's score
        is computed by itself, so it is a public function of that row, rounding included.
        """
        own, prior = self._rows.targets.offsets[number], self._rows.prior
        if prior is None:
            return own
        scores = signs[number] * self._margins(prior[number : number + 1])[:, 0]
        return -scores if own is None else own - scores

    def _minimise_together(self, linear: Array | None, regularization: float) -> Array:
        rows, targets = self._rows, cast(ClassTargets, self._rows.targets)
        classes = len(targets.classes)
        return minimise_multinomial(
            rows.features,
            targets.labels,
            classes,
            regularization=regularization,
            total=rows.total,
            row_weights=rows.weights,
            linear=None if linear is None else linear.reshape(classes, -1),
            offsets=targets.base,
            tolerance=self._within_reach(regularization, linear).tolerance,
            progress=self._progress_of(0, 1),
        ).coefficients

    def _within_reach(self, regularization: float, linear: Array | None) -> Task:
        longest = 0.0 if linear is None else float(np.linalg.norm(linear))
        return self._task.within_reach(regularization, longest, self._mass() / self.total)

    def _mass(self) -> float:
        """Return the sum of the rows' weights."""
        weights = self._rows.weights
        return float(self._rows.features.shape[0] if weights is None else weights.sum())

    def _progress_of(self, problem: int, problems: int) -> Callable[[int, float], None] | None:
        progress = self._progress
        if progress is None:
            return None
        return lambda iteration, _: progress(problem, problems, iteration)
