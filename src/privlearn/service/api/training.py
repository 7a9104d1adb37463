"""What a training is asked with: one JSON object, or a form with it and a file of public points."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Header, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from privlearn.service.access.keys import Caller
from privlearn.service.api import schemas
from privlearn.service.api.schemas import Delta, Epsilon
from privlearn.service.holder.datasets import OfferedDataSet
from privlearn.service.http.callers import ROWS, content_of, described, service_of
from privlearn.service.http.media_types import (
    ARROW,
    CSV,
    JSON,
    kind_sent,
    read_model,
    read_rows,
    rows_from_objects,
)
from privlearn.service.http.problems import Malformed, UnknownKind
from privlearn.service.jobs.requests import TrainingRequest
from privlearn.service.service import Service

FORM = "multipart/form-data"
_EXAMPLE = {"dataset": "census", "learner": "logistic", "epsilon": 1.0, "delta": 1e-7, "trial": True}

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


class ReleaseRequest(schemas.Request):
    """A model to be trained and given out."""

    model_config = schemas.with_example(_EXAMPLE)

    dataset: str = Field(max_length=64, description="Name of the data set.")
    learner: str = Field(default="", max_length=64, description="One of those on offer; left out: the first.")
    epsilon: Epsilon
    delta: Delta = 0.0
    trial: bool = Field(default=False, description="Train on rows made up from the schema: costs nothing.")
    public_points: list[dict[str, Any]] | None = Field(
        default=None,
        description="Your own points, for a kernel model that is good near them; they will be in the release.",
        json_schema_extra=ROWS,
    )


class SessionRequest(ReleaseRequest):
    """A model to be trained, and asked for predictions."""

    model_config = schemas.with_example(_EXAMPLE | {"mechanism": "model"})

    mechanism: Literal["model", "function_release", "pinp"] = Field(
        default="model",
        description="model: a private model that stays with the holder, with any number of answers. The others answer "
        "from an exact kernel machine, with noise at each point.",
    )


def training_body(model: type[ReleaseRequest]) -> dict[str, Any]:
    """The OpenAPI description of both forms."""
    parts = {"request": content_of(model)["schema"], "points": {"type": "string", "format": "binary"}}
    form = {
        "schema": {
            "type": "object",
            "properties": parts,
            "required": ["request", "points"],
            "description": f"The request as JSON, and the public points as a file of type {CSV} or {ARROW}.",
        },
        "encoding": {"request": {"contentType": JSON}, "points": {"contentType": f"{CSV}, {ARROW}"}},
    }
    return described({JSON: content_of(model), FORM: form})


async def asked(request: Request, caller: Caller, model: type[ReleaseRequest]) -> TrainingRequest:
    """The request, its points converted by the data set's schema."""
    service = service_of(request)
    if kind_sent(request, (JSON, FORM)) == JSON:
        body = read_model(model, await request.body())
        return await run_in_threadpool(_with_objects, service, caller, body)
    async with request.form(max_files=1, max_fields=1) as form:
        text, file = form.get("request"), form.get("points")
        if not isinstance(text, str) or not isinstance(file, UploadFile):
            raise Malformed("a form needs the field request, with JSON, and the file points")
        body, content, kind = read_model(model, _utf8(text)), await file.read(), _file_kind(file)
    if body.public_points is not None:
        raise Malformed("send the points once: as a file, or as public_points")
    return await run_in_threadpool(_with_file, service, caller, body, content, kind)


def _with_objects(service: Service, caller: Caller, body: ReleaseRequest) -> TrainingRequest:
    offered = service.dataset(caller, body.dataset)
    points = None
    if body.public_points is not None:
        points = rows_from_objects(body.public_points, offered.schema, service.owner.limits.batch_rows)
    return _request(offered, body, points)


def _with_file(
    service: Service, caller: Caller, body: ReleaseRequest, content: bytes, kind: Any
) -> TrainingRequest:
    offered = service.dataset(caller, body.dataset)
    points = read_rows(content, kind, offered.schema, service.owner.limits.batch_rows)
    return _request(offered, body, points)


def _request(offered: OfferedDataSet, body: ReleaseRequest, points: Any) -> TrainingRequest:
    of_session = isinstance(body, SessionRequest)
    return TrainingRequest(
        dataset=body.dataset,
        kind="session" if of_session else "release",
        learner=chosen(offered, body.learner),
        epsilon=body.epsilon,
        delta=body.delta,
        mechanism=body.mechanism if isinstance(body, SessionRequest) else "model",
        points=points,
        trial=body.trial,
    )


def chosen(offered: OfferedDataSet, learner: str) -> str:
    """The learner named, or the first on offer."""
    return learner or next(iter(offered.learners))


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
