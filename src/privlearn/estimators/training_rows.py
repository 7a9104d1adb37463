"""`TrainingRows`: encoded rows with their `Targets`, which are classes or numbers between public bounds.

Features have shape (n, dimension) and rows of norm at most 1. Solvers see targets as signs, offsets and weights.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, product
from privlearn.data.encoding.encoder import Bounds
from privlearn.data.sources.row_source import EncodedRows
from privlearn.features.landmarks import LandmarkFeatures, UnitLandmarkFeatures
from privlearn.release.encoders import Encoder
from privlearn.release.model import LinearModel, Model, RegressionModel, target_values
from privlearn.release.score_map import (
    MAX_TARGET,
    MechanismOutput,
    ScoreMap,
    largest_ridge,
    on_grid,
    prior_norm,
)
from privlearn.solvers.losses import LossProperties
from privlearn.solvers.problem import Features

Progress = Callable[[int, int, int], None]
"""Called with (problem, number of problems, iteration); shown on the trusted side only."""
PROGRESS_DELAY_SECONDS = 2.0

RowIndices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Targets(ABC):
    """PRIVATE: each row's answer, as losses take it, with the public properties of all answers.

    Parameters
    ----------
    score_map : ScoreMap, optional
        Public or released: offsets of the functions' scores, log-odds without any column; for numbers their centre and
        unit. By default products with the coefficients are the scores.
    """

    score_map: ScoreMap | None = field(default=None, kw_only=True)

    @abstractmethod
    def shape(self, features: int, loss: LossProperties) -> tuple[int, int]:
        """Public: return the number of problems to solve, and of the coefficients of each."""

    @property
    @abstractmethod
    def weight_bound(self) -> float:
        """Public: return the largest weight of a row."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Public: return the possible predictions, for certificates."""

    @abstractmethod
    def predict(self, scores: Array) -> NDArray[Any]:
        """Public: return the predictions for scores of shape (points, functions)."""

    @abstractmethod
    def model(self, encoder: Encoder, coefficients: Array, loss: LossProperties) -> Model:
        """Public: return the model that is released."""

    @property
    @abstractmethod
    def answers(self) -> NDArray[Any]:
        """PRIVATE: return each row's class index or scaled number."""

    @property
    @abstractmethod
    def signs(self) -> list[NDArray[np.int8]]:
        """PRIVATE: return, for each function, +1 or -1 for each row."""

    @property
    @abstractmethod
    def offsets(self) -> list[Array | None]:
        """PRIVATE: return, for each function, what the loss subtracts from the margins."""

    @property
    @abstractmethod
    def offset_bound(self) -> float:
        """Public: return a bound on the offsets of a row's scores, beyond targets in [-1, 1]."""

    @property
    @abstractmethod
    def weights(self) -> Array | None:
        """PRIVATE: return each row's weight by its answer; ``None`` if all weigh 1."""

    @abstractmethod
    def errors(self, scores: Array) -> Array:
        """PRIVATE: return the error of each row's scores, between 0 and 1."""

    @abstractmethod
    def take(self, indices: RowIndices) -> Self:
        """PRIVATE: return the targets of some of the rows."""


@dataclass(frozen=True, eq=False, repr=False)
class ClassTargets(Targets):
    """One of several classes: one function for two classes; K functions for K, each class against the rest.

    Parameters
    ----------
    labels : array
        PRIVATE: the index of each row's class.
    classes : array
        The declared ones.
    ignored : array, optional
        PRIVATE: rows whose label is not declared, where the schema allows them: they weigh 0.
    class_weights : array, optional
        Public weight of each class.
    """

    labels: NDArray[np.integer[Any]]
    classes: NDArray[Any]
    ignored: NDArray[np.bool_] | None = None
    class_weights: Array | None = None

    def shape(self, features: int, loss: LossProperties) -> tuple[int, int]:
        if loss.argument == "classes":
            return 1, features * len(self.classes)
        return len(self._positives), features

    @property
    def weight_bound(self) -> float:
        return 1.0 if self.class_weights is None else float(self.class_weights.max())

    def describe(self) -> dict[str, Any]:
        return {"classes": self.classes.tolist()}

    def predict(self, scores: Array) -> NDArray[Any]:
        return np.asarray(self.classes[_likeliest(scores)])

    def model(self, encoder: Encoder, coefficients: Array, loss: LossProperties) -> LinearModel:
        weights = None if self.class_weights is None else tuple(self.class_weights.tolist())
        return LinearModel(
            encoder, coefficients, self.classes, loss.link, class_weights=weights, score_map=self.score_map
        )

    @property
    def base(self) -> Array | None:
        """Public: return the offset of each function's score; None if there are none."""
        return None if self.score_map is None else self.score_map.offsets

    @property
    def offset_bound(self) -> float:
        return 0.0 if self.base is None else float(np.linalg.norm(self.base))

    @property
    def answers(self) -> NDArray[Any]:
        return self.labels.astype("<i8")

    @property
    def signs(self) -> list[NDArray[np.int8]]:
        return [np.where(self.labels == positive, np.int8(1), np.int8(-1)) for positive in self._positives]

    @property
    def offsets(self) -> list[Array | None]:
        if self.base is None:
            return [None] * len(self._positives)
        return [-odds * signs for odds, signs in zip(self.base, self.signs, strict=True)]

    @property
    def weights(self) -> Array | None:
        by_class = None if self.class_weights is None else self.class_weights[self.labels]
        by_label = None if self.ignored is None else (~self.ignored).astype(np.float64)
        return product(by_class, by_label)

    def errors(self, scores: Array) -> Array:
        wrong = _likeliest(scores if self.base is None else scores + self.base) != self.labels
        return np.asarray(wrong if self.ignored is None else wrong & ~self.ignored, dtype=np.float64)

    @property
    def _positives(self) -> range:
        """Return the positive class of each function."""
        return range(1, 2) if len(self.classes) == 2 else range(len(self.classes))

    def take(self, indices: RowIndices) -> Self:
        ignored = None if self.ignored is None else self.ignored[indices]
        return dataclasses.replace(self, labels=self.labels[indices], ignored=ignored)


@dataclass(frozen=True, eq=False, repr=False)
class NumberTargets(Targets):
    """Numbers, scaled from their public bounds to [-1, 1]: one function per number.

    Parameters
    ----------
    numbers : array of shape (n,) or (n, k)
        PRIVATE: one number per row, or k numbers.
    target_bounds : two floats, or a tuple of k times two
    """

    numbers: Array
    target_bounds: Bounds | tuple[Bounds, ...]

    weight_bound: ClassVar[float] = 1.0
    weights: ClassVar[None] = None

    def shape(self, features: int, loss: LossProperties) -> tuple[int, int]:
        return len(self._columns), features

    def describe(self) -> dict[str, Any]:
        return {"target_bounds": np.array(self.target_bounds).tolist()}

    def predict(self, scores: Array) -> NDArray[Any]:
        return target_values(self._in_bounds(scores), self.target_bounds)

    def _in_bounds(self, scores: Array) -> Array:
        return scores if self.score_map is None else self.score_map.apply(scores)

    def model(self, encoder: Encoder, coefficients: Array, loss: LossProperties) -> RegressionModel:
        return RegressionModel(encoder, coefficients, self.target_bounds, score_map=self.score_map)

    @property
    def offset_bound(self) -> float:
        return 0.0 if self.score_map is None else MAX_TARGET - 1.0

    @property
    def answers(self) -> NDArray[Any]:
        return self.numbers.astype("<f8")

    @property
    def signs(self) -> list[NDArray[np.int8]]:
        return [np.ones(len(self.numbers), dtype=np.int8)] * len(self._columns)

    @property
    def offsets(self) -> list[Array | None]:
        if self.score_map is None:
            return list(self._columns)
        offsets, stretch = self.score_map.offsets, self.score_map.stretches
        with np.errstate(over="ignore"):  # a warning would depend on the numbers; infinite ones are cut, too
            return [
                np.clip((column - offset) / factor, -MAX_TARGET, MAX_TARGET)
                for column, offset, factor in zip(self._columns, offsets, stretch, strict=True)
            ]

    @property
    def values(self) -> list[Array]:
        """PRIVATE: return each row's numbers in their own unit, one array per number."""
        return [
            np.ascontiguousarray(column)
            for column in np.atleast_2d(target_values(np.column_stack(self._columns), self.target_bounds).T)
        ]

    def errors(self, scores: Array) -> Array:
        """PRIVATE: return half the absolute error; the mean of several numbers."""
        apart = np.abs(np.clip(self._in_bounds(scores), -1.0, 1.0) - np.column_stack(self._columns))
        return np.asarray(np.minimum(apart / 2.0, 1.0).mean(axis=1))

    @property
    def _columns(self) -> list[Array]:
        return [np.ascontiguousarray(column) for column in np.atleast_2d(self.numbers.T)]

    def take(self, indices: RowIndices) -> Self:
        return dataclasses.replace(self, numbers=self.numbers[indices])


@dataclass(frozen=True, eq=False, repr=False)
class TrainingRows:
    """PRIVATE: rows as features of norm at most 1, with their answers and public properties.

    Parameters
    ----------
    features : array, CSR matrix or EncodedRows
        Or, before a kernel has lifted them, the objects that it reads.
    encoder : Encoder, optional
        ``None`` for objects that only a kernel can read.
    targets : Targets
    total : int
        Number of records, or of persons where their rows are averaged; the public number once a relation is known.
    person_weights : array, optional
        Share of each row in its person, where rows are averaged: 1/m, or its share of the person's weights.
    persons : array of int, optional
        Number of each row's person, from 0, where rows are averaged and in memory.
    relative_weights : array, optional
        Weight of each row divided by the public cap of weights, in [0, 1].
    row_weight_bound : float
        Public: that cap, in units of the mean weight; 1 without weights.
    rows_per_person : int
        Maximum number of records of one person.
    landmarks : LandmarkFeatures, optional
        The features, if they come from public points.
    points : array, optional
        Public: the features of those points, one row per point.
    prior : array, optional
        Public: coefficients of a model that regularization pulls towards, one line per problem.
    scales : array, optional
        Public: what each feature was multiplied by, at most 1; coefficients of the model are multiplied by it too.
    """

    features: Features
    encoder: Encoder | None
    targets: Targets
    total: int
    person_weights: Array | None = None
    rows_per_person: int = 1
    landmarks: LandmarkFeatures | UnitLandmarkFeatures | None = None
    points: Array | None = None
    prior: Array | None = None
    scales: Array | None = None
    persons: NDArray[np.int64] | None = None
    relative_weights: Array | None = None
    row_weight_bound: float = 1.0

    @property
    def on_cluster(self) -> bool:
        """Return whether only the workers of a cluster see the rows."""
        return getattr(self.features, "on_cluster", False)

    @property
    def largest_ridge(self) -> float:
        """Public: return the largest weight of a coefficient in the regularizer."""
        return largest_ridge(self.scales)

    @property
    def prior_norm(self) -> float:
        """Public: return the largest norm of a line of `prior`, which bounds the scores of rows."""
        return prior_norm(self.prior)

    @property
    def dimension(self) -> int:
        """Public: return the number of features; 1 for objects, which have none."""
        return 1 if isinstance(self.features, list) else int(self.features.shape[1])

    @property
    def weights(self) -> Array | None:
        """Return each row's weight in units of the mean: by its answer, its share of its person, and its own."""
        own = self.relative_weights
        return product(
            self.targets.weights, self.person_weights, None if own is None else own * self.row_weight_bound
        )

    @property
    def counted(self) -> Array | None:
        """Return each row's weight in counts, of which a person's add up to at most 1; ``None`` if all are 1."""
        return product(self.person_weights, self.relative_weights)

    def model(self, released: Array, loss: LossProperties, step: float | None) -> Model:
        """Public: return the model of what the mechanism released, numbers on a grid of this step if there is one."""
        encoder = cast(Encoder, self.encoder)
        if self.landmarks is not None:
            return self.targets.model(encoder, self.landmarks.kernel_coefficients(released), loss)
        if self.prior is None and self.scales is None:
            return self.targets.model(encoder, released, loss)
        prior = self.prior if self.prior is None or step is None else on_grid(self.prior, step)
        output = MechanismOutput(released, prior, self.scales)
        return dataclasses.replace(
            self.targets.model(encoder, output.model_coefficients, loss), output=output
        )

    def with_score_map(self, score_map: ScoreMap | None) -> TrainingRows:
        """Return the rows with offsets and units of scores, which are public or released."""
        return dataclasses.replace(self, targets=dataclasses.replace(self.targets, score_map=score_map))

    def take(self, indices: RowIndices, expected: int | None = None) -> TrainingRows:
        """Return some of the rows as a table; ``expected`` replaces their number where that is private."""
        persons = None if self.persons is None else np.unique(self.persons[indices], return_inverse=True)[1]
        count = len(indices) if persons is None else max(1, int(persons.max(initial=-1)) + 1)
        return dataclasses.replace(
            self,
            features=self.features.take(indices)
            if isinstance(self.features, EncodedRows)
            else self.features[indices],
            targets=self.targets.take(indices),
            person_weights=_some(self.person_weights, indices),
            relative_weights=_some(self.relative_weights, indices),
            persons=persons,
            total=count if expected is None else expected,
        )


def _some(weights: Array | None, indices: RowIndices) -> Array | None:
    return None if weights is None else weights[indices]


def progress_display(progress: Progress | bool | None) -> Progress | None:
    """PRIVATE: return what to call after each iteration.

    By default iterations are shown in a shell on a terminal after two seconds; a notebook would store them in its file.
    """
    if progress is None and hasattr(sys, "ps1") and sys.stderr.isatty():
        start = time.monotonic() + PROGRESS_DELAY_SECONDS
        return lambda *state: show_progress(*state) if time.monotonic() >= start else None
    return show_progress if progress is True else progress or None


def show_progress(problem: int, problems: int, iteration: int) -> None:
    """PRIVATE: draw the solver's progress on standard error, on one line."""
    bar = "#" * (iteration % 40 + 1)
    text = f"solving {problem + 1} of {problems}: iteration {iteration:3d} {bar:<40}"
    sys.stderr.write(f"\r{text}")
    sys.stderr.flush()


def _likeliest(scores: Array) -> NDArray[np.intp]:
    """Return the index of each row's class."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0.0).astype(np.intp)
    return np.asarray(np.argmax(scores, axis=1))
