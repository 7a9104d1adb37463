"""The caller's identity, and the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from privlearn.server.access.keys import Role
from privlearn.server.api.schemas import Answer, with_example
from privlearn.server.http.callers import KnownCaller, LogReader, Served
from privlearn.server.http.problems import problem_responses

router = APIRouter(prefix="/v1", tags=["people"])


class MeAnswer(Answer):
    """The key of the request."""

    model_config = with_example(
        {
            "key": "1f2e3d4c5b6a7988",
            "role": "analyst",
            "person": "alice",
            "analyst": "alice",
            "datasets": ["census"],
        }
    )

    key: str = Field(description="Id of the key in the holder's list; not the key itself.")
    role: Role = Field(description="Its role.")
    person: str = Field(description="The person; empty for the holder and a monitor.")
    analyst: str = Field(description="The person, if the key is an analyst's; otherwise empty.")
    datasets: list[str] = Field(description="The data sets that it may see.")


class EventAnswer(Answer):
    """One line of the audit log."""

    model_config = with_example(
        {
            "id": 17,
            "time": "2026-11-16T09:00:00.000000+00:00",
            "actor": "alice",
            "action": "asked for a release",
            "dataset": "census",
            "details": {"job": "9f86d081884c7d65", "epsilon": 1.0},
            "digest": "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9",
        }
    )

    id: int = Field(description="Number of the line.")
    time: str = Field(description="Time (UTC).")
    actor: str = Field(description="The person who acted.")
    action: str = Field(description="What was done.")
    dataset: str = Field(description="The data set; empty: none.")
    details: dict[str, Any] = Field(description="Public details.")
    digest: str = Field(description="SHA-256 of the line and of the previous digest: lines form a chain.")


@router.get("/me", summary="Identify the key", responses=problem_responses())
def get_me(service: Served, caller: KnownCaller) -> MeAnswer:
    """Return the key's role and data sets: a first call to try a key."""
    names = [offered.name for offered in service.datasets(caller)]
    return MeAnswer(
        key=caller.key_id, role=caller.role, person=caller.person, analyst=caller.analyst, datasets=names
    )


@router.get("/events", summary="Read the audit log", responses=problem_responses(403, 422))
def list_events(
    service: Served,
    reader: LogReader,
    limit: Annotated[int, Query(ge=1, le=1000, description="Number of lines.", examples=[100])] = 100,
    before: Annotated[
        int | None, Query(ge=0, lt=2**31, description="Only lines before this number.", examples=[17])
    ] = None,
) -> list[EventAnswer]:
    """List the lines of the log, newest first. Needs a holder's or an auditor's key."""
    return [EventAnswer.of(event) for event in service.events(reader, limit, before)]
