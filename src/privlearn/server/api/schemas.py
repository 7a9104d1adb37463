"""Fields, base models and paging that several routers share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeVar
from urllib.parse import urlencode

from fastapi import Depends, Path, Query, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from privlearn.server.http.callers import ID

Id = Annotated[
    str, Path(pattern=ID, description="Id of a job or of its result.", examples=["9f86d081884c7d65"])
]
DataSetName = Annotated[str, Path(max_length=64, description="Name of a data set.", examples=["census"])]
Epsilon = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False, description="Largest privacy loss.")]
Delta = Annotated[
    float,
    Field(ge=0, lt=1, allow_inf_nan=False, description="Probability with which the loss may be larger."),
]


class Body(BaseModel):
    """Base of request bodies: unknown members are refused, and values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Answer(BaseModel):
    """Base of answers, created from the attributes of the service's values."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return the answer for a value of the service."""
        return cls.model_validate(value)


def _finite(value: Any) -> Any:
    return None if value == math.inf else value


class GuaranteeAnswer(Answer):
    """(epsilon, delta)-differential privacy."""

    epsilon: Annotated[float | None, BeforeValidator(_finite)] = Field(
        description="Largest privacy loss; null: no guarantee."
    )
    delta: float = Field(description="Probability with which the loss may be larger.")
    neighbours: str = Field(
        description="The neighbouring relation: how data sets that must be indistinguishable differ."
    )


class OfRequest(Answer):
    """The fields that a job and its result repeat from the request; both have the job's id."""

    id: str = Field(description="Id of the job, and of its result.")
    analyst: str = Field(description="The analyst who requested it.")
    dataset: str = Field(description="The data set that it is about.")
    kind: str = Field(description="Kind of the job.")
    fields: dict[str, Any] = Field(description="The fields of the request that belong to its kind.")
    guarantee: GuaranteeAnswer = Field(description="Its price, and the guarantee of its result.")
    trial: bool = Field(description="Whether it uses synthetic rows, free of charge.")


class Amount(Answer):
    """An amount of a budget."""

    epsilon: float = Field(description="Epsilon.")
    delta: float = Field(description="Delta.")


GUARANTEE_EXAMPLE = {"epsilon": 1.0, "delta": 1e-7, "neighbours": "replace_one"}
REQUEST_EXAMPLE = {
    "id": "9f86d081884c7d65",
    "analyst": "alice",
    "dataset": "census",
    "kind": "release",
    "fields": {"learner": "logistic", "mechanism": "model"},
    "guarantee": GUARANTEE_EXAMPLE,
    "trial": False,
}
"""Of `OfRequest`."""


def with_example(example: dict[str, Any]) -> ConfigDict:
    """Return a model configuration with an example."""
    return ConfigDict(json_schema_extra={"examples": [example]})


Limit = Annotated[int, Query(ge=1, le=1000, description="Maximum number of items.", examples=[100])]
Before = Annotated[
    str | None,
    Query(pattern=ID, description="Only items after this one in the list.", examples=["9f86d081884c7d65"]),
]

LIMIT = 100

Item = TypeVar("Item")


def link_next(request: Request, response: Response, items: Sequence[Any], limit: int, last: str) -> None:
    """Set the header `Link` to the next page, if there may be one."""
    if len(items) == limit:
        query = urlencode({**request.query_params, "limit": limit, "before": last})
        response.headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'


@dataclass(frozen=True)
class Page:
    """The requested part of a list."""

    limit: int
    before: str | None
    _request: Request
    _response: Response

    def with_next_link(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items, and set the header `Link` to the next page."""
        last: Any = items[-1] if items else None
        link_next(self._request, self._response, items, self.limit, "" if last is None else last.id)
        return items


async def _part_of(request: Request, response: Response, limit: Limit = LIMIT, before: Before = None) -> Page:
    return Page(limit, before, request, response)


RequestedPage = Annotated[Page, Depends(_part_of)]
