"""The weight of each row: its share of its person, and the schema's weight column.

Two numbers per row follow from its person and the schema alone. Shares of one person add up to at most 1. Relative
weights lie in [0, 1]; the public cap is their unit. So one person adds at most 1 to any weighted count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, product
from privlearn.data.encoding.column_cells import numbers, owners
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Weight
from privlearn.data.sources.row_source import concatenate_tables
from privlearn.errors import DataError
from privlearn.imports import pa

_MIN, _MAX = 2.0**-200, 2.0**200
"""Weights without a public cap are cut to this range, or to 0 below it: their sums and quotients stay finite."""


@dataclass(frozen=True, eq=False, repr=False)
class RowWeights:
    """PRIVATE: how much each row counts; ``count`` is the number of records, or of persons.

    Parameters
    ----------
    count : int
    persons : array of int, optional
        Number of each row's person, from 0, in the order of their first rows.
    shares : array, optional
        Share of each row in its person; ``None`` where a row is a record.
    relative : array, optional
        Weight of each row divided by the public cap; ``None`` without one.
    """

    count: int
    persons: NDArray[np.int64] | None = None
    shares: Array | None = None
    relative: Array | None = None

    @property
    def counted(self) -> Array | None:
        """Return each row's weight in counts, of which a person's add up to at most 1; ``None`` if all are 1."""
        return product(self.shares, self.relative)


class WeightColumns:
    """Collects the columns that determine row weights, block by block.

    Parameters
    ----------
    schema : Schema

    Attributes
    ----------
    names : list of str
        Columns of the table that each block must have.
    """

    def __init__(self, schema: Schema) -> None:
        self._person, self._weight = schema.person, schema.weight
        weight = None if schema.weight is None else schema.weight.column
        self.names = [name for name in (schema.person, weight) if name is not None]
        self._owners: list[Any] = []
        self._weights: list[Array] = []

    def add(self, table: Any) -> None:
        """Touch the data: take the columns of a block; refuse missing weights, unless the schema allows them."""
        if self._person is not None:
            self._owners.append(pa.table({"person": table.column(self._person)}))
        if self._weight is not None:
            self._weights.append(read_weights(table.column(self._weight.column), self._weight))

    @property
    def person_column(self) -> Any:
        """PRIVATE: return the identifiers of all blocks."""
        return concatenate_tables(self._owners).column(0)

    @property
    def weights(self) -> Array | None:
        """PRIVATE: return the weights of all blocks, as `read_weights` returns them."""
        return None if self._weight is None else np.concatenate([np.zeros(0), *self._weights])

    def result(self, rows: int) -> RowWeights:
        """PRIVATE: return the weights of all rows."""
        weights = self.weights
        if self._person is None:
            return RowWeights(rows, relative=weights)
        persons = owners(self.person_column, f"column {self._person!r}")
        within = None if has_cap(self._weight) else weights
        rows_each = np.bincount(persons).astype(np.float64)
        masses = None if within is None else np.bincount(persons, weights=within).astype(np.float64)
        per_person = row_shares(rows_each, masses)
        shares = product(within, per_person[persons])
        return RowWeights(len(per_person), persons, shares, weights if within is None else None)


def has_cap(weight: Weight | None) -> bool:
    """Return whether persons weigh differently, up to a public cap, rather than 1 each."""
    return weight is not None and weight.upper is not None


def read_weights(column: Any, weight: Weight) -> Array:
    """PRIVATE: return each row's weight, from its cell alone: relative to the cap, in [0, 1]; without a cap, as it is.

    Negative weights count 0, weights above the cap count as the cap.
    """
    label = f"weight column {weight.column!r}"
    cells = numbers(column, label)
    if weight.missing == "refuse" and np.isnan(cells).any():
        raise DataError(
            f"{label} has missing cells. Fill them in, or set missing: zero for it in the schema."
        )
    return relative_weights(cells, weight.upper)


def relative_weights(weights: Array, upper: float | None) -> Array:
    """Return weights clipped to [0, upper] and divided by it, NaN as 0; as they are if there is no cap."""
    cap = _MAX if upper is None else upper
    clipped = np.clip(np.nan_to_num(weights, nan=0.0, posinf=cap, neginf=0.0), 0.0, cap)
    return np.where(clipped < _MIN, 0.0, clipped) if upper is None else np.minimum(clipped / cap, 1.0)


def row_shares(rows: Array, masses: Array | None = None) -> Array:
    """PRIVATE: return by what a row's weight is multiplied so that the rows of a person add up to at most 1.

    A person whose weights are all 0 counts 0. The sum of m weights is rounded m times, by 2^-53 of it each at most.

    Parameters
    ----------
    rows : array
        Number of rows of each person.
    masses : array, optional
        Sum of the weights of each person's rows; without it each row weighs 1.
    """
    if masses is None:
        return 1.0 / rows
    enlarged = masses * (1.0 + (rows + 2.0) * 2.0**-52)
    return np.divide(1.0, enlarged, out=np.zeros(len(enlarged)), where=enlarged > 0)
