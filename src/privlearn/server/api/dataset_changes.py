"""Changes of data sets by the holder: add, refresh, retire."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from privlearn.budget.composition import CompositionName
from privlearn.server.api import schemas
from privlearn.server.api.datasets import DataSetAnswer
from privlearn.server.api.schemas import Answer, DataSetName, Delta, Epsilon, with_example
from privlearn.server.changes import commands
from privlearn.server.changes import datasets as changes
from privlearn.server.http.callers import Holder, Served, command_route, json_body
from privlearn.server.http.capacity import run_heavy
from privlearn.server.http.problems import problem_responses

router = APIRouter(prefix="/v1", tags=["data sets"])


class SourcesAnswer(Answer):
    """Files from which data sets can be created."""

    model_config = with_example(
        {"tables": ["exports/2026/census.csv"], "schemas": ["exports/census.schema.yaml"]}
    )

    tables: list[str] = Field(description="Files, and directories of files.")
    schemas: list[str] = Field(description="Files that may be schemas.")


class NewDataSet(schemas.Body):
    """A table, its public schema, and a budget that cannot be changed later."""

    model_config = with_example(
        {
            "name": "census-2026",
            "table": "exports/2026/census.csv",
            "schema": "exports/census.schema.yaml",
            "epsilon": 4.0,
            "delta": 1e-6,
        }
    )

    name: str = commands.NAME.in_body(max_length=64)
    table: str = commands.TABLE.in_body(max_length=1000)
    schema_name: str = commands.SCHEMA.in_body(alias="schema", max_length=1000)
    epsilon: Epsilon
    delta: Delta = 0.0
    neighbours: str = Field(
        default="replace_one", max_length=64, description="The neighbouring relation, as in owner.toml."
    )
    composition: CompositionName = Field(default="basic", description=f"{commands.COMPOSITION.label}.")
    expected_records: int | None = Field(
        default=None, ge=1, le=2**53, description=commands.EXPECTED_RECORDS.hint
    )
    least_epsilon: float = Field(
        default=0.001, gt=0, le=1e6, description="The smallest epsilon of a request."
    )
    training_seconds: float | None = Field(
        default=None, gt=0, le=86400, description=commands.TRAINING_SECONDS.hint
    )


class NewVersion(schemas.Body):
    """A newer table about the same people."""

    model_config = with_example({"table": "exports/2027/census.csv", "reason": "yearly export"})

    table: str = commands.TABLE.in_body(max_length=1000)
    schema_name: str = commands.NEW_SCHEMA.in_body(alias="schema", max_length=1000)
    reason: str = commands.REASON.in_body()


class Retirement(schemas.Body):
    """Why a data set is retired."""

    model_config = with_example({"reason": "the study is over"})

    reason: str = commands.REASON.in_body()


@router.get("/sources", summary="List the files for new data sets", responses=problem_responses(403))
def list_sources(service: Served, _: Holder) -> SourcesAnswer:
    """List the files in and below the directories of owner.toml; empty if it names none. Needs a holder's key."""
    console = service.owner.console
    return SourcesAnswer(tables=console.tables(), schemas=console.schemas())


@command_route(router, commands.ADD_DATASET, NewDataSet, status_code=201)
async def add_dataset(
    request: Request,
    service: Served,
    holder: Holder,
    body: Annotated[NewDataSet, Depends(json_body(NewDataSet))],
) -> DataSetAnswer:
    """Add a data set. All rows are read once, and must fit the schema. Needs a holder's key."""
    settings = body.model_dump(exclude={"name", "table", "schema_name"}, exclude_none=True)
    await run_heavy(
        request, changes.add_dataset, service, holder, body.name, body.table, body.schema_name, settings
    )
    return DataSetAnswer.of(service.dataset(holder, body.name))


@command_route(router, commands.REFRESH_DATASET, NewVersion, status_code=201)
async def refresh_dataset(
    request: Request,
    service: Served,
    holder: Holder,
    name: DataSetName,
    body: Annotated[NewVersion, Depends(json_body(NewVersion))],
) -> DataSetAnswer:
    """Add a new version of the table, about the same people, under the same budget; refused if the schema differs. All
    rows are read once. Needs a holder's key.
    """
    values = body.table, body.schema_name, body.reason
    await run_heavy(request, changes.refresh_dataset, service, holder, name, *values)
    return DataSetAnswer.of(service.dataset(holder, name))


@command_route(router, commands.RETIRE_DATASET, Retirement)
def retire_dataset(
    service: Served,
    holder: Holder,
    name: DataSetName,
    body: Annotated[Retirement, Depends(json_body(Retirement))],
) -> DataSetAnswer:
    """Refuse new requests permanently; results remain, and sessions continue to answer. Needs a holder's key."""
    changes.retire_dataset(service, holder, name, body.reason)
    return DataSetAnswer.of(service.dataset(holder, name))
