"""Describe the features of a column or of a pair of columns, without reading data.

A row of a table becomes a vector. Each column contributes groups of neighbouring features. However wide a group is, a
row has a fixed number of *entries* in it: an entry is an index within the group and a value. For n rows, an entry is
two arrays of shape (n,), and rows can be written in CSR form from the start.

Two kinds of groups exist:

- *coarse* groups describe one column: `Line`, `SineCosine`, `HatFunctions`, `CategoryIndicators`,
  `MissingIndicator`;
- *fine* groups (`BinIndicators`) are the indicators of a column's bins, or of the grid cells of a pair of columns.

Example: ``age`` lies between 0 and 100, its hat functions have 5 knots, and three rows hold 50, 60 and no value. A
reader (readers.py) turns them into positions between 0 and 1. Position 0.6 lies between knots 2 and 3, at 40 % of the
way; a missing cell has entries of value 0:

>>> cells = ColumnCells.of(np.array([0.5, 0.6, np.nan]))
>>> for index, value in HatFunctions("age", 5, is_cyclic=False).entries(cells):
...     print(index, value.round(2))
[2 2 0] [1.  0.6 0. ]
[3 3 1] [0.  0.4 0. ]
>>> cells.bins(10)
array([5, 6, 0], dtype=int32)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.schema.columns import CategoryColumn, NumberColumn, Ordered, OrdinalColumn, TextColumn

Indices = NDArray[Any]
"""Integers of shape (n,), one per row."""

Entries = list[tuple[Indices, NDArray[Any]]]
"""An index and a value for each row, once per entry; a truth value stands for 1 or 0."""


class ColumnCells:
    """PRIVATE: the cells of one column, as a reader returns them.

    Parameters
    ----------
    values : array of shape (n,)
        Positions in [0, 1], or indices of listed values; 0 where a cell is missing.
    present : array of bool of shape (n,)
        Whether a cell has a value.
    """

    def __init__(self, values: NDArray[Any], present: NDArray[np.bool_]) -> None:
        self.values, self.present = values, present
        self._bins: dict[int, Indices] = {}

    @classmethod
    def of(cls, column: NDArray[Any]) -> ColumnCells:
        """Return the cells of a reader's column, in which NaN or a negative index stands for a missing cell."""
        present = column >= 0  # False for NaN
        return cls(column if present.all() else np.where(present, column, 0), present)

    @cached_property
    def is_complete(self) -> bool:
        """Return whether no cell is missing."""
        return bool(self.present.all())

    def part(self, rows: slice) -> ColumnCells:
        """Return the cells of some rows."""
        return ColumnCells(self.values[rows], self.present[rows])

    def zero_if_missing(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values, with 0 where the cell is missing."""
        return values if self.is_complete else np.where(self.present, values, 0.0)

    def bins(self, count: int) -> Indices:
        """Return the bin of each position among `count` equal bins; the index of a listed value is its bin.

        The result is stored, because every pair with this column needs it.
        """
        if count not in self._bins:
            self._bins[count] = _bins(self.values, count)
        return self._bins[count]


def _bins(values: NDArray[Any], count: int) -> Indices:
    if values.dtype.kind == "i":
        return values.astype(np.int32)
    return np.minimum((values * count).astype(np.int32), np.int32(count - 1))


class FeatureGroup(ABC):
    """Neighbouring features that belong together.

    Attributes
    ----------
    width : int
        Number of features.
    columns : tuple of str
        The columns whose cells determine the values.
    """

    width: int
    columns: tuple[str, ...]

    @property
    @abstractmethod
    def feature_names(self) -> list[str]:
        """Return a name for each feature."""


class CoarseFeatures(FeatureGroup):
    """Features of one column, of Euclidean norm at most 1.

    Attributes
    ----------
    entries_per_row : int
    centre : float
        The number that the centred encoding subtracts from each feature.
    """

    entries_per_row: int = 1
    centre: float = 0.0

    def __init__(self, name: str) -> None:
        self.name, self.columns = name, (name,)

    @abstractmethod
    def entries(self, cells: ColumnCells) -> Entries:
        """Return the entries of each row, in ascending order of their indices.

        The order matters: scipy adds up the products of unsorted entries in an order that depends on other rows.
        """

    def write(self, cells: ColumnCells, out: Array, is_centred: bool) -> None:
        """Write all features, minus `centre` if centred, to `out` of shape (n, width); 0 where a cell is missing."""
        out[:] = -self.centre if is_centred else 0.0
        rows = np.arange(len(out))
        for index, value in self.entries(cells):
            out[rows, index] += value
        if not cells.is_complete:
            out[~cells.present] = 0.0


class Line(CoarseFeatures):
    """The position itself, from -1 to 1: a trend that costs one coefficient and therefore survives much noise."""

    width = 1

    @property
    def feature_names(self) -> list[str]:
        return [self.name]

    def entries(self, cells: ColumnCells) -> Entries:
        return [
            (np.zeros(len(cells.values), dtype=np.int64), cells.zero_if_missing(2.0 * cells.values - 1.0))
        ]


class SineCosine(CoarseFeatures):
    """Sine and cosine of a position within a period."""

    width = entries_per_row = 2

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.name} sine", f"{self.name} cosine"]

    def entries(self, cells: ColumnCells) -> Entries:
        angle = 2.0 * np.pi * cells.values
        first = np.zeros(len(angle), dtype=np.int64)
        return [
            (first, cells.zero_if_missing(np.sin(angle))),
            (first + 1, cells.zero_if_missing(np.cos(angle))),
        ]


class HatFunctions(CoarseFeatures):
    """Hat functions on equally spaced knots, which can follow any shape; a position lies between two of them."""

    entries_per_row = 2

    def __init__(self, name: str, knots: int, is_cyclic: bool) -> None:
        super().__init__(name)
        self.width, self.centre, self._is_cyclic = knots, 1.0 / knots, is_cyclic

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.name}[{knot}]" for knot in range(self.width)]

    def entries(self, cells: ColumnCells) -> Entries:
        intervals = self.width if self._is_cyclic else self.width - 1
        along = cells.values * intervals
        left = np.minimum(along.astype(np.int64), intervals - 1)
        right, fraction = left + 1, along - left
        first, second = 1.0 - fraction, fraction
        if self._is_cyclic:  # after the last knot comes the first: put entries in the order of their indices
            wraps = right == self.width
            left, right = np.where(wraps, 0, left), np.where(wraps, left, right)
            first, second = np.where(wraps, second, first), np.where(wraps, first, second)
        return [(left, cells.zero_if_missing(first)), (right, cells.zero_if_missing(second))]


class CategoryIndicators(CoarseFeatures):
    """The indicator of each listed value; with ``unknown: other`` the last one stands for all other values."""

    def __init__(self, name: str, column: CategoryColumn) -> None:
        super().__init__(name)
        self._values, self._has_other = column.values, column.unknown == "other"
        self.width = len(column.values) + self._has_other
        self.centre = 1.0 / self.width

    @property
    def feature_names(self) -> list[str]:
        names = [f"{self.name}={value}" for value in self._values]
        return [*names, f"{self.name}: other"] if self._has_other else names

    def entries(self, cells: ColumnCells) -> Entries:
        return [(cells.values, cells.present)]


class MissingIndicator(CoarseFeatures):
    """1 where the column has no cell, or one outside the list that ``unknown: zero`` accepts."""

    width = 1

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.name} missing"]

    def entries(self, cells: ColumnCells) -> Entries:
        return [(np.zeros(len(cells.values), dtype=np.int64), ~cells.present)]

    def write(self, cells: ColumnCells, out: Array, is_centred: bool) -> None:
        out[:, 0] = ~cells.present


class TextFeatures(FeatureGroup):
    """Hashed words of a text column; its reader returns them in CSR form."""

    def __init__(self, name: str, column: TextColumn) -> None:
        self.name, self.columns, self.width = name, (name,), column.features

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.name}[{bucket}]" for bucket in range(self.width)]


Bins = tuple[str, int]
"""A column, and the number of its bins."""


class BinIndicators(FeatureGroup):
    """The indicator of each bin of a column, or of each grid cell of a pair of columns.

    Parameters
    ----------
    sizes : dict of str to int
        The number of bins of each column; of a category, the number of its values.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.columns, self.width = tuple(sizes), math.prod(sizes.values())
        self.bins: list[Bins] = list(sizes.items())

    @property
    def feature_names(self) -> list[str]:
        name, shape = " x ".join(self.columns), [count for _, count in self.bins]
        return [f"{name} bin {','.join(map(str, index))}" for index in np.ndindex(*shape)]


def coarse_features(name: str, column: Ordered | CategoryColumn) -> list[CoarseFeatures]:
    """Return the coarse groups of a column: indicators of a category; hat functions and a trend of an ordered one.

    The indicator of missing cells comes last, if the schema requests it.
    """
    gaps: list[CoarseFeatures] = [MissingIndicator(name)] if column.missing == "indicator" else []
    if isinstance(column, CategoryColumn):
        return [CategoryIndicators(name, column), *gaps]
    trend: CoarseFeatures = SineCosine(name) if is_cyclic(column) else Line(name)
    if column.encoding == "linear":
        return [trend, *gaps]
    return [HatFunctions(name, knots_of(column), is_cyclic(column)), trend, *gaps]


def is_cyclic(column: Ordered) -> bool:
    """Return whether the two ends of a column's range are the same point."""
    return isinstance(column, NumberColumn) and column.period is not None


def knots_of(column: Ordered) -> int:
    """Return the number of knots; an ordinal column needs at most one for each of its values."""
    knots = column.knots
    assert isinstance(knots, int)  # `Resolution.columns_of` has replaced "auto"
    return min(knots, len(column.values)) if isinstance(column, OrdinalColumn) else knots
