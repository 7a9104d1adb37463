"""Rows from a database, selected by the holder's query.

Messages of the database may quote cells, so they are never repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
from sqlalchemy import URL, CursorResult, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import BatchRows, RowSource
from privlearn.data.sources.schema_columns import arrow_type, columns_to_read, refuse_unclear_persons
from privlearn.data.sources.table import as_table, safely
from privlearn.errors import DataError, PrivlearnError

_BATCH_ROWS = 10_000


def check_address(text: str) -> str:
    """Return the address; refuse one that is malformed or contains a password. No message repeats a part of it."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ValueError(
            "the address cannot be read. Give postgresql://user@host/database or sqlite:///file.db"
        ) from None
    if url.password is not None or "password" in url.query:
        raise ValueError(
            "must not contain a password, which others could see. Leave it out, and put it where the database's driver "
            "looks for it (PostgreSQL: ~/.pgpass or PGPASSWORD)"
        )
    return text


def open_query(address: str, query: str, schema: Schema) -> RowSource[pa.Table]:
    """Return the rows of a query, with the types of the schema; they can be read once, in batches through a cursor.

    One statement in one transaction: all rows are of the same moment, no matter how long reading takes.

    ``address``: an SQLAlchemy address. The connection is read-only where the database supports it. ``query``: one
    SELECT; columns that are not in the schema are dropped.
    """
    return BatchRows(_tables(address, query, schema))


def _tables(address: str, query: str, schema: Schema) -> Iterator[pa.Table]:
    try:
        yield from _answer(_engine(address), query, schema)
        return
    except (PrivlearnError, MemoryError):
        raise
    except Exception as error:
        kind = type(error.orig if isinstance(error, DBAPIError) else error).__name__
    # Raised outside the handler, so that it does not contain the database's own error.
    raise DataError(
        f"the database did not answer the query ({kind}; its message is withheld, since it may quote the data). "
        "Check the address, the permissions and the query by hand"
    )


def _answer(engine: Engine, query: str, schema: Schema) -> Iterator[pa.Table]:
    options = {"stream_results": True, "no_parameters": True}  # a % or : in the query is not a parameter
    with (
        engine.connect() as connection,
        closing(connection.execution_options(**options).exec_driver_sql(query)) as result,
    ):
        yield from _batches(result, schema)


def _batches(result: CursorResult[Any], schema: Schema) -> Iterator[pa.Table]:
    names = [str(name) for name in result.keys()]  # noqa: SIM118 - a result is not a mapping
    read_names = columns_to_read(names, schema, "the query's result")
    refuse_unclear_persons(schema, names)
    as_table(pa.table([[]] * len(names), names=names), read_names)  # refuses repeated names
    fields = [(names.index(name), pa.field(name, arrow_type(schema, name))) for name in read_names]
    yield pa.schema([field for _, field in fields]).empty_table()
    for rows in result.partitions(_BATCH_ROWS):
        yield pa.Table.from_batches([_batch(rows, fields)])


def _engine(address: str) -> Engine:
    url = make_url(address)
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    try:
        engine = create_engine(_only_reading(url), poolclass=NullPool)
    except (ModuleNotFoundError, NoSuchModuleError):
        raise DataError(
            f"no driver for {url.drivername} is installed. Install it (PostgreSQL: pip install "
            "'privlearn[postgresql]'), or export the rows to a .parquet file"
        ) from None
    if url.get_backend_name() == "postgresql":
        return engine.execution_options(postgresql_readonly=True)
    return engine


def _only_reading(url: URL) -> URL:
    if url.get_backend_name() != "sqlite":
        return url
    return url.set(database=f"file:{url.database}", query={"mode": "ro", "uri": "true"})


def _batch(rows: Any, fields: list[tuple[int, Any]]) -> pa.RecordBatch:
    columns = [_column([row[index] for row in rows], field) for index, field in fields]
    return pa.record_batch(columns, schema=pa.schema([field for _, field in fields]))


def _column(cells: list[Any], field: Any) -> pa.Array:
    convert, expected = _CONVERSIONS[field.type]
    problem = f"column {field.name!r} of the query has cells that are not {expected}. Correct the query"
    return safely(
        lambda: pa.array([None if cell is None else convert(cell) for cell in cells], type=field.type),
        problem,
    )


def _number(cell: Any) -> float:
    if isinstance(cell, str | bytes):
        raise TypeError("text where a number should be")
    return float(cell)


def _truth(cell: Any) -> bool:
    if cell not in (0, 1):  # SQLite stores truth values as integers
        raise TypeError("neither true nor false")
    return bool(cell)


def _text(cell: Any) -> str:
    if isinstance(cell, bytes | memoryview):
        raise TypeError("bytes where text should be")
    return str(cell)


_CONVERSIONS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    pa.float64(): (_number, "numbers"),
    pa.bool_(): (_truth, "true or false"),
    pa.string(): (_text, "text"),
}
