"""Encode objects that only a user's kernel can read (texts, graphs, ...) as canonical bytes.

A session stores every point that it has answered, recognises it in later queries, and may pass it to the kernel years
later. Therefore each object has exactly one encoding, different objects have different encodings, and the kernel always
reads the decoded object, never the one that was passed.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from privlearn.arrays import is_sparse
from privlearn.data.sources.table import safely
from privlearn.errors import DataError

_UNKNOWN = (
    "a point must be text, bytes, a finite number, True, False, None, a numpy array of numbers, or a list, tuple or "
    "dict of those. Convert other objects with key=, a function whose result the kernel reads."
)
_LENGTH = struct.Struct("<Q")
_FLOAT = struct.Struct("<d")
_CONSTANTS = {b"N": None, b"T": True, b"F": False}


def object_to_bytes(value: Any) -> bytes:
    """Return the bytes of an object: the same on all machines, and different for different objects.

    Types of numbers count, since a kernel may depend on them: 1, 1.0 and True are three objects. -0.0 is encoded as
    0.0, and numpy's scalars as Python's.
    """
    return safely(lambda: _encode(value), _UNKNOWN)


def object_from_bytes(content: bytes) -> Any:
    """Return the object, of plain Python types and read-only arrays."""
    kind, rest = content[:1], content[1:]
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    match kind:
        case b"i":
            return int.from_bytes(rest, "little", signed=True)
        case b"d":
            return _FLOAT.unpack(rest)[0]
        case b"s":
            return rest.decode("utf-8", "surrogatepass")
        case b"b":
            return rest
        case b"a":
            return _array(*_parts(rest))
        case b"l":
            return [object_from_bytes(part) for part in _parts(rest)]
        case b"t":
            return tuple(object_from_bytes(part) for part in _parts(rest))
    return dict(object_from_bytes(part) for part in _parts(rest))


def canonical(value: Any) -> Any:
    """Return the object decoded from its bytes, as a kernel reads it."""
    return object_from_bytes(object_to_bytes(value))


def list_objects(points: Any) -> list[Any]:
    """Return points as a list, from a list or tuple of objects, a column of a table or a 1-D array."""
    if isinstance(points, str | bytes):
        raise DataError("one text is not a list of points. Put it in a list.")
    if isinstance(points, Mapping) or hasattr(points, "columns"):
        raise DataError("a custom kernel needs a list of points. For a table, pass schema=...")
    if is_sparse(points) or len(getattr(points, "shape", (0,))) != 1:
        raise DataError(
            "a matrix has rows of numbers. Pass norm_bound=..., a public bound of their norms; or list(X), if the "
            "kernel reads a list of arrays."
        )
    for method in ("to_pylist", "tolist"):  # pyarrow's, then numpy's and pandas's
        if hasattr(points, method):
            return list(getattr(points, method)())
    return safely(
        lambda: list(points), "the points are not a list. Pass a list of objects that the kernel reads."
    )


def _encode(value: Any) -> bytes:
    if isinstance(value, np.generic) and value.dtype.kind in "biufUS":
        value = value.item()
    kind = type(value)  # not isinstance: a kernel may treat a subclass differently
    if value is None or kind is bool:
        return next(name for name, constant in _CONSTANTS.items() if constant is value)
    if kind is int:
        return b"i" + int.to_bytes(value, value.bit_length() // 8 + 1, "little", signed=True)
    if kind is float and math.isfinite(value):
        return b"d" + _FLOAT.pack(value + 0.0)
    if kind is str:
        return b"s" + str.encode(value, "utf-8", "surrogatepass")
    if kind is bytes:
        return b"b" + bytes(value)
    if kind is np.ndarray:
        return b"a" + _join(_parts_of_array(value))
    if kind in (list, tuple):
        return (b"l" if kind is list else b"t") + _join(map(_encode, value))
    if kind is dict:
        return b"m" + _join(sorted(_encode(pair) for pair in value.items()))
    raise TypeError


def _parts_of_array(array: Any) -> Iterator[bytes]:
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or not np.isfinite(array).all():
        raise TypeError
    plain = np.array(array, dtype=array.dtype.newbyteorder("<"), order="C")
    if plain.dtype.kind == "f":
        plain += plain.dtype.type(0.0)
    yield plain.dtype.str.encode()
    yield _encode(plain.shape)
    yield plain.tobytes()


def _array(dtype: bytes, shape: bytes, content: bytes) -> Any:
    stored = np.frombuffer(content, dtype=np.dtype(dtype.decode()))
    array = stored.astype(stored.dtype.newbyteorder("="), copy=False).reshape(object_from_bytes(shape))
    array.setflags(write=False)
    return array


def _join(parts: Iterable[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def _parts(content: bytes) -> list[bytes]:
    parts, end = [], 0
    while end < len(content):
        start = end + _LENGTH.size
        end = start + _LENGTH.unpack_from(content, end)[0]
        parts.append(content[start:end])
    return parts
