"""Arrow streams from strangers: checked before anything is made of them."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privlearn.data.quiet import quietly
from privlearn.errors import DataError
from privlearn.service.refusals import TooLarge

_UNREADABLE = "the body is not an Arrow stream that can be read: write it with pyarrow.ipc.new_stream"
_COMPRESSED = "the Arrow stream is compressed: write it without compression"
_HEADER = 2  # places of members in Arrow's Message, DictionaryBatch and RecordBatch tables
_DATA = 1
_COMPRESSION = 3
_VIEW = 4  # integers of a string view, of which the first is the text's length
_MOST_REFERRED = 1 << 24


def read_arrow(content: bytes, most_rows: int) -> pa.Table:
    """The rows of an uncompressed stream, every offset and every text in it verified.

    Compression is refused, and text that many cells refer to: a few bytes could then ask for all of the memory.
    """
    if quietly(lambda: _is_compressed(content), _UNREADABLE):
        raise DataError(_COMPRESSED)
    batches = []
    stream = quietly(lambda: pa.ipc.open_stream(pa.BufferReader(content)), _UNREADABLE)
    rows = text = 0
    while (batch := quietly(lambda: next(stream, None), _UNREADABLE)) is not None:
        rows += batch.num_rows
        if rows > most_rows:
            raise TooLarge(f"the stream has more than {most_rows} rows: send smaller batches")
        quietly(lambda: batch.validate(full=True), _UNREADABLE)
        text += sum(_referred(column) for column in batch.columns)
        if text > max(len(content), _MOST_REFERRED):
            raise TooLarge("the text that cells refer to is too long: send shorter text, or smaller batches")
        batches.append(batch)
    return pa.Table.from_batches(batches, stream.schema)


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
