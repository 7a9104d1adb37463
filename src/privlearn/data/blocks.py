"""Rows worked on a block at a time, so that intermediate arrays stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator

BLOCK = 1024  # rows; measured best of 512 to 8192 on a million rows of 241 features


def blocks(count: int) -> Iterator[slice]:
    """Slices that cover ``range(count)``."""
    for start in range(0, count, BLOCK):
        yield slice(start, min(start + BLOCK, count))
