"""Lists over HTTP come in pages; a header leads to the next one (RFC 8288)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import Depends, Query, Request, Response

from privlearn.service.http.callers import ID

Limit = Annotated[int, Query(ge=1, le=1000, description="How many.", examples=[100])]
Before = Annotated[
    str | None,
    Query(pattern=ID, description="Only those after this one in the list.", examples=["9f86d081884c7d65"]),
]

LIMIT = 100

Item = TypeVar("Item")


def link_next(request: Request, response: Response, found: Sequence[Any], limit: int, last: str) -> None:
    """Say where the list goes on, if it may."""
    if len(found) == limit:
        query = urlencode({**request.query_params, "limit": limit, "before": last})
        response.headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'


@dataclass(frozen=True)
class PartOfList:
    """Which part of a list of jobs, or of what they made, is asked for."""

    limit: int
    before: str | None
    _request: Request
    _response: Response

    def linked(self, found: Sequence[Item]) -> Sequence[Item]:
        """What was found; the answer says where it goes on."""
        last: Any = found[-1] if found else None
        link_next(self._request, self._response, found, self.limit, "" if last is None else last.id)
        return found


async def _part_of(
    request: Request, response: Response, limit: Limit = LIMIT, before: Before = None
) -> PartOfList:
    return PartOfList(limit, before, request, response)


Part = Annotated[PartOfList, Depends(_part_of)]
