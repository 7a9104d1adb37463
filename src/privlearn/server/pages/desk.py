"""The analyst's desk: data sets, their public description, and what is left of a share."""

from __future__ import annotations

from fastapi.responses import Response

from privlearn.budget.statement import Entry
from privlearn.server.http.media_types import CSV, table_bytes
from privlearn.server.pages.columns import column_views, target_range
from privlearn.server.pages.formatting import MAX_STEPS, dataset_commands, spending_figure
from privlearn.server.pages.page import Before, ListPage, Visit, download, list_page, page_router
from privlearn.server.pages.signing import Analyst

router = page_router()

LATEST = 10
_SYNTHETIC_ROWS = 1000


@router.get("/desk")
def desk(visit: Analyst) -> Response:
    service, caller = visit.service, visit.caller
    datasets = [(one, service.budget(caller, one.name).share) for one in service.datasets(caller)]
    return visit.render("desk.html", datasets=datasets, jobs=service.jobs(caller, LATEST))


@router.get("/desk/{name}")
def dataset(visit: Analyst, name: str, before: Before) -> Response:
    service, caller = visit.service, visit.caller
    offered, standing = service.dataset(caller, name), service.budget(caller, name)
    share, target = standing.share, offered.schema.target
    assert share is not None  # an analyst without a share does not see the data set
    assert target is not None  # nothing is offered without one
    return visit.render(
        "dataset.html",
        offered=offered,
        part=share,
        standing=standing,
        columns=column_views(offered.schema),
        target=target,
        target_range=target_range(target),
        history=spending_figure(service.spending(caller, name, MAX_STEPS), share, "your share"),
        entries=entries_of(visit, name, before),
        commands=dataset_commands(str(visit.request.base_url), name, next(iter(offered.learners))),
    )


def entries_of(visit: Visit, name: str, before: str | None) -> ListPage[Entry]:
    """Return one page of the ledger entries that the caller may see, newest first."""
    return list_page(
        lambda limit: visit.service.entries(visit.caller, name, limit, before)[::-1],
        before,
        lambda entry: entry.reservation,
    )


@router.get("/desk/{name}/made-up.csv")
def synthetic_rows(visit: Analyst, name: str) -> Response:
    """Return synthetic rows without the target, for trials."""
    offered = visit.service.dataset(visit.caller, name)
    rows = offered.synthetic(_SYNTHETIC_ROWS).select(list(offered.schema.columns))
    return download(table_bytes(rows, CSV), CSV, f"{name}-made-up.csv")
