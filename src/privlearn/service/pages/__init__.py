"""The pages: the holder's console and the analyst's desk, rendered on the server (docs/how-to/pages.md).

They call the same facade as the HTTP interface, need no script, and load nothing from elsewhere.
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from privlearn.service.pages import (
    analysts,
    approvals,
    console,
    dataset_changes,
    desk,
    key_changes,
    provider,
    result_page,
    sessions,
    signing,
    train_page,
)
from privlearn.service.pages.page import STATIC
from privlearn.service.pages.signing import refuse_with_pages

_ROUTERS = (
    signing.router,
    provider.router,
    desk.router,
    train_page.router,
    result_page.router,
    sessions.router,
    approvals.router,
    console.router,
    analysts.router,
    key_changes.router,
    dataset_changes.router,
)


def mount(app: FastAPI) -> None:
    """Add the pages to an application that has its API and its handlers of errors."""
    for router in _ROUTERS:
        app.include_router(router)
    app.mount("/static", _Lasting(directory=STATIC))
    refuse_with_pages(app)


class _Lasting(StaticFiles):
    """Style and script, which browsers may keep: a page names them with their digest."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers["Cache-Control"] = "max-age=86400"
        return answer
