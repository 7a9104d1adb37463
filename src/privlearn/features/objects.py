"""Objects that only a kernel of the user's own can read: texts, graphs, whatever bytes can hold and give back.

A session keeps every point that it has answered, knows it when it is asked again, and asks the kernel about it years
later. So a point is its canonical bytes: each object has one encoding, no two objects share one, and the kernel reads
what the bytes decode to, never the object that was handed over.
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
    "dict of those: turn other objects into such a form with key=, a function whose result the kernel then reads"
)
_LENGTH = struct.Struct("<Q")
_FLOAT = struct.Struct("<d")
_CONSTANTS = {b"N": None, b"T": True, b"F": False}


def object_to_bytes(value: Any) -> bytes:
    """The same bytes for the same object, whatever the machine; other bytes for every other object.

    A number's type counts, as a kernel may look at it: 1, 1.0 and True are three objects. 0.0 stands for -0.0, and
    numpy's scalars for the Python values that they hold.
    """
    return safely(lambda: _encoded(value), _UNKNOWN)


def object_from_bytes(content: bytes) -> Any:
    """The object, of plain Python types and read-only arrays."""
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
    """The object as its bytes give it back: what a kernel reads."""
    return object_from_bytes(object_to_bytes(value))


def listed_objects(points: Any) -> list[Any]:
    """Many points: a list or tuple of objects, a column of a table, or an array of one dimension."""
    if isinstance(points, str | bytes):
        raise DataError("one text is not a list of points: put it in a list")
    if isinstance(points, Mapping) or hasattr(points, "columns"):
        raise DataError("a kernel of your own takes a list of points, or pass schema=... for a table")
    if is_sparse(points) or len(getattr(points, "shape", (0,))) != 1:
        raise DataError(
            "a matrix is rows of numbers: pass norm_bound=..., a public bound of their norms; or list(X), if the "
            "kernel takes a list of arrays"
        )
    for method in ("to_pylist", "tolist"):  # pyarrow's, then numpy's and pandas's
        if hasattr(points, method):
            return list(getattr(points, method)())
    return safely(
        lambda: list(points), "the points are no list: give a list of objects that the kernel reads"
    )


def _encoded(value: Any) -> bytes:
    if isinstance(value, np.generic) and value.dtype.kind in "biufUS":
        value = value.item()
    kind = type(value)  # not isinstance: a subclass may differ in what a kernel sees of it
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
        return b"a" + _joined(_parts_of_array(value))
    if kind in (list, tuple):
        return (b"l" if kind is list else b"t") + _joined(map(_encoded, value))
    if kind is dict:
        return b"m" + _joined(sorted(_encoded(pair) for pair in value.items()))
    raise TypeError


def _parts_of_array(array: Any) -> Iterator[bytes]:
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or not np.isfinite(array).all():
        raise TypeError
    plain = np.array(array, dtype=array.dtype.newbyteorder("<"), order="C")
    if plain.dtype.kind == "f":
        plain += plain.dtype.type(0.0)
    yield plain.dtype.str.encode()
    yield _encoded(plain.shape)
    yield plain.tobytes()


def _array(dtype: bytes, shape: bytes, content: bytes) -> Any:
    stored = np.frombuffer(content, dtype=np.dtype(dtype.decode()))
    array = stored.astype(stored.dtype.newbyteorder("="), copy=False).reshape(object_from_bytes(shape))
    array.setflags(write=False)
    return array


def _joined(parts: Iterable[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def _parts(content: bytes) -> list[bytes]:
    parts, place = [], 0
    while place < len(content):
        start = place + _LENGTH.size
        place = start + _LENGTH.unpack_from(content, place)[0]
        parts.append(content[start:place])
    return parts
