"""Data sets: their public descriptions, their budgets, and synthetic rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from privlearn.server.api import schemas
from privlearn.server.api.schemas import (
    LIMIT,
    Amount,
    Answer,
    DataSetName,
    GuaranteeAnswer,
    Limit,
    link_next,
    with_example,
)
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.http.callers import ROWS_EXAMPLE, KnownCaller, Served
from privlearn.server.http.capacity import run_heavy
from privlearn.server.http.media_types import ARROW, CSV, JSON, Kind, kind_accepted, table_answer
from privlearn.server.http.problems import problem_responses

router = APIRouter(prefix="/v1/datasets", tags=["data sets"])

MAX_SYNTHETIC_ROWS = 10_000
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
    """Which requests wait for a second person's approval."""

    above: float | dict[str, float] = Field(
        description="Requests above this epsilon wait. With one number per kind, kinds without one never wait."
    )
    days: float = Field(description="Days after which an undecided request ends, free of charge.")


class DataSetAnswer(Answer):
    """The public description of a data set."""

    model_config = with_example(
        {
            "name": "census",
            "records": 32561,
            "version": 1,
            "retired": False,
            "budget": schemas.GUARANTEE_EXAMPLE,
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

    name: str = Field(description="Name in paths.")
    records: int = Field(
        description="Number of records, or of persons if they have several; where it is private, the expected one."
    )
    version: int = Field(description="Version of its table; all versions share one budget.")
    retired: bool = Field(description="Whether it takes no new requests.")
    budget: GuaranteeAnswer = Field(description="Total budget of all jobs together.")
    composition: str = Field(description="How costs are composed: basic or renyi.")
    public_schema: dict[str, Any] = Field(
        alias="schema", description="Bounds, categories and classes of its columns."
    )
    learners: dict[str, dict[str, Any]] = Field(description="Learners that can be trained on it, by name.")
    approval: ApprovalAnswer | None = Field(description="Which requests need approval; null: none.")

    @classmethod
    def of(cls, offered: OfferedDataSet) -> DataSetAnswer:
        approval = offered.settings.approval
        return cls(
            name=offered.name,
            records=offered.records,
            version=offered.version,
            retired=offered.settings.retired,
            budget=GuaranteeAnswer.of(offered.settings.guarantee),
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

    reservation: str = Field(description="Id of the job.")
    state: str = Field(description="reserved, committed or cancelled; cancelled ones do not count.")
    amount: Amount = Field(description="The cost.")
    purpose: str = Field(description="Purpose.")
    note: str = Field(description="The analyst's note.")
    analyst: str = Field(validation_alias="account", description="The analyst who requested it.")
    reserved_at: str = Field(description="Time of the reservation (UTC).")
    settled_at: str = Field(description="Time at which it was committed or cancelled; empty: not yet.")


class ShareAnswer(Answer):
    """The state of a share of a budget; the data set may have less left."""

    total: GuaranteeAnswer = Field(description="The total.")
    spent: Amount = Field(description="What is spent.")
    reserved: Amount = Field(description="Cost of jobs that are running.")
    left: Amount = Field(description="What is left.")


class BudgetAnswer(ShareAnswer):
    """The state of a budget."""

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
    composition: str = Field(description="How costs are composed: basic or renyi.")
    share: ShareAnswer | None = Field(description="Your share; null for the holder.")
    entries: list[EntryAnswer] = Field(
        description="Your latest costs, or those of all analysts for the holder; the newest is last."
    )


@router.get("", summary="List data sets", responses=problem_responses())
def list_datasets(service: Served, caller: KnownCaller) -> list[DataSetAnswer]:
    """List the data sets that this key may use."""
    return [DataSetAnswer.of(offered) for offered in service.datasets(caller)]


@router.get("/{name}", summary="Describe a data set", responses=problem_responses(404, 422))
def get_dataset(service: Served, caller: KnownCaller, name: DataSetName) -> DataSetAnswer:
    """Return schema, number of records and learners of a data set."""
    return DataSetAnswer.of(service.dataset(caller, name))


@router.get("/{name}/budget", summary="See a budget", responses=problem_responses(404, 422))
def get_budget(
    request: Request,
    response: Response,
    service: Served,
    caller: KnownCaller,
    name: DataSetName,
    limit: Limit = LIMIT,
    before: BeforeEntry = None,
) -> BudgetAnswer:
    """Return what is spent, reserved and left, of the whole budget and of your share. The header `Link` leads to older
    entries.
    """
    standing = service.budget(caller, name)
    entries = service.entries(caller, name, limit, before)
    link_next(request, response, entries, limit, entries[0].reservation if entries else "")
    return BudgetAnswer.of({**asdict(standing), "entries": entries})


@router.get(
    "/{name}/synthetic",
    summary="Get synthetic rows",
    response_class=Response,
    responses=problem_responses(404, 406, 422)
    | {
        200: {
            "description": "Rows in the media type of Accept.",
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
    rows: Annotated[
        int, Query(ge=1, le=MAX_SYNTHETIC_ROWS, description="Number of rows.", examples=[5])
    ] = 100,
    seed: Annotated[int, Query(ge=0, lt=2**32, description="Equal seeds give equal rows.", examples=[0])] = 0,
) -> Response:
    """Draw rows from the schema alone, with a target, to try every call with. Free: they describe no real person."""
    kind = kind_accepted(request, JSON)
    return await run_heavy(request, _synthetic, service.dataset(caller, name), rows, seed, kind)


def _synthetic(offered: OfferedDataSet, rows: int, seed: int, kind: Kind) -> Response:
    return table_answer(offered.synthetic(rows, seed), kind)
