"""Values as the text of pages, and typed text as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

from privlearn.budget.statement import Share, Standing
from privlearn.data.schema.cell_grammar import NUMBER
from privlearn.errors import InvalidParameter

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


def number_in(typed: Mapping[str, str], name: str) -> float:
    """Return the number that was typed into a field; `float` would also accept 1_0 (as 10) and other digits."""
    if not re.fullmatch(NUMBER, typed[name]):
        raise InvalidParameter(f"{name}: this is not a number. Write it like 0.5 or 1e-6")
    return float(typed[name])


def as_sentence(error: Exception | str) -> str:
    """Return an error as a sentence with a capital letter and a full stop."""
    text = str(error).replace("legal_basis", "legal basis")
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
