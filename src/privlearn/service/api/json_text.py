"""JSON as the standard means it: what Python's reader lets pass beyond it is refused."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from privlearn.errors import InvalidParameter
from privlearn.service.api.problems import Malformed, explain_invalid

Model = TypeVar("Model", bound=BaseModel)


def read_json(content: bytes) -> Any:
    """The value of a JSON text in UTF-8, without NaN, Infinity, repeated names or halves of characters."""
    try:
        return json.loads(
            content.decode("utf-8"), object_pairs_hook=_members, parse_constant=_refuse_constant
        )
    except Malformed:
        raise
    except (ValueError, RecursionError):  # their messages quote the text
        pass
    raise Malformed("the body is not JSON in UTF-8, or is nested too deeply: correct it")


def read_model(model: type[Model], content: bytes) -> Model:
    """A JSON object of known members."""
    value = read_json(content)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        reason = explain_invalid(found, model.model_fields)
    raise InvalidParameter(reason)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Malformed("an object of the body has a name twice: keep one of them")
    return members


def _refuse_constant(_: str) -> NoReturn:
    raise Malformed("JSON knows no NaN and no Infinity: write null for a missing cell")
