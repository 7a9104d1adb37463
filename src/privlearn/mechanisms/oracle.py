"""Oracles: the only access of mechanisms to rows, wherever the rows are.

Their results are exact and PRIVATE: a mechanism adds the noise, or a party does before it sends its answer. Each
mechanism uses one of them: `MinimiserOracle` for releases, `DataOracle` for parties and searches, `TableOracle` for
private bounds and lists. Noisy sums over many holders are behind `summed.NoisySums`.
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


class MinimiserOracle(Protocol):
    """Solves a task's problems."""

    @property
    @abstractmethod
    def points(self) -> Array | None:
        """Public: features of public points, one row per point, for mechanisms that answer at them."""

    @abstractmethod
    def minimise(self, linear: Array | None, regularization: float) -> Array:
        """PRIVATE: return the certified minimisers, one row per problem, to the task's tolerance.

        Parameters
        ----------
        linear : array of shape (problems, dimension), optional
            Linear term added to each problem: the noise of objective perturbation.
        regularization : float
            As chosen by the mechanism.
        """


class DataOracle(MinimiserOracle, Protocol):
    """Everything that mechanisms compute from the rows of a task."""

    @property
    @abstractmethod
    def total(self) -> int:
        """Public: number of records, or of persons."""

    @abstractmethod
    def gradients(self, coefficients: Array) -> Array:
        """PRIVATE: return the sum of the losses' gradients at coefficients, one row per problem."""

    @abstractmethod
    def second_moments(self) -> Array:
        """PRIVATE: return the sum of x x' over the rows, each times its weight."""

    @abstractmethod
    def mistakes(self, coefficients: Array) -> float:
        """PRIVATE: return the number of rows predicted wrongly; one record changes it by at most 1."""


@dataclass(frozen=True, eq=False, repr=False)
class PrecomputedMinimisers:
    """Minimisers computed before, for several draws of noise. Implements `MinimiserOracle`."""

    minimisers: Array
    points: Array | None = None

    def minimise(self, linear: Array | None, regularization: float) -> Array:
        return self.minimisers


@dataclass(frozen=True, eq=False, repr=False)
class Sides:
    """Numbers of cells below and above each of several numbers, and in total, without missing cells."""

    below: Counts
    above: Counts
    cells: int


@dataclass(frozen=True, eq=False, repr=False)
class Histogram:
    """Distinct values of a column and their numbers of cells, without missing cells."""

    values: list[Value]
    counts: Counts


class ColumnOracle(ABC):
    """A column of numbers."""

    @abstractmethod
    def sides(self, numbers: Array) -> Sides:
        """PRIVATE: return how many cells lie on either side of each number."""

    @abstractmethod
    def beyond(self, origin: float, side: str = "both") -> ColumnOracle:
        """Return the column's distances from an origin: upwards, downwards, or in both directions.

        Parameters
        ----------
        origin : float
        side : {"both", "upper", "lower"}
        """


class TableOracle(ABC):
    """Raw cells, from which private bounds and lists are computed."""

    @abstractmethod
    def numbers(self, column: str) -> ColumnOracle:
        """Return a column of numbers."""

    @abstractmethod
    def histogram(self, column: str) -> Histogram:
        """PRIVATE: return the values of a column of categories and their counts."""


class Cells(ColumnOracle):
    """Numbers in memory, NaN where one is missing."""

    def __init__(self, cells: Array) -> None:
        self._cells = cells

    def sides(self, numbers: Array) -> Sides:
        ordered = self._in_order
        above = len(ordered) - np.searchsorted(ordered, numbers, side="right")
        return Sides(np.searchsorted(ordered, numbers, side="left"), above, len(ordered))

    def beyond(self, origin: float, side: str = "both") -> Cells:
        with np.errstate(over="ignore"):  # an overflowing distance counts as infinite
            apart = self._cells - origin
        return Cells(np.abs(apart) if side == "both" else apart if side == "upper" else -apart)

    @cached_property
    def _in_order(self) -> Array:
        return np.sort(self._cells[~np.isnan(self._cells)])
