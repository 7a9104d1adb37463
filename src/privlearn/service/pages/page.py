"""What all pages need: forms that this site itself has sent, and files to be kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from privlearn.errors import PrivlearnError
from privlearn.service.api.problems import defect
from privlearn.service.keys import Caller
from privlearn.service.pages.rendering import render
from privlearn.service.refusals import Forbidden

_HEADINGS = {404: "Not found", 409: "Not possible", 413: "Too large", 422: "This cannot be used"}
_OWN = ("same-origin", "none")  # none: typed or chosen by the visitor


def check_origin(request: Request) -> None:
    """A browser says of every request which site made it; by the cookie alone any site could act for a visitor."""
    if request.method == "GET":
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin", "")
    own = site in _OWN if site else origin.partition("://")[2] == request.headers.get("host")
    if not own:
        raise Forbidden("this form was sent from another site: open the page here and send it again")


class Page(APIRoute):
    """An address whose unforeseen errors are pages too."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_page(request: Request) -> Response:
            try:
                return await handle(request)
            except (PrivlearnError, HTTPException, RequestValidationError):
                raise  # foreseen: the application has handlers for them
            except Exception as error:
                return problem_page(request, None, defect(request, error))

        return handle_page


def page_router() -> APIRouter:
    return APIRouter(dependencies=[Depends(check_origin)], include_in_schema=False, route_class=Page)


def problem_page(request: Request, caller: Caller | None, answer: Response) -> Response:
    """What the HTTP interface answers to programs, said to people."""
    problem = json.loads(bytes(answer.body))
    heading = _HEADINGS.get(answer.status_code, problem["title"])
    message = problem["detail"][:1].upper() + problem["detail"][1:] + "."
    number = problem.get("instance", "")
    return render(
        request, caller, "problem.html", answer.status_code, heading=heading, message=message, number=number
    )


async def _form(request: Request) -> AsyncIterator[FormData]:
    async with request.form(max_files=1) as form:
        yield form


Form = Annotated[FormData, Depends(_form)]


def text_of(form: FormData, name: str) -> str:
    """What was typed or chosen; empty if nothing was."""
    found = form.get(name, "")
    return found.strip() if isinstance(found, str) else ""


def content_of(form: FormData, name: str) -> bytes:
    """An uploaded file; empty if none was chosen."""
    found = form.get(name)
    return found.file.read() if isinstance(found, UploadFile) else b""


def download(content: bytes, kind: str, name: str) -> Response:
    """A file to be kept; its name is one of ours and needs no quoting."""
    return Response(
        content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
