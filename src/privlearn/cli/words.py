"""Lists in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def listed(values: Sequence[Any], most: int = 8) -> str:
    """The first values of a list, and how many more there are."""
    shown = ", ".join(str(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"
