"""Sessions: ask a model that stays with the holder for predictions, and close it. `results` describes sessions."""

from __future__ import annotations

import re
from functools import lru_cache, partial

import pyarrow as pa
from fastapi import APIRouter, Request, Response
from fastapi.security.utils import get_authorization_scheme_param
from pydantic import Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from privlearn.errors import PrivlearnError
from privlearn.server.access.keys import Caller
from privlearn.server.api.schemas import Answer, Id, with_example
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.http.callers import (
    ROWS_CONTENTS,
    KnownCaller,
    Served,
    caller_with_key,
    request_body,
    service_of,
)
from privlearn.server.http.capacity import large_body, run_computing, run_heavy, run_quick, shared_of
from privlearn.server.http.logs import note
from privlearn.server.http.media_types import (
    ARROW,
    CSV,
    JSON,
    Kind,
    PlainRows,
    kind_accepted,
    kind_sent,
    read_rows,
    reading,
    table_bytes,
)
from privlearn.server.http.problems import answer_http_error, answer_refusal, problem_responses
from privlearn.server.jobs.requests import Predictions, ResultInfo, Row
from privlearn.server.service import Service

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


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
        description="The score of each row; a list with one score per class if there are several."
    )
    probabilities: dict[str, list[float]] = Field(
        description="Probabilities of each class, from the scores; empty if the learner has none."
    )
    sources: list[str] = Field(description="What each answer was computed from.")


@router.delete(
    "/{id}",
    status_code=204,
    summary="Close a session",
    response_class=Response,
    responses=problem_responses(404, 409, 422),
)
def close_session(service: Served, caller: KnownCaller, id: Id) -> Response:
    """Close a session permanently; its cost stays spent."""
    service.close_session(caller, id)
    return Response(status_code=204)


@router.post(
    "/{id}/predictions",
    summary="Ask for predictions",
    response_model=PredictionsAnswer,
    openapi_extra=request_body(ROWS_CONTENTS),
    responses=problem_responses(400, 403, 404, 406, 408, 409, 413, 415, 422)
    | {
        200: {
            "description": "An answer for each row, in the media type of the request or of Accept.",
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
    """Predict one row or a batch, sent as JSON, CSV or Arrow. Free: the session was charged when it was opened. Equal
    points get equal answers."""
    return await _predict(request, service, caller, id)


class LeanPredictions:
    """Answers requests for predictions without FastAPI's routing and dependencies, which take longer than the answer.

    Keys, limits, errors and lines of the log are the same; `predict` describes the route.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        match = _PATH.fullmatch(scope["path"]) if is_post else None
        if match is None:
            await self._app(scope, receive, send)
            return
        request, scope["route"] = Request(scope, receive), _ROUTE
        scheme, key = get_authorization_scheme_param(request.headers.get("authorization"))
        try:
            caller = await caller_with_key(request, key if key and scheme.lower() == "bearer" else None)
            answer = await _predict(request, service_of(request), caller, match[1])
        except PrivlearnError as error:
            answer = await answer_refusal(request, error)
        except HTTPException as error:
            answer = await answer_http_error(request, error)
        await answer(scope, receive, send)


_PATH = re.compile(r"/v1/sessions/([0-9a-f]{16})/predictions")
_ROUTE = next(route for route in router.routes if getattr(route, "name", "") == "predict")
INLINE_BYTES = 4096
"""Size of a body, a few rows, that is answered on the event loop if the model is small and in memory."""


async def _predict(request: Request, service: Service, caller: Caller, id: str) -> Response:
    sent: Kind = kind_sent(request)
    accepted = kind_accepted(request, sent)
    async with large_body(request, service.owner.limits.body_megabytes):
        content = await request.body()
        answer = partial(_answer, service, caller, content, sent, accepted)
        session = service.known_session(caller, id)
        if session is None:
            look_up = partial(run_quick, request, service.session, caller, id)
            session = await shared_of(request).run_once((caller, id, service.session_changes), look_up)
        if len(content) <= INLINE_BYTES and service.answers_at_once(session):
            rows, response = answer(session)
        else:
            run = run_computing if session.mechanism == "model" else run_heavy
            async with reading(request, content, sent):
                rows, response = await run(request, answer, session)
    note(request.scope, rows=rows)
    request.app.state.metrics.count_predictions(rows)
    return response


def _answer(
    service: Service, caller: Caller, content: bytes, sent: Kind, accepted: Kind, session: ResultInfo
) -> tuple[int, Response]:
    """Return the number of rows and the response, from bytes to bytes."""
    dataset = service.dataset(caller, session.dataset)
    rows: pa.Table | Row | None = None
    if sent == JSON and len(content) <= INLINE_BYTES and session.mechanism == "model":
        rows = plain_rows(dataset).read(content)
    if rows is None:
        rows = read_rows(content, sent, dataset.schema, service.owner.limits.batch_rows)
    predictions = service.predict(caller, session, rows)
    body = _as_json(predictions) if accepted == JSON else table_bytes(_as_table(predictions), accepted)
    return len(predictions.predictions), Response(body, media_type=accepted)


@lru_cache(maxsize=100)  # by identity: a changed data set is another object
def plain_rows(dataset: OfferedDataSet) -> PlainRows:
    """Return the reader of single rows for a data set."""
    return PlainRows(dataset.schema)


def _as_json(answers: Predictions) -> bytes:
    return bytes(
        to_json(
            {
                "predictions": answers.predictions.tolist(),
                "scores": answers.scores.tolist(),
                "probabilities": {name: column.tolist() for name, column in answers.probabilities.items()},
                "sources": answers.sources.tolist(),
            }
        )
    )


def _as_table(answers: Predictions) -> pa.Table:
    if answers.scores.ndim == 1:
        scores = {"score": answers.scores}
    else:
        scores = {f"score_{k}": column for k, column in enumerate(answers.scores.T)}
    probabilities = {f"probability_{name}": column for name, column in answers.probabilities.items()}
    return pa.table({"prediction": answers.predictions, **scores, **probabilities, "source": answers.sources})
