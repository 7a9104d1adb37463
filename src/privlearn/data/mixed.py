"""A column whose cells differ in type, as an Arrow column in which each cell stays what it is.

Whatever finds one type for all cells of a column lets one person's cell decide how the others are read.
"""

from __future__ import annotations

import decimal
import math
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NUMBER, WHOLE, TRUTH, TEXT, MISSING_CELL, UNREADABLE = range(6)

_FIELDS = [
    pa.field("number", pa.float64()),
    pa.field("whole", pa.int64()),
    pa.field("truth", pa.bool_()),
    pa.field("text", pa.large_string()),
    pa.field("missing", pa.null()),
    pa.field("unreadable", pa.null()),
]
MIXED = pa.sparse_union(_FIELDS)
"""One child for each kind of cell, null where a cell is of another kind."""


def mixed(cells: Iterable[Any]) -> Any:
    """Each cell by itself: text, true or false, a whole number or another, missing, or unreadable."""
    read = [_read(cell) for cell in cells]
    kinds = np.array([kind for kind, _ in read], dtype=np.int8)
    children = [
        pa.array([value if kind == place else None for kind, value in read], field.type)
        for place, field in enumerate(_FIELDS)
    ]
    return pa.UnionArray.from_sparse(pa.array(kinds), children, [field.name for field in _FIELDS])


def kinds_of(column: Any) -> NDArray[np.int8]:
    """The kind of each cell of a mixed array."""
    return np.asarray(column.type_codes.to_numpy(), dtype=np.int8)


def in_one_type(column: Any, kinds: tuple[int, ...]) -> Any:
    """The cells of a mixed array as floats, text or truth values; ``None`` if one is not of those kinds."""
    if not np.isin(kinds_of(column), (*kinds, MISSING_CELL)).all():
        return None
    parts = [column.field(kind) for kind in kinds]
    if len(kinds) > 1:
        parts = [pc.coalesce(*(part.cast(pa.float64(), safe=False) for part in parts))]
    return pa.chunked_array(parts)


def _read(cell: Any) -> tuple[int, Any]:
    match cell:
        case str():
            return (TEXT, cell) if _is_utf8(cell) else (UNREADABLE, None)
        case bool() | np.bool_():
            return TRUTH, bool(cell)
        case int() | np.integer():
            return (WHOLE, int(cell)) if -(2**63) <= cell < 2**63 else (NUMBER, _nearest(cell))
        case float() | np.floating() | decimal.Decimal():
            number = _nearest(cell)
            return (MISSING_CELL, None) if math.isnan(number) else (NUMBER, number)
    return (MISSING_CELL, None) if _is_missing(cell) else (UNREADABLE, None)


def _nearest(number: Any) -> float:
    """The nearest float; infinity beyond all floats."""
    if isinstance(number, decimal.Decimal) and number.is_nan():
        return math.nan  # a signalling one would raise
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _is_missing(cell: Any) -> bool:
    pandas = sys.modules.get("pandas")  # if it was never imported, none of its marks can occur
    return cell is None or (pandas is not None and (cell is pandas.NA or cell is pandas.NaT))


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
