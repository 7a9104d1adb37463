"""Values that several answers share."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from privlearn.guarantee import Guarantee

Id = Annotated[
    str,
    Path(
        pattern=r"^[0-9a-f]{16}$",
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


class Promise(BaseModel):
    """(epsilon, delta)-differential privacy."""

    epsilon: float | None = Field(description="Largest privacy loss; null: no promise.")
    delta: float = Field(description="Probability with which the loss may be larger.")
    neighbours: str = Field(
        description="What changes between data sets that must look alike: one person's record."
    )

    @classmethod
    def of(cls, guarantee: Guarantee) -> Promise:
        return cls(
            epsilon=guarantee.epsilon if guarantee.is_private else None,
            delta=guarantee.delta,
            neighbours=guarantee.neighbours,
        )


class Amount(BaseModel):
    """A part of a budget."""

    epsilon: float = Field(description="Its epsilon.")
    delta: float = Field(description="Its delta.")

    @classmethod
    def of(cls, amount: Any) -> Amount:
        return cls(epsilon=amount.epsilon, delta=amount.delta)


PROMISE_EXAMPLE = {"epsilon": 1.0, "delta": 1e-7, "neighbours": "replace_one"}


def with_example(example: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [example]})
