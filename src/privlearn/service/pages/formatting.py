"""Numbers, times and lists of a budget as pages write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

from privlearn.ledger.composition import BasicComposition, Composition, RenyiComposition
from privlearn.ledger.statement import Entry, Share, Statement, balance_of
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


def said(part: Share | Statement) -> str:
    """What a meter tells a screen reader."""
    reserved = f", {number(part.reserved.epsilon)} reserved" if part.reserved.epsilon else ""
    return (
        f"{number(part.spent.epsilon)} of {number(part.total.epsilon)} spent{reserved}, "
        f"{number_below(part.left.epsilon)} left"
    )


_LEAST = 60.0  # seconds
_BEFORE = 1.1  # of the time since the first entry
_AHEAD = 1.04  # of the total, so that its line is not at the very edge
_MOST_STEPS = 150


def spending_figure(entries: Sequence[Entry], part: Statement | Share, what: str) -> Figure | None:
    """Epsilon spent and reserved against time, under the line that it cannot cross; ``None`` if nothing was spent."""
    counted = [entry for entry in entries if entry.state != "cancelled"]
    if not counted:
        return None
    total, over = part.total.epsilon, now().timestamp()
    begin = over - _BEFORE * max(over - _time(counted[0]), _LEAST)
    steps, spent = [(begin, 0.0)], 0.0
    for place in _places(len(counted)):
        time = _time(counted[place - 1])
        steps.append((time, spent))
        spent = _epsilon(part, counted[:place])
        steps.append((time, spent))
    steps.append((over, spent))
    return Figure(
        id="history",
        title=f"Epsilon spent of {what}",
        description=f"From {moment(counted[0].reserved_at)} on, {len(counted)} trainings took {number(spent)} of "
        f"{number(total)}. The table below has each of them.",
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


def _epsilon(part: Statement | Share, entries: Sequence[Entry]) -> float:
    """What they take together, by the budget's own rule; all of them count."""
    rule: Composition = BasicComposition(part.total)
    if isinstance(part, Statement) and part.renyi_order is not None and part.renyi_limit is not None:
        rule = RenyiComposition(part.total, part.renyi_order, part.renyi_limit)
    return balance_of(rule, [replace(entry, state="committed") for entry in entries]).spent.epsilon


def _places(count: int) -> list[int]:
    """After how many entries the line is drawn: all, or so many of them as can be told apart."""
    steps = min(count, _MOST_STEPS)
    return [round(count * step / steps) for step in range(1, steps + 1)]


def _time(entry: Entry) -> float:
    return datetime.fromisoformat(entry.reserved_at).timestamp()


def _clock(begin: float, over: float) -> str:
    at = datetime.fromtimestamp(begin, now().tzinfo)
    return at.strftime("%H:%M" if over - begin < 86_400 else "%Y-%m-%d")
