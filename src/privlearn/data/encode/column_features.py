"""Groups of features: what one column of the table becomes, of norm at most 1, by public settings only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer

from privlearn.data.encode.arrays import blocks
from privlearn.data.encode.column_cells import MISSING, UNKNOWN, codes, numbers, texts
from privlearn.data.schema.columns import CategoryColumn, NumberColumn, TextColumn
from privlearn.data.sources.table import safely
from privlearn.errors import ON_DROPPING, DataError


def spline_basis(position: NDArray[np.float64], knots: int) -> NDArray[np.float64]:
    """Hat functions on equally spaced knots, centred, and the position itself in [-1, 1].

    The hats can follow any shape; the straight column carries a trend at the price of one coefficient, which is what
    survives when the noise is large.

    Parameters
    ----------
    position : array of shape (n,)
        Numbers in [0, 1].
    knots : int
        Number of knots, at least 2.

    Returns
    -------
    array of shape (n, knots + 1)
    """
    left = np.minimum((position * (knots - 1)).astype(np.intp), knots - 2)
    fraction = position * (knots - 1) - left
    basis = np.full((len(position), knots + 1), -1.0 / knots)
    rows = np.arange(len(position))
    basis[rows, left] += 1.0 - fraction
    basis[rows, left + 1] += fraction
    basis[:, knots] = 2.0 * position - 1.0
    return basis


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
    @abstractmethod
    def feature_names(self) -> list[str]: ...

    @abstractmethod
    def encode(self, column: Any) -> sparse.csr_array:
        """The features of the column's cells."""


class DenseGroup(Group):
    """Features that are mostly not zero."""

    @abstractmethod
    def cells(self, column: Any) -> NDArray[Any]:
        """The column's cells, checked, as one number each."""

    @abstractmethod
    def expand(self, cells: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Write the features of the cells into ``out``, of shape (n, width)."""

    def encode(self, column: Any) -> sparse.csr_array:
        features = np.empty((len(column), self.width))
        self.expand(self.cells(column), features)
        return sparse.csr_array(features)


class NumberGroup(DenseGroup):
    """A number, clamped to its public bounds, as a spline or as one coordinate in [-1, 1]."""

    def __init__(self, name: str, column: NumberColumn) -> None:
        self.name = name
        self._column = column
        self.width = self._functions(np.zeros(1)).shape[1]

    @property
    def feature_names(self) -> list[str]:
        if self._column.encoding == "linear":
            return [self.name]
        return [f"{self.name}[{place}]" for place in range(self.width)]

    def cells(self, column: Any) -> NDArray[np.float64]:
        cells = numbers(column, f"column {self.name!r}")
        _refuse(np.isnan(cells), self._column.missing, self.name, "missing", "missing cells")
        return cells

    def expand(self, cells: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        missing = np.isnan(cells)
        out[:] = self._functions(self._position(np.where(missing, self._column.lower, cells)))
        out[missing] = 0.0

    def _position(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where the clamped number lies between its bounds, in [0, 1]."""
        above = np.clip(cells, self._column.lower, self._column.upper) - self._column.lower
        width = self._column.upper - self._column.lower
        share = np.log1p(above) / np.log1p(width) if self._column.scale == "log" else above / width
        return np.clip(share, 0.0, 1.0)

    def _functions(self, position: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._column.encoding == "linear":
            return (2.0 * position - 1.0)[:, np.newaxis]
        return spline_basis(position, self._column.knots)


class CategoryGroup(DenseGroup):
    """A category as its indicator vector minus 1/k in every coordinate (squared norm 1 - 1/k).

    With ``unknown: other`` the last of the k coordinates stands for all values that are not listed.
    """

    def __init__(self, name: str, column: CategoryColumn) -> None:
        self.name = name
        self._column = column
        self.width = len(column.values) + (column.unknown == "other")

    @property
    def feature_names(self) -> list[str]:
        names = [f"{self.name}={value}" for value in self._column.values]
        return [*names, f"{self.name}: other"] if self._column.unknown == "other" else names

    def cells(self, column: Any) -> NDArray[np.int64]:
        places = codes(column, self._column.values, f"column {self.name!r}")
        if self._column.unknown == "other":
            places[places == UNKNOWN] = len(self._column.values)
        _refuse(places == MISSING, self._column.missing, self.name, "missing", "missing cells")
        _refuse(
            places == UNKNOWN,
            self._column.unknown,
            self.name,
            "unknown",
            "values that the schema does not list",
        )
        return places

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
        self._hasher = HashingVectorizer(n_features=column.features, norm="l2", alternate_sign=True)

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.name}[{bucket}]" for bucket in range(self.width)]

    def encode(self, column: Any) -> sparse.csr_array:
        cells = texts(column, f"column {self.name!r}")
        missing = np.asarray(cells.is_null().to_numpy())
        _refuse(missing, self._column.missing, self.name, "missing", "missing cells")
        if len(cells) == 0:  # the hasher refuses to see nothing
            return sparse.csr_array((0, self.width))
        documents = pc.fill_null(cells, "")
        return safely(
            lambda: sparse.csr_array(self._hasher.transform(_one_by_one(documents))),
            f"column {self.name!r} holds text that is not UTF-8: convert it",
        )


def group_of(name: str, column: NumberColumn | CategoryColumn | TextColumn) -> Group:
    """The group of features that a column of the schema becomes."""
    match column:
        case NumberColumn():
            return NumberGroup(name, column)
        case CategoryColumn():
            return CategoryGroup(name, column)
        case TextColumn():
            return TextGroup(name, column)


def _one_by_one(cells: Any) -> Iterator[str]:
    """The texts, without all of them being Python objects at once."""
    for rows in blocks(len(cells)):
        yield from cells.slice(rows.start, rows.stop - rows.start).to_pylist()


def _refuse(cells: NDArray[np.bool_], rule: str, name: str, setting: str, what: str) -> None:
    if rule == "refuse" and cells.any():
        raise DataError(
            f"column {name!r} has {what}: "
            f"correct those rows, or set {setting}: zero for it in the schema ({ON_DROPPING})"
        )
