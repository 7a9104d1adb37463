"""Spans that measure durations, for a server that exports them; otherwise a span costs nothing.

A span has a name from this list and nothing else, so it cannot reveal what it was about.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, TypeAlias

SpanName: TypeAlias = Literal["ledger.read", "ledger.write", "database.read", "database.write"]
Tracer: TypeAlias = Callable[[SpanName], AbstractContextManager[object]]


def _no_span(_: SpanName) -> AbstractContextManager[object]:
    return nullcontext()


_tracer: Tracer = _no_span


def span(name: SpanName) -> AbstractContextManager[object]:
    """Return a context manager whose duration is measured."""
    return _tracer(name)


def set_tracer(tracer: Tracer | None) -> None:
    """Measure spans of this process with this tracer from now on; None stops it."""
    global _tracer
    _tracer = tracer or _no_span
