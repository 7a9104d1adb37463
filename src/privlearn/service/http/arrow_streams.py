"""Arrow streams of strangers: read with limits on what a few bytes may become, and written."""

from __future__ import annotations

import struct
from collections.abc import Collection
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privlearn.data.sources.table import safely
from privlearn.errors import DataError
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
