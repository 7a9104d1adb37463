"""The HTTP interface, version 1: one router per noun."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from privlearn._version import __version__
from privlearn.service.api import (
    analysts,
    approvals,
    dataset_changes,
    datasets,
    estimates,
    identity,
    jobs,
    operations,
    releases,
    results,
    sessions,
)
from privlearn.service.api.requests import any_body, body_models
from privlearn.service.http.callers import REF
from privlearn.service.http.problems import Problem

DESCRIPTION = """\
Train on records that stay with their holder, within a privacy budget that nobody can overspend. Every call but
`/healthz`, `/readyz`, `/.well-known/privlearn.pem` and `/v1/openapi.json` needs a key:
`Authorization: Bearer pl_...`. What is refused costs nothing, and says why."""
_UNSEEN: tuple[type[BaseModel], ...] = (
    Problem,
    estimates.EstimateRequest,
    approvals.DecisionRequest,
    analysts.NewAnalyst,
    analysts.AnalystChange,
    analysts.ShareRequest,
    analysts.NewKey,
    analysts.Rotation,
    dataset_changes.NewDataSet,
    dataset_changes.NewVersion,
    dataset_changes.Retirement,
)
"""What FastAPI does not find by itself: bodies that the code reads, and problems."""


def add_api(app: FastAPI) -> None:
    """Add every route, and make the application describe them."""
    for module in _MODULES:
        app.include_router(module.router)
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]  # FastAPI's own way to change it


def _description(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        found = get_openapi(
            title="privlearn", version=__version__, description=DESCRIPTION, routes=app.routes, tags=_TAGS
        )
        schemas = found["components"]["schemas"]
        for model in (*_UNSEEN, *body_models()):
            schemas[model.__name__] = model.model_json_schema(ref_template=REF)
        for path in ("/v1/jobs", "/v1/estimates"):  # only now are all kinds known
            found["paths"][path]["post"] |= any_body()
        app.openapi_schema = found
    return app.openapi_schema


_MODULES = (
    identity,
    analysts,
    datasets,
    dataset_changes,
    estimates,
    jobs,
    approvals,
    results,
    sessions,
    releases,
    operations,
)
_TAGS = [
    {"name": "people", "description": "Who asks, and what was done by whom."},
    {"name": "data sets", "description": "What there is, what it may cost, and rows to try with."},
    {"name": "jobs", "description": "Jobs of every kind: asked for, estimated, and on their way."},
    {"name": "approvals", "description": "What waits until a second person agrees, and their decision."},
    {"name": "results", "description": "What jobs of every kind have made."},
    {"name": "sessions", "description": "Interactive: the model stays with the holder and answers points."},
    {
        "name": "releases",
        "description": "Non-interactive and semi-interactive: the model is given out as a file.",
    },
    {"name": "operations", "description": "For those who run the server."},
]
