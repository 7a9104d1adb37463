"""Encoded rows, and what is to be learnt from them: one of some classes, or a number between public bounds."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.encoder import Bounds
from privlearn.data.sources.row_source import EncodedRows
from privlearn.erm.losses import LossFacts
from privlearn.erm.problem import Features
from privlearn.features.landmarks import LandmarkFeatures
from privlearn.features.unit_landmarks import UnitLandmarkFeatures
from privlearn.release.encoders import Encoder
from privlearn.release.model import LinearModel, Model, RegressionModel, numbers_of

Progress = Callable[[int, int, int], None]
"""Called with (problem, number of problems, iteration); shown on the trusted side only."""


Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Goal(ABC):
    """PRIVATE: each row's answer, as losses take it; with the public facts about all of them."""

    @abstractmethod
    def shape(self, features: int, loss: LossFacts) -> tuple[int, int]:
        """Public: how many problems are solved, and of how many coefficients each is."""

    @property
    @abstractmethod
    def weight_bound(self) -> float:
        """Public: the most that a row counts."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Public: what may be predicted."""

    @abstractmethod
    def predicted(self, scores: Array) -> NDArray[Any]:
        """Public: what scores stand for; one row per point, one column per function."""

    @abstractmethod
    def model(self, encoder: Encoder, coefficients: Array, loss: LossFacts) -> Model:
        """Public: what is released."""

    @property
    @abstractmethod
    def answers(self) -> NDArray[Any]:
        """PRIVATE: a label's place or a scaled number for each row."""

    @property
    @abstractmethod
    def signs(self) -> list[NDArray[np.int8]]:
        """PRIVATE: +1 or -1 for each row, for each function."""

    @property
    @abstractmethod
    def offsets(self) -> list[Array | None]:
        """PRIVATE: what the loss subtracts from the margins, for each function."""

    @property
    @abstractmethod
    def weights(self) -> Array | None:
        """PRIVATE: what each row counts by its answer; ``None`` if all count 1."""

    @abstractmethod
    def errors(self, scores: Array) -> Array:
        """PRIVATE: how wrong each row's scores are, between 0 and 1."""

    @abstractmethod
    def take(self, places: Places) -> Self:
        """PRIVATE: the same for some of the rows."""


@dataclass(frozen=True, eq=False)
class ClassGoal(Goal):
    """Two classes make one function, K of them K, each one against the rest.

    Parameters
    ----------
    labels : array
        PRIVATE: the number of each row's class.
    classes : array
        The declared ones.
    ignored : array, optional
        PRIVATE: rows whose label is not declared, where the schema lets them pass: they weigh nothing.
    class_weights : array, optional
        Public weight of each class.
    """

    labels: NDArray[np.integer[Any]]
    classes: NDArray[Any]
    ignored: NDArray[np.bool_] | None = None
    class_weights: Array | None = None

    def shape(self, features: int, loss: LossFacts) -> tuple[int, int]:
        if loss.sees == "classes":
            return 1, features * len(self.classes)
        return len(self._positives), features

    @property
    def weight_bound(self) -> float:
        return 1.0 if self.class_weights is None else float(self.class_weights.max())

    def describe(self) -> dict[str, Any]:
        return {"classes": self.classes.tolist()}

    def predicted(self, scores: Array) -> NDArray[Any]:
        return np.asarray(self.classes[_likeliest(scores)])

    def model(self, encoder: Encoder, coefficients: Array, loss: LossFacts) -> LinearModel:
        weights = None if self.class_weights is None else tuple(self.class_weights.tolist())
        return LinearModel(encoder, coefficients, self.classes, loss.link, class_weights=weights)

    @property
    def answers(self) -> NDArray[Any]:
        return self.labels.astype("<i8")

    @property
    def signs(self) -> list[NDArray[np.int8]]:
        return [np.where(self.labels == positive, np.int8(1), np.int8(-1)) for positive in self._positives]

    @property
    def offsets(self) -> list[Array | None]:
        return [None] * len(self._positives)

    @property
    def weights(self) -> Array | None:
        by_class = None if self.class_weights is None else self.class_weights[self.labels]
        listed = None if self.ignored is None else (~self.ignored).astype(np.float64)
        return product(by_class, listed)

    def errors(self, scores: Array) -> Array:
        wrong = _likeliest(scores) != self.labels
        return np.asarray(wrong if self.ignored is None else wrong & ~self.ignored, dtype=np.float64)

    @property
    def _positives(self) -> range:
        """The class that each function tells from the rest."""
        return range(1, 2) if len(self.classes) == 2 else range(len(self.classes))

    def take(self, places: Places) -> Self:
        ignored = None if self.ignored is None else self.ignored[places]
        return dataclasses.replace(self, labels=self.labels[places], ignored=ignored)


@dataclass(frozen=True, eq=False)
class NumberGoal(Goal):
    """One function per number, of targets scaled from their public bounds to [-1, 1].

    Parameters
    ----------
    targets : array of shape (n,) or (n, k)
        PRIVATE: of one number, or of k.
    target_bounds : two floats, or a tuple of k times two
    """

    targets: Array
    target_bounds: Bounds | tuple[Bounds, ...]

    weight_bound: ClassVar[float] = 1.0
    weights: ClassVar[None] = None

    def shape(self, features: int, loss: LossFacts) -> tuple[int, int]:
        return len(self._columns), features

    def describe(self) -> dict[str, Any]:
        return {"target_bounds": np.array(self.target_bounds).tolist()}

    def predicted(self, scores: Array) -> NDArray[Any]:
        return numbers_of(scores, self.target_bounds)

    def model(self, encoder: Encoder, coefficients: Array, loss: LossFacts) -> RegressionModel:
        return RegressionModel(encoder, coefficients, self.target_bounds)

    @property
    def answers(self) -> NDArray[Any]:
        return self.targets.astype("<f8")

    @property
    def signs(self) -> list[NDArray[np.int8]]:
        return [np.ones(len(self.targets), dtype=np.int8)] * len(self._columns)

    @property
    def offsets(self) -> list[Array | None]:
        return list(self._columns)

    def errors(self, scores: Array) -> Array:
        """Of several numbers the mean."""
        apart = np.abs(np.clip(scores, -1.0, 1.0) - np.column_stack(self._columns))
        return np.asarray(np.minimum(apart / 2.0, 1.0).mean(axis=1))

    @property
    def _columns(self) -> list[Array]:
        return [np.ascontiguousarray(column) for column in np.atleast_2d(self.targets.T)]

    def take(self, places: Places) -> Self:
        return dataclasses.replace(self, targets=self.targets[places])


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """PRIVATE: rows as features of norm at most 1, with their answers and the public facts about them.

    Parameters
    ----------
    features : array, CSR matrix or EncodedRows
        Or, before a kernel has lifted them, the objects that it reads.
    encoder : Encoder, optional
        ``None`` for objects that only a kernel can read.
    goal : Goal
    total : int
        Number of records, or of persons where their rows are averaged; in what is learnt from, the public number.
    person_weights : array, optional
        1/m for each of a person's m rows, where they are averaged.
    rows_per_person : int
        How many records one person may own.
    landmarks : LandmarkFeatures, optional
        The features, if they come from public points.
    points : array, optional
        Public: the features of those points, one row per point.
    """

    features: Features
    encoder: Encoder | None
    goal: Goal
    total: int
    person_weights: Array | None = None
    rows_per_person: int = 1
    landmarks: LandmarkFeatures | UnitLandmarkFeatures | None = None
    points: Array | None = None

    @property
    def dimension(self) -> int:
        """Public: number of features; of objects, which have none, 1."""
        return 1 if isinstance(self.features, list) else int(self.features.shape[1])

    @property
    def weights(self) -> Array | None:
        """What each row counts: by its answer, times its share of its person."""
        return product(self.goal.weights, self.person_weights)

    def model(self, coefficients: Array, loss: LossFacts) -> Model:
        """Public: what is released, of coefficients over the features."""
        if self.landmarks is not None:
            coefficients = self.landmarks.kernel_coefficients(coefficients)
        return self.goal.model(cast(Encoder, self.encoder), coefficients, loss)

    def take(self, places: Places, expected: int | None = None) -> TrainingRows:
        """Some of the rows, as if there were no others; so many are expected where their number is private."""
        weights = None if self.person_weights is None else self.person_weights[places]
        counted = len(places) if weights is None else max(1, round(float(weights.sum())))
        return dataclasses.replace(
            self,
            features=self.features.take(places)
            if isinstance(self.features, EncodedRows)
            else self.features[places],
            goal=self.goal.take(places),
            person_weights=weights,
            total=counted if expected is None else expected,
        )


def product(first: Array | None, second: Array | None) -> Array | None:
    """Of the weights that are given."""
    if first is None or second is None:
        return second if first is None else first
    return first * second


def _likeliest(scores: Array) -> NDArray[np.intp]:
    """The place of each row's class."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0.0).astype(np.intp)
    places: NDArray[np.intp] = np.argmax(scores, axis=1)
    return places
