"""Sessions: ask a model that stays with the holder for predictions, and close it. `results` describes sessions."""

from __future__ import annotations

import pyarrow as pa
from fastapi import APIRouter, Request, Response
from pydantic import Field
from pydantic_core import to_json

from privlearn.server.access.keys import Caller
from privlearn.server.api.schemas import Answer, Id, with_example
from privlearn.server.http.callers import ROWS_CONTENTS, KnownCaller, Served, request_body
from privlearn.server.http.limits import SMALL, large_body, run_heavy, run_quick
from privlearn.server.http.logs import note
from privlearn.server.http.media_types import (
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
from privlearn.server.http.problems import problem_responses
from privlearn.server.jobs.requests import Predictions
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
    """For good: it answers no more, and its cost stays spent."""
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
    """One row or a batch, as JSON, CSV or Arrow. Free: the session was charged when it was opened, and equal points get
    equal answers."""
    sent: Kind = kind_sent(request)
    accepted = kind_accepted(request, sent)
    async with large_body(request, service.owner.limits.body_megabytes):
        content = await request.body()
        arguments = service, caller, id, content, sent, accepted
        answer = await run_quick(request, _answer_small, *arguments)
        if answer is None:
            async with reading(request, content, sent):
                answer = await run_heavy(request, _answer, *arguments)
    rows, response = answer
    note(request.scope, rows=rows)
    request.app.state.metrics.count_predictions(rows)
    return response


def _answer_small(
    service: Service, caller: Caller, id: str, content: bytes, sent: Kind, accepted: Kind
) -> tuple[int, Response] | None:
    """Answer a small request to a model; return None for others.

    A batch needs memory, and a kernel machine draws and stores its answers one at a time, so both must take turns.
    """
    if service.session(caller, id).mechanism != "model" or len(content) > SMALL:
        return None
    return _answer(service, caller, id, content, sent, accepted)


def _answer(
    service: Service, caller: Caller, id: str, content: bytes, sent: Kind, accepted: Kind
) -> tuple[int, Response]:
    """Return the number of rows and the response; in one thread, from bytes to bytes."""
    dataset = service.dataset(caller, service.session(caller, id).dataset)
    rows = read_rows(content, sent, dataset.schema, service.owner.limits.batch_rows)
    predictions = service.predict(caller, id, rows)
    body = _as_json(predictions) if accepted == JSON else table_bytes(_as_table(predictions), accepted)
    return rows.num_rows, Response(body, media_type=accepted)


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
    scores = answers.scores
    if scores.ndim == 1:
        score_columns = {"score": scores}
    else:
        score_columns = {f"score_{k}": column for k, column in enumerate(scores.T)}
    probabilities = {f"probability_{name}": column for name, column in answers.probabilities.items()}
    return pa.table(
        {"prediction": answers.predictions, **score_columns, **probabilities, "source": answers.sources}
    )
