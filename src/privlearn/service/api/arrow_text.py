"""Arrow streams from strangers: checked before anything is made of them."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from privlearn.data.quiet import quietly
from privlearn.errors import DataError
from privlearn.service.refusals import TooLarge

_UNREADABLE = "the body is not an Arrow stream that can be read: write it with pyarrow.ipc.new_stream"
_COMPRESSED = "the Arrow stream is compressed: write it without compression"
_HEADER = 2  # places of members in Arrow's Message, DictionaryBatch and RecordBatch tables
_DATA = 1
_COMPRESSION = 3


def read_arrow(content: bytes, most_rows: int) -> pa.Table:
    """The rows of an uncompressed stream, every offset and every text in it verified.

    Compression is refused: a few bytes could then ask for all of the memory.
    """
    if quietly(lambda: _is_compressed(content), _UNREADABLE):
        raise DataError(_COMPRESSED)
    batches = []
    stream = quietly(lambda: pa.ipc.open_stream(pa.BufferReader(content)), _UNREADABLE)
    rows = 0
    while (batch := quietly(lambda: next(stream, None), _UNREADABLE)) is not None:
        rows += batch.num_rows
        if rows > most_rows:
            raise TooLarge(f"the stream has more than {most_rows} rows: send smaller batches")
        quietly(lambda: batch.validate(full=True), _UNREADABLE)
        batches.append(batch)
    return pa.Table.from_batches(batches, stream.schema)


def write_arrow(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


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
