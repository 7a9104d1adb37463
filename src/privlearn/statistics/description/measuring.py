"""Describe a private table: noisy counts of its columns, charged and certified (docs/theory/describe.md).

The order is that of every statistic: read and check all rows, compute the public layout, reserve the cost, count.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.budget.charge import Budget
from privlearn.budget.composition import Cost
from privlearn.data.encoding.column_cells import MISSING, codes, days, numbers
from privlearn.data.encoding.packed_cells import PackedCells
from privlearn.data.encoding.row_weights import WeightColumns
from privlearn.data.parts import part_of, without_part
from privlearn.data.schema.columns import CategoryColumn, DateColumn, OrdinalColumn
from privlearn.data.schema.schema import Schema, SchemaLike, as_schema
from privlearn.data.sources.files import open_table
from privlearn.data.sources.passes import number_of_rows
from privlearn.data.sources.read_columns import read_block
from privlearn.data.sources.row_source import read_each
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.statistics.statistic import count
from privlearn.randomness import Randomness, randomness_from
from privlearn.statistics.description.description import Description
from privlearn.statistics.description.layout import (
    DescribedColumn,
    described_columns,
    description_layout,
    edges_of,
    middles_of,
)
from privlearn.statistics.layout import CountsLayout, CountsRequest

_EPOCH = datetime.date(1970, 1, 1)

CellIndices = NDArray[np.int64]
"""The cell of each row in one table, of shape (rows,)."""


def describe(
    table: Any,
    schema: SchemaLike,
    *,
    epsilon: float,
    delta: float = 0.0,
    correlations: bool = True,
    crosses: Sequence[tuple[str, str]] = (),
    neighbours: str = "replace_one",
    expected_records: int | None = None,
    ledger: Budget | None = None,
    accept_weak_privacy: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Description:
    """Return counts, histograms, quantiles, missing shares and correlations of a private table, for one charge.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, dict of arrays, or RowSource
        The private rows, also as returned by `open_records` for files of any size. Missing cells and values that the
        schema does not list are counted, never refused.
    schema : Schema
        Public lists and bounds of the table. Numbers beyond a bound count as the bound.
    epsilon : float
        Privacy loss of the whole description.
    delta : float, default=0.0
        A value above 0 makes many columns and their correlations far more accurate.
    correlations : bool, default=True
        Without correlations the columns get the whole budget.
    crosses : sequence of pairs of str, default=()
        Pairs of columns whose cross table is counted and tested for association (`Description.tests`).
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
    expected_records : int, optional
        With ``add_remove``: the approximate number of records, or persons, from public knowledge.
    ledger : Ledger, optional
        Budget to charge.
    accept_weak_privacy : bool, default=False
        Required for an epsilon above 20 or a delta of at least 1/n.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure random bits. Other values are for tests; the certificate then states "not private".
    """
    guarantee, randomness = Guarantee(epsilon, delta, neighbours), randomness_from(random_state)
    request = CountsRequest(guarantee, expected_records, ledger, accept_weak_privacy, randomness)
    schema = as_schema(schema)
    cells, weights, persons = read_cells(without_part(table), schema)
    total = request.total(persons)
    layout = description_layout(schema, request.guarantee, total, correlations=correlations, crosses=crosses)
    cost = Cost(request.guarantee, layout.mechanism.renyi)
    charge = request.charge(cost, total, schema, part_of(table), "describe")
    return charge.pay_for(lambda: measure(layout, schema, cells, weights, request.randomness))


def read_cells(table: Any, schema: Schema) -> tuple[PackedCells, Array | None, int]:
    """PRIVATE: return the cells to count, the rows' weights, and the number of records or persons.

    A cell that cannot be read is an error here, before anything is charged.
    """
    described = described_columns(schema)
    cells, weighing = PackedCells(), WeightColumns(schema)
    names = [*described, *weighing.names]

    def read(block: Any) -> None:
        rows = read_block(block, names, schema)
        cells.add({name: read_column(name, column, rows.column(name)) for name, column in described.items()})
        weighing.add(rows)

    for _ in read_each(open_table(table, schema, names), read):
        pass
    weights = weighing.result(len(cells))
    return cells, weights.counted, weights.count


def measure(
    layout: CountsLayout, schema: Schema, cells: PackedCells, weights: Array | None, randomness: Randomness
) -> Description:
    """Touch the data: count the rows of all tables, add the noise of the layout, and return the certified result."""
    columns, described = described_columns(schema), layout.about["columns"]
    exact: list[Array] = []
    start = 0
    for block in cells.blocks():
        rows = slice(start, start + number_of_rows(block))
        indices = {name: _cell_indices(one, block[name], described[name]) for name, one in columns.items()}
        counts = _count_block(layout, indices, None if weights is None else weights[rows])
        exact = [total + more for total, more in zip(exact, counts, strict=True)] if exact else counts
        start = rows.stop
    certificate = layout.certify(schema, randomness, described=", ".join(described))
    return Description(layout.add_noise(exact, randomness), layout.about, certificate)


def _count_block(layout: CountsLayout, indices: dict[str, CellIndices], weights: Array | None) -> list[Array]:
    """PRIVATE: return the exact tables of some rows; tables of several blocks can be added."""
    described = layout.about["columns"]
    columns = [count(index, len(middles_of(described[name])) + 2, weights) for name, index in indices.items()]
    pairs = layout.about["pairs"]
    products = [_products(layout, indices, one, other, weights) for one, other in pairs]
    crosses = [_cross(layout, indices, cross, weights) for cross in layout.about["crosses"]]
    return [*columns, *products, *crosses]


def _cross(
    layout: CountsLayout, indices: dict[str, CellIndices], cross: Sequence[str], weights: Array | None
) -> Array:
    """PRIVATE: return the flat cross table of two columns; a row is in one cell, or in none without both values."""
    rows, columns = (len(middles_of(layout.about["columns"][name])) for name in cross)
    row, column = (indices[name] for name in cross)
    has_both = (row < rows) & (column < columns)
    return count(np.where(has_both, row * columns + column, -1), rows * columns, weights)


def _products(
    layout: CountsLayout, indices: dict[str, CellIndices], one: str, other: str, weights: Array | None
) -> Array:
    """PRIVATE: return the sums of the positive and of the negative products of two columns, of shape (2,).

    A row adds to one of the two cells, at most its weight, since positions lie between -1 and 1; cells that are
    missing or not listed have the position 0.
    """
    first, second = (
        np.append(middles_of(layout.about["columns"][name]), [0.0, 0.0])[indices[name]]
        for name in (one, other)
    )
    products = first * second
    sizes = np.abs(products) if weights is None else np.abs(products) * weights
    return count((products < 0).astype(np.int64), 2, sizes)


def read_column(name: str, column: DescribedColumn, cells: Any) -> NDArray[Any]:
    """PRIVATE: return the index of each listed value, or each number; dates as days since the lower bound."""
    label = f"column {name!r}"
    if isinstance(column, CategoryColumn | OrdinalColumn):
        return codes(cells, column.values, label)
    if isinstance(column, DateColumn):
        return days(cells, label) - float((column.lower - _EPOCH).days)
    return numbers(cells, label)


def _cell_indices(column: DescribedColumn, cells: NDArray[Any], described: dict[str, Any]) -> CellIndices:
    """PRIVATE: return the cell of each row in the column's table."""
    if isinstance(column, CategoryColumn | OrdinalColumn):
        size = len(column.values)
        index = cells.astype(np.int64)
        return np.where(index == MISSING, size + 1, np.where(index < 0, size, index))
    edges = edges_of(described)
    bins = len(edges) - 1
    index = np.searchsorted(edges[1:-1], cells, side="right").astype(np.int64)
    return np.where(np.isnan(cells), bins + 1, np.minimum(index, bins - 1))
