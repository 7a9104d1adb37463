"""What a job is asked with: one JSON object, or a form with it and a file of public points."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from fastapi import Header, Request
from pydantic import Field, computed_field, create_model, field_validator
from pydantic_core import PydanticCustomError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from privlearn.data.made_up import FROM_SCHEMA
from privlearn.service.access.keys import Caller
from privlearn.service.api import schemas
from privlearn.service.api.schemas import PROMISE_EXAMPLE, Answer, Delta, Epsilon, Promise, with_example
from privlearn.service.http import forms
from privlearn.service.http.callers import ROWS, content_of, described, service_of
from privlearn.service.http.json_bodies import read_json, read_value
from privlearn.service.http.limits import SMALL, aside, large_body
from privlearn.service.http.media_types import (
    ARROW,
    CSV,
    JSON,
    kind_sent,
    read_rows,
    reading,
    rows_from_objects,
)
from privlearn.service.http.problems import Malformed, UnknownKind
from privlearn.service.job_kinds.job_kind import JOB_KINDS, AnyJobKind, job_kind
from privlearn.service.jobs.requests import JobRequest, Points, State
from privlearn.service.service import Service

FORM = "multipart/form-data"
_EXAMPLE = {"dataset": "census", "epsilon": 1.0, "delta": 1e-7, "trial": True}

IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        pattern=r"^[\x21-\x7e]*$",
        description="One for each training: a request that is sent again with it gets the same training, paid once.",
        examples=["5f0c2a5e"],
    ),
]


class JobBody(schemas.Request):
    """What every kind of job is asked with."""

    dataset: str = Field(max_length=64, description="Name of the data set.")
    epsilon: Epsilon
    delta: Delta = 0.0
    trial: bool = Field(default=False, description="Train on rows made up from the schema: costs nothing.")
    note: str = Field(
        default="",
        max_length=200,
        description="A line of your own, for the ledger, the log and the holder.",
    )
    purpose: str = Field(
        default="",
        max_length=500,
        description="What the result is for, in one line: needed where a second person must approve the request.",
    )
    legal_basis: str = Field(
        default="",
        max_length=200,
        description="What allows it, such as consent or a law, in one line: needed where the purpose is.",
    )


class PointsBody(JobBody):
    """What a kind that takes points is asked with besides."""

    public_points: list[dict[str, Any]] | Literal["schema"] | None = Field(
        default=None,
        description="Your own points, for a kernel model that is good near them; they will be in the release. "
        'Or "schema": they are made up from it.',
        json_schema_extra={"anyOf": [ROWS, {"type": "string", "const": "schema"}, {"type": "null"}]},
    )

    @field_validator("public_points", mode="before")
    @classmethod
    def _are_rows_or_the_word(cls, value: Any) -> Any:
        """Said in words: of a union pydantic names each member's type."""
        if value in (None, FROM_SCHEMA) or (
            isinstance(value, list) and all(isinstance(row, dict) for row in value)
        ):
            return value
        raise PydanticCustomError(
            "points", 'must be a list of rows, each an object with a value per column, or the word "schema"'
        )


@cache
def body_of(kind: AnyJobKind) -> type[JobBody]:
    """The common members and those of the kind."""
    bases = (kind.fields, PointsBody if kind.takes_points else JobBody)  # whose members come first
    model: type[JobBody] = create_model(
        f"{kind.name.title().replace('_', '')}Request",
        __base__=bases,
        __doc__=kind.fields.__doc__,
        __cls_kwargs__={"json_schema_extra": {"examples": [_EXAMPLE | dict(kind.example)]}},
    )
    return model


@cache
def named_body_of(kind: AnyJobKind) -> type[JobBody]:
    """The same with the kind's name as a member, for the address at which all kinds are asked for."""
    example = _EXAMPLE | {"kind": kind.name} | dict(kind.example)
    model: type[JobBody] = create_model(
        f"{kind.name.title().replace('_', '')}JobRequest",
        __base__=body_of(kind),
        __doc__=f"{kind.about}",
        __cls_kwargs__={"json_schema_extra": {"examples": [example]}},
        kind=(Literal[kind.name], Field(description="What is asked for.")),  # type: ignore[arg-type]  # known at run time only
    )
    return model


def body_models() -> list[type[JobBody]]:
    """All of them, for the description of the interface."""
    return [model for kind in JOB_KINDS.values() for model in (body_of(kind), named_body_of(kind))]


def training_body(kind: AnyJobKind) -> dict[str, Any]:
    """The OpenAPI description of both forms of a request of one kind."""
    content = content_of(body_of(kind))
    return described(
        {JSON: content, FORM: _form(content["schema"])} if kind.takes_points else {JSON: content}
    )


def any_body() -> dict[str, Any]:
    """The same for a request of any kind."""
    models = [named_body_of(kind) for kind in JOB_KINDS.values()]
    schema = {"oneOf": [content_of(model)["schema"] for model in models]}
    example = _EXAMPLE | {"kind": next(iter(JOB_KINDS))}
    return described({JSON: {"schema": schema, "example": example}, FORM: _form(schema)})


def _form(schema: dict[str, Any]) -> dict[str, Any]:
    parts = {"request": schema, "points": {"type": "string", "format": "binary"}}
    return {
        "schema": {
            "type": "object",
            "properties": parts,
            "required": ["request", "points"],
            "description": f"The request as JSON, and the public points as a file of type {CSV} or {ARROW}.",
        },
        "encoding": {"request": {"contentType": JSON}, "points": {"contentType": f"{CSV}, {ARROW}"}},
    }


async def asked(request: Request, caller: Caller, kind: AnyJobKind | None = None) -> JobRequest:
    """The request, its points converted by the data set's schema; without a kind it names its own."""
    service = service_of(request)
    most = service.owner.limits.body_megabytes
    if kind_sent(request, (JSON, FORM)) == FORM:
        form = await forms.file_form(request, most)
        try:
            content = await run_in_threadpool(forms.content_of, form, "points")
            async with reading(request, content, CSV):
                return await aside(request, _with_file, service, caller, kind, form, content)
        finally:
            await form.close()
    async with large_body(request, most):
        content = await request.body()
        if len(content) <= SMALL:
            return await run_in_threadpool(_with_objects, service, caller, kind, content)
        async with reading(request, content, JSON):
            return await aside(request, _with_objects, service, caller, kind, content)


def _read(content: bytes, kind: AnyJobKind | None) -> tuple[AnyJobKind, JobBody]:
    value = read_json(content)
    if kind is not None:
        return kind, read_value(body_of(kind), value)
    name = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(name, str):
        raise Malformed(f"the request must say its kind: one of {', '.join(JOB_KINDS)}")
    found = job_kind(name)
    return found, read_value(named_body_of(found), value)


def _with_objects(service: Service, caller: Caller, asked: AnyJobKind | None, content: bytes) -> JobRequest:
    kind, body = _read(content, asked)
    points: Points | None = None
    if isinstance(body, PointsBody) and isinstance(body.public_points, str):
        points = body.public_points
    elif isinstance(body, PointsBody) and body.public_points is not None:
        schema = service.dataset(caller, body.dataset).schema
        points = rows_from_objects(body.public_points, schema, service.owner.limits.batch_rows)
    return _request(kind, body, points)


def _with_file(
    service: Service, caller: Caller, asked: AnyJobKind | None, form: FormData, content: bytes
) -> JobRequest:
    text, file = form.get("request"), form.get("points")
    if not isinstance(text, str) or not isinstance(file, UploadFile):
        raise Malformed("a form needs the field request, with JSON, and the file points")
    sent = _file_kind(file)
    kind, body = _read(_utf8(text), asked)
    if getattr(body, "public_points", None) is not None:
        raise Malformed("send the points once: as a file, or as public_points")
    schema = service.dataset(caller, body.dataset).schema
    return _request(kind, body, read_rows(content, sent, schema, service.owner.limits.batch_rows))


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


def _file_kind(file: UploadFile) -> Any:
    kind = (file.content_type or "").partition(";")[0].strip().lower()
    if kind not in (CSV, ARROW):
        raise UnknownKind(f"the file must have the type {CSV} or {ARROW}")
    return kind


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Malformed("the field request is not text in UTF-8") from None


class JobAnswer(Answer):
    """A training: what was asked, and how far it is. Its time depends on the records, so it shows in coarse steps."""

    model_config = with_example(
        {
            "id": "9f86d081884c7d65",
            "analyst": "alice",
            "dataset": "census",
            "kind": "release",
            "learner": "logistic",
            "mechanism": "model",
            "fields": {"learner": "logistic", "mechanism": "model"},
            "guarantee": PROMISE_EXAMPLE,
            "trial": False,
            "state": "done",
            "stage": "finished",
            "created": "2026-11-16T09:00:00.000000+00:00",
            "started": "2026-11-16T09:00:00.100000+00:00",
            "finished": "2026-11-16T09:00:01.100000+00:00",
            "failure": "",
            "note": "",
            "purpose": "a risk score for the emergency ward",
            "legal_basis": "consent of the patients, study 2026-14",
            "decide_by": "2026-11-30T08:00:00.000000+00:00",
            "decided": "2026-11-16T08:30:00.000000+00:00",
            "decided_by": "bea",
            "decision": "as agreed by the board",
            "result": "9f86d081884c7d65",
        }
    )

    id: str = Field(description="Name of the training.")
    analyst: str = Field(description="Who asked for it.")
    dataset: str = Field(description="The data set it trains on.")
    kind: str = Field(description="What it makes.")
    learner: str = Field(description="The learner on offer that was chosen; empty if its kind trains none.")
    mechanism: str = Field(description="What answers a session.")
    fields: dict[str, Any] = Field(description="All that its kind was asked with.")
    guarantee: Promise = Field(description="Its price.")
    trial: bool = Field(description="Whether it trains on made-up rows, for nothing.")
    state: State = Field(description="How far it is.")
    created: str = Field(description="When it was asked for (UTC).")
    started: str = Field(description="When it began; empty: not yet.")
    finished: str = Field(description="When its end became visible; empty: not yet.")
    failure: str = Field(description="Why it failed or was declined, and whether its cost stands.")
    note: str = Field(description="A line of the analyst's own.")
    purpose: str = Field(description="What the result is for, in the analyst's words.")
    legal_basis: str = Field(description="What allows it, in the analyst's words.")
    decide_by: str = Field(description="Until when somebody may approve it; empty: it needs no approval.")
    decided: str = Field(description="When somebody approved or declined it; empty: nobody has.")
    decided_by: str = Field(description="Who did.")
    decision: str = Field(description="Their reason.")

    @computed_field(description="The state in words: waiting for approval, waiting, training, finished.")  # type: ignore[prop-decorator]
    @property
    def stage(self) -> str:
        return _STAGES.get(self.state, "finished")

    @computed_field(description="Once it is done: id of what it made.")  # type: ignore[prop-decorator]
    @property
    def result(self) -> str | None:
        return self.id if self.state == "done" else None


_STAGES = {"waiting_for_approval": "waiting for approval", "waiting": "waiting", "running": "training"}
