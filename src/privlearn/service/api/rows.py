"""Rows that analysts send: JSON, CSV or Arrow, as one table with the types that the data set's schema states."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from privlearn.data import Schema
from privlearn.data.files import arrow_type, parse_csv
from privlearn.data.quiet import quietly
from privlearn.errors import DataError
from privlearn.service.api.arrow_text import read_arrow
from privlearn.service.api.json_text import read_json
from privlearn.service.api.kinds import ARROW, CSV, JSON, Kind
from privlearn.service.refusals import TooLarge

_EXPECTED = 'send {"rows": [{"column": cell, ...}, ...]}, a list of such objects, or one of them'
_WORDS = {pa.float64(): "numbers", pa.bool_(): "true or false", pa.string(): "text"}


def read_rows(content: bytes, kind: Kind, schema: Schema, most_rows: int) -> pa.Table:
    """The feature columns of the rows in a body; the target is not read."""
    features = schema.model_copy(update={"target": None, "person": None})
    if kind == JSON:
        table = rows_from_objects(_objects(read_json(content), schema), features, most_rows)
    elif kind == CSV:
        table = parse_csv(content, features)
    else:
        assert kind == ARROW
        table = read_arrow(content, most_rows)
    _check_count(table.num_rows, most_rows)
    return table


def rows_from_objects(rows: Sequence[Any], schema: Schema, most_rows: int) -> pa.Table:
    """A table from one object a row; columns that the schema does not list are not read."""
    _check_count(len(rows), most_rows)
    names = list(schema.columns)
    pick = itemgetter(*names) if len(names) > 1 else lambda row: (row[names[0]],)
    missing = False
    try:
        columns = list(zip(*map(pick, rows), strict=True))
    except (KeyError, TypeError, IndexError):
        missing = True
    if missing:
        raise DataError(_missing(rows, names))
    return pa.table([_column(name, cells, schema) for name, cells in zip(names, columns, strict=True)], names)


def _column(name: str, cells: Sequence[Any], schema: Schema) -> pa.Array:
    kind = arrow_type(schema, name)
    message = f"column {name!r} holds cells that are not {_WORDS[kind]}: correct them, or write null for a missing one"
    return quietly(lambda: pa.array(cells, kind), message)


def _missing(rows: Sequence[Any], names: list[str]) -> str:
    if not all(isinstance(row, dict) for row in rows):
        return f"every row must be an object: {_EXPECTED}"
    absent = next(name for name in names if any(name not in row for row in rows))
    return f"column {absent!r} is missing from a row: write null for a missing cell"


def _objects(value: Any, schema: Schema) -> Sequence[Any]:
    if isinstance(value, dict):
        wrapped = set(value) == {"rows"} and "rows" not in schema.columns
        value = value["rows"] if wrapped else [value]
    if not isinstance(value, list):
        raise DataError(f"the body holds no rows: {_EXPECTED}")
    return value


def _check_count(rows: int, most: int) -> None:
    if rows == 0:
        raise DataError("there are no rows: send at least one")
    if rows > most:
        raise TooLarge(
            f"{rows} rows are more than the {most} that are allowed at a time: send smaller batches"
        )
