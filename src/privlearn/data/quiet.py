"""Conversions whose own error messages quote cells, made to fail without quoting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from privlearn.errors import DataError

Result = TypeVar("Result")


def quietly(convert: Callable[[], Result], message: str) -> Result:
    """Return ``convert()``, or raise ``DataError(message)`` that keeps nothing of the original error.

    The error is raised after the handler has ended, because an error raised inside it would carry the
    original one, quoted cell included, as its ``__context__``.
    """
    try:
        return convert()
    except MemoryError:
        raise
    except Exception:
        pass  # whatever a reader raises may quote a cell
    raise DataError(message)
