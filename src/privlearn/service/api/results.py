"""What jobs of every kind have made."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field

from privlearn.service.api.schemas import PROMISE_EXAMPLE, Answer, Id, Promise, with_example
from privlearn.service.http.callers import KnownCaller, Served
from privlearn.service.http.paging import Part
from privlearn.service.http.problems import refused
from privlearn.service.job_kinds.release import BYTES

router = APIRouter(prefix="/v1/results", tags=["results"])


class ResultAnswer(Answer):
    """What a job has made, without its content."""

    model_config = with_example(
        {
            "id": "9f86d081884c7d65",
            "analyst": "alice",
            "dataset": "census",
            "kind": "release",
            "fields": {"learner": "logistic", "mechanism": "model"},
            "guarantee": PROMISE_EXAMPLE,
            "trial": False,
            "created": "2026-11-16T09:00:01.000000+00:00",
            "media_type": BYTES,
            "size": 8123,
            "certificate": {"mechanism": {"name": "output"}},
        }
    )

    id: str = Field(description="Name of the result, and of the job that made it.")
    analyst: str = Field(description="Who asked for it.")
    dataset: str = Field(description="The data set it is about.")
    kind: str = Field(description="What it is.")
    fields: dict[str, Any] = Field(description="All that its kind was asked with.")
    guarantee: Promise = Field(description="What it promises.")
    trial: bool = Field(description="Whether it was made from made-up rows.")
    created: str = Field(description="When it was made (UTC).")
    media_type: str = Field(description="Of its content; empty if that stays with the holder.")
    size: int = Field(description="Bytes of its content.")
    certificate: dict[str, Any] = Field(description="What is promised, with every constant.")


@router.get("", summary="List results", responses=refused(422))
def list_results(
    service: Served,
    caller: KnownCaller,
    part: Part,
    kind: Annotated[
        str | None,
        Query(pattern="^[a-z_]{1,20}$", description="Only those of this kind.", examples=["release"]),
    ] = None,
) -> list[ResultAnswer]:
    """What your jobs have made, newest first; everybody's with the holder's key. The header `Link` leads to older
    ones."""
    found = service.results(caller, kind, most=part.limit, before=part.before)
    return [ResultAnswer.of(result) for result in part.linked(found)]


@router.get("/{id}", summary="Describe a result", responses=refused(404, 422))
def get_result(service: Served, caller: KnownCaller, id: Id) -> ResultAnswer:
    """What it promises, with its certificate."""
    return ResultAnswer.of(service.result(caller, id))


@router.get(
    "/{id}/content",
    summary="Fetch a result",
    response_class=Response,
    responses=refused(404, 409, 422)
    | {
        200: {
            "description": "The file.",
            "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
def get_result_content(service: Served, caller: KnownCaller, id: Id) -> Response:
    """Its content, of the type that its description says. A session has none to fetch: it is asked."""
    found, content = service.fetch(caller, id)
    name = {"Content-Disposition": f'attachment; filename="{found.kind}-{id}"'}
    return Response(content, media_type=found.media_type, headers=name)
