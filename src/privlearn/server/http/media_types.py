"""Tables in requests and answers: choose JSON, CSV or Arrow, read them with limits, and write them."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from operator import itemgetter
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as arrow_csv
from fastapi import Request
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from privlearn.data.schema.file_format import FileFormat
from privlearn.data.schema.public import EXACT
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.csv_files import parse_csv
from privlearn.data.sources.schema_columns import arrow_type
from privlearn.data.sources.table import safely
from privlearn.errors import DataError
from privlearn.server.http.arrow_streams import MAX_COLUMNS, read_arrow, write_arrow
from privlearn.server.http.bodies import read_json
from privlearn.server.http.capacity import caller_name, shared_of
from privlearn.server.http.problems import NotOffered, UnknownKind
from privlearn.server.jobs.requests import Row
from privlearn.server.refusals import TooLarge

Kind = Literal["application/json", "text/csv", "application/vnd.apache.arrow.stream"]
JSON: Kind = "application/json"
CSV: Kind = "text/csv"
ARROW: Kind = "application/vnd.apache.arrow.stream"
KINDS: tuple[Kind, ...] = (JSON, CSV, ARROW)


def kind_sent(request: Request, allowed: Sequence[str] = KINDS) -> Any:
    """Return the media type of the body, from Content-Type; refuse other types, charsets and encodings."""
    header = request.headers.get("content-type", "")
    kind, _, parameters = header.partition(";")
    kind = kind.strip().lower()
    if kind not in allowed:
        raise UnknownKind(f"the body's Content-Type is not supported. Send {' or '.join(allowed)}.")
    charset = _charset(parameters)
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise UnknownKind("the charset is not supported. Send text in UTF-8.")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise UnknownKind("Content-Encoding is not supported. Send the body without it.")
    return kind


def kind_accepted(request: Request, default: Kind) -> Kind:
    """Return the media type of the answer, from Accept; of equally acceptable ones the first."""
    accepted = sorted(_parse_accept(request.headers.get("accept", "*/*")), key=lambda entry: -entry[1])
    for pattern, quality in accepted:
        if quality > 0.0 and pattern in ("*/*", ""):
            return default
        for kind in (default, *KINDS):
            if quality > 0.0 and (pattern == kind or pattern == f"{kind.split('/')[0]}/*"):
                return kind
    raise NotOffered(f"Accept names no media type of this answer. Use one of {', '.join(KINDS)}.")


def table_answer(table: pa.Table, kind: Kind) -> Response:
    """Return a table as a response: objects in JSON, lines in CSV, or an Arrow stream."""
    if kind == JSON:
        pieces = (table.slice(start, _ROWS_AT_ONCE) for start in range(0, table.num_rows, _ROWS_AT_ONCE))
        rows = [row for piece in pieces for row in piece.to_pylist()]
        return Response(to_json({"rows": rows}), media_type=JSON)
    return Response(table_bytes(table, kind), media_type=kind)


_ROWS_AT_ONCE = 200  # so that converting them does not block other threads for long


def table_bytes(table: pa.Table, kind: Kind) -> bytes:
    """Return a table in CSV or Arrow."""
    if kind == ARROW:
        return write_arrow(table)
    text = io.BytesIO()
    arrow_csv.write_csv(table, text)
    return text.getvalue()


def _parse_accept(header: str) -> list[tuple[str, float]]:
    entries = []
    for entry in header.split(","):
        pattern, *parameters = (part.strip().lower() for part in entry.split(";"))
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            entries.append((pattern, float(quality)))
        except ValueError:
            entries.append((pattern, 0.0))
    return entries


def _charset(parameters: str) -> str:
    for part in parameters.split(";"):
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower()
    return ""


@asynccontextmanager
async def reading(request: Request, content: bytes, kind: Kind | None = None) -> AsyncIterator[None]:
    """Hold the memory that reading this body takes. Without a media type it is a file, which may contain JSON."""
    memory = shared_of(request).reading
    needed = await run_in_threadpool(memory_to_read, content, kind, memory.capacity)
    async with memory.acquire(caller_name(request), needed):
        yield


def memory_to_read(content: bytes, kind: Kind | None, maximum: int) -> int:
    """Public: return a bound on the memory that a body takes once it is read, or a number above ``maximum``.

    Python stores a character in up to 4 bytes, and an object, list or number of JSON in tens of bytes, however short
    its text: three characters may take 250 bytes.
    """
    each, characters = _MEMORY[kind]
    needed = each * len(content)
    for start in range(0, len(content), _PIECE):  # so that counting does not block other threads for long
        piece = content[start : start + _PIECE]
        needed += sum(size * piece.count(character) for character, size in characters.items())
        if needed > maximum:
            break
    return needed


_PIECE = 1 << 18
_OF_JSON = {b"{": 184, b"[": 64, b",": 64, b":": 64}
_MEMORY: dict[Kind | None, tuple[int, dict[bytes, int]]] = {
    JSON: (4, _OF_JSON),
    CSV: (12, {b"\n": 64}),
    ARROW: (4, {}),
    None: (2, _OF_JSON),
}
"""Bytes of memory for each byte of the body, and for each of these characters."""

_EXPECTED = 'Send {"rows": [{"column": cell, ...}, ...]}, a list of such objects, or one of them'
_TYPE_NAMES = {pa.float64(): "numbers", pa.bool_(): "true or false", pa.string(): "text"}


def read_rows(
    content: bytes, kind: Kind, schema: Schema, max_rows: int, form: FileFormat | None = None
) -> pa.Table:
    """Return the feature columns of the rows in a body; the target is not read. CSV may be in a format of its own."""
    features = schema.model_copy(update={"target": None, "person": None})
    if kind == JSON:
        table = rows_from_objects(_objects(read_json(content), schema), features, max_rows)
    elif kind == CSV:
        delimiter = "," if form is None else form.delimiter
        if content.partition(b"\n")[0].count(delimiter.encode()) >= MAX_COLUMNS:
            raise TooLarge(f"the file has more than {MAX_COLUMNS} columns. Send only those of the schema.")
        table = parse_csv(content, features, form)
    else:
        assert kind == ARROW
        table = read_arrow(content, max_rows, features.columns)
    _check_count(table.num_rows, max_rows)
    return table


class PlainRows:
    """Reads one row of JSON without a table, which would take longer than to answer it."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._types = {name: _PLAIN_CELLS[arrow_type(schema, name)] for name in schema.columns}

    def read(self, content: bytes) -> Row | None:
        """Return the body's only row if each cell already has its column's type; None leaves others to `read_rows`."""
        rows = _objects(read_json(content), self._schema)
        if len(rows) != 1 or not isinstance(rows[0], dict):
            return None
        row: Row = {}
        for name, types in self._types.items():
            cell = rows[0].get(name, _ABSENT)
            if type(cell) is int and abs(cell) <= EXACT:
                cell = float(cell)
            if type(cell) not in types:
                return None
            row[name] = [cell]
        return row


_ABSENT = object()
_PLAIN_CELLS: dict[pa.DataType, tuple[type, ...]] = {
    pa.float64(): (float, type(None)),
    pa.string(): (str, type(None)),
    pa.bool_(): (bool, type(None)),
}


def rows_from_objects(rows: Sequence[Any], schema: Schema, max_rows: int) -> pa.Table:
    """Return a table from one object per row; columns that are not in the schema are not read."""
    _check_count(len(rows), max_rows)
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
    message = f"column {name!r} has cells that are not {_TYPE_NAMES[kind]}. Correct them, or write null."
    return safely(lambda: pa.array(cells, kind), message)


def _missing(rows: Sequence[Any], names: list[str]) -> str:
    if not all(isinstance(row, dict) for row in rows):
        return f"a row is not an object. {_EXPECTED}."
    absent = next(name for name in names if any(name not in row for row in rows))
    return f"column {absent!r} is missing from a row. Write null for a missing cell."


def _objects(value: Any, schema: Schema) -> Sequence[Any]:
    if isinstance(value, dict):
        wrapped = set(value) == {"rows"} and "rows" not in schema.columns
        value = value["rows"] if wrapped else [value]
    if not isinstance(value, list):
        raise DataError(f"the body has no rows. {_EXPECTED}.")
    return value


def _check_count(rows: int, maximum: int) -> None:
    if rows == 0:
        raise DataError("there are no rows. Send at least one.")
    if rows > maximum:
        raise TooLarge(f"{rows} rows are more than the {maximum} allowed at a time. Send smaller batches.")
