"""The analyst's desk: data sets, their public description, and what is left of a share, with its history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fastapi.responses import Response

from privlearn.budget.composition import Balance
from privlearn.budget.statement import Entry, Share, Standing
from privlearn.server.http.media_types import CSV, table_bytes
from privlearn.server.pages.columns import column_views, target_range
from privlearn.server.pages.figures import Axis, Figure, Line, round_ticks
from privlearn.server.pages.formatting import moment, number
from privlearn.server.pages.page import Before, ListPage, Visit, download, list_page, page_router
from privlearn.server.pages.signing import Analyst
from privlearn.server.timing import now

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


_MIN_SECONDS = 60.0  # since the first entry: a new budget's figure needs a width too
_BEFORE = 1.1  # times the time since the first entry: the line begins a little before it
_AHEAD = 1.04  # times the total, so that its line is not at the very edge
MAX_STEPS = 150
"""Points of the figure's line: more could not be distinguished."""


def spending_figure(
    history: Sequence[tuple[str, Balance]], part: Standing | Share, what: str
) -> Figure | None:
    """Return the figure of epsilon spent and reserved against time, below the total; None if nothing was spent."""
    if not history:
        return None
    total, over = part.total.epsilon, now().timestamp()
    first = history[0][0]
    begin = over - _BEFORE * max(over - _time(first), _MIN_SECONDS)
    steps, spent = [(begin, 0.0)], 0.0
    for time, balance in history:
        steps.append((_time(time), spent))
        spent = balance.spent.epsilon + balance.reserved.epsilon
        steps.append((_time(time), spent))
    steps.append((over, spent))
    return Figure(
        id="history",
        title=f"Epsilon spent of {what}",
        description=f"From {moment(first)} on, {number(spent)} of {number(total)} was taken. The table below has each "
        "cost.",
        x=Axis(begin, over),
        y=Axis(0.0, _AHEAD * total),
        x_ticks=[(begin, _clock(begin, over)), (over, "now")],
        y_ticks=[(tick, number(tick)) for tick in round_ticks(total)],
        x_label="time (UTC)",
        lines=[
            Line("spent and reserved", steps, "line-main"),
            Line("total", [(begin, total), (over, total)], "line-limit"),
        ],
        areas=[Line("spent and reserved", steps, "area")],
    )


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _clock(begin: float, over: float) -> str:
    at = datetime.fromtimestamp(begin, now().tzinfo)
    return at.strftime("%H:%M" if over - begin < 86_400 else "%Y-%m-%d")


def dataset_commands(address: str, dataset: str, learner: str) -> str:
    server = address.rstrip("/")
    return f"""\
export PRIVLEARN_KEY=pl_...        # your key
privlearn ask --server {server} budget {dataset}
privlearn ask --server {server} estimate {dataset} --learner {learner} --epsilon 0.5 --delta 1e-6
privlearn ask --server {server} release {dataset} --learner {learner} --epsilon 0.5 --delta 1e-6 \\
    --trial --out trial.privlearn

from privlearn.client import Client            # in Python
client = Client("{server}")          # the key is in PRIVLEARN_KEY
session = client.open_session("{dataset}", learner="{learner}", epsilon=0.5, delta=1e-6, trial=True)
print(session.predict(client.synthetic("{dataset}", rows=10)))"""
