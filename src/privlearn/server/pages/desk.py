"""The analyst's desk: data sets, their public description, and what is left of a share."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from privlearn.budget.statement import Entry
from privlearn.server.access.keys import Caller
from privlearn.server.http.callers import Served
from privlearn.server.http.media_types import CSV, table_bytes
from privlearn.server.pages.columns import column_views, target_range
from privlearn.server.pages.formatting import MAX_STEPS, dataset_commands, spending_figure
from privlearn.server.pages.page import Before, ListPage, download, list_page, page_router, render
from privlearn.server.pages.signing import Analyst
from privlearn.server.service import Service

router = page_router()

LATEST = 10
_SYNTHETIC_ROWS = 1000


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
        history=spending_figure(service.spending(caller, name, MAX_STEPS), share, "your share"),
        entries=entries_of(service, caller, name, before),
        commands=dataset_commands(str(request.base_url), name, next(iter(offered.learners))),
    )


def entries_of(service: Service, caller: Caller, name: str, before: str | None) -> ListPage[Entry]:
    """Return one page of the ledger entries that the caller may see, newest first."""
    return list_page(
        lambda limit: service.entries(caller, name, limit, before)[::-1],
        before,
        lambda entry: entry.reservation,
    )


@router.get("/desk/{name}/made-up.csv")
def synthetic_rows(service: Served, caller: Analyst, name: str) -> Response:
    """Return synthetic rows without the target, for trials."""
    offered = service.dataset(caller, name)
    rows = offered.synthetic(_SYNTHETIC_ROWS).select(list(offered.schema.columns))
    return download(table_bytes(rows, CSV), CSV, f"{name}-made-up.csv")
