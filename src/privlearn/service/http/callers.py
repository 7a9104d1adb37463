"""Who calls, and what they send."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from privlearn.service.access.keys import Caller, authenticate, known_caller
from privlearn.service.http.json_bodies import Model, read_model
from privlearn.service.http.limits import Limiter, note_caller
from privlearn.service.http.logs import note
from privlearn.service.http.media_types import ARROW, CSV, JSON, kind_sent
from privlearn.service.refusals import AccessRefused, Forbidden
from privlearn.service.service import Service

_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    bearerFormat="pl_ID_SECRET",
    description="As `privlearn keys create` prints it.",
)


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def address_of(request: Request) -> str:
    return request.client.host if request.client else ""


async def caller_of(
    request: Request, shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Caller:
    """Whoever shows a valid key; the same refusal for all others."""
    limiter: Limiter = request.app.state.limiter
    if shown is None:
        raise AccessRefused("show your key: Authorization: Bearer pl_...")
    store = service_of(request).store
    try:
        caller = known_caller(store, shown.credentials)
        if caller is None:  # a look into the database may take its time
            caller = await run_in_threadpool(authenticate, store, shown.credentials)
    except AccessRefused:
        limiter.failed(address_of(request))
        raise
    note(request.scope, key=caller.key_id)
    note_caller(request.scope, caller.name)
    limiter.count(caller.key_id)
    return caller


KnownCaller = Annotated[Caller, Depends(caller_of)]


async def holder_of(caller: KnownCaller) -> Caller:
    if not caller.is_holder:
        raise Forbidden("this is for the data's holder: ask with a holder's key")
    return caller


async def monitor_of(caller: KnownCaller) -> Caller:
    if caller.role not in ("holder", "monitor"):
        raise Forbidden("this is for those who watch the server: ask with a monitor's key, or the holder's")
    return caller


async def reader_of(caller: KnownCaller) -> Caller:
    """Of the log."""
    if caller.role not in ("holder", "auditor"):
        raise Forbidden("this is for the data's holder and auditors: ask with a key of theirs")
    return caller


Holder = Annotated[Caller, Depends(holder_of)]
LogReader = Annotated[Caller, Depends(reader_of)]
Monitor = Annotated[Caller, Depends(monitor_of)]


async def _served(request: Request) -> Service:
    """Not `service_of` itself: for a plain function FastAPI would keep a thread busy."""
    return service_of(request)


Served = Annotated[Service, Depends(_served)]


ID = r"^[0-9a-f]{16}$"
"""Of jobs, and of what they make: no database is asked for anything else."""
REF = "#/components/schemas/{model}"


def json_body(model: type[Model]) -> Callable[..., Awaitable[Model]]:
    """A dependency: the body as this model."""

    async def read(request: Request, _: KnownCaller) -> Model:
        kind_sent(request, (JSON,))
        return read_model(model, await request.body())

    return read


def described(contents: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI description of a body that the code reads itself, one content for each kind."""
    return {"requestBody": {"required": True, "content": contents}}


def content_of(model: type[BaseModel]) -> dict[str, Any]:
    """A model as JSON, with its examples."""
    return {"schema": {"$ref": REF.format(model=model.__name__)}}


ROWS_EXAMPLE = {"rows": [{"age": 39, "sex": "female"}, {"age": 50, "sex": None}]}
_ROW: dict[str, Any] = {
    "type": "object",
    "description": "A cell for each column of the schema: a number, text, true, false, or null where it is missing.",
    "additionalProperties": {"type": ["number", "string", "boolean", "null"]},
}
ROWS: dict[str, Any] = {"type": "array", "items": _ROW, "minItems": 1}
ROWS_CONTENTS: dict[str, Any] = {
    JSON: {
        "schema": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"rows": ROWS},
                    "required": ["rows"],
                    "additionalProperties": False,
                },
                ROWS,
                _ROW,
            ]
        },
        "example": ROWS_EXAMPLE,
    },
    CSV: {
        "schema": {"type": "string", "description": "UTF-8; the first line names the columns."},
        "example": "age,sex\n39,female\n50,\n",
    },
    ARROW: {"schema": {"type": "string", "format": "binary", "description": "A stream without compression."}},
}
