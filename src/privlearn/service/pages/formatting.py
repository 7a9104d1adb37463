"""Numbers and times as people read them."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

from privlearn.ledger.statement import Share, Statement

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
