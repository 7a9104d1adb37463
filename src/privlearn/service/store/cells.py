"""Cells of CSV files that people open: none of them may become a formula."""

from __future__ import annotations

import re
from typing import Any

_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def inert(cell: Any) -> Any:
    """The cell; with a quote before it, if a spreadsheet would compute it: numbers are as they were."""
    text = str(cell)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else cell
