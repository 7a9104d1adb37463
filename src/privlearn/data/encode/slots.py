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

from privlearn.arrays import Array, margin
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

    def kept(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The numbers, 0 where the column says nothing."""
        return numbers if self.whole else np.where(self.present, numbers, 0.0)

    def bins(self, size: int) -> Places:
        """The bin of each position, of so many; the number of a listed value is its own. Pairs ask again and again."""
        if size not in self._bins:
            self._bins[size] = _bin_of(self.values, size)
        return self._bins[size]


def cells_of(column: NDArray[Any]) -> Cells:
    """What a column's cells say, and which of them say anything."""
    present = column >= 0  # NaN is not, and neither is the place of what is not listed
    return Cells(column if present.all() else np.where(present, column, 0), present)


def divisors(coarse: Array, fine: Array | float, coarse_share: float, dimension: int) -> tuple[Array, Array]:
    """What a row's coarse features and its fine ones are multiplied with, from the squares of both.

    The coarse part gets its share of the squared norm; then the whole is brought to norm 1, or just below.
    """
    scale = np.sqrt(coarse_share / np.where(coarse > 0.0, coarse, 1.0))
    whole = coarse * scale**2 + fine
    factor = margin(dimension) / np.sqrt(np.where(whole > 0.0, whole, 1.0))
    return scale * factor, factor


Slots = list[tuple[Places, NDArray[Any]]]
"""A place and a value for each row, once per slot; a truth value stands for 1 or 0."""


class Piece(ABC):
    """Neighbouring features that belong together, of norm at most 1.

    Attributes
    ----------
    width : int
        Number of features.
    columns : tuple of str
        Those whose cells decide the values.
    """

    width: int
    columns: tuple[str, ...]

    @property
    @abstractmethod
    def feature_names(self) -> list[str]: ...


class CoarsePiece(Piece):
    """What a column becomes without fine bins; ``count`` is its number of slots."""

    count: int = 1

    @abstractmethod
    def slots(self, cells: Mapping[str, Cells]) -> Slots:
        """In ascending order of their places, row by row: scipy may add another order up in another way."""


class Line(CoarsePiece):
    """The position itself, in [-1, 1]: a trend at the price of one coefficient, which survives much noise."""

    width = 1

    def __init__(self, name: str) -> None:
        self._name, self.columns = name, (name,)

    @property
    def feature_names(self) -> list[str]:
        return [self._name]

    def slots(self, cells: Mapping[str, Cells]) -> Slots:
        column = cells[self._name]
        return [(np.zeros(len(column.values), dtype=np.int64), column.kept(2.0 * column.values - 1.0))]


class Waves(CoarsePiece):
    """Sine and cosine of a position along a period."""

    width = count = 2

    def __init__(self, name: str) -> None:
        self._name, self.columns = name, (name,)

    @property
    def feature_names(self) -> list[str]:
        return [f"{self._name} sine", f"{self._name} cosine"]

    def slots(self, cells: Mapping[str, Cells]) -> Slots:
        column = cells[self._name]
        angle = 2.0 * np.pi * column.values
        places = np.zeros(len(angle), dtype=np.int64)
        return [(places, column.kept(np.sin(angle))), (places + 1, column.kept(np.cos(angle)))]


class Hats(CoarsePiece):
    """The two hat functions, on equally spaced knots, between whose tops a position lies."""

    count = 2

    def __init__(self, name: str, knots: int, cyclic: bool) -> None:
        self._name, self.columns, self.width, self._cyclic = name, (name,), knots, cyclic

    @property
    def feature_names(self) -> list[str]:
        return [f"{self._name}[{place}]" for place in range(self.width)]

    def slots(self, cells: Mapping[str, Cells]) -> Slots:
        column = cells[self._name]
        left, right, fraction = between_knots(column.values, self.width, self._cyclic)
        first, second = 1.0 - fraction, fraction
        if self._cyclic:  # from a period's last knot to its first: slots are in the order of their places
            turned = left > right
            left, right = np.minimum(left, right), np.maximum(left, right)
            first, second = np.where(turned, second, first), np.where(turned, first, second)
        return [(left, column.kept(first)), (right, column.kept(second))]


class Listed(CoarsePiece):
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


Level = tuple[str, int]
"""A column, and into how many bins it is cut."""


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

    @property
    def levels(self) -> list[Level]:
        """The bins that a place follows from: of one column or, times their number for the second, of two."""
        return list(self._sizes.items())


def _bin_of(values: NDArray[Any], size: int) -> Places:
    if values.dtype.kind == "i":
        return values.astype(np.int32)
    return np.minimum((values * size).astype(np.int32), np.int32(size - 1))


def coarse_pieces(name: str, column: Ordered | CategoryColumn) -> list[CoarsePiece]:
    """What a column becomes without fine bins: a list's indicator; or a line, and a spline beside it."""
    if isinstance(column, CategoryColumn):
        return [Listed(name, column)]
    cyclic = is_cyclic(column)
    trend: CoarsePiece = Waves(name) if cyclic else Line(name)
    return [trend] if column.encoding == "linear" else [Hats(name, knots_of(column), cyclic), trend]
