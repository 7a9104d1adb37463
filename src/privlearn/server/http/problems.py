"""Errors over HTTP: problem+json (RFC 9457) with the reason and what to do; no traceback, no private value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from privlearn.errors import (
    BudgetExceeded,
    DataError,
    InvalidParameter,
    LedgerError,
    PrivlearnError,
    ReleaseError,
    SchemaError,
    SessionError,
)
from privlearn.server.http.logs import log_failure, request_id
from privlearn.server.refusals import (
    AccessRefused,
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    Refusal,
    TooLarge,
    TooMany,
)

PROBLEM_JSON = "application/problem+json"


class Malformed(Refusal):
    """The body or a header is not what it claims to be."""


class UnknownKind(Refusal):
    """The body has a media type that this address does not read."""


class NotOffered(Refusal):
    """The answer has none of the media types that the caller accepts."""


class Problem(BaseModel):
    """Why a request was refused (RFC 9457). Nothing was spent."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:privlearn:not-found",
                    "title": "Not Found",
                    "status": 404,
                    "detail": "there is no result with this id. List yours to find it.",
                }
            ]
        }
    )

    type: str = Field(description="The kind of problem, stable: for programs.")
    title: str = Field(description="Name of the HTTP status.")
    status: int = Field(description="The HTTP status.", ge=400, le=599)
    detail: str = Field(description="What is wrong and what to do, for people.")
    instance: str | None = Field(
        default=None, description="For an unexpected error: the request's id, which is in the holder's log."
    )


_STATUS: dict[type[PrivlearnError], int] = {
    Malformed: 400,
    AccessRefused: 401,
    Forbidden: 403,
    NotFound: 404,
    NotOffered: 406,
    Conflict: 409,
    BudgetExceeded: 409,
    SessionError: 409,
    TooLarge: 413,
    UnknownKind: 415,
    InvalidParameter: 422,
    DataError: 422,
    SchemaError: 422,
    ReleaseError: 422,
    TooMany: 429,
    Busy: 503,
    LedgerError: 503,
}
_REASONS = {
    400: "The body or a header is not what it claims to be.",
    401: "The key is missing or not valid.",
    403: "The key is valid, but not for this.",
    404: "There is nothing with this name that this key may see.",
    406: "The answer has none of the accepted media types.",
    408: "The request did not arrive in time.",
    409: "The budget is too small, or the request contradicts an earlier action.",
    413: "The body or the batch is larger than the holder allows.",
    415: "The media type of the body is not supported.",
    422: "A value is not valid.",
    429: "There are more requests than the holder allows.",
    503: "The server is busy, or the holder's database cannot be used at the moment.",
}
_HEADERS = {
    401: {"WWW-Authenticate": "Bearer"},
    413: {"Connection": "close"},  # the rest of the body is not read
    429: {"Retry-After": "5"},
    503: {"Retry-After": "5"},
}
_UNREACHABLE = "the holder's database cannot be used at the moment. Try again later; nothing was spent."


def problem(
    status: int, detail: str, kind: str = "", headers: Mapping[str, str] | None = None, **more: str
) -> Response:
    """Return a problem as a response."""
    title = HTTPStatus(status).phrase
    content = {"type": f"urn:privlearn:{kind or _kebab(title)}", "title": title, "status": status}
    sent = {**_HEADERS.get(status, {}), **(headers or {})}
    return JSONResponse(content | {"detail": detail} | more, status, sent, PROBLEM_JSON)


def defect(request: Request, error: Exception) -> Response:
    """Log an unexpected error and return a problem with the request's id only: the message may quote anything."""
    log_failure(request.scope, error)
    return problem(
        500,
        "there was an unexpected error. Report the id in instance to the holder, whose log has it.",
        instance=f"urn:privlearn:request:{request_id(request.scope)}",
    )


def problem_responses(*statuses: int, key: bool = True) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of the problems of a route; those of every route with a key are added."""
    content = {PROBLEM_JSON: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
    all_statuses = sorted({*statuses, *((401, 429, 503) if key else ())})
    return {status: {"description": _REASONS[status], "content": content} for status in all_statuses}


def handle_problems(app: FastAPI) -> None:
    """Make every error of the application a problem."""
    app.add_exception_handler(PrivlearnError, answer_refusal)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, answer_http_error)


def explain_invalid(errors: Sequence[Mapping[str, Any]], known: Iterable[str] = ()) -> str:
    """Describe pydantic's first errors: where and what, but not the input, which includes unknown names."""
    located = [found for found in errors if found["type"] != "extra_forbidden"]
    messages = [f"{'.'.join(map(str, found['loc'])) or 'body'}: {_message(found)}" for found in located[:3]]
    if len(located) < len(errors):
        messages.append(f"there are unknown members. Remove them; the known ones are {', '.join(known)}")
    return "; ".join(messages)


def _message(found: Mapping[str, Any]) -> str:
    message = str(found["msg"])
    return message[:1].lower() + message[1:]


async def answer_refusal(request: Request, error: Any) -> Response:
    """Return a refusal of privlearn's own code as a problem."""
    kinds = [kind for kind in type(error).__mro__ if kind in _STATUS]
    if not kinds:
        return defect(request, error)
    status = _STATUS[kinds[0]]
    detail = str(error)
    if kinds[0] is LedgerError:  # its messages name the holder's paths
        log_failure(request.scope, error)
        detail = _UNREACHABLE
    return problem(status, detail, _kebab(kinds[0].__name__))


async def _invalid(_: Request, error: Any) -> Response:
    return problem(422, explain_invalid(error.errors()), "invalid-parameter")


async def answer_http_error(request: Request, error: Any) -> Response:
    """Return an error of the framework as a problem."""
    details = {
        404: "there is nothing at this address. GET /v1/openapi.json describes all addresses.",
        405: "this address does not have this method. GET /v1/openapi.json describes its methods.",
    }
    detail = details.get(error.status_code, str(error.detail))
    headers = _allow_header(request) if error.status_code == 405 else {}
    return problem(error.status_code, detail, headers={**(error.headers or {}), **headers})


def _allow_header(request: Request) -> dict[str, str]:
    """Return all methods of an address; the router has seen only one of its routes."""
    for path, operations in request.app.openapi()["paths"].items():
        if compile_path(path)[0].match(request.url.path):
            return {"Allow": ", ".join(sorted(method.upper() for method in operations))}
    return {}


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).replace(" ", "-").replace("'", "").lower()
