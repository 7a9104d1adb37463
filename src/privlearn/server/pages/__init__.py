"""The web pages: the holder's console and the analyst's desk, rendered on the server (docs/how-to/pages.md).

Pages call the same `Service` and the same `server.changes` as the HTTP interface, work without scripts, and load
nothing from other hosts. Start with `page.render`; `change.carry_out` runs every change by the holder as a form and
a question. One module per page; nothing imports this package except `server.server`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from privlearn.imports import export_late
from privlearn.server.pages import (
    analysts,
    approvals,
    console,
    dataset_changes,
    desk,
    result_page,
    sessions,
    signing,
    train_page,
)
from privlearn.server.pages.page import STATIC
from privlearn.server.pages.signing import refuse_with_pages

if TYPE_CHECKING:
    from privlearn.server.pages.choices import new_form_token
    from privlearn.server.pages.columns import field_views, point_of
    from privlearn.server.pages.figures import Axis, Figure, Line, meter, round_ticks
else:
    __getattr__ = export_late(__name__)


_ROUTERS = (
    signing.router,
    desk.router,
    train_page.router,
    result_page.router,
    sessions.router,
    approvals.router,
    console.router,
    analysts.router,
    dataset_changes.router,
)


def mount(app: FastAPI) -> None:
    """Add the pages to an application that has its API and its handlers of errors."""
    for router in _ROUTERS:
        app.include_router(router)
    app.mount("/static", _Lasting(directory=STATIC))
    refuse_with_pages(app)


class _Lasting(StaticFiles):
    """Style sheet and script, which browsers may cache: pages name them with their digest."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers["Cache-Control"] = "max-age=86400"
        return answer
