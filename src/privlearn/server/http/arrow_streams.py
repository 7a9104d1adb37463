"""Read and write Arrow streams of untrusted callers, with limits on the memory that a few bytes may expand to."""

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
from privlearn.server.refusals import TooLarge

_UNREADABLE = "the body is not a readable Arrow stream. Write it with pyarrow.ipc.new_stream."
_COMPRESSED = "the Arrow stream is compressed. Write it without compression."
_HEADER = 2  # indices of members in Arrow's Message, DictionaryBatch and RecordBatch tables
_DATA = 1
_COMPRESSION = 3
_VIEW = 4  # 32-bit integers of a string view; the first is the length of the text
_MAX_SHARED_TEXT = 1 << 24


def read_arrow(content: bytes, max_rows: int, requested: Collection[str]) -> pa.Table:
    """Return the requested columns of an uncompressed stream, after verifying every offset and text in them.

    Refuses what could expand a few bytes to all of the memory: compression, text that many cells share, and types other
    than numbers, text, dates and booleans.
    """
    if safely(lambda: _is_compressed(content), _UNREADABLE):
        raise DataError(_COMPRESSED)
    batches = []
    stream = safely(lambda: pa.ipc.open_stream(pa.BufferReader(content)), _UNREADABLE)
    names = _plain_columns(stream.schema, safely(lambda: stream.schema.names, _UNREADABLE), requested)
    rows = text = 0
    while (batch := safely(lambda: next(stream, None), _UNREADABLE)) is not None:
        rows += batch.num_rows
        if rows > max_rows:
            raise TooLarge(f"the stream has more than {max_rows} rows. Send smaller batches.")
        batch = safely(partial(_select_verified, batch, names), _UNREADABLE)
        text += sum(_shared_text(column) for column in batch.columns)
        if text > max(len(content), _MAX_SHARED_TEXT):
            raise TooLarge("the text of the cells is too long. Send shorter text, or smaller batches.")
        batches.append(batch)
    return pa.Table.from_batches(batches, pa.schema([stream.schema.field(name) for name in names]))


def _select_verified(batch: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    selected = batch.select(names)
    selected.validate(full=True)
    return selected


def _plain_columns(schema: pa.Schema, sent: list[str], requested: Collection[str]) -> list[str]:
    """Return the requested columns that the stream has; refuse types whose cells expand in memory."""
    if len(schema) > MAX_COLUMNS:
        raise TooLarge(f"the stream has more than {MAX_COLUMNS} columns. Send only those of the schema.")
    names = [name for name in sent if name in requested]
    if len(set(names)) != len(names):
        raise DataError("the stream has a column twice. Send it once.")
    for name in names:
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not any(is_plain(kind) for is_plain in _PLAIN):
            raise DataError(f"the type of column {name!r} is not supported. Send {_PLAIN_TYPES}.")
    return names


MAX_COLUMNS = 10_000
_PLAIN_TYPES = "numbers, text, dates, or true and false"
_PLAIN = (
    pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal,
    pa.types.is_date, pa.types.is_timestamp, pa.types.is_string, pa.types.is_large_string,
    pa.types.is_string_view,
)  # fmt: skip


def write_arrow(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _shared_text(column: pa.Array) -> int:
    """Return the bytes of text that a column's cells refer to, if cells may share text; otherwise 0."""
    if pa.types.is_dictionary(column.type):
        used = column.indices.drop_null().to_numpy()
        return int(_lengths(column.dictionary)[used].sum())
    return int(_lengths(column).sum()) if pa.types.is_string_view(column.type) else 0


def _lengths(texts: pa.Array) -> NDArray[np.int64]:
    """Return the length in bytes of each text, without copying the texts."""
    if not pa.types.is_string_view(texts.type):
        is_text = pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)
        lengths = pc.binary_length(texts).fill_null(0).to_numpy() if is_text else np.zeros(len(texts))
        return np.asarray(lengths, dtype=np.int64)
    if not len(texts):
        return np.zeros(0, dtype=np.int64)
    views = np.frombuffer(texts.buffers()[1], "<i4").reshape(-1, _VIEW)[texts.offset :][: len(texts)]
    valid = texts.is_valid().to_numpy(zero_copy_only=False)
    return np.where(valid, views[:, 0], 0).astype(np.int64)


def _is_compressed(content: bytes) -> bool:
    """Return whether any batch is compressed. Arrow verifies the messages, but does not unpack their bodies."""
    messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(content))
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return False
        if message.type != "schema" and _has_compression(message):
            return True


def _has_compression(message: Any) -> bool:
    table = memoryview(message.metadata)
    batch = _member(table, _offset(table, 0), _HEADER)
    if message.type == "dictionary":
        batch = _member(table, batch, _DATA)
    return _entry(table, batch, _COMPRESSION) != 0


def _member(table: memoryview, position: int, member: int) -> int:
    """Return the position of a table inside a flatbuffer's table."""
    return _offset(table, position + _entry(table, position, member))


def _entry(table: memoryview, position: int, member: int) -> int:
    """Return the offset of a member relative to its table; 0 if it is absent."""
    (back,) = struct.unpack_from("<i", table, position)
    (size,) = struct.unpack_from("<H", table, position - back)
    slot = 4 + 2 * member
    return int(struct.unpack_from("<H", table, position - back + slot)[0]) if slot < size else 0


def _offset(table: memoryview, position: int) -> int:
    return position + int(struct.unpack_from("<I", table, position)[0])
