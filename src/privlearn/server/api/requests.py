"""Read the body of a request for a job: one JSON object, or a form with it and a file of public points."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from fastapi import Request
from pydantic import Field, create_model, field_validator
from pydantic_core import PydanticCustomError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from privlearn.data.datasets import FROM_SCHEMA
from privlearn.server.access.keys import Caller
from privlearn.server.api.schemas import Body, Delta, Epsilon
from privlearn.server.http import bodies as forms
from privlearn.server.http.bodies import read_json, read_value
from privlearn.server.http.callers import ROWS, content_of, request_body, service_of
from privlearn.server.http.capacity import SMALL, large_body, run_heavy
from privlearn.server.http.media_types import (
    ARROW,
    CSV,
    JSON,
    kind_sent,
    read_rows,
    reading,
    rows_from_objects,
)
from privlearn.server.http.problems import Malformed, UnknownKind
from privlearn.server.job_kinds.job_kind import JOB_KINDS, AnyJobKind, job_kind
from privlearn.server.jobs.requests import JobRequest, Points
from privlearn.server.service import Service

FORM = "multipart/form-data"
_EXAMPLE = {"dataset": "census", "epsilon": 1.0, "delta": 1e-7, "trial": True}


class JobBody(Body):
    """The fields of every request for a job."""

    dataset: str = Field(max_length=64, description="Name of the data set.")
    epsilon: Epsilon
    delta: Delta = 0.0
    trial: bool = Field(default=False, description="Use synthetic rows from the schema, free of charge.")
    note: str = Field(
        default="", max_length=200, description="One line for the ledger, the log and the holder."
    )
    purpose: str = Field(
        default="",
        max_length=500,
        description="What the result is for, in one line: required if a second person must approve the request.",
    )
    legal_basis: str = Field(
        default="",
        max_length=200,
        description="What permits it, such as consent or a law, in one line: required like the purpose.",
    )


class PointsBody(JobBody):
    """The fields of a request for a kind that takes public points."""

    public_points: list[dict[str, Any]] | Literal["schema"] | None = Field(
        default=None,
        description="Your own points, for a kernel model that is good near them; they will be in the release. "
        'Or "schema": the server generates them.',
        json_schema_extra={"anyOf": [ROWS, {"type": "string", "const": "schema"}, {"type": "null"}]},
    )

    @field_validator("public_points", mode="before")
    @classmethod
    def _are_rows_or_the_word(cls, value: Any) -> Any:
        """Check the type with one clear message: for a union, pydantic would report every member's type."""
        if value in (None, FROM_SCHEMA) or (
            isinstance(value, list) and all(isinstance(row, dict) for row in value)
        ):
            return value
        raise PydanticCustomError(
            "points", 'must be a list of rows, each an object with a value per column, or the word "schema"'
        )


@cache
def body_of(kind: AnyJobKind) -> type[JobBody]:
    """Return the model of a kind's requests: its own fields, the common fields, and its name."""
    bases = (kind.fields, PointsBody if kind.takes_points else JobBody)  # its own fields come first
    example = _EXAMPLE | {"kind": kind.name} | dict(kind.example)
    model: type[JobBody] = create_model(
        f"{kind.name.title().replace('_', '')}Request",
        __base__=bases,
        __doc__=kind.about,
        __cls_kwargs__={"json_schema_extra": {"examples": [example]}},
        kind=(Literal[kind.name], Field(description="Kind of the job.")),  # type: ignore[arg-type]  # known at run time only
    )
    return model


def body_models() -> list[type[JobBody]]:
    """Return the models of all kinds, for the OpenAPI description."""
    return [body_of(kind) for kind in JOB_KINDS.values()]


def any_body() -> dict[str, Any]:
    """Return the OpenAPI description of a request body of any kind."""
    schema = {"oneOf": [content_of(model)["schema"] for model in body_models()]}
    example = _EXAMPLE | {"kind": next(iter(JOB_KINDS))}
    form = {
        "schema": {
            "type": "object",
            "properties": {"request": schema, "points": {"type": "string", "format": "binary"}},
            "required": ["request", "points"],
            "description": f"The request as JSON, and the public points as a file of type {CSV} or {ARROW}.",
        },
        "encoding": {"request": {"contentType": JSON}, "points": {"contentType": f"{CSV}, {ARROW}"}},
    }
    return request_body({JSON: {"schema": schema, "example": example}, FORM: form})


async def read_job_request(request: Request, caller: Caller) -> JobRequest:
    """Return the request, with its points converted by the data set's schema."""
    service = service_of(request)
    megabytes = service.owner.limits.body_megabytes
    if kind_sent(request, (JSON, FORM)) == FORM:
        form = await forms.file_form(request, megabytes)
        try:
            content = await run_in_threadpool(forms.content_of, form, "points")
            async with reading(request, content, CSV):
                return await run_heavy(request, _with_file, service, caller, form, content)
        finally:
            await form.close()
    async with large_body(request, megabytes):
        content = await request.body()
        if len(content) <= SMALL:
            return await run_in_threadpool(_with_objects, service, caller, content)
        async with reading(request, content, JSON):
            return await run_heavy(request, _with_objects, service, caller, content)


def _read(content: bytes) -> tuple[AnyJobKind, JobBody]:
    value = read_json(content)
    name = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(name, str):
        raise Malformed(f"the request has no kind. Set kind to one of {', '.join(JOB_KINDS)}.")
    kind = job_kind(name)
    return kind, read_value(body_of(kind), value)


def _with_objects(service: Service, caller: Caller, content: bytes) -> JobRequest:
    """Return a request whose points, if any, are JSON objects."""
    kind, body = _read(content)
    points: Points | None = getattr(body, "public_points", None)
    if isinstance(points, list):
        schema = service.dataset(caller, body.dataset).schema
        points = rows_from_objects(points, schema, service.owner.limits.batch_rows)
    return _request(kind, body, points)


def _with_file(service: Service, caller: Caller, form: FormData, content: bytes) -> JobRequest:
    """Return a request whose points are a file."""
    text, file = form.get("request"), form.get("points")
    if not isinstance(text, str) or not isinstance(file, UploadFile):
        raise Malformed("the form is incomplete. Send the field request, with JSON, and the file points.")
    media_type: Any = (file.content_type or "").partition(";")[0].strip().lower()
    if media_type not in (CSV, ARROW):
        raise UnknownKind(f"the file's type is not supported. Send {CSV} or {ARROW}.")
    try:
        kind, body = _read(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise Malformed("the field request is not text in UTF-8.") from None
    if getattr(body, "public_points", None) is not None:
        raise Malformed("the request has points twice. Send them as a file, or as public_points.")
    schema = service.dataset(caller, body.dataset).schema
    return _request(kind, body, read_rows(content, media_type, schema, service.owner.limits.batch_rows))


def _request(kind: AnyJobKind, body: JobBody, points: Points | None) -> JobRequest:
    return JobRequest(
        dataset=body.dataset,
        kind=kind.name,
        epsilon=body.epsilon,
        delta=body.delta,
        trial=body.trial,
        note=body.note.strip(),
        purpose=body.purpose.strip(),
        legal_basis=body.legal_basis.strip(),
        fields=body.model_dump(mode="json", include=set(kind.fields.model_fields)),
        points=points,
    )
