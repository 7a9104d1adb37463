"""Choose few tables that cover all pairs of columns (see lookup_rows.py).

A table has one axis for each of its columns. An axis is as long as the column's number of bins in pairs, plus one for
a missing cell. A table of three or four columns covers every pair among them.

>>> pairs = [BinIndicators({first: 16, second: 16}) for first, second in ("ab", "ac", "bc", "cd")]
>>> for table, covered in cover_pairs(pairs).items():
...     print(table, number_of_cells(table), [pair.columns for pair in covered])
(('a', 16), ('b', 16), ('c', 16)) 4913 [('a', 'b'), ('a', 'c'), ('b', 'c')]
(('c', 16), ('d', 16)) 289 [('c', 'd')]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from privlearn.data.encoding.feature_groups import BinIndicators, Bins

MAX_CELLS = 1 << 13  # of a table for several pairs: all tables together stay in a core's cache

Table = tuple[Bins, ...]
"""The columns of a table, each with the number of its bins."""


def number_of_cells(table: Table) -> int:
    """Return the number of cells; each axis has one bin more, for missing cells."""
    return math.prod(bins + 1 for _, bins in table)


def stride(table: Table, column: Bins) -> int:
    """Return the distance in the table between neighbouring bins of a column; 0 if it has no axis there."""
    return number_of_cells(table[table.index(column) + 1 :]) if column in table else 0


def cover_pairs(pairs: Sequence[BinIndicators]) -> dict[Table, list[BinIndicators]]:
    """Return tables, each with the pairs that it covers, so that each pair is in exactly one.

    A table has at most `MAX_CELLS` cells, or it is for a single pair.
    """
    left, tables = list(pairs), {}
    while left:
        table: Table = tuple(left[0].bins)
        while (column := _best_addition(table, left)) is not None:
            table = (*table, column)
        tables[table] = [pair for pair in left if set(pair.bins) <= set(table)]
        left = [pair for pair in left if pair not in tables[table]]
    return tables


def _best_addition(table: Table, pairs: Sequence[BinIndicators]) -> Bins | None:
    """Return the column that lets the table cover the largest number of further pairs; None if none fits."""
    capacity = MAX_CELLS // number_of_cells(table)
    gains = Counter(
        column
        for pair in pairs
        for column in pair.bins
        if column not in table and column[1] < capacity and set(pair.bins) <= {*table, column}
    )
    return max(gains, key=lambda column: gains[column], default=None)
