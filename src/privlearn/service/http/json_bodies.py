"""JSON of strangers: values that everything behind can hold, and objects of known members."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from privlearn.errors import InvalidParameter
from privlearn.service.http.problems import Malformed, explain_invalid

Model = TypeVar("Model", bound=BaseModel)


def read_json(content: bytes) -> Any:
    """The value of a JSON text in UTF-8, without NaN, Infinity, repeated names, NUL or halves of characters."""
    try:
        text = content.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_members, parse_constant=_refuse_constant, parse_float=_finite_number
        )
        if "\\u" in text:  # else it holds no character that UTF-8, or JSON by itself, would not let through
            _check_characters(value)
        return value
    except Malformed:
        raise
    except (ValueError, RecursionError):  # their messages quote the text
        pass
    raise Malformed("the body is not JSON in UTF-8, or is nested too deeply: correct it")


def read_model(model: type[Model], content: bytes) -> Model:
    """A JSON object of known members."""
    return read_value(model, read_json(content))


def read_value(model: type[Model], value: Any) -> Model:
    """What a JSON text says, as an object of known members."""
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


def _finite_number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Malformed("the body has a number that is too large for a double: write a smaller one")
    return number


def _check_characters(value: Any) -> None:
    """Refuse text that no database and no answer could hold."""
    if isinstance(value, str):
        value.encode("utf-8")  # a half of a character is a ValueError
        if "\0" in value:
            raise Malformed("the body has text with the character NUL: leave it out")
    elif isinstance(value, dict):
        for name, member in value.items():
            _check_characters(name)
            _check_characters(member)
    elif isinstance(value, list):
        for member in value:
            _check_characters(member)
