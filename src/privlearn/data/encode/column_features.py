"""Groups of features: what one column of the table becomes, of norm at most 1, by public settings only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.encode.arrays import blocks
from privlearn.data.encode.column_cells import MISSING, UNKNOWN, codes, texts
from privlearn.data.encode.plain_cells import ListedValues, plain_number
from privlearn.data.encode.positions import (
    Ordered,
    between_knots,
    is_cyclic,
    knots_of,
    ordered_cells,
    positions,
    refuse_missing,
    refuse_unknown,
)
from privlearn.data.schema.columns import (
    AnyColumn,
    CategoryColumn,
    NumberColumn,
    OrdinalColumn,
    TextColumn,
)
from privlearn.data.sources.table import as_array, safely
from privlearn.heavy import pc, sparse


def spline_basis(position: NDArray[np.float64], knots: int, cyclic: bool = False) -> NDArray[np.float64]:
    """Hat functions on equally spaced knots, centred, and the position itself in [-1, 1]; or its sine and cosine.

    The hats can follow any shape; the straight column carries a trend at the price of one coefficient, which is what
    survives when the noise is large.

    Parameters
    ----------
    position : array of shape (n,)
        Numbers in [0, 1].
    knots : int
        Number of knots, at least 2.
    cyclic : bool, default=False
        Whether 0 and 1 are one.

    Returns
    -------
    array of shape (n, knots + 1), or (n, knots + 2) if cyclic
    """
    left, right, fraction = between_knots(position, knots, cyclic)
    basis = np.empty((len(position), knots + 1 + cyclic))
    basis[:, :knots] = -1.0 / knots
    rows = np.arange(len(position))
    basis[rows, left] += 1.0 - fraction
    basis[rows, right] += fraction
    basis[:, knots:] = trend(position, cyclic)
    return basis


def trend(position: NDArray[np.float64], cyclic: bool) -> NDArray[np.float64]:
    """The position in [-1, 1], or its sine and cosine, one column each."""
    if not cyclic:
        return (2.0 * position - 1.0)[:, np.newaxis]
    angle = 2.0 * np.pi * position[:, np.newaxis]
    return np.hstack([np.sin(angle), np.cos(angle)])


class Group(ABC):
    """One column's features.

    Attributes
    ----------
    name : str
        The column.
    width : int
        Number of features.
    """

    name: str
    width: int

    @property
    def columns(self) -> tuple[str, ...]:
        """Those whose cells decide the values."""
        return (self.name,)

    @property
    @abstractmethod
    def feature_names(self) -> list[str]: ...

    @abstractmethod
    def cells(self, column: Any) -> Any:
        """Touch the data: the column's cells, checked, in the few numbers that say all that is encoded."""

    def cell(self, cell: Any) -> Any:
        """The same of a column of one cell."""
        return self.cells(as_array([cell], f"column {self.name!r}"))


class DenseGroup(Group):
    """Features that are mostly not zero."""

    @abstractmethod
    def cells(self, column: Any) -> NDArray[Any]:
        """Touch the data: the column's cells, checked, as one number each: a position, NaN where it is missing; or the
        place of a listed value, negative where there is none."""

    @abstractmethod
    def expand(self, cells: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Write the features of the cells into ``out``, of shape (n, width)."""


class OrderedGroup(DenseGroup):
    """A number, a date or a value of an ordered list, by its place between two ends: a spline, or one coordinate."""

    def __init__(self, name: str, column: Ordered) -> None:
        self.name = name
        self._column = column
        self._listed = ListedValues(column.values) if isinstance(column, OrdinalColumn) else None
        self.width = self._functions(np.zeros(1)).shape[1]

    @property
    def feature_names(self) -> list[str]:
        if self.width == 1:
            return [self.name]
        return [f"{self.name}[{place}]" for place in range(self.width)]

    def cells(self, column: Any) -> NDArray[np.float64]:
        return positions(self._column, ordered_cells(self.name, self._column, column))

    def cell(self, cell: Any) -> NDArray[np.float64]:
        plain: float | None = None
        if isinstance(self._column, NumberColumn):
            plain = plain_number(cell)
        elif self._listed is not None:
            plain = self._listed.place(cell)
        if plain is None:
            return np.asarray(super().cell(cell))
        return positions(self._column, np.array([plain], dtype=np.float64))

    def expand(self, cells: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        missing = np.isnan(cells)
        out[:] = self._functions(np.where(missing, 0.0, cells))
        out[missing] = 0.0

    def _functions(self, position: NDArray[np.float64]) -> NDArray[np.float64]:
        cyclic = is_cyclic(self._column)
        if self._column.encoding == "linear":
            return trend(position, cyclic)
        return spline_basis(position, knots_of(self._column), cyclic)


class CategoryGroup(DenseGroup):
    """A category as its indicator vector minus 1/k in every coordinate (squared norm 1 - 1/k).

    With ``unknown: other`` the last of the k coordinates stands for all values that are not listed.
    """

    def __init__(self, name: str, column: CategoryColumn) -> None:
        self.name = name
        self._column = column
        self._listed = ListedValues(column.values)
        self.width = len(column.values) + (column.unknown == "other")

    @property
    def feature_names(self) -> list[str]:
        names = [f"{self.name}={value}" for value in self._column.values]
        return [*names, f"{self.name}: other"] if self._column.unknown == "other" else names

    def cells(self, column: Any) -> NDArray[np.int64]:
        places = codes(column, self._column.values, f"column {self.name!r}")
        if self._column.unknown == "other":
            places[places == UNKNOWN] = len(self._column.values)
        refuse_missing(places == MISSING, self._column.missing, self.name)
        refuse_unknown(places == UNKNOWN, self._column.unknown, self.name)
        return places

    def cell(self, cell: Any) -> NDArray[np.int64]:
        place = self._listed.place(cell)
        return np.asarray(super().cell(cell)) if place is None else np.array([place])

    def expand(self, cells: NDArray[np.int64], out: NDArray[np.float64]) -> None:
        out[:] = -1.0 / self.width
        listed = np.flatnonzero(cells >= 0)
        out[listed, cells[listed]] += 1.0
        out[cells < 0] = 0.0


class TextGroup(Group):
    """Text as hashed words, each row of norm 1 (or 0); the hash is fixed: nothing is learnt from the data."""

    def __init__(self, name: str, column: TextColumn) -> None:
        self.name = name
        self._column = column
        self.width = column.features
        from sklearn.feature_extraction.text import HashingVectorizer  # only texts need it

        self._hasher = HashingVectorizer(n_features=column.features, norm="l2", alternate_sign=True)

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.name}[{bucket}]" for bucket in range(self.width)]

    def cells(self, column: Any) -> sparse.csr_array:
        cells = texts(column, f"column {self.name!r}")
        missing = np.asarray(cells.is_null().to_numpy())
        refuse_missing(missing, self._column.missing, self.name)
        if len(cells) == 0:  # the hasher refuses to see nothing
            return sparse.csr_array((0, self.width))
        documents = pc.fill_null(cells, "")
        return safely(
            lambda: sparse.csr_array(self._hasher.transform(_one_by_one(documents))),
            f"column {self.name!r} holds text that is not UTF-8: convert it",
        )


def group_of(name: str, column: AnyColumn) -> Group:
    """The group of features that a column of the schema becomes."""
    match column:
        case CategoryColumn():
            return CategoryGroup(name, column)
        case TextColumn():
            return TextGroup(name, column)
        case _:
            return OrderedGroup(name, column)


def _one_by_one(cells: Any) -> Iterator[str]:
    """The texts, without all of them being Python objects at once."""
    for rows in blocks(len(cells)):
        yield from cells.slice(rows.start, rows.stop - rows.start).to_pylist()
