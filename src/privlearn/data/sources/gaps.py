"""Codes for gaps that a schema states, taken out of tables: of Parquet files, and of whatever is in memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from privlearn.data.schema.file_format import FileFormat
from privlearn.data.sources.table import MISSING_CELL, NUMBER, TEXT, WHOLE, as_table, is_mixed, kinds_of
from privlearn.heavy import pa, pc


def read_block(data: Any, columns: Sequence[str], form: FileFormat) -> pa.Table:
    """These columns of whatever holds rows, without codes for gaps: a DataFrame has as many as a file."""
    return without_codes(as_table(data, columns), form)


def without_codes(table: pa.Table, form: FileFormat) -> pa.Table:
    """A table whose columns of numbers and text lack what the format calls a gap."""
    for place, name in enumerate(table.column_names):
        if codes := form.codes_of(name):
            table = table.set_column(place, name, _without(table.column(place), codes))
    return table


def _without(column: Any, codes: tuple[str, ...]) -> Any:
    if is_mixed(column.type):
        return pa.chunked_array([_mixed_without(chunk, codes) for chunk in column.chunks], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    gaps = _gaps(column, codes)
    return column if gaps is None else pc.if_else(gaps, pa.scalar(None, column.type), column)


def _mixed_without(column: Any, codes: tuple[str, ...]) -> Any:
    """Each cell that is a code becomes a missing one, in kind and in value."""
    parts = [column.field(place) for place in range(column.type.num_fields)]
    gaps = np.any(
        [_gaps(parts[kind], codes).to_numpy(zero_copy_only=False) for kind in (NUMBER, WHOLE, TEXT)], axis=0
    )
    kinds = np.where(gaps, MISSING_CELL, kinds_of(column)).astype(np.int8)
    kept = [pc.if_else(pa.array(gaps), pa.scalar(None, part.type), part) for part in parts]
    return pa.UnionArray.from_sparse(pa.array(kinds), kept, [field.name for field in column.type])


def _gaps(column: Any, codes: tuple[str, ...]) -> Any:
    """Which cells are codes; ``None`` for what is neither numbers nor text."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pc.is_in(column.cast(pa.float64(), safe=False), pa.array(_numbers_among(codes), pa.float64()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pc.is_in(column.cast(pa.large_string()), pa.array(codes, pa.large_string()))
    return None


def _numbers_among(codes: tuple[str, ...]) -> list[float]:
    return [float(code) for code in codes if re.fullmatch(r"[-+]?[0-9]+([.][0-9]+)?", code)]
