"""The HTTP interface, version 1: one router and one answer model per noun.

Start with `jobs` (request, follow and cancel jobs; estimates) and `results` (what jobs produced). `sessions` answers
points; `datasets`, `approvals`, `analysts`, `dataset_changes`, `identity` and `operations` serve the other roles.
`schemas` has shared fields, `requests` reads request bodies. Routers call `server.service` and `server.changes`, and
use `server.http` for bodies, limits and problems; nothing imports this package except `server.server`.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from privlearn._version import __version__
from privlearn.server.api import (
    analysts,
    approvals,
    dataset_changes,
    datasets,
    identity,
    jobs,
    operations,
    results,
    sessions,
)
from privlearn.server.api.requests import any_body, body_models
from privlearn.server.http.callers import BODIES, REF
from privlearn.server.http.problems import Problem

DESCRIPTION = """\
Train on records that stay with their holder, within a privacy budget that cannot be overspent. Every call except
`/healthz`, `/readyz`, `/.well-known/privlearn.pem` and `/v1/openapi.json` needs a key:
`Authorization: Bearer pl_...`. A refused request costs nothing, and its answer gives the reason."""
_MODULES = (
    identity,
    analysts,
    datasets,
    dataset_changes,
    jobs,
    approvals,
    results,
    sessions,
    operations,
)
_TAGS = [
    {"name": "people", "description": "Keys, analysts and the audit log."},
    {
        "name": "data sets",
        "description": "Public descriptions, budgets, and synthetic rows to try calls with.",
    },
    {"name": "jobs", "description": "Request, estimate, follow and cancel jobs of every kind."},
    {"name": "approvals", "description": "Requests that wait for a second person, and decisions on them."},
    {
        "name": "results",
        "description": "What jobs of every kind produced: releases, sessions, evaluations, ...",
    },
    {"name": "sessions", "description": "Ask a model that stays with the holder for predictions."},
    {"name": "operations", "description": "Health, metrics and the public key, for operators."},
]


def add_api(app: FastAPI) -> None:
    """Add every route to the application, and its OpenAPI description."""
    for module in _MODULES:
        app.include_router(module.router)
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend it


def _description(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        description = get_openapi(
            title="privlearn", version=__version__, description=DESCRIPTION, routes=app.routes, tags=_TAGS
        )
        schemas = description["components"]["schemas"]
        # Models that FastAPI does not find itself: problems, and bodies that our code reads.
        models: list[type[BaseModel]] = [Problem, *BODIES, *body_models()]
        for model in models:
            schemas[model.__name__] = model.model_json_schema(ref_template=REF)
        for path in ("/v1/jobs", "/v1/estimates"):  # the kinds of extensions are registered by now
            description["paths"][path]["post"] |= any_body()
        app.openapi_schema = description
    return app.openapi_schema
