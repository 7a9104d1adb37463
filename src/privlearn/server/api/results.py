"""Results of jobs of every kind, and verification of release files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from privlearn.release.verification import verify_bytes
from privlearn.server.api.schemas import (
    GUARANTEE_EXAMPLE,
    REQUEST_EXAMPLE,
    Answer,
    GuaranteeAnswer,
    Id,
    OfRequest,
    RequestedPage,
    with_example,
)
from privlearn.server.http.callers import KnownCaller, Served, request_body
from privlearn.server.http.capacity import large_body, run_heavy
from privlearn.server.http.media_types import kind_sent, reading
from privlearn.server.http.problems import problem_responses
from privlearn.server.job_kinds.job_kind import BYTES

router = APIRouter(prefix="/v1", tags=["results"])

_FILE: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


class ResultAnswer(OfRequest):
    """The result of a job, without its content."""

    model_config = with_example(
        {
            **REQUEST_EXAMPLE,
            "created": "2026-11-16T09:00:01.000000+00:00",
            "state": None,
            "media_type": BYTES,
            "size": 8123,
            "certificate": {"mechanism": {"name": "output"}},
        }
    )

    created: str = Field(description="Time at which it became available (UTC).")
    state: Literal["open", "closed"] | None = Field(
        description="State of a session: a closed session answers no more. Null for other kinds."
    )
    media_type: str = Field(
        description="Media type of the content; empty if the content stays on the server."
    )
    size: int = Field(description="Size of the content in bytes.")
    certificate: dict[str, Any] = Field(description="The guarantee with every constant.")


class VerificationAnswer(Answer):
    """The verification of a release file, from its content alone."""

    model_config = with_example(
        {"claimed": GUARANTEE_EXAMPLE, "recomputed": GUARANTEE_EXAMPLE, "is_private": True, "signer": None}
    )

    claimed: GuaranteeAnswer = Field(description="The guarantee that the file claims.")
    recomputed: GuaranteeAnswer = Field(description="The guarantee that its constants give; never weaker.")
    is_private: bool = Field(description="False if it claims no guarantee, or its noise was not secret.")
    signer: str | None = Field(description="Public key (hexadecimal) of the signature that covers it.")


@router.get("/results", summary="List results", responses=problem_responses(422))
def list_results(
    service: Served,
    caller: KnownCaller,
    page: RequestedPage,
    kind: Annotated[
        str | None,
        Query(pattern="^[a-z_]{1,20}$", description="Only results of this kind.", examples=["release"]),
    ] = None,
) -> list[ResultAnswer]:
    """List your results, newest first; those of all analysts with the holder's key. The header `Link` leads to older
    ones."""
    results = service.results(caller, kind, limit=page.limit, before=page.before)
    return [ResultAnswer.of(result) for result in page.with_next_link(results)]


@router.get("/results/{id}", summary="Describe a result", responses=problem_responses(404, 422))
def get_result(service: Served, caller: KnownCaller, id: Id) -> ResultAnswer:
    """Return a result's guarantee and certificate; a session also has a state."""
    return ResultAnswer.of(service.result(caller, id))


@router.get(
    "/results/{id}/content",
    summary="Fetch a result",
    response_class=Response,
    responses=problem_responses(404, 409, 422)
    | {200: {"description": "The content.", "content": {"*/*": _FILE}}},
)
def get_result_content(service: Served, caller: KnownCaller, id: Id) -> Response:
    """Return the content, with the media type of its description. The content of a release is the file that
    `privlearn verify` and `privlearn predict` read. A session has no content: ask it for predictions."""
    result, content = service.fetch(caller, id)
    suffix = ".privlearn" if result.media_type == BYTES else ""
    name = {"Content-Disposition": f'attachment; filename="{result.kind}-{id}{suffix}"'}
    return Response(content, media_type=result.media_type, headers=name)


@router.post(
    "/verify",
    summary="Verify a release",
    openapi_extra=request_body({BYTES: _FILE}),
    responses=problem_responses(408, 413, 415, 422),
)
async def verify_release(request: Request, service: Served, _: KnownCaller) -> VerificationAnswer:
    """Check every byte of a release file and recompute the guarantee from its certificate. You need not trust the
    server: `privlearn verify` does the same on your machine."""
    kind_sent(request, (BYTES,))
    async with large_body(request, service.owner.limits.file_megabytes):
        content = await request.body()
        async with reading(request, content):
            return VerificationAnswer.of(await run_heavy(request, verify_bytes, content))
