"""Long lists in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from fastapi import Query

Item = TypeVar("Item")

SIZE = 25
Skip = Annotated[int, Query(ge=0, le=10**9)]
"""How many of the newest a page leaves out."""


@dataclass(frozen=True)
class Piece(Generic[Item]):
    """A part of a list that begins with the newest."""

    items: Sequence[Item]
    newer: int | None
    older: int | None


def piece_of(newest_first: Sequence[Item], skip: int) -> Piece[Item]:
    following = skip + SIZE
    return Piece(
        newest_first[skip:following],
        newer=max(skip - SIZE, 0) if skip else None,
        older=following if following < len(newest_first) else None,
    )
