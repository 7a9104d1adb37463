"""Read JSON and forms of untrusted callers: only values that the rest of the server can store and answer with."""

from __future__ import annotations

import asyncio
import json
import math
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

import msgspec
from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from privlearn.errors import InvalidParameter
from privlearn.server.http.capacity import SMALL, large_body, run_heavy
from privlearn.server.http.problems import Malformed, explain_invalid
from privlearn.server.refusals import TooLarge

Model = TypeVar("Model", bound=BaseModel)


def read_json(content: bytes) -> Any:
    """Return the value of a JSON text in UTF-8; refuse NaN, Infinity, repeated names, NUL and lone surrogates.

    msgspec reads it in one pass and refuses all of that but repeated names and what an escape can hide. Without
    escapes, and with as many colons as members, neither can occur: every member of the text has a colon. Otherwise
    the exact reader decides.
    """
    if b"\\u" not in content:
        with suppress(ValueError, RecursionError):  # msgspec raises ValueErrors; the exact reader explains
            value = msgspec.json.decode(content)
            if content.count(b":") == _count_members(value):
                return value
    return _read_exactly(content)


def _count_members(value: Any) -> int:
    """Return the number of members of an object, and of the objects in its or this list of rows."""
    count, rows = 0, value
    if isinstance(value, dict):
        count, rows = len(value), value.get("rows")
    if isinstance(rows, list):
        count += sum(len(row) for row in rows if type(row) is dict)
    return count


def _read_exactly(content: bytes) -> Any:
    try:
        text = content.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_members, parse_constant=_refuse_constant, parse_float=_finite_number
        )
        if "\\u" in text:  # without escapes, UTF-8 and JSON already exclude such characters
            _check_characters(value)
        return value
    except Malformed:
        raise
    except (ValueError, RecursionError):  # their messages quote the text
        pass
    raise Malformed("the body is not JSON in UTF-8, or is nested too deeply. Correct it.")


def read_value(model: type[Model], value: Any) -> Model:
    """Return a JSON value as a model; unknown members are refused."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        reason = explain_invalid(found, model.model_fields)
    raise InvalidParameter(reason)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Malformed("an object of the body has a name twice. Send it once.")
    return members


def _refuse_constant(_: str) -> NoReturn:
    raise Malformed("JSON has no NaN or Infinity. Write null for a missing cell.")


def _finite_number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Malformed("the body has a number that is too large for a double. Send a smaller one.")
    return number


def _check_characters(value: Any) -> None:
    """Refuse text that the database or an answer cannot store."""
    if isinstance(value, str):
        value.encode("utf-8")  # raises ValueError for a lone surrogate
        if "\0" in value:
            raise Malformed("the body has text with the character NUL. Remove it.")
    elif isinstance(value, dict):
        for name, member in value.items():
            _check_characters(name)
            _check_characters(member)
    elif isinstance(value, list):
        for member in value:
            _check_characters(member)


_MAX_FIELDS = 200
_URLENCODED = "application/x-www-form-urlencoded"


async def small_form(request: Request) -> FormData:
    """Return a form without a file, of any caller."""
    return await _parse_form(request, max_files=0)


async def file_form(request: Request, megabytes: int) -> FormData:
    """Return a form with one file, of an authenticated caller."""
    async with large_body(request, megabytes):
        content = await request.body()
        if len(content) > SMALL and request.headers.get("content-type", "").startswith(_URLENCODED):
            raise TooLarge("a form without a file is larger than 64 kilobytes. Send multipart/form-data.")
        return await run_heavy(request, _parse, dict(request.scope), content)


def content_of(form: FormData, name: str) -> bytes:
    """Return the content of an uploaded file; empty if there is none."""
    upload = form.get(name)
    if not isinstance(upload, UploadFile):
        return b""
    upload.file.seek(0)
    return upload.file.read()


def _parse(scope: dict[str, Any], content: bytes) -> FormData:
    async def replay() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    return asyncio.run(_parse_form(Request(scope, replay), max_files=1))


async def _parse_form(request: Request, max_files: int) -> FormData:
    try:
        return await request.form(max_files=max_files, max_fields=_MAX_FIELDS)
    except (HTTPException, TooLarge):
        raise
    except Exception:  # the parser fails because of what the caller sent
        pass
    raise Malformed("the form cannot be read. Send it as a browser does.")
