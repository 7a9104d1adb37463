"""Statistics that a fit releases with its model: noisy numbers of the same records, under the same guarantee.

A statistic adds noise to exact counts (`count`): sums of whole units, which do not depend on the order of rows. It is
a field of `Task` that extends `Statistic`. Costs, certificates and verification find it there; the fit runs it.
The argument for their composition: docs/theory/centring.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, whole_number
from privlearn.guarantee import Relation
from privlearn.mechanisms.noise import ADD_NOISE, coordinate_deviation
from privlearn.randomness import Randomness

UNIT = 2.0**20
"""Sums are made of whole multiples of 1 / UNIT, so that they are exact in any order, for fewer than 2^33 rows."""

_NO_CELL = -1  # of a row that is not counted


def count(cell: NDArray[np.int64], cells: int, weights: Array | None = None) -> Array:
    """PRIVATE: return the exact number of rows in each cell; rows in the cell -1 are not counted.

    Weights, which add up to at most 1 per person, are rounded down to multiples of 1 / UNIT.

    Examples
    --------
    >>> count(np.array([0, 2, 2, -1]), cells=3).tolist()
    [1.0, 0.0, 2.0]
    """
    # Down, never to the nearest: a person's weights must still add up to at most 1.
    units = np.full(len(cell), UNIT) if weights is None else np.floor(weights * UNIT)
    inside = cell > _NO_CELL
    return np.asarray(np.bincount(cell[inside], weights=units[inside], minlength=cells) / UNIT)


_NOISES = ("gaussian", "laplace")
_MAX_SCALE = 2.0**24  # beyond, counts, which are multiples of 2^-20, would not lie on the noise's grid


class Statistic(ABC):
    """Noisy numbers of a fit's records. Costs are those of one row per person; `Task` multiplies them.

    Attributes
    ----------
    released : str
        Name of the released statistic, for certificates.
    numbers : int
        Number of noisy values.
    """

    released: ClassVar[str]

    @property
    @abstractmethod
    def numbers(self) -> int: ...

    @abstractmethod
    def ratio(self, relation: Relation) -> float:
        """Return the ratio of the Gaussian mechanism that dominates it; 0 for pure noise."""

    def epsilon(self, relation: Relation) -> float:
        """Return its cost with pure noise; 0 for Gaussian noise."""
        return 0.0

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of certificates."""

    @classmethod
    @abstractmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return the statistic of a certificate: the inverse of `to_dict`."""


@dataclass(frozen=True)
class HistogramStatistic(Statistic):
    """Histograms of the records, each over public cells, with independent noise in every cell.

    **Theorem** (docs/theory/locations.md). A record counts once in each of t histograms; the averaged rows of a person
    count 1 together. So one person moves each histogram by at most S1 in L1 and S2 in L2, where S1 = 2 and S2 = sqrt(2)
    if they are replaced and S1 = S2 = 1 if not. All histograms together cost

    - Gaussian noise: a Gaussian mechanism of ratio sqrt(t) S2 / noise_scale;
    - Laplace noise: epsilon = t S1 / noise_scale, delta = 0.

    Counts are multiples of 2^-20 and lie on the noise's grid, so rounding adds nothing.

    Parameters
    ----------
    cells : tuple of int
        Number of cells of each histogram.
    noise : {"gaussian", "laplace"}
    noise_scale : float
        The same in every cell; 0 without a guarantee.
    """

    cells: tuple[int, ...]
    noise: str
    noise_scale: float

    def __post_init__(self) -> None:
        if self.noise not in _NOISES:
            raise InvalidParameter("the noise of histograms must be 'gaussian' or 'laplace'")
        if not 0.0 <= self.noise_scale < _MAX_SCALE:
            raise InvalidParameter("the noise of histograms must lie between 0 and 2^24")
        if not self.cells:
            raise InvalidParameter("there must be at least one histogram")
        for cells in self.cells:
            whole_number(cells, "cells")

    @property
    def numbers(self) -> int:
        return sum(self.cells)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in one cell."""
        return coordinate_deviation(self.noise, self.noise_scale, 1)

    def ratio(self, relation: Relation) -> float:
        if self.noise != "gaussian":
            return 0.0
        return _divide(math.sqrt(len(self.cells)) * relation.counts, self.noise_scale)

    def epsilon(self, relation: Relation) -> float:
        if self.noise == "gaussian":
            return 0.0
        return _divide(len(self.cells) * relation.gradients, self.noise_scale)

    def add_noise(self, counts: Sequence[Array], randomness: Randomness) -> list[Array]:
        """Touch the data: return noisy histograms of PRIVATE exact counts; they may be released."""
        if tuple(len(table) for table in counts) != self.cells:
            raise InvalidParameter("the histograms must have the cells that the noise was calibrated for")
        if not self.noise_scale:
            return [np.array(table) for table in counts]
        return [ADD_NOISE[self.noise](table, self.noise_scale, randomness) for table in counts]

    def to_dict(self) -> dict[str, Any]:
        return {"cells": list(self.cells), "noise": self.noise, "noise_scale": self.noise_scale}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        return cls(tuple(record["cells"]), record["noise"], float(record["noise_scale"]))


def _divide(sensitivity: float, noise_scale: float) -> float:
    """Return the cost of noise; infinite without any."""
    return sensitivity / noise_scale if noise_scale else math.inf


def scale_of_cost(noise: str, cost: float, histograms: int, relation: Relation) -> float:
    """Return the noise scale at which histograms cost a Gaussian ratio, or an epsilon of Laplace noise."""
    if noise == "gaussian":
        return math.sqrt(histograms) * relation.counts / cost
    return histograms * relation.gradients / cost


class CountsClasses(Protocol):
    """Counts records by class."""

    @abstractmethod
    def class_counts(self) -> Array:
        """PRIVATE: return the weight of the records of each class, exactly."""


@dataclass(frozen=True)
class ClassCounts(HistogramStatistic):
    """The number of records of each class, with noise.

    **Theorem**: that of `HistogramStatistic`, for one histogram. The shares are post-processing.
    """

    released: ClassVar[str] = "the shares of the classes"

    def run(self, oracle: CountsClasses, total: int, randomness: Randomness, is_exact: bool = False) -> Array:
        """Touch the data: return a positive share for each class, which may be released.

        Where the counts are known to add up to the public ``total``, they are moved to do so: each of two classes is
        then the mean of two estimates.
        """
        noisy = self.add_noise([oracle.class_counts()], randomness)[0]
        if is_exact:
            noisy = noisy - (noisy.sum() - total) / len(noisy)
        # A count that noise has drowned is taken as one deviation of the noise, and at least half a record.
        floor = max(self.deviation, 0.5)
        counts = np.clip(noisy, floor, max(floor, total))
        return np.asarray(counts / counts.sum())
