"""Data sets as the holder changes them: added, refreshed, retired."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from privlearn.ledger.statement import CompositionName
from privlearn.service.api import schemas
from privlearn.service.api.schemas import Answer, DataSetName, Delta, Epsilon, with_example
from privlearn.service.changes import datasets as changes
from privlearn.service.holder.made import MadeDataSet
from privlearn.service.http.callers import Holder, Served, content_of, described, json_body
from privlearn.service.http.limits import aside
from privlearn.service.http.media_types import JSON
from privlearn.service.http.problems import refused

router = APIRouter(prefix="/v1", tags=["data sets"])

_FILE = "As `GET /v1/sources` lists it: SOURCE/PLACE."
_BODY = (400, 403, 404, 408, 409, 413, 415, 422)


class SourcesAnswer(Answer):
    """What data sets can be made of."""

    model_config = with_example(
        {"tables": ["exports/2026/census.csv"], "schemas": ["exports/census.schema.yaml"]}
    )

    tables: list[str] = Field(description="Files, and folders of files.")
    schemas: list[str] = Field(description="Files that may be schemas.")


class NewDataSet(schemas.Request):
    """A table, what is public about it, and a budget that cannot be changed afterwards."""

    model_config = with_example(
        {
            "name": "census-2026",
            "table": "exports/2026/census.csv",
            "schema": "exports/census.schema.yaml",
            "epsilon": 4.0,
            "delta": 1e-6,
        }
    )

    name: str = Field(max_length=64, description="In addresses, in the ledger, for analysts.")
    table: str = Field(max_length=1000, description=_FILE)
    schema_name: str = Field(alias="schema", max_length=1000, description=_FILE)
    epsilon: Epsilon
    delta: Delta = 0.0
    neighbours: str = Field(
        default="replace_one", max_length=64, description="What nobody can tell apart, as in owner.toml."
    )
    composition: CompositionName = Field(default="basic", description="How costs add up.")
    expected_records: int | None = Field(
        default=None,
        ge=1,
        le=2**53,
        description="Where the number of records is private: what is said instead.",
    )
    least_epsilon: float = Field(default=0.001, gt=0, le=1e6, description="The lowest price.")
    training_seconds: float = Field(
        default=1.0, gt=0, le=86400, description="When a training's end is seen, as in owner.toml."
    )


class NewVersion(schemas.Request):
    """A newer table about the same people."""

    model_config = with_example({"table": "exports/2027/census.csv", "reason": "yearly export"})

    table: str = Field(max_length=1000, description=_FILE)
    schema_name: str = Field(
        default="",
        alias="schema",
        max_length=1000,
        description="Empty: as before. Another one must have the same digest.",
    )
    reason: str = Field(default="", max_length=200, description="For the audit log.")


class Retirement(schemas.Request):
    """Why a data set is retired."""

    model_config = with_example({"reason": "the study is over"})

    reason: str = Field(default="", max_length=200, description="For the audit log.")


class VersionAnswer(Answer):
    """A table about the data set's people."""

    number: int = Field(description="From 1 on.")
    records: int = Field(description="Their number, or the expected one where that is private.")
    created: str = Field(description="Since when it was served (UTC).")


class ChangedDataSetAnswer(Answer):
    """A data set that was made in the console."""

    model_config = with_example(
        {
            "name": "census-2026",
            "retired": "",
            "versions": [{"number": 1, "records": 32561, "created": "2026-11-16T09:00:00.000000+00:00"}],
        }
    )

    name: str = Field(description="Its name.")
    retired: str = Field(description="Since when nothing new is done with it (UTC); empty: it is served.")
    versions: list[VersionAnswer] = Field(description="Oldest first; all are paid from one budget.")

    @classmethod
    def now(cls, service: Served, name: str) -> Self:
        found: MadeDataSet = service.catalogs.made.datasets[name]
        return cls.of(found)


@router.get("/sources", summary="List what data sets can be made of", responses=refused(403))
def list_sources(service: Served, _: Holder) -> SourcesAnswer:
    """Files in and below the folders that owner.toml names; empty if it names none. Needs a holder's key."""
    console = service.owner.console
    return SourcesAnswer(tables=console.tables(), schemas=console.schemas())


@router.post(
    "/datasets",
    status_code=201,
    summary="Add a data set",
    openapi_extra=described({JSON: content_of(NewDataSet)}),
    responses=refused(*_BODY),
)
async def add_dataset(
    request: Request,
    service: Served,
    holder: Holder,
    asked: Annotated[NewDataSet, Depends(json_body(NewDataSet))],
) -> ChangedDataSetAnswer:
    """All rows are read once, and must fit the schema. Needs a holder's key."""
    settings = asked.model_dump(exclude={"name", "table", "schema_name"}, exclude_none=True)
    await aside(
        request, changes.add_dataset, service, holder, asked.name, asked.table, asked.schema_name, settings
    )
    return ChangedDataSetAnswer.now(service, asked.name)


@router.post(
    "/datasets/{name}/versions",
    status_code=201,
    summary="Refresh a data set",
    openapi_extra=described({JSON: content_of(NewVersion)}),
    responses=refused(*_BODY),
)
async def refresh_dataset(
    request: Request,
    service: Served,
    holder: Holder,
    name: DataSetName,
    asked: Annotated[NewVersion, Depends(json_body(NewVersion))],
) -> ChangedDataSetAnswer:
    """A new version of the same people under the same budget; refused if the schema is another. All rows are read once.
    Needs a holder's key."""
    wanted = asked.table, asked.schema_name, asked.reason
    await aside(request, changes.refresh_dataset, service, holder, name, *wanted)
    return ChangedDataSetAnswer.now(service, name)


@router.post(
    "/datasets/{name}/retirement",
    summary="Retire a data set",
    openapi_extra=described({JSON: content_of(Retirement)}),
    responses=refused(*_BODY),
)
def retire_dataset(
    service: Served,
    holder: Holder,
    name: DataSetName,
    asked: Annotated[Retirement, Depends(json_body(Retirement))],
) -> ChangedDataSetAnswer:
    """Nothing new is done with it, for good; what was made stays, and sessions go on. Needs a holder's key."""
    changes.retire_dataset(service, holder, name, asked.reason)
    return ChangedDataSetAnswer.now(service, name)
