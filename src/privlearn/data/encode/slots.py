"""Features of which each row fills a few, however many there are: lines, hats, waves, indicators of bins and of pairs.

A row has a fixed number of slots, each a place among the features and a value there; a cell that says nothing has the
value 0. So rows are CSR from the start, and nothing here grows with the number of bins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.encode.positions import Ordered, Places, between_knots, is_cyclic, knots_of
from privlearn.data.schema.columns import CategoryColumn


class Cells:
    """A column's cells: positions in [0, 1], or numbers of listed values; and where the column says anything."""

    def __init__(self, values: NDArray[Any], present: NDArray[np.bool_]) -> None:
        self.values, self.present = values, present
        self._bins: dict[int, Places] = {}

    @cached_property
    def whole(self) -> bool:
        """Whether every cell says something."""
        return bool(self.present.all())

    def part(self, rows: slice) -> Cells:
        return Cells(self.values[rows], self.present[rows])

    def bins(self, size: int) -> Places:
        """The bin of each position, of so many; the number of a listed value is its own. Pairs ask again and again."""
        if size not in self._bins:
            self._bins[size] = _bin_of(self.values, size)
        return self._bins[size]


Slots = list[tuple[Places, NDArray[Any]]]
"""A place and a value for each row, once per slot; a truth value stands for 1 or 0."""


class Piece(ABC):
    """Neighbouring features that belong together, of norm at most 1.

    Attributes
    ----------
    width : int
        Number of features.
    count : int
        Number of slots.
    columns : tuple of str
        Those whose cells decide the values.
    """

    width: int
    count: int = 1
    columns: tuple[str, ...]

    @property
    @abstractmethod
    def feature_names(self) -> list[str]: ...

    @abstractmethod
    def slots(self, cells: Mapping[str, Cells]) -> Slots:
        """In ascending order of their places, row by row: scipy may add another order up in another way."""


class Line(Piece):
    """The position itself, in [-1, 1]: a trend at the price of one coefficient, which survives much noise."""

    width = 1

    def __init__(self, name: str) -> None:
        self._name, self.columns = name, (name,)

    @property
    def feature_names(self) -> list[str]:
        return [self._name]

    def slots(self, cells: Mapping[str, Cells]) -> Slots:
        values, present = cells[self._name].values, cells[self._name].present
        return [(np.zeros(len(values), dtype=np.int64), np.where(present, 2.0 * values - 1.0, 0.0))]


class Waves(Piece):
    """Sine and cosine of a position along a period."""

    width = count = 2

    def __init__(self, name: str) -> None:
        self._name, self.columns = name, (name,)

    @property
    def feature_names(self) -> list[str]:
        return [f"{self._name} sine", f"{self._name} cosine"]

    def slots(self, cells: Mapping[str, Cells]) -> Slots:
        values, present = cells[self._name].values, cells[self._name].present
        angle = 2.0 * np.pi * values
        places = np.zeros(len(values), dtype=np.int64)
        return [
            (places, np.where(present, np.sin(angle), 0.0)),
            (places + 1, np.where(present, np.cos(angle), 0.0)),
        ]


class Hats(Piece):
    """The two hat functions, on equally spaced knots, between whose tops a position lies."""

    count = 2

    def __init__(self, name: str, knots: int, cyclic: bool) -> None:
        self._name, self.columns, self.width, self._cyclic = name, (name,), knots, cyclic

    @property
    def feature_names(self) -> list[str]:
        return [f"{self._name}[{place}]" for place in range(self.width)]

    def slots(self, cells: Mapping[str, Cells]) -> Slots:
        values, present = cells[self._name].values, cells[self._name].present
        left, right, fraction = between_knots(values, self.width, self._cyclic)
        turned = (
            left > right
        )  # from a period's last knot to its first: slots are in the order of their places
        first, second = np.where(turned, fraction, 1.0 - fraction), np.where(turned, 1.0 - fraction, fraction)
        return [
            (np.minimum(left, right), np.where(present, first, 0.0)),
            (np.maximum(left, right), np.where(present, second, 0.0)),
        ]


class Listed(Piece):
    """The indicator of a value in a public list."""

    def __init__(self, name: str, column: CategoryColumn) -> None:
        self._name, self.columns, self._column = name, (name,), column
        self.width = len(column.values) + (column.unknown == "other")

    @property
    def feature_names(self) -> list[str]:
        names = [f"{self._name}={value}" for value in self._column.values]
        return [*names, f"{self._name}: other"] if self._column.unknown == "other" else names

    def slots(self, cells: Mapping[str, Cells]) -> Slots:
        values, present = cells[self._name].values, cells[self._name].present
        return [(values, present)]


class Cut(Piece):
    """The indicator of a column's bin, or of a pair's cell: of the bins of each of its columns.

    Parameters
    ----------
    sizes : dict of str to int
        Each column's number of bins; that of its values, where it is a list.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes, self.columns = dict(sizes), tuple(sizes)
        self.width = int(np.prod(list(self._sizes.values())))

    @property
    def feature_names(self) -> list[str]:
        name, shape = " x ".join(self._sizes), tuple(self._sizes.values())
        return [f"{name} bin {','.join(map(str, place))}" for place in np.ndindex(shape)]

    def slots(self, cells: Mapping[str, Cells]) -> Slots:
        (first, size), *others = self._sizes.items()
        places, filled = cells[first].bins(size), cells[first].present
        for name, size in others:
            places = places * np.int32(size)
            places += cells[name].bins(size)
            if not cells[name].whole:
                filled = filled & cells[name].present
        return [(places, filled)]


def _bin_of(values: NDArray[Any], size: int) -> Places:
    if values.dtype.kind == "i":
        return values.astype(np.int32)
    return np.minimum((values * size).astype(np.int32), np.int32(size - 1))


def coarse_pieces(name: str, column: Ordered | CategoryColumn) -> list[Piece]:
    """What a column becomes without fine bins: a list's indicator; or a line, and a spline beside it."""
    if isinstance(column, CategoryColumn):
        return [Listed(name, column)]
    cyclic = is_cyclic(column)
    trend: Piece = Waves(name) if cyclic else Line(name)
    return [trend] if column.encoding == "linear" else [Hats(name, knots_of(column), cyclic), trend]
