"""FastAPI dependencies: the caller of a request, its role, the service, and JSON bodies; and their OpenAPI
descriptions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from privlearn.server.access.keys import Caller, Role, cached_caller, key_changes, look_up_caller
from privlearn.server.changes.commands import Command
from privlearn.server.http.bodies import Model, read_json, read_value
from privlearn.server.http.capacity import note_caller, shared_of
from privlearn.server.http.limits import Limiter
from privlearn.server.http.logs import note
from privlearn.server.http.media_types import ARROW, CSV, JSON, kind_sent
from privlearn.server.http.problems import problem_responses
from privlearn.server.refusals import AccessRefused, Forbidden
from privlearn.server.service import Service

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    bearerFormat="pl_ID_SECRET",
    description="As `privlearn keys create` prints it.",
)


def service_of(request: Request) -> Service:
    """Return the service of the application."""
    service: Service = request.app.state.service
    return service


def address_of(request: Request) -> str:
    """Return the network address of the client."""
    return request.client.host if request.client else ""


async def caller_of(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Caller:
    """Return the caller of a request, see `caller_with_key`."""
    return await caller_with_key(request, None if credentials is None else credentials.credentials)


async def caller_with_key(request: Request, key: str | None) -> Caller:
    """Return the caller whose valid key this is; refuse all others with the same message."""
    limiter: Limiter = request.app.state.limiter
    if key is None:
        raise AccessRefused("there is no key. Send the header Authorization: Bearer pl_...")
    store = service_of(request).store
    try:
        caller = cached_caller(store, key)
        if caller is None:  # a database access may block
            look_up = partial(run_in_threadpool, look_up_caller, store, key)
            # A look-up that began before a key was revoked must not open anything afterwards.
            caller = await shared_of(request).run_once((key, key_changes()), look_up)
    except AccessRefused:
        limiter.count_failure(address_of(request))
        raise
    note(request.scope, key=caller.key_id)
    note_caller(request.scope, caller.name)
    limiter.count(caller.key_id)
    return caller


KnownCaller = Annotated[Caller, Depends(caller_of)]


def _require_role(refusal: str, *roles: Role) -> Any:
    """Return a dependency that provides the caller and refuses other roles."""

    async def admit(caller: KnownCaller) -> Caller:
        if caller.role not in roles:
            raise Forbidden(refusal)
        return caller

    return Depends(admit)


Holder = Annotated[Caller, _require_role("only the holder may do this. Use a holder's key.", "holder")]
_FOR_READERS = "only the holder and auditors may see this. Use a key of theirs."
LogReader = Annotated[Caller, _require_role(_FOR_READERS, "holder", "auditor")]
_FOR_MONITORS = "only monitors and the holder may see this. Use the key of one of them."
Monitor = Annotated[Caller, _require_role(_FOR_MONITORS, "holder", "monitor")]


async def _served(request: Request) -> Service:
    """Return the service. Asynchronous, because FastAPI runs a plain function in a thread."""
    return service_of(request)


Served = Annotated[Service, Depends(_served)]


ID = r"^[0-9a-f]{16}$"
"""Ids of jobs, results and keys; nothing else reaches the database."""
REF = "#/components/schemas/{model}"


BODIES: list[type[BaseModel]] = []
"""The models that `json_body` reads."""


def json_body(model: type[Model]) -> Callable[..., Awaitable[Model]]:
    """Return a dependency that reads the body as this model."""
    BODIES.append(model)

    async def read(request: Request, _: KnownCaller) -> Model:
        kind_sent(request, (JSON,))
        return read_value(model, read_json(await request.body()))

    return read


def request_body(contents: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI description of a body that our code reads, one content per media type."""
    return {"requestBody": {"required": True, "content": contents}}


def content_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a model as JSON."""
    return {"schema": {"$ref": REF.format(model=model.__name__)}}


def command_route(
    router: APIRouter, command: Command, body: type[BaseModel] | None = None, **options: Any
) -> Callable[[Endpoint], Endpoint]:
    """Return the decorator of the operation of a holder's command: route, summary, body and problems."""
    method, path = command.route.split()
    problems = (403, 404, 409, 422) if body is None else (400, 403, 404, 408, 409, 413, 415, 422)
    described: dict[str, Any] = {"summary": command.title, "responses": problem_responses(*problems)}
    if body is not None:
        described["openapi_extra"] = request_body({JSON: content_of(body)})
    elif method == "DELETE":
        described |= {"status_code": 204, "response_class": Response}
    return router.api_route(path.removeprefix(router.prefix), methods=[method], **(described | options))


ROWS_EXAMPLE = {"rows": [{"age": 39, "sex": "female"}, {"age": 50, "sex": None}]}
_ROW: dict[str, Any] = {
    "type": "object",
    "description": "A cell for each column of the schema: a number, text, true, false, or null if it is missing.",
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
