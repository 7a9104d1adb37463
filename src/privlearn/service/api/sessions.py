"""Sessions: a model stays with the holder and answers points."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
from fastapi import APIRouter, Request, Response
from pydantic import Field
from pydantic_core import to_json

from privlearn.service.access.keys import Caller
from privlearn.service.api.requests import IdempotencyKey, JobAnswer, asked, training_body
from privlearn.service.api.schemas import PROMISE_EXAMPLE, Answer, Id, Promise, with_example
from privlearn.service.http.callers import ROWS_CONTENTS, KnownCaller, Served, described
from privlearn.service.http.limits import SMALL, aside, large_body, quickly
from privlearn.service.http.logs import note
from privlearn.service.http.media_types import (
    ARROW,
    CSV,
    JSON,
    Kind,
    kind_accepted,
    kind_sent,
    read_rows,
    reading,
    table_bytes,
)
from privlearn.service.http.paging import Part
from privlearn.service.http.problems import refused
from privlearn.service.job_kinds.session import OPEN_SESSION
from privlearn.service.jobs.requests import Predictions
from privlearn.service.service import Service

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


class SessionAnswer(Answer):
    """A model that answers points and does not leave."""

    model_config = with_example(
        {
            "id": "9f86d081884c7d65",
            "analyst": "alice",
            "dataset": "census",
            "learner": "logistic",
            "mechanism": "model",
            "guarantee": PROMISE_EXAMPLE,
            "trial": False,
            "state": "open",
            "created": "2026-11-16T09:00:01.000000+00:00",
            "certificate": {"mechanism": {"name": "output"}},
        }
    )

    id: str = Field(description="Name of the session.")
    analyst: str = Field(description="Who opened it.")
    dataset: str = Field(description="The data set it was trained on.")
    learner: str = Field(description="The learner on offer that was chosen.")
    mechanism: str = Field(description="What answers.")
    guarantee: Promise = Field(description="What all of its answers together promise.")
    trial: bool = Field(description="Whether it was trained on made-up rows.")
    state: Literal["open", "closed"] = Field(description="A closed session answers no more.")
    created: str = Field(description="When it was opened (UTC).")
    certificate: dict[str, Any] = Field(description="What is promised, with every constant.")


class PredictionsAnswer(Answer):
    """An answer for each row, in the order of the rows."""

    model_config = with_example(
        {
            "predictions": ["<=50K", ">50K"],
            "scores": [-0.31, 0.12],
            "probabilities": {"<=50K": [0.577, 0.47], ">50K": [0.423, 0.53]},
            "sources": ["model", "model"],
        }
    )

    predictions: list[str | float | bool] = Field(description="A label or a number for each row.")
    scores: list[float | list[float]] = Field(
        description="The scores behind it; of several classes one each."
    )
    probabilities: dict[str, list[float]] = Field(
        description="Of each class, from the scores; empty if the learner has none."
    )
    sources: list[str] = Field(description="Where the answer comes from.")


@router.post(
    "",
    status_code=202,
    summary="Train a model to be asked",
    openapi_extra=training_body(OPEN_SESSION),
    responses=refused(400, 404, 408, 409, 413, 415, 422),
)
async def ask_session(
    request: Request, service: Served, caller: KnownCaller, idempotency_key: IdempotencyKey = ""
) -> JobAnswer:
    """Refused at once, free of charge, if it does not fit into the budget or cannot be done. Otherwise a training, to
    be followed at `/v1/jobs/{id}`; when it is done its result is the session's id."""
    wanted = await asked(request, caller, OPEN_SESSION)
    return JobAnswer.of(await aside(request, service.ask, caller, wanted, idempotency_key))


@router.get("", summary="List sessions", responses=refused(422))
def list_sessions(service: Served, caller: KnownCaller, part: Part) -> list[SessionAnswer]:
    """Your sessions, newest first; everybody's with the holder's key. The header `Link` leads to older ones."""
    found = service.results(caller, OPEN_SESSION.name, most=part.limit, before=part.before)
    return [SessionAnswer.of(session) for session in part.linked(found)]


@router.get("/{id}", summary="Describe a session", responses=refused(404, 422))
def get_session(service: Served, caller: KnownCaller, id: Id) -> SessionAnswer:
    """What it promises, with its certificate."""
    return SessionAnswer.of(service.session(caller, id))


@router.delete(
    "/{id}",
    status_code=204,
    summary="Close a session",
    response_class=Response,
    responses=refused(404, 409, 422),
)
def close_session(service: Served, caller: KnownCaller, id: Id) -> Response:
    """For good: it answers no more, and nothing of its cost comes back."""
    service.close_session(caller, id)
    return Response(status_code=204)


@router.post(
    "/{id}/predictions",
    summary="Ask for predictions",
    response_model=PredictionsAnswer,
    openapi_extra=described(ROWS_CONTENTS),
    responses=refused(400, 403, 404, 406, 408, 409, 413, 415, 422)
    | {
        200: {
            "description": "An answer for each row, in the kind of the request or that of Accept.",
            "content": {
                CSV: {
                    "schema": {"type": "string"},
                    "example": '"prediction","score","probability_<=50K","probability_>50K","source"\n'
                    '"<=50K",-0.31,0.577,0.423,"model"\n',
                },
                ARROW: {"schema": {"type": "string", "format": "binary"}},
            },
        }
    },
)
async def predict(request: Request, service: Served, caller: KnownCaller, id: Id) -> Response:
    """One row or a batch, as JSON, CSV or Arrow. It costs nothing: the session was paid when it was opened, and equal
    points get equal answers."""
    sent: Kind = kind_sent(request)
    wanted = kind_accepted(request, sent)
    async with large_body(request, service.owner.limits.body_megabytes):
        asked = service, caller, id, await request.body(), sent, wanted
        found = await quickly(request, _answered_at_once, *asked)
        if found is None:
            async with reading(request, asked[3], sent):
                found = await aside(request, _answered, *asked)
    rows, answer = found
    note(request.scope, rows=rows)
    request.app.state.metrics.predicted(rows)
    return answer


def _answered_at_once(
    service: Service, caller: Caller, id: str, content: bytes, sent: Kind, wanted: Kind
) -> tuple[int, Response] | None:
    """None if it has to take its turn: a batch takes memory; and some answers are drawn one after another, and
    written down."""
    if service.session(caller, id).mechanism != "model" or len(content) > SMALL:
        return None
    return _answered(service, caller, id, content, sent, wanted)


def _answered(
    service: Service, caller: Caller, id: str, content: bytes, sent: Kind, wanted: Kind
) -> tuple[int, Response]:
    """In one thread from bytes to bytes: a batch should cost little beside its prediction."""
    dataset = service.dataset(caller, service.session(caller, id).dataset)
    rows = read_rows(content, sent, dataset.schema, service.owner.limits.batch_rows)
    answers = service.predict(caller, id, rows)
    body = _json(answers) if wanted == JSON else table_bytes(_table(answers), wanted)
    return rows.num_rows, Response(body, media_type=wanted)


def _json(answers: Predictions) -> bytes:
    return bytes(
        to_json(
            {
                "predictions": answers.predictions.tolist(),
                "scores": answers.scores.tolist(),
                "probabilities": {name: one.tolist() for name, one in answers.probabilities.items()},
                "sources": answers.sources.tolist(),
            }
        )
    )


def _table(answers: Predictions) -> pa.Table:
    scores = answers.scores
    named = (
        {"score": scores} if scores.ndim == 1 else {f"score_{k}": column for k, column in enumerate(scores.T)}
    )
    likely = {f"probability_{name}": column for name, column in answers.probabilities.items()}
    return pa.table({"prediction": answers.predictions, **named, **likely, "source": answers.sources})
