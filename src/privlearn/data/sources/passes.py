"""Progress of a long computation: the number of the current pass over the rows, and the rows read in it.

Progress depends on the rows (on the number of passes a solver needs, above all), so only the trusted side may see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class Passes:
    """PRIVATE: the progress of the work inside `watch_passes`.

    Attributes
    ----------
    number : int
        Number of the current pass, counted from 1. The total is not known in advance.
    rows : int
        Rows read in the current pass.
    total : int or None
        Rows of the current pass, if known.
    is_under_way : bool
        Whether a pass is being read: reading one of its blocks again is not a pass.
    """

    def __init__(self, report: Callable[[Passes], None] | None) -> None:
        self._report = report
        self.number = self.rows = 0
        self.total: int | None = None
        self.is_under_way = False

    def __str__(self) -> str:
        of_total = "" if self.total is None else f" of {self.total:,}"
        return f"pass {self.number}, row {self.rows:,}{of_total}"

    def begin(self, total: int | None) -> None:
        self.number, self.rows, self.total = self.number + 1, 0, total

    def advance(self, rows: int) -> None:
        self.rows += rows
        if self._report is not None:
            self._report(self)


_current: ContextVar[Passes | None] = ContextVar("passes", default=None)


@contextmanager
def watch_passes(report: Callable[[Passes], None] | None = None) -> Iterator[Passes]:
    """Call ``report`` after every block that is read inside the ``with`` block, on the trusted side.

    Examples
    --------
    >>> from privlearn.data.sources.row_source import TableRows, read_each
    >>> import pyarrow as pa
    >>> with watch_passes(print) as passes:
    ...     read = list(read_each(TableRows(pa.table({"age": [30, 40]})), len))
    pass 1, row 2
    """
    passes = Passes(report)
    token = _current.set(passes)
    try:
        yield passes
    finally:
        _current.reset(token)


def count_pass(blocks: Iterator[Any], total: int | None = None) -> Iterator[Any]:
    """Yield the blocks of one pass, and report them to `watch_passes`."""
    passes = _current.get()
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
    """Return the number of rows of a table, of a matrix, or of cells by column."""
    return int((block if hasattr(block, "shape") else next(iter(block.values()))).shape[0])
