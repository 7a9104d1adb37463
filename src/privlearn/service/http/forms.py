"""Forms, read apart from the event loop where they may be large: their parser is slow, and an attacker knows it."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import Request
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from privlearn.service.http.limits import SMALL, aside, large_body
from privlearn.service.http.problems import Malformed
from privlearn.service.refusals import TooLarge

_MOST_FIELDS = 200
_URLENCODED = "application/x-www-form-urlencoded"


async def small_form(request: Request) -> FormData:
    """Of anybody; it has no file."""
    return await _parsed(request, max_files=0)


async def file_form(request: Request, megabytes: int) -> FormData:
    """Of a known caller, with one file."""
    async with large_body(request, megabytes):
        content = await request.body()
        if len(content) > SMALL and request.headers.get("content-type", "").startswith(_URLENCODED):
            raise TooLarge(
                "a form without a file is larger than 64 kilobytes: send it as multipart/form-data"
            )
        return await aside(request, _parse, dict(request.scope), content)


def content_of(form: FormData, name: str) -> bytes:
    """An uploaded file; empty if there is none."""
    found = form.get(name)
    if not isinstance(found, UploadFile):
        return b""
    found.file.seek(0)
    return found.file.read()


def _parse(scope: dict[str, Any], content: bytes) -> FormData:
    async def replay() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    return asyncio.run(_parsed(Request(scope, replay), max_files=1))


async def _parsed(request: Request, max_files: int) -> FormData:
    try:
        return await request.form(max_files=max_files, max_fields=_MOST_FIELDS)
    except (HTTPException, TooLarge):
        raise
    except Exception:  # whatever the parser met is the sender's
        pass
    raise Malformed("the form cannot be read: send it as a browser does")
