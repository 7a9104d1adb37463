"""Data sets: their public side, their budgets, and rows to try with."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from privlearn.service.api import schemas
from privlearn.service.api.schemas import Amount, Answer, DataSetName, Promise, with_example
from privlearn.service.holder.datasets import OfferedDataSet
from privlearn.service.http.callers import ROWS_EXAMPLE, KnownCaller, Served
from privlearn.service.http.limits import aside
from privlearn.service.http.media_types import ARROW, CSV, JSON, Kind, kind_accepted, table_answer
from privlearn.service.http.paging import LIMIT, Limit, link_next
from privlearn.service.http.problems import refused

router = APIRouter(prefix="/v1/datasets", tags=["data sets"])

MOST_SYNTHETIC = 10_000
BeforeEntry = Annotated[
    str | None,
    Query(
        max_length=36,
        pattern="^[ -~]+$",
        description="Only entries before the reservation of this id.",
        examples=["9f86d081884c7d65"],
    ),
]


class ApprovalAnswer(Answer):
    """When a request waits until a second person approves it."""

    above: float | dict[str, float] = Field(
        description="Above this epsilon; with a number per kind of job, kinds without one never wait."
    )
    days: float = Field(description="After so long a request that nobody has decided on ends, unpaid.")


class DataSetAnswer(Answer):
    """The public side of a data set."""

    model_config = with_example(
        {
            "name": "census",
            "records": 32561,
            "version": 1,
            "retired": False,
            "budget": schemas.PROMISE_EXAMPLE,
            "composition": "basic",
            "schema": {
                "name": "census",
                "columns": {"age": {"type": "number", "lower": 17, "upper": 90}},
                "target": {"name": "income", "classes": ["<=50K", ">50K"]},
            },
            "learners": {"logistic": {"model": "logistic"}},
            "approval": {"above": {"release": 0.5, "session": 1.0}, "days": 14.0},
        }
    )

    name: str = Field(description="Its name in every address.")
    records: int = Field(
        description="Number of records, or of persons where they have several: public, or what the holder expects."
    )
    version: int = Field(description="Of its table: the same people, the same budget.")
    retired: bool = Field(description="Whether nothing new is done with it.")
    budget: Promise = Field(description="What all releases and sessions together may spend.")
    composition: str = Field(description="How costs add up: basic or renyi.")
    public_schema: dict[str, Any] = Field(
        alias="schema", description="Bounds, categories and classes of its columns."
    )
    learners: dict[str, dict[str, Any]] = Field(description="What can be trained on it, by name.")
    approval: ApprovalAnswer | None = Field(
        description="Which requests a second person must approve; null: none."
    )

    @classmethod
    def of(cls, offered: OfferedDataSet) -> DataSetAnswer:
        approval = offered.settings.approval
        return cls(
            name=offered.name,
            records=offered.records,
            version=offered.version,
            retired=offered.settings.retired,
            budget=Promise.of(offered.settings.guarantee),
            composition=offered.settings.composition,
            schema=offered.schema.to_dict(),
            learners={
                name: recipe.model_dump(mode="json", exclude_none=True)
                for name, recipe in offered.learners.items()
            },
            approval=None if approval is None else ApprovalAnswer.of(approval),
        )


class EntryAnswer(Answer):
    """One cost."""

    reservation: str = Field(description="Id of the training it pays for.")
    state: str = Field(description="reserved, committed or cancelled; all but cancelled ones count.")
    amount: Amount = Field(description="The cost.")
    purpose: str = Field(description="What it was for.")
    note: str = Field(description="The same in the analyst's words.")
    analyst: str = Field(validation_alias="account", description="Who asked for it.")
    reserved_at: str = Field(description="When (UTC).")
    settled_at: str = Field(description="When it was committed or cancelled; empty: not yet.")


class ShareAnswer(Answer):
    """Where your part of the budget stands."""

    total: Promise = Field(description="What you may spend.")
    spent: Amount = Field(description="What you have spent.")
    reserved: Amount = Field(description="What running trainings will cost.")
    left: Amount = Field(description="What is left of your part; the data set may have less.")


class BudgetAnswer(Answer):
    """Where a budget stands."""

    model_config = with_example(
        {
            "dataset": "census",
            "composition": "basic",
            "total": {"epsilon": 4.0, "delta": 1e-6, "neighbours": "replace_one"},
            "spent": {"epsilon": 1.0, "delta": 1e-7},
            "reserved": {"epsilon": 0.0, "delta": 0.0},
            "left": {"epsilon": 3.0, "delta": 9e-7},
            "share": None,
            "entries": [],
        }
    )

    dataset: str = Field(description="The data set.")
    composition: str = Field(description="How costs add up: basic or renyi.")
    total: Promise = Field(description="What all together may spend.")
    spent: Amount = Field(description="What is spent.")
    reserved: Amount = Field(description="What running trainings will cost.")
    left: Amount = Field(description="What is left.")
    share: ShareAnswer | None = Field(description="Your part of it; null for the holder.")
    entries: list[EntryAnswer] = Field(
        description="Your latest costs, or everybody's for the holder; the newest is last."
    )


@router.get("", summary="List data sets", responses=refused())
def list_datasets(service: Served, caller: KnownCaller) -> list[DataSetAnswer]:
    """The data sets that this key may ask about."""
    return [DataSetAnswer.of(offered) for offered in service.datasets(caller)]


@router.get("/{name}", summary="Describe a data set", responses=refused(404, 422))
def get_dataset(service: Served, caller: KnownCaller, name: DataSetName) -> DataSetAnswer:
    """Its public side: schema, number of records, learners on offer."""
    return DataSetAnswer.of(service.dataset(caller, name))


@router.get("/{name}/budget", summary="See where a budget stands", responses=refused(404, 422))
def get_budget(
    request: Request,
    response: Response,
    service: Served,
    caller: KnownCaller,
    name: DataSetName,
    limit: Limit = LIMIT,
    before: BeforeEntry = None,
) -> BudgetAnswer:
    """What is spent, reserved and left, of the whole and of your share. The header `Link` leads to older entries."""
    standing = service.budget(caller, name)
    entries = service.entries(caller, name, limit, before)
    link_next(request, response, entries, limit, entries[0].reservation if entries else "")
    return BudgetAnswer.of({**asdict(standing), "entries": entries})


@router.get(
    "/{name}/synthetic",
    summary="Get made-up rows",
    response_class=Response,
    responses=refused(404, 406, 422)
    | {
        200: {
            "description": "Rows in the kind of Accept.",
            "content": {
                JSON: {"schema": {"type": "object"}, "example": ROWS_EXAMPLE},
                CSV: {"schema": {"type": "string"}, "example": '"age","sex"\n39,"female"\n'},
                ARROW: {"schema": {"type": "string", "format": "binary"}},
            },
        }
    },
)
async def get_synthetic(
    request: Request,
    service: Served,
    caller: KnownCaller,
    name: DataSetName,
    rows: Annotated[int, Query(ge=1, le=MOST_SYNTHETIC, description="How many.", examples=[5])] = 100,
    seed: Annotated[int, Query(ge=0, lt=2**32, description="Equal seeds give equal rows.", examples=[0])] = 0,
) -> Response:
    """Rows drawn from the schema, the target included, to try every call with. About nobody, and free."""
    kind = kind_accepted(request, JSON)
    return await aside(request, _synthetic, service.dataset(caller, name), rows, seed, kind)


def _synthetic(offered: OfferedDataSet, rows: int, seed: int, kind: Kind) -> Response:
    return table_answer(offered.synthetic(rows, seed), kind)
