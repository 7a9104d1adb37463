"""The holder's console: budgets, their history, keys, and the log."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse

from privlearn.ledger.statement import Share
from privlearn.service.access.keys import list_keys
from privlearn.service.holder.datasets import OfferedDataSet
from privlearn.service.http.callers import Served
from privlearn.service.http.media_types import CSV
from privlearn.service.job_kinds.release import GIVE_OUT_RELEASE
from privlearn.service.job_kinds.session import OPEN_SESSION
from privlearn.service.pages import commands
from privlearn.service.pages.desk import entries_of
from privlearn.service.pages.formatting import MOST_STEPS, spending_figure
from privlearn.service.pages.page import Before, page_router, render
from privlearn.service.pages.signing import Auditor, Holder
from privlearn.service.refusals import NotFound
from privlearn.service.store.log_file import csv_lines, json_lines

router = page_router()

_LATEST = 10
_LINES = 50
BeforeLine = Annotated[int | None, Query(ge=0, lt=2**31)]
"""Number of the oldest line seen."""


@router.get("/console")
def console(request: Request, service: Served, caller: Auditor) -> Response:
    return render(
        request,
        caller,
        "console.html",
        datasets=[(offered, service.budget(caller, offered.name)) for offered in service.datasets(caller)],
        under_way=service.under_way(caller),
        sessions=service.results(caller, OPEN_SESSION.name, most=_LATEST, only_open=True),
        releases=service.results(caller, GIVE_OUT_RELEASE.name, most=_LATEST),
        may_add=service.owner.console.changes and bool(service.owner.console.sources),
    )


@router.get("/console/{name}")
def budget(request: Request, service: Served, caller: Auditor, name: str, before: Before) -> Response:
    offered, standing = service.dataset(caller, name), service.budget(caller, name)
    return render(
        request,
        caller,
        "budget.html",
        offered=offered,
        part=standing,
        shares=_shares(offered),
        history=spending_figure(service.spending(caller, name, MOST_STEPS), standing, name),
        entries=entries_of(service, caller, name, before),
        declared=name in service.owner.datasets,
        made=service.catalogs.made.datasets.get(name),
        table_name=service.owner.console.name_of,
        may_change=service.owner.console.changes,
    )


@router.get("/keys")
def keys(request: Request, service: Served, caller: Holder) -> Response:
    return render(
        request,
        caller,
        "keys.html",
        keys=list_keys(service.store),
        commands=commands.KEYS,
        may_change=service.owner.console.changes,
    )


@router.get("/log")
def log(request: Request, service: Served, caller: Auditor, before: BeforeLine = None) -> Response:
    found = service.events(caller, _LINES, before)
    return render(
        request,
        caller,
        "log.html",
        events=found,
        before=before,
        older=found[-1].id if len(found) == _LINES else None,
    )


@router.get("/log.{form}")
def log_file(service: Served, caller: Auditor, form: str) -> Response:
    """All of it, to be kept or verified elsewhere; sent as it is read."""
    if form not in _FILES:
        raise NotFound("the log is given out as log.jsonl or log.csv: choose one")
    lines, media_type = _FILES[form]
    name = {"Content-Disposition": f'attachment; filename="log.{form}"'}
    return StreamingResponse(lines(service.store), media_type=media_type, headers=name)


_FILES = {"jsonl": (json_lines, "application/jsonl"), "csv": (csv_lines, CSV)}


def _shares(offered: OfferedDataSet) -> list[Share]:
    """Where each analyst stands."""
    names = [name for name, shares in offered.owner.analysts.items() if offered.name in shares]
    found = (offered.ledger_of(name).standing().share for name in names)
    return [share for share in found if share is not None]
