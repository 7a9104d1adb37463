"""The analyst's desk: data sets, their public side, and what is left of a share."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from privlearn.ledger.statement import Entry
from privlearn.service.access.keys import Caller
from privlearn.service.http.callers import Served
from privlearn.service.http.media_types import CSV, table_bytes
from privlearn.service.pages.columns import column_views, target_range
from privlearn.service.pages.commands import dataset_commands
from privlearn.service.pages.formatting import MOST_STEPS, spending_figure
from privlearn.service.pages.page import Before, Listed, download, listed, page_router, render
from privlearn.service.pages.signing import Analyst
from privlearn.service.service import Service

router = page_router()

LATEST = 10
_MADE_UP = 1000


@router.get("/desk")
def desk(request: Request, service: Served, caller: Analyst) -> Response:
    offered = service.datasets(caller)
    shares = [service.budget(caller, one.name).share for one in offered]
    return render(
        request,
        caller,
        "desk.html",
        datasets=list(zip(offered, shares, strict=True)),
        jobs=service.jobs(caller, LATEST),
    )


@router.get("/desk/{name}")
def dataset(request: Request, service: Served, caller: Analyst, name: str, before: Before) -> Response:
    offered, standing = service.dataset(caller, name), service.budget(caller, name)
    share, target = standing.share, offered.schema.target
    assert share is not None  # an analyst without a share does not see the data set
    assert target is not None  # nothing is offered without one
    return render(
        request,
        caller,
        "dataset.html",
        offered=offered,
        part=share,
        standing=standing,
        columns=column_views(offered.schema),
        target=target,
        target_range=target_range(target),
        history=spending_figure(service.spending(caller, name, MOST_STEPS), share, "your share"),
        entries=entries_of(service, caller, name, before),
        commands=dataset_commands(str(request.base_url), name, next(iter(offered.learners))),
    )


def entries_of(service: Service, caller: Caller, name: str, before: str | None) -> Listed[Entry]:
    """A page of the costs that the caller may see, newest first."""
    return listed(
        lambda most: service.entries(caller, name, most, before)[::-1],
        before,
        lambda entry: entry.reservation,
    )


@router.get("/desk/{name}/made-up.csv")
def made_up(service: Served, caller: Analyst, name: str) -> Response:
    """Rows to try things with, without the target."""
    offered = service.dataset(caller, name)
    rows = offered.synthetic(_MADE_UP).select(list(offered.schema.columns))
    return download(table_bytes(rows, CSV), CSV, f"{name}-made-up.csv")
