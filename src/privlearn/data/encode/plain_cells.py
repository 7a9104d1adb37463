"""A single cell of a plain Python type, read without Arrow: the same number in a hundredth of the time.

A session's points come one by one, and a table of one row costs almost as much as one of a thousand. Whatever is not
plain is left to `column_cells`, refusals too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privlearn.data.schema.public import EXACT, Value


def plain_number(cell: Any) -> float | None:
    """A number as `column_cells.numbers` reads it; None for what is missing, huge or no plain number."""
    return float(cell) + 0.0 if type(cell) in (int, float) and -EXACT < cell < EXACT else None


class ListedValues:
    """The public values of a column: where a plain cell stands among them."""

    def __init__(self, values: Sequence[Value]) -> None:
        self._wanted = type(values[0])
        self._places = {value: place for place, value in enumerate(values)}

    def place(self, cell: Any) -> int | None:
        """The place as `column_cells.codes` finds it; None for whatever is not listed in exactly this type."""
        return self._places.get(cell) if type(cell) is self._wanted else None


def single_row(data: Any, columns: Sequence[str]) -> dict[str, Any] | None:
    """The cells of a table of one row, if it is a mapping from names to lists of one cell each; else None."""
    if not isinstance(data, Mapping) or not all(type(name) is str for name in data):
        return None
    if not all(name in data and type(data[name]) is list and len(data[name]) == 1 for name in columns):
        return None
    return {name: data[name][0] for name in columns}
