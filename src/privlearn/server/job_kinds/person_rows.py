"""The rows of a job: only counts come out, in which every person weighs at most 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encoding.encoder import weights_of_persons
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.read_columns import read_block
from privlearn.data.sources.row_source import concatenate_tables, read_each
from privlearn.data.sources.table import as_source
from privlearn.errors import InvalidParameter
from privlearn.mechanisms.statistics.statistic import count

OfRow = Callable[[pa.Table], NDArray[Any]]
"""From a block of rows to one number per row. Each number must depend on its own row only."""


class PersonRows:
    """PRIVATE: the rows that `JobKind.run` receives. A person weighs at most 1 in everything that it counts.

    Where the schema has a ``person`` column, each of a person's m rows weighs 1/m. Otherwise each row weighs
    1/``rows_per_person``. So one person changes a count by at most 1, and a mechanism is calibrated for one row per
    person, independently of the schema: ``NoisyCounts.calibrate(..., rows_per_person=1)``.
    """

    def __init__(self, rows: Any, schema: Schema) -> None:
        self._rows = rows
        self._schema = schema

    def __repr__(self) -> str:
        return "<PersonRows>"

    def count(
        self, columns: Sequence[str], cell_of: OfRow, cells: int, *, size_of: OfRow | None = None
    ) -> Array:
        """Return the weight of the rows in each cell, exact and as multiples of 2^-20.

        Parameters
        ----------
        columns : sequence of str
            The columns that the functions below read.
        cell_of : callable
            Returns the index of each row's cell. Rows with an index outside 0, ..., cells - 1 are not counted.
        cells : int
            Public number of cells.
        size_of : callable, optional
            Returns a number for each row, to sum numbers instead of counting rows. It is clipped to [0, 1]; NaN is 0.
        """
        person = self._schema.person
        names = dict.fromkeys([*columns, *([] if person is None else [person])])
        found: list[tuple[NDArray[np.int64], Array]] = []
        owners: list[pa.Table] = []

        def read(block: Any) -> None:
            table = read_block(block, list(names), self._schema)
            read_columns = table.select(list(columns))
            sizes = np.ones(table.num_rows) if size_of is None else _sizes(size_of(read_columns))
            indices = _indices(cell_of(read_columns), cells)
            if indices.shape != (table.num_rows,) or sizes.shape != (table.num_rows,):
                raise InvalidParameter("cell_of and size_of must return one number per row")
            found.append((indices, sizes))
            owners.extend(table.select([name]) for name in (person,) if name is not None)

        for _ in read_each(as_source(self._rows, list(names)), read):
            pass
        indices, sizes = (np.concatenate(parts) for parts in zip(*found, strict=True))
        if person is None:
            return count(indices, cells, sizes / self._schema.rows_per_person)
        return count(indices, cells, sizes * weights_of_persons(concatenate_tables(owners)[0], person)[0])

    def raw_rows(self) -> Any:
        """Return the bare rows, for a reader that weighs persons by the schema itself.

        Estimators, `KernelLearner.read` and the ``read_cells`` of evaluations and descriptions do. Other callers must
        weigh persons themselves, or a person with many rows is protected less than the certificate states.
        """
        return self._rows


def _indices(cells_of_rows: NDArray[Any], cells: int) -> NDArray[np.int64]:
    indices = np.asarray(cells_of_rows)
    return np.where((indices >= 0) & (indices < cells), indices, -1).astype(np.int64)


def _sizes(numbers: NDArray[Any]) -> Array:
    return np.clip(np.nan_to_num(np.asarray(numbers, dtype=np.float64), nan=0.0), 0.0, 1.0)
