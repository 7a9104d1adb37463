"""Rows on their way to the server and back, as Arrow."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from privlearn.errors import DataError

ARROW = "application/vnd.apache.arrow.stream"


def rows_of(data: Any) -> tuple[pa.Table, bool]:
    """An Arrow table of the rows, and whether it was one point: a mapping from columns to single values."""
    from privlearn.data.table import as_table  # late: it takes seconds

    if isinstance(data, Mapping) and not any(_is_column(value) for value in data.values()):
        return as_table({name: [value] for name, value in data.items()}), True
    if isinstance(data, list):
        if not all(isinstance(row, Mapping) for row in data):
            raise DataError("a list must hold one mapping a row, from columns to values")
        names = dict.fromkeys(name for row in data for name in row)
        return as_table({name: [row.get(name) for row in data] for name in names}), False
    return as_table(data), False


def to_arrow(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as stream:
        stream.write_table(table)
    return buffer.getvalue()


def from_arrow(raw: bytes) -> pa.Table:
    try:
        return pa.ipc.open_stream(raw).read_all()
    except pa.ArrowException:
        raise DataError("the server's answer is not an Arrow stream: is this a privlearn server?") from None


def _is_column(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray | pa.Array | pa.ChunkedArray) or hasattr(
        value, "to_numpy"
    )
