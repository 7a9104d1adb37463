"""What all pages need: forms that this site itself has sent, and files to be kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from starlette.datastructures import FormData, UploadFile

from privlearn.service.refusals import Forbidden

_OWN = ("same-origin", "none")  # none: typed or chosen by the visitor


def check_origin(request: Request) -> None:
    """A browser says of every request which site made it; by the cookie alone any site could act for a visitor."""
    if request.method == "GET":
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin", "")
    own = site in _OWN if site else origin.partition("://")[2] == request.headers.get("host")
    if not own:
        raise Forbidden("this form was sent from another site: open the page here and send it again")


def page_router() -> APIRouter:
    return APIRouter(dependencies=[Depends(check_origin)], include_in_schema=False)


async def _form(request: Request) -> FormData:
    return await request.form(max_files=1)


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
