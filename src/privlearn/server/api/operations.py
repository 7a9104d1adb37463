"""For operators: liveness, readiness, the public key and metrics."""

from __future__ import annotations

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from privlearn.release.signatures import public_pem
from privlearn.server.http.callers import Monitor, Served
from privlearn.server.http.problems import problem, problem_responses
from privlearn.server.refusals import NotFound

router = APIRouter(tags=["operations"])

_THREADS = CapacityLimiter(20)  # separate threads: the others may all wait for the database
_PEM = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA...\n-----END PUBLIC KEY-----\n"
METRICS = "text/plain; version=1.0.0; charset=utf-8"


@router.head("/healthz", include_in_schema=False)
@router.get(
    "/healthz",
    summary="Is the process alive?",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"example": "ok\n"}}}},
)
async def healthz() -> str:
    """Needs no key. Does not check the database: `/readyz` does."""
    return "ok\n"


@router.head("/readyz", include_in_schema=False)
@router.get(
    "/readyz",
    summary="Can it answer?",
    response_class=PlainTextResponse,
    responses=problem_responses(503, key=False) | {200: {"content": {"text/plain": {"example": "ok\n"}}}},
)
async def readyz(request: Request, service: Served) -> Response:
    """Needs no key. 503 while the database cannot be reached or written, while workers are stuck, and while the server
    is shutting down.
    """
    if request.app.state.stopping:
        return problem(503, "the server is shutting down")
    trouble = await to_thread.run_sync(service.watch.trouble, limiter=_THREADS)
    return problem(503, trouble) if trouble else PlainTextResponse("ok\n")


@router.get(
    "/.well-known/privlearn.pem",
    summary="The server's public key",
    response_class=PlainTextResponse,
    responses=problem_responses(404, key=False) | {200: {"content": {"text/plain": {"example": _PEM}}}},
)
def public_key(service: Served) -> Response:
    """Needs no key. Every file that the server gives out is signed with this key: `privlearn verify FILE --server URL`
    reads it here. 404 if the server does not sign.
    """
    if service.signing_key is None:
        raise NotFound(
            "this server does not sign. Its holder can set signing_key or signing_token in owner.toml."
        )
    return PlainTextResponse(public_pem(service.signing_key))


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=PlainTextResponse,
    responses=problem_responses(403)
    | {200: {"content": {"text/plain": {"example": "privlearn_predictions_total 1000.0\n"}}}},
)
def metrics(request: Request, service: Served, _: Monitor) -> Response:
    """Requests, times, jobs, predictions and budgets; nothing that depends on a record except what was charged. Needs a
    monitor's key, or the holder's.
    """
    return Response(request.app.state.metrics.text(service), media_type=METRICS)
