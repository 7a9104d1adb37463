"""What was spent, as a line that climbs in steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from privlearn.ledger.statement import Entry
from privlearn.service.pages.figures import Axis, Figure, Line, round_ticks
from privlearn.service.pages.words import moment, number
from privlearn.service.slots import now

_LEAST = 60.0  # seconds
_BEFORE = 1.1  # of the time since the first entry
_AHEAD = 1.04  # of the total, so that its line is not at the very edge


def spending_figure(entries: Sequence[Entry], total: float, what: str) -> Figure | None:
    """Epsilon spent and reserved against time, under the line that it cannot cross; ``None`` if nothing was spent."""
    counted = [entry for entry in entries if entry.state != "cancelled"]
    if not counted:
        return None
    times = [datetime.fromisoformat(entry.reserved_at).timestamp() for entry in counted]
    over = now().timestamp()
    begin = over - _BEFORE * max(over - times[0], _LEAST)
    steps, spent = [(begin, 0.0)], 0.0
    for time, entry in zip(times, counted, strict=True):
        steps.append((time, spent))
        spent += entry.amount.epsilon
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


def _clock(begin: float, over: float) -> str:
    at = datetime.fromtimestamp(begin, now().tzinfo)
    return at.strftime("%H:%M" if over - begin < 86_400 else "%Y-%m-%d")
