"""Numbers, times and lists of a budget as pages write them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

from privlearn.ledger.composition import Balance
from privlearn.ledger.statement import Share, Standing
from privlearn.service.pages.figures import Axis, Figure, Line, round_ticks
from privlearn.service.timing import now

_DIGITS = 6
_DOWN = Context(prec=_DIGITS, rounding=ROUND_DOWN)


def number(value: float) -> str:
    """To six digits, as people type it: 1e-6, not 1e-06."""
    return f"{value:.{_DIGITS}g}".replace("e-0", "e-").replace("e+0", "e")


def fact(value: Any) -> str:
    """A detail of the log."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else str(value)


def number_below(value: float) -> str:
    """To six digits, rounded down: what is shown as left can be asked for."""
    return number(float(_DOWN.create_decimal(Decimal(repr(float(value))))))


def moment(text: str) -> str:
    """A stored time to the minute."""
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M") + " UTC"


def size(count: int) -> str:
    return f"{count / 1000:,.1f} kB" if count >= 1000 else f"{count} bytes"


def said(part: Share | Standing) -> str:
    """What a meter tells a screen reader."""
    reserved = f", {number(part.reserved.epsilon)} reserved" if part.reserved.epsilon else ""
    return (
        f"{number(part.spent.epsilon)} of {number(part.total.epsilon)} spent{reserved}, "
        f"{number_below(part.left.epsilon)} left"
    )


_LEAST = 60.0  # seconds
_BEFORE = 1.1  # of the time since the first entry
_AHEAD = 1.04  # of the total, so that its line is not at the very edge
MOST_STEPS = 150
"""Entries after which the line is drawn: more could not be told apart."""


def spending_figure(
    history: Sequence[tuple[str, Balance]], part: Standing | Share, what: str
) -> Figure | None:
    """Epsilon spent and reserved against time, under the line that it cannot cross; ``None`` if nothing was spent."""
    if not history:
        return None
    total, over = part.total.epsilon, now().timestamp()
    first = history[0][0]
    begin = over - _BEFORE * max(over - _time(first), _LEAST)
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
        "training.",
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
