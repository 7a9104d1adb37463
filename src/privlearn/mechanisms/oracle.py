"""The only things that touch rows while noise is around, wherever the rows are.

What they return is exact and PRIVATE: a mechanism adds the noise, or a party does before its answer leaves. Each
mechanism names the part that it uses: `Minimises` for releases, `DataOracle` for parties and searches, `TableOracle`
for bounds and lists that are bought. Noisy sums over many holders are behind `summed.NoisySums`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.schema.public import Value

Counts = NDArray[np.int64]


class Minimises(Protocol):
    """What can solve a task's problems."""

    @property
    @abstractmethod
    def points(self) -> Array | None:
        """Public: features of public points, one row per point, for mechanisms that ask about them."""

    @abstractmethod
    def minimise(self, linear: Array | None, regularization: float) -> Array:
        """PRIVATE: the minimisers, one row per problem, to the task's tolerance, certified.

        Parameters
        ----------
        linear : array of shape (problems, dimension), optional
            The linear term that each problem gets: noise, if there is any.
        regularization : float
            What the mechanism settled on.
        """


class DataOracle(Minimises, Protocol):
    """Rows under a task: everything that may be asked of them."""

    @property
    @abstractmethod
    def total(self) -> int:
        """Public: number of records, or of persons."""

    @abstractmethod
    def gradients(self, coefficients: Array) -> Array:
        """PRIVATE: the sum of the losses' gradients at coefficients, one row per problem."""

    @abstractmethod
    def second_moments(self) -> Array:
        """PRIVATE: the sum of x x' over the rows, each times its weight."""

    @abstractmethod
    def mistakes(self, coefficients: Array) -> float:
        """PRIVATE: how many rows the coefficients predict wrongly; one record changes it by at most 1."""


@dataclass(frozen=True, eq=False)
class Solved:
    """Minimisers that were found before, for several draws of noise. Implements `Minimises`."""

    minimisers: Array
    points: Array | None = None

    def minimise(self, linear: Array | None, regularization: float) -> Array:
        return self.minimisers


@dataclass(frozen=True, eq=False)
class Sides:
    """How many cells lie below and above each of some numbers, and how many there are; missing cells do not count."""

    below: Counts
    above: Counts
    cells: int


@dataclass(frozen=True, eq=False)
class Histogram:
    """The values that occur in a column, and how many cells hold each; missing cells do not count."""

    values: list[Value]
    counts: Counts


class ColumnOracle(ABC):
    """The numbers of one column."""

    @abstractmethod
    def sides(self, numbers: Array) -> Sides:
        """PRIVATE: where the cells lie, seen from each number."""

    @abstractmethod
    def beyond(self, origin: float, side: str = "both") -> ColumnOracle:
        """The column's distances from an origin: upwards, downwards, or in both directions.

        Parameters
        ----------
        origin : float
        side : {"both", "upper", "lower"}
        """


class TableOracle(ABC):
    """Raw cells: what bounds and lists are bought from."""

    @abstractmethod
    def numbers(self, column: str) -> ColumnOracle:
        """A column of numbers."""

    @abstractmethod
    def histogram(self, column: str) -> Histogram:
        """PRIVATE: what occurs in a column of categories."""


class Cells(ColumnOracle):
    """Numbers in memory, NaN where one is missing."""

    def __init__(self, cells: Array) -> None:
        self._cells = cells

    def sides(self, numbers: Array) -> Sides:
        ordered = self._ordered
        above = len(ordered) - np.searchsorted(ordered, numbers, side="right")
        return Sides(np.searchsorted(ordered, numbers, side="left"), above, len(ordered))

    def beyond(self, origin: float, side: str = "both") -> Cells:
        with np.errstate(over="ignore"):  # what is too far for a number is infinitely far, and counts as that
            apart = self._cells - origin
        return Cells(np.abs(apart) if side == "both" else apart if side == "upper" else -apart)

    @cached_property
    def _ordered(self) -> Array:
        return np.sort(self._cells[~np.isnan(self._cells)])
