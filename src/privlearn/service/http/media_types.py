"""Tables that travel: JSON, CSV and Arrow, told apart, read with limits, and written."""

from __future__ import annotations

import io
import json
import math
import struct
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from operator import itemgetter
from typing import Any, Literal, NoReturn, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from fastapi import Request
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from privlearn.data.schema.schema import Schema
from privlearn.data.sources.csv_files import parse_csv
from privlearn.data.sources.table import safely
from privlearn.data.sources.wanted import arrow_type
from privlearn.errors import DataError, InvalidParameter
from privlearn.service.http.limits import caller_name, shared_of
from privlearn.service.http.problems import Malformed, NotOffered, UnknownKind, explain_invalid
from privlearn.service.refusals import TooLarge

_UNREADABLE = "the body is not an Arrow stream that can be read: write it with pyarrow.ipc.new_stream"
_COMPRESSED = "the Arrow stream is compressed: write it without compression"
_HEADER = 2  # places of members in Arrow's Message, DictionaryBatch and RecordBatch tables
_DATA = 1
_COMPRESSION = 3
_VIEW = 4  # integers of a string view, of which the first is the text's length
_MOST_REFERRED = 1 << 24


def read_arrow(content: bytes, most_rows: int, wanted: Collection[str]) -> pa.Table:
    """The wanted columns of an uncompressed stream, every offset and every text in them verified.

    Refused is what could turn a few bytes into all of the memory: compression, text that many cells refer to, and types
    beyond numbers, text, dates and truth values.
    """
    if safely(lambda: _is_compressed(content), _UNREADABLE):
        raise DataError(_COMPRESSED)
    batches = []
    stream = safely(lambda: pa.ipc.open_stream(pa.BufferReader(content)), _UNREADABLE)
    names = _plain_columns(stream.schema, wanted)
    rows = text = 0
    while (batch := safely(lambda: next(stream, None), _UNREADABLE)) is not None:
        rows += batch.num_rows
        if rows > most_rows:
            raise TooLarge(f"the stream has more than {most_rows} rows: send smaller batches")
        batch = safely(partial(_verified, batch, names), _UNREADABLE)
        text += sum(_referred(column) for column in batch.columns)
        if text > max(len(content), _MOST_REFERRED):
            raise TooLarge("the text that cells refer to is too long: send shorter text, or smaller batches")
        batches.append(batch)
    return pa.Table.from_batches(batches, pa.schema([stream.schema.field(name) for name in names]))


def _verified(batch: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    selected = batch.select(names)
    selected.validate(full=True)
    return selected


def _plain_columns(schema: pa.Schema, wanted: Collection[str]) -> list[str]:
    """The wanted columns that there are, if their cells take no more memory than they have bytes."""
    if len(schema) > MOST_COLUMNS:
        raise TooLarge(f"the stream has more than {MOST_COLUMNS} columns: send those that the schema lists")
    names = [name for name in schema.names if name in wanted]
    if len(set(names)) != len(names):
        raise DataError("the stream has a column twice: keep one of them")
    for name in names:
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not any(is_plain(kind) for is_plain in _PLAIN):
            raise DataError(f"column {name!r} has a type that is not read: send {_PLAIN_WORDS}")
    return names


MOST_COLUMNS = 10_000
_PLAIN_WORDS = "numbers, text, dates, or true and false"
_PLAIN = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
)


def write_arrow(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _referred(column: pa.Array) -> int:
    """Bytes of the text that a column's cells refer to, which several may share; 0 if each has its own."""
    if pa.types.is_dictionary(column.type):
        used = column.indices.drop_null().to_numpy()
        return int(_lengths(column.dictionary)[used].sum())
    return int(_lengths(column).sum()) if pa.types.is_string_view(column.type) else 0


def _lengths(texts: pa.Array) -> NDArray[np.int64]:
    if not pa.types.is_string_view(texts.type):
        is_text = pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)
        found = pc.binary_length(texts).fill_null(0).to_numpy() if is_text else np.zeros(len(texts))
        return np.asarray(found, dtype=np.int64)
    if not len(texts):
        return np.zeros(0, dtype=np.int64)
    views = np.frombuffer(texts.buffers()[1], "<i4").reshape(-1, _VIEW)[texts.offset :][: len(texts)]
    there = texts.is_valid().to_numpy(zero_copy_only=False)
    return np.where(there, views[:, 0], 0).astype(np.int64)


def _is_compressed(content: bytes) -> bool:
    """Whether any batch says so; messages are read, and verified by Arrow, without their bodies being unpacked."""
    messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(content))
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return False
        if message.type != "schema" and _says_compressed(message):
            return True


def _says_compressed(message: Any) -> bool:
    table = memoryview(message.metadata)
    batch = _member(table, _offset(table, 0), _HEADER)
    if message.type == "dictionary":
        batch = _member(table, batch, _DATA)
    return _entry(table, batch, _COMPRESSION) != 0


def _member(table: memoryview, place: int, member: int) -> int:
    """Place of a table inside a flatbuffer's table."""
    return _offset(table, place + _entry(table, place, member))


def _entry(table: memoryview, place: int, member: int) -> int:
    """Where a member stands, relative to its table; 0 if it is absent."""
    (back,) = struct.unpack_from("<i", table, place)
    (size,) = struct.unpack_from("<H", table, place - back)
    slot = 4 + 2 * member
    return int(struct.unpack_from("<H", table, place - back + slot)[0]) if slot < size else 0


def _offset(table: memoryview, place: int) -> int:
    return place + int(struct.unpack_from("<I", table, place)[0])


Model = TypeVar("Model", bound=BaseModel)


def read_json(content: bytes) -> Any:
    """The value of a JSON text in UTF-8, without NaN, Infinity, repeated names, NUL or halves of characters."""
    try:
        text = content.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_members, parse_constant=_refuse_constant, parse_float=_finite_number
        )
        if "\\u" in text:  # else it holds no character that UTF-8, or JSON by itself, would not let through
            _check_characters(value)
        return value
    except Malformed:
        raise
    except (ValueError, RecursionError):  # their messages quote the text
        pass
    raise Malformed("the body is not JSON in UTF-8, or is nested too deeply: correct it")


def read_model(model: type[Model], content: bytes) -> Model:
    """A JSON object of known members."""
    return read_value(model, read_json(content))


def read_value(model: type[Model], value: Any) -> Model:
    """What a JSON text says, as an object of known members."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        reason = explain_invalid(found, model.model_fields)
    raise InvalidParameter(reason)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Malformed("an object of the body has a name twice: keep one of them")
    return members


def _refuse_constant(_: str) -> NoReturn:
    raise Malformed("JSON knows no NaN and no Infinity: write null for a missing cell")


def _finite_number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Malformed("the body has a number that is too large for a double: write a smaller one")
    return number


def _check_characters(value: Any) -> None:
    """Refuse text that no database and no answer could hold."""
    if isinstance(value, str):
        value.encode("utf-8")  # a half of a character is a ValueError
        if "\0" in value:
            raise Malformed("the body has text with the character NUL: leave it out")
    elif isinstance(value, dict):
        for name, member in value.items():
            _check_characters(name)
            _check_characters(member)
    elif isinstance(value, list):
        for member in value:
            _check_characters(member)


Kind = Literal["application/json", "text/csv", "application/vnd.apache.arrow.stream"]
JSON: Kind = "application/json"
CSV: Kind = "text/csv"
ARROW: Kind = "application/vnd.apache.arrow.stream"
KINDS: tuple[Kind, ...] = (JSON, CSV, ARROW)


def kind_sent(request: Request, allowed: Sequence[str] = KINDS) -> Any:
    """What the body is, by its Content-Type."""
    header = request.headers.get("content-type", "")
    kind, _, parameters = header.partition(";")
    kind = kind.strip().lower()
    if kind not in allowed:
        raise UnknownKind(f"send the body as {' or '.join(allowed)}, and say so in Content-Type")
    charset = _charset(parameters)
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise UnknownKind("send text in UTF-8")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise UnknownKind("send the body as it is, without Content-Encoding")
    return kind


def kind_accepted(request: Request, otherwise: Kind) -> Kind:
    """What the answer shall be, by Accept; of kinds accepted alike, that which comes first."""
    accepted = sorted(_accepted(request.headers.get("accept", "*/*")), key=lambda entry: -entry[1])
    for pattern, quality in accepted:
        if quality > 0.0 and pattern in ("*/*", ""):
            return otherwise
        for kind in (otherwise, *KINDS):
            if quality > 0.0 and (pattern == kind or pattern == f"{kind.split('/')[0]}/*"):
                return kind
    raise NotOffered(f"the answer can be {', '.join(KINDS)}: name one of them in Accept")


def table_answer(table: pa.Table, kind: Kind) -> Response:
    """A table as rows: objects in JSON, lines in CSV, or an Arrow stream."""
    if kind == JSON:
        pieces = (table.slice(start, _ROWS_AT_ONCE) for start in range(0, table.num_rows, _ROWS_AT_ONCE))
        rows = [row for piece in pieces for row in piece.to_pylist()]
        return Response(to_json({"rows": rows}), media_type=JSON)
    return Response(table_bytes(table, kind), media_type=kind)


_ROWS_AT_ONCE = 200  # so that converting them keeps no other thread waiting for long


def table_bytes(table: pa.Table, kind: Kind) -> bytes:
    """A table in CSV or Arrow."""
    if kind == ARROW:
        return write_arrow(table)
    text = io.BytesIO()
    arrow_csv.write_csv(table, text)
    return text.getvalue()


def _accepted(header: str) -> list[tuple[str, float]]:
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
    """Have the memory that reading this body takes, in turn; without a kind it is a file, with JSON inside perhaps."""
    turns = shared_of(request).reading
    needed = await run_in_threadpool(memory_to_read, content, kind, turns.most)
    async with turns.taking(caller_name(request), needed):
        yield


def memory_to_read(content: bytes, kind: Kind | None, most: int) -> int:
    """Public: a bound on the bytes that a body takes once it is read, from a look at its characters; or one above most.

    Python keeps a character in up to 4 bytes, and an object, a list or a number of JSON in tens of bytes however short
    its text is: three characters of it may take 250 bytes.
    """
    each, signs = _MEMORY[kind]
    needed = each * len(content)
    for start in range(0, len(content), _PIECE):  # so that counting keeps no other thread waiting for long
        piece = content[start : start + _PIECE]
        needed += sum(size * piece.count(sign) for sign, size in signs.items())
        if needed > most:
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
"""Bytes per byte, and those of each sign."""

_EXPECTED = 'send {"rows": [{"column": cell, ...}, ...]}, a list of such objects, or one of them'
_WORDS = {pa.float64(): "numbers", pa.bool_(): "true or false", pa.string(): "text"}


def read_rows(content: bytes, kind: Kind, schema: Schema, most_rows: int) -> pa.Table:
    """The feature columns of the rows in a body; the target is not read."""
    features = schema.model_copy(update={"target": None, "person": None})
    if kind == JSON:
        table = rows_from_objects(_objects(read_json(content), schema), features, most_rows)
    elif kind == CSV:
        if content.partition(b"\n")[0].count(b",") >= MOST_COLUMNS:
            raise TooLarge(f"the file has more than {MOST_COLUMNS} columns: send those that the schema lists")
        table = parse_csv(content, features)
    else:
        assert kind == ARROW
        table = read_arrow(content, most_rows, features.columns)
    _check_count(table.num_rows, most_rows)
    return table


def rows_from_objects(rows: Sequence[Any], schema: Schema, most_rows: int) -> pa.Table:
    """A table from one object per row; columns that the schema does not list are not read."""
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
    return safely(lambda: pa.array(cells, kind), message)


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
