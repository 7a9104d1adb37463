"""Marks of how long something takes, for a server that exports them; unless one does, a mark costs nothing.

A mark is a name of this list and nothing more: what is marked cannot tell what it was about.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, TypeAlias

Mark: TypeAlias = Literal["ledger.read", "ledger.write", "database.read", "database.write"]
Marker: TypeAlias = Callable[[Mark], AbstractContextManager[object]]


def _unmarked(_: Mark) -> AbstractContextManager[object]:
    return nullcontext()


_marker: Marker = _unmarked


def marked(name: Mark) -> AbstractContextManager[object]:
    """A block whose duration may be known outside."""
    return _marker(name)


def mark_with(marker: Marker | None) -> None:
    """From now on, in this process; ``None`` ends it."""
    global _marker
    _marker = marker or _unmarked
