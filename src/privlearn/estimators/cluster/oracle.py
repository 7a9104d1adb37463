"""The data oracle over rows on a cluster: the same questions, each the sum of what partitions answer.

Noise is added here or by whoever asks, never there: a worker is sent coefficients and gives back sums.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.erm.summed import Places, minimise_summed, minimise_summed_multinomial
from privlearn.estimators.cluster.held import HeldRows
from privlearn.estimators.cluster.partition import Partition, Setting, Share
from privlearn.estimators.cluster.rows import FeaturesOnCluster
from privlearn.estimators.goal import Progress, TrainingRows
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.mechanisms.statistics.centring import Centre
from privlearn.mechanisms.task import Task


class ClusterOracle(MemoryOracle):
    """Rows on workers, under a task; `MemoryOracle` answers there, for each partition.

    Parameters
    ----------
    rows : TrainingRows
        Whose features are `FeaturesOnCluster`.
    task : Task
    progress : callable, optional
    """

    def __init__(self, rows: TrainingRows, task: Task, progress: Progress | None = None) -> None:
        super().__init__(rows, task, progress)
        features = cast(FeaturesOnCluster, rows.features)
        self._held, self._setting = features.held, features.setting(rows.goal, rows.total)

    def gradients(self, coefficients: Array) -> Array:
        return cast(Array, self._sum(MemoryOracle.gradients, coefficients))

    def second_moments(self) -> Array:
        return cast(Array, self._sum(MemoryOracle.second_moments))

    def mistakes(self, coefficients: Array) -> float:
        return float(self._sum(MemoryOracle.mistakes, coefficients))

    def sum_of_rows(self) -> Array:
        return cast(Array, self._sum(MemoryOracle.sum_of_rows))

    def rows_within(self, centre: Centre) -> int:
        return round(float(self._sum(MemoryOracle.rows_within, centre)))

    def score_counts(self, coefficients: Array, edges: Array) -> NDArray[np.int64]:
        counts = self._sum(MemoryOracle.score_counts, coefficients, edges)
        return np.asarray(np.rint(counts), dtype=np.int64)

    def minimise(self, linear: Array | None, regularization: float) -> Array:
        if self._task.loss.sees == "classes":
            return self._minimise_together(linear, regularization)
        found = [
            minimise_summed(
                self._places(number),
                self._loss,
                regularization,
                None if linear is None else linear[number],
                self._within_reach(regularization, None if linear is None else linear[number]).tolerance,
                self._counted(number, self._task.problems),
            ).coefficients
            for number in range(self._task.problems)
        ]
        return np.array(found)

    def _minimise_together(self, linear: Array | None, regularization: float) -> Array:
        return minimise_summed_multinomial(
            self._places(0),
            self._task.classes,
            regularization,
            linear,
            self._within_reach(regularization, linear).tolerance,
            self._counted(0, 1),
        ).coefficients

    def _mass(self) -> float:
        (mass,) = self._held.total(self._setting, Partition.mass)
        return float(mass)

    def _places(self, number: int) -> Places:
        return SharesOnCluster(self._held, self._setting, Share(number, self._loss, self.total), self._rows)

    def _sum(self, answer: Any, *arguments: Any) -> Any:
        (found,) = self._held.total(self._setting, Partition.ask_oracle, self._task, answer, *arguments)
        return found


class SharesOnCluster:
    """One problem's rows on all workers. Implements `erm.summed.Places`."""

    def __init__(
        self, held: HeldRows, setting: Setting, share: Share, rows: TrainingRows, count: int | None = None
    ) -> None:
        self._held, self._setting, self._share, self._rows = held, setting, share, rows
        self.count = len(held) if count is None else count
        self.dimension = rows.dimension
        self.is_sparse = bool(rows.features.is_sparse)

    def total(self, answer: Any, *arguments: Any) -> list[Any]:
        return self._held.total(self._setting, Partition.ask_share, self._share, answer, *arguments)

    def every(self, stride: int) -> SharesOnCluster:
        kept = -(-self.count // stride)
        some = Share(
            self._share.number,
            self._share.loss,
            max(1, round(self._share.total * kept / self.count)),
            self._share.stride * stride,
        )
        return SharesOnCluster(self._held, self._setting, some, self._rows, kept)
