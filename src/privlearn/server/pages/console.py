"""The holder's console: budgets with their history, and the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import Response, StreamingResponse

from privlearn.budget.statement import Share
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.http.media_types import CSV
from privlearn.server.job_kinds.training import GIVE_OUT_RELEASE, OPEN_SESSION
from privlearn.server.pages.desk import MAX_STEPS, entries_of, spending_figure
from privlearn.server.pages.page import Before, page_router
from privlearn.server.pages.signing import Auditor
from privlearn.server.refusals import NotFound
from privlearn.server.store.log_file import csv_lines, json_lines

router = page_router()

_LATEST = 10
_LINES = 50
BeforeLine = Annotated[int | None, Query(ge=0, lt=2**31)]
"""Number of the oldest line on the previous page."""


@router.get("/console")
def console(visit: Auditor) -> Response:
    service, caller = visit.service, visit.caller
    return visit.render(
        "console.html",
        datasets=[(offered, service.budget(caller, offered.name)) for offered in service.datasets(caller)],
        running_jobs=service.running_jobs(caller),
        sessions=service.results(caller, OPEN_SESSION.name, limit=_LATEST, only_open=True),
        releases=service.results(caller, GIVE_OUT_RELEASE.name, limit=_LATEST),
        may_add=service.owner.console.changes and bool(service.owner.console.sources),
    )


@router.get("/console/{name}")
def budget(visit: Auditor, name: str, before: Before) -> Response:
    service, caller = visit.service, visit.caller
    offered, standing = service.dataset(caller, name), service.budget(caller, name)
    return visit.render(
        "budget.html",
        offered=offered,
        part=standing,
        overruns=service.overruns[name],
        shares=_shares(offered),
        history=spending_figure(service.spending(caller, name, MAX_STEPS), standing, name),
        entries=entries_of(visit, name, before),
        declared=name in service.owner.datasets,
        made=service.catalogs.console_state.datasets.get(name),
        table_name=service.owner.console.name_of,
        may_change=service.owner.console.changes,
    )


@router.get("/log")
def log(visit: Auditor, before: BeforeLine = None) -> Response:
    found = visit.service.events(visit.caller, _LINES, before)
    older = found[-1].id if len(found) == _LINES else None
    return visit.render("log.html", events=found, before=before, older=older)


@router.get("/log.{form}")
def log_file(visit: Auditor, form: str) -> Response:
    """Stream the whole log, to archive it or verify it elsewhere."""
    if form not in _FILES:
        raise NotFound("the log is given out as log.jsonl or log.csv. Choose one")
    lines, media_type = _FILES[form]
    name = {"Content-Disposition": f'attachment; filename="log.{form}"'}
    return StreamingResponse(lines(visit.service.store), media_type=media_type, headers=name)


_FILES = {"jsonl": (json_lines, "application/jsonl"), "csv": (csv_lines, CSV)}


def _shares(offered: OfferedDataSet) -> list[Share]:
    """Return the share of each analyst with what is spent of it."""
    names = [name for name, shares in offered.owner.analysts.items() if offered.name in shares]
    found = (offered.ledger_of(name).standing().share for name in names)
    return [share for share in found if share is not None]
