"""Values that several answers share."""

from __future__ import annotations

import math
from typing import Annotated, Any, Self

from fastapi import Path
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from privlearn.service.http.callers import ID

Id = Annotated[
    str,
    Path(
        pattern=ID,
        description="As the answer to the training said.",
        examples=["9f86d081884c7d65"],
    ),
]
DataSetName = Annotated[str, Path(max_length=64, description="Name of a data set.", examples=["census"])]
Epsilon = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False, description="Largest privacy loss.")]
Delta = Annotated[
    float,
    Field(ge=0, lt=1, allow_inf_nan=False, description="Probability with which the loss may be larger."),
]


class Request(BaseModel):
    """Base of what is sent: unknown members are refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Answer(BaseModel):
    """Base of what is answered: made from the service's own values by the names of their attributes."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, value: Any) -> Self:
        return cls.model_validate(value)


def _finite(value: Any) -> Any:
    return None if value == math.inf else value


class Promise(Answer):
    """(epsilon, delta)-differential privacy."""

    epsilon: Annotated[float | None, BeforeValidator(_finite)] = Field(
        description="Largest privacy loss; null: no promise."
    )
    delta: float = Field(description="Probability with which the loss may be larger.")
    neighbours: str = Field(
        description="What changes between data sets that must look alike: one person's record."
    )


class Amount(Answer):
    """A part of a budget."""

    epsilon: float = Field(description="Its epsilon.")
    delta: float = Field(description="Its delta.")


PROMISE_EXAMPLE = {"epsilon": 1.0, "delta": 1e-7, "neighbours": "replace_one"}


def with_example(example: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [example]})
