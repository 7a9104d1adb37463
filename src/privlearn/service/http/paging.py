"""Lists over HTTP come in pages; a header leads to the next one (RFC 8288)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from privlearn.service.http.callers import ID

Limit = Annotated[int, Query(ge=1, le=1000, description="How many.", examples=[100])]
Before = Annotated[
    str | None,
    Query(pattern=ID, description="Only those after this one in the list.", examples=["9f86d081884c7d65"]),
]

LIMIT = 100


def link_next(request: Request, response: Response, found: Sequence[Any], limit: int, last: str) -> None:
    """Say where the list goes on, if it may."""
    if len(found) == limit:
        query = urlencode({**request.query_params, "limit": limit, "before": last})
        response.headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
