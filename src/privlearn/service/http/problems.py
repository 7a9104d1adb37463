"""Errors over HTTP: problem+json (RFC 9457) with a reason and what to do, never a traceback, never a private value."""

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
from privlearn.service.http.logs import log_failure, request_id
from privlearn.service.refusals import (
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
    """A body or header that cannot be read as what it says it is."""


class UnknownKind(Refusal):
    """A body of a kind that this address does not read."""


class NotOffered(Refusal):
    """No kind of answer that the caller accepts is offered here."""


class Problem(BaseModel):
    """Why a request was refused (RFC 9457). Nothing was spent."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:privlearn:not-found",
                    "title": "Not Found",
                    "status": 404,
                    "detail": "there is no session of that id: GET /v1/sessions lists yours",
                }
            ]
        }
    )

    type: str = Field(description="The kind of problem, stable: for programs.")
    title: str = Field(description="The HTTP status in words.")
    status: int = Field(description="The HTTP status.", ge=400, le=599)
    detail: str = Field(description="What is wrong and what to do, for people.")
    instance: str | None = Field(
        default=None, description="Of an unexpected error: the request's id, which is in the holder's log."
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
    400: "The body or a header cannot be read as what it says it is.",
    401: "The key is missing or not valid.",
    403: "The key is valid, but not for this.",
    404: "There is nothing of that name that this key may see.",
    406: "No kind of answer that is accepted is offered.",
    408: "The request did not arrive in time.",
    409: "The budget has no room for it, or it contradicts what was done before.",
    413: "The body or the batch is larger than the holder allows.",
    415: "The body is of a kind that is not read here.",
    422: "A value cannot be used as given.",
    429: "Requests come more often than the holder allows.",
    503: "The server is busy, or the holder's database cannot be used at the moment.",
}
_HEADERS = {
    401: {"WWW-Authenticate": "Bearer"},
    413: {"Connection": "close"},  # the rest of the body is not waited for
    429: {"Retry-After": "5"},
    503: {"Retry-After": "5"},
}
_UNREACHABLE = "the holder's database cannot be used at the moment: try again later; nothing was spent"


def problem(
    status: int, detail: str, kind: str = "", headers: Mapping[str, str] | None = None, **more: str
) -> Response:
    """A problem as an answer."""
    title = HTTPStatus(status).phrase
    content = {"type": f"urn:privlearn:{kind or _kebab(title)}", "title": title, "status": status}
    sent = {**_HEADERS.get(status, {}), **(headers or {})}
    return JSONResponse(content | {"detail": detail} | more, status, sent, PROBLEM_JSON)


def defect(request: Request, error: Exception) -> Response:
    """What nobody foresaw: its message may quote anything, so only an id leaves, and its place is logged."""
    log_failure(request.scope, error)
    return problem(
        500,
        "an unexpected error: tell the data's holder the id in instance, which is in the log",
        instance=f"urn:privlearn:request:{request_id(request.scope)}",
    )


def refused(*statuses: int, key: bool = True) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of what an address may refuse, beside what every address that needs a key may."""
    content = {PROBLEM_JSON: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
    all_of_them = sorted({*statuses, *((401, 429, 503) if key else ())})
    return {status: {"description": _REASONS[status], "content": content} for status in all_of_them}


def handle_problems(app: FastAPI) -> None:
    """Make every error of the application a problem."""
    app.add_exception_handler(PrivlearnError, _of_privlearn)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_http)


def explain_invalid(errors: Sequence[Mapping[str, Any]], known: Iterable[str] = ()) -> str:
    """Pydantic's first findings: where and what, but not what was sent, of which unknown names are a part."""
    placed = [found for found in errors if found["type"] != "extra_forbidden"]
    told = [f"{'.'.join(map(str, found['loc'])) or 'body'}: {_words(found)}" for found in placed[:3]]
    if len(placed) < len(errors):
        told.append(f"there are members that are not known here: remove them, known are {', '.join(known)}")
    return "; ".join(told)


def _words(found: Mapping[str, Any]) -> str:
    message = str(found["msg"])
    return message[:1].lower() + message[1:]


async def _of_privlearn(request: Request, error: Any) -> Response:
    kinds = [kind for kind in type(error).__mro__ if kind in _STATUS]
    if not kinds:
        return defect(request, error)
    status = _STATUS[kinds[0]]
    told = str(error)
    if kinds[0] is LedgerError:  # whose own words name the holder's paths
        log_failure(request.scope, error)
        told = _UNREACHABLE
    return problem(status, told, _kebab(kinds[0].__name__))


async def _invalid(_: Request, error: Any) -> Response:
    return problem(422, explain_invalid(error.errors()), "invalid-parameter")


async def _of_http(request: Request, error: Any) -> Response:
    details = {
        404: "there is nothing at this address: GET /v1/openapi.json describes every one",
        405: "this address does not take that method: GET /v1/openapi.json says which it takes",
    }
    detail = details.get(error.status_code, str(error.detail))
    headers = _allowed(request) if error.status_code == 405 else {}
    return problem(error.status_code, detail, headers={**(error.headers or {}), **headers})


def _allowed(request: Request) -> dict[str, str]:
    """All methods of an address, where the router has seen one of its routes only."""
    for path, operations in request.app.openapi()["paths"].items():
        if compile_path(path)[0].match(request.url.path):
            return {"Allow": ", ".join(sorted(method.upper() for method in operations))}
    return {}


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).replace(" ", "-").replace("'", "").lower()
