"""Released models: ask for one, fetch it, have one verified."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from privlearn.release.verification import verify_bytes
from privlearn.service.api.requests import IdempotencyKey, JobAnswer, asked, training_body
from privlearn.service.api.schemas import PROMISE_EXAMPLE, Answer, Id, Promise, with_example
from privlearn.service.http.callers import KnownCaller, Served, described
from privlearn.service.http.limits import aside, large_body
from privlearn.service.http.media_types import kind_sent, reading
from privlearn.service.http.paging import Part
from privlearn.service.http.problems import refused
from privlearn.service.job_kinds.release import BYTES, GIVE_OUT_RELEASE

router = APIRouter(prefix="/v1", tags=["releases"])

_FILE: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


class ReleaseAnswer(Answer):
    """A released model, without its file."""

    model_config = with_example(
        {
            "id": "9f86d081884c7d65",
            "analyst": "alice",
            "dataset": "census",
            "learner": "logistic",
            "guarantee": PROMISE_EXAMPLE,
            "trial": False,
            "created": "2026-11-16T09:00:01.000000+00:00",
            "size": 8123,
            "certificate": {"mechanism": {"name": "output"}},
        }
    )

    id: str = Field(description="Name of the release.")
    analyst: str = Field(description="Who asked for it.")
    dataset: str = Field(description="The data set it was trained on.")
    learner: str = Field(description="The learner on offer that was chosen.")
    guarantee: Promise = Field(description="What it promises.")
    trial: bool = Field(description="Whether it was trained on made-up rows.")
    created: str = Field(description="When it was made (UTC).")
    size: int = Field(description="Bytes of its file.")
    certificate: dict[str, Any] = Field(description="What is promised, with every constant.")


class VerificationAnswer(Answer):
    """What a release file proves about itself."""

    model_config = with_example(
        {"claimed": PROMISE_EXAMPLE, "recomputed": PROMISE_EXAMPLE, "is_private": True, "signer": None}
    )

    claimed: Promise = Field(description="What it promises.")
    recomputed: Promise = Field(description="What its constants give; never weaker.")
    is_private: bool = Field(description="False if it promises nothing, or its noise was not secret.")
    signer: str | None = Field(description="Public key (hexadecimal) of the signature that covers it.")


@router.post(
    "/releases",
    status_code=202,
    summary="Train a model to be given out",
    openapi_extra=training_body(GIVE_OUT_RELEASE),
    responses=refused(400, 404, 408, 409, 413, 415, 422),
)
async def ask_release(
    request: Request, service: Served, caller: KnownCaller, idempotency_key: IdempotencyKey = ""
) -> JobAnswer:
    """Refused at once, free of charge, if it does not fit into the budget or cannot be done. Otherwise a training, to
    be followed at `/v1/jobs/{id}`; its cost is charged before it begins, once."""
    wanted = await asked(request, caller, GIVE_OUT_RELEASE)
    return JobAnswer.of(await aside(request, service.ask, caller, wanted, idempotency_key))


@router.get("/releases", summary="List releases", responses=refused(422))
def list_releases(service: Served, caller: KnownCaller, part: Part) -> list[ReleaseAnswer]:
    """Your releases, newest first; everybody's with the holder's key. The header `Link` leads to older ones."""
    found = service.results(caller, GIVE_OUT_RELEASE.name, most=part.limit, before=part.before)
    return [ReleaseAnswer.of(release) for release in part.linked(found)]


@router.get("/releases/{id}", summary="Describe a release", responses=refused(404, 422))
def get_release(service: Served, caller: KnownCaller, id: Id) -> ReleaseAnswer:
    """What it promises, with its certificate."""
    return ReleaseAnswer.of(service.result(caller, id, GIVE_OUT_RELEASE.name))


@router.get(
    "/releases/{id}/file",
    summary="Fetch a release",
    response_class=Response,
    responses=refused(404, 422) | {200: {"description": "The file.", "content": {BYTES: _FILE}}},
)
def get_release_file(service: Served, caller: KnownCaller, id: Id) -> Response:
    """The file that `privlearn verify` and `privlearn predict` read."""
    name = {"Content-Disposition": f'attachment; filename="{id}.privlearn"'}
    _, content = service.fetch(caller, id, GIVE_OUT_RELEASE.name)
    return Response(content, media_type=BYTES, headers=name)


@router.post(
    "/verify",
    summary="Verify a release",
    openapi_extra=described({BYTES: _FILE}),
    responses=refused(408, 413, 415, 422),
)
async def verify_release(request: Request, service: Served, _: KnownCaller) -> VerificationAnswer:
    """Checks every byte and recomputes the guarantee from the certificate alone. You need not take the server's
    word for it: `privlearn verify` does the same on your machine."""
    kind_sent(request, (BYTES,))
    async with large_body(request, service.owner.limits.file_megabytes):
        content = await request.body()
        async with reading(request, content):
            return VerificationAnswer.of(await aside(request, verify_bytes, content))
