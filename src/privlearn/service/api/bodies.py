"""Bodies of requests: read once the caller is known, and described for OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request
from pydantic import BaseModel

from privlearn.service.api.callers import KnownCaller
from privlearn.service.api.json_text import Model, read_model
from privlearn.service.api.kinds import ARROW, CSV, JSON, kind_sent

REF = "#/components/schemas/{model}"


def json_body(model: type[Model]) -> Callable[..., Awaitable[Model]]:
    """A dependency: the body as this model."""

    async def read(request: Request, _: KnownCaller) -> Model:
        kind_sent(request, (JSON,))
        return read_model(model, await request.body())

    return read


def described(contents: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI description of a body that the code reads itself, one content for each kind."""
    return {"requestBody": {"required": True, "content": contents}}


def content_of(model: type[BaseModel]) -> dict[str, Any]:
    """A model as JSON, with its examples."""
    return {"schema": {"$ref": REF.format(model=model.__name__)}}


ROWS_EXAMPLE = {"rows": [{"age": 39, "sex": "female"}, {"age": 50, "sex": None}]}
_ROW: dict[str, Any] = {
    "type": "object",
    "description": "A cell for each column of the schema: a number, text, true, false, or null where it is missing.",
    "additionalProperties": {"type": ["number", "string", "boolean", "null"]},
}
ROWS: dict[str, Any] = {"type": "array", "items": _ROW, "minItems": 1}
ROWS_CONTENTS: dict[str, Any] = {
    JSON: {
        "schema": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"rows": ROWS},
                    "required": ["rows"],
                    "additionalProperties": False,
                },
                ROWS,
                _ROW,
            ]
        },
        "example": ROWS_EXAMPLE,
    },
    CSV: {
        "schema": {"type": "string", "description": "UTF-8; the first line names the columns."},
        "example": "age,sex\n39,female\n50,\n",
    },
    ARROW: {"schema": {"type": "string", "format": "binary", "description": "A stream without compression."}},
}
