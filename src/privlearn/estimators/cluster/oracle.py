"""`ClusterOracle`: answers a mechanism's queries by summing the answers of partitions on workers.

Noise is added by the caller, never on a worker: a worker receives coefficients and returns sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.estimators.cluster.partition import Partition, Setting, Share
from privlearn.estimators.cluster.remote_rows import RemoteRows
from privlearn.estimators.cluster.rows import FeaturesOnCluster
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.estimators.training_rows import Progress, TrainingRows
from privlearn.mechanisms.statistics.centring import Centre
from privlearn.mechanisms.statistics.locations import Grid
from privlearn.mechanisms.task import Task
from privlearn.solvers.summed import RowPartitions, minimise_summed, minimise_summed_multinomial


class ClusterOracle(MemoryOracle):
    """Query rows on workers, under a task; on each worker a `MemoryOracle` answers for its partition.

    Parameters
    ----------
    rows : TrainingRows
        With `FeaturesOnCluster`.
    task : Task
    progress : callable, optional
    """

    def __init__(self, rows: TrainingRows, task: Task, progress: Progress | None = None) -> None:
        super().__init__(rows, task, progress)
        features = cast(FeaturesOnCluster, rows.features)
        self._remote, self._setting = features.remote, features.setting(rows.targets, rows.total)

    def gradients(self, coefficients: Array) -> Array:
        return cast(Array, self._sum(MemoryOracle.gradients, coefficients))

    def second_moments(self) -> Array:
        return cast(Array, self._sum(MemoryOracle.second_moments))

    def mistakes(self, coefficients: Array) -> float:
        return float(self._sum(MemoryOracle.mistakes, coefficients))

    def sum_of_rows(self) -> Array:
        return cast(Array, self._sum(MemoryOracle.sum_of_rows))

    def rows_within(self, centre: Centre) -> float:
        return float(self._sum(MemoryOracle.rows_within, centre))

    def score_counts(self, coefficients: Array, edges: Array) -> Array:
        return cast(Array, self._sum(MemoryOracle.score_counts, coefficients, edges))

    def class_counts(self) -> Array:
        return cast(Array, self._sum(MemoryOracle.class_counts))

    def target_counts(self, grids: Sequence[Grid]) -> Array:
        return cast(Array, self._sum(MemoryOracle.target_counts, grids))

    def minimise(self, linear: Array | None, regularization: float) -> Array:
        if self._task.loss.argument == "classes":
            return self._minimise_together(linear, regularization)
        minimisers = [
            minimise_summed(
                self._partitions(number),
                self._loss,
                regularization,
                None if linear is None else linear[number],
                self._within_reach(regularization, None if linear is None else linear[number]).tolerance,
                self._progress_of(number, self._task.problems),
            ).coefficients
            for number in range(self._task.problems)
        ]
        return np.array(minimisers)

    def _minimise_together(self, linear: Array | None, regularization: float) -> Array:
        return minimise_summed_multinomial(
            self._partitions(0),
            self._task.classes,
            regularization,
            linear,
            self._within_reach(regularization, linear).tolerance,
            self._progress_of(0, 1),
        ).coefficients

    def _mass(self) -> float:
        (mass,) = self._remote.total(self._setting, Partition.mass)
        return float(mass)

    def _partitions(self, number: int) -> RowPartitions:
        return SharesOnCluster(self._remote, self._setting, Share(number, self._loss, self.total), self._rows)

    def _sum(self, answer: Any, *arguments: Any) -> Any:
        (total,) = self._remote.total(self._setting, Partition.ask_oracle, self._task, answer, *arguments)
        return total


class SharesOnCluster:
    """One problem's rows on all workers. Implements `solvers.summed.RowPartitions`."""

    def __init__(
        self, remote: RemoteRows, setting: Setting, share: Share, rows: TrainingRows, count: int | None = None
    ) -> None:
        self._remote, self._setting, self._share, self._rows = remote, setting, share, rows
        self.count = len(remote) if count is None else count
        self.dimension = rows.dimension
        self.is_sparse = bool(rows.features.is_sparse)
        self.offset_bound = rows.targets.offset_bound

    def total(self, answer: Any, *arguments: Any) -> list[Any]:
        return self._remote.total(self._setting, Partition.ask_share, self._share, answer, *arguments)

    def every(self, stride: int) -> SharesOnCluster:
        count = -(-self.count // stride)
        some = Share(
            self._share.number,
            self._share.loss,
            max(1, round(self._share.total * count / self.count)),
            self._share.stride * stride,
        )
        return SharesOnCluster(self._remote, self._setting, some, self._rows, count)
