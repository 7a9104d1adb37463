"""Frozen, public settings whose every problem is a SchemaError with one line a problem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, StrictStr, ValidationError

from privlearn.errors import SchemaError
from privlearn.relation import relation_named

Neighbours = Annotated[StrictStr, AfterValidator(lambda name: relation_named(name).name)]
"""The name of a known relation, as a setting."""

_TAGGED = "columns"  # a column's type stands between its name and its field in pydantic's location


class PublicModel(BaseModel):
    """Base of the schema's parts: immutable, no unknown fields, errors a person can act on."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, **fields: Any) -> None:
        problems: list[str] = []
        try:
            super().__init__(**fields)
        except ValidationError as error:
            problems = list(_problems(error))
        if problems:
            raise SchemaError("\n".join(problems))


def _problems(error: ValidationError) -> Iterator[str]:
    """One readable line a problem; a part's own lines get the part's place put before them."""
    for item in error.errors(include_url=False, include_input=False):
        where = _place(item["loc"])
        for line in _message(item).splitlines():
            yield f"{where}: {line}" if where else line


def _place(location: tuple[int | str, ...]) -> str:
    parts = [str(part) for part in location]
    if parts[:1] == [_TAGGED]:
        del parts[2:3]
    return ".".join(parts)


def _message(item: Any) -> str:
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    if item["type"] == "extra_forbidden":
        return "unknown setting: remove it or correct its spelling"
    if item["type"] == "missing":
        return "missing: fill it in"
    return str(item["msg"])
