"""What pages show as text or a figure: numbers, times, the history of a budget, and commands to copy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

from privlearn.budget.composition import Balance
from privlearn.budget.statement import Share, Standing
from privlearn.server.pages.figures import Axis, Figure, Line, round_ticks
from privlearn.server.timing import now

_DIGITS = 6
_DOWN = Context(prec=_DIGITS, rounding=ROUND_DOWN)


def number(value: float) -> str:
    """Format a number with six digits, as people type it: 1e-6, not 1e-06."""
    return f"{value:.{_DIGITS}g}".replace("e-0", "e-").replace("e+0", "e")


def format_detail(value: Any) -> str:
    """Format a detail of a line of the log."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else str(value)


def number_below(value: float) -> str:
    """Format a number with six digits, rounded down, so that an amount shown as left can be requested."""
    return number(float(_DOWN.create_decimal(Decimal(repr(float(value))))))


def moment(text: str) -> str:
    """Format a stored time to the minute."""
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M") + " UTC"


def size(count: int) -> str:
    """Format a number of bytes."""
    return f"{count / 1000:,.1f} kB" if count >= 1000 else f"{count} bytes"


def meter_text(part: Share | Standing) -> str:
    """Return the text of a meter for screen readers."""
    reserved = f", {number(part.reserved.epsilon)} reserved" if part.reserved.epsilon else ""
    return (
        f"{number(part.spent.epsilon)} of {number(part.total.epsilon)} spent{reserved}, "
        f"{number_below(part.left.epsilon)} left"
    )


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


KEYS = """\
privlearn keys create owner.toml --analyst NAME
privlearn keys list owner.toml
privlearn keys revoke owner.toml KEY"""


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


def session_commands(address: str, session: str) -> str:
    server = address.rstrip("/")
    return f"""\
privlearn ask --server {server} predict {session} new.csv --out predictions.csv
privlearn ask --server {server} certificate {session} --out session.json
privlearn verify session.json

from privlearn.client import Client            # in Python
Client("{server}").session("{session}").predict(table)"""


def release_commands(address: str, release: str, name: str) -> str:
    server = address.rstrip("/")
    return f"""\
privlearn ask --server {server} download {release} --out {name}
privlearn verify {name}
privlearn predict {name} new.csv --out predictions.csv

from privlearn import Release                  # in Python
Release.load("{name}").model.predict(table)"""
