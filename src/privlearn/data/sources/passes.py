"""Who wants to know how far a long computation is: passes over the rows so far, and rows read in the present one.

What is told follows from the rows (how many passes a solver needs, above all): it is for the trusted side alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class Passes:
    """PRIVATE: how far the work inside `watch_passes` is.

    Attributes
    ----------
    number : int
        Of the present pass, counted from 1. How many there will be, nobody knows before.
    rows : int
        Read in the present pass.
    total : int or None
        Rows of the present pass, as far as that is known.
    is_under_way : bool
        Whether a pass is being read: what goes through one of its blocks again is no pass of its own.
    """

    def __init__(self, tell: Callable[[Passes], None] | None) -> None:
        self._tell = tell
        self.number = self.rows = 0
        self.total: int | None = None
        self.is_under_way = False

    def __str__(self) -> str:
        of_all = "" if self.total is None else f" of {self.total:,}"
        return f"pass {self.number}, row {self.rows:,}{of_all}"

    def begin(self, total: int | None) -> None:
        self.number, self.rows, self.total = self.number + 1, 0, total

    def advance(self, rows: int) -> None:
        self.rows += rows
        if self._tell is not None:
            self._tell(self)


_watching: ContextVar[Passes | None] = ContextVar("passes", default=None)


@contextmanager
def watch_passes(tell: Callable[[Passes], None] | None = None) -> Iterator[Passes]:
    """Call ``tell`` after every block that is read inside the ``with`` block, on the trusted side.

    Examples
    --------
    >>> from privlearn.data.sources.row_source import TableRows, read_each
    >>> import pyarrow as pa
    >>> with watch_passes(print) as passes:
    ...     read = list(read_each(TableRows(pa.table({"age": [30, 40]})), len))
    pass 1, row 2
    """
    passes = Passes(tell)
    token = _watching.set(passes)
    try:
        yield passes
    finally:
        _watching.reset(token)


def watched(blocks: Iterator[Any], total: int | None = None) -> Iterator[Any]:
    """The blocks of one pass, counted for whoever watches."""
    passes = _watching.get()
    if passes is None or passes.is_under_way:
        yield from blocks
        return
    passes.begin(total)
    passes.is_under_way = True
    try:
        for block in blocks:
            yield block
            passes.advance(number_of_rows(block))
    finally:
        passes.is_under_way = False


def number_of_rows(block: Any) -> int:
    """Of a table, a matrix, or cells by column, which need not know it themselves."""
    return int((block if hasattr(block, "shape") else next(iter(block.values()))).shape[0])
