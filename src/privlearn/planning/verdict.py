"""What a ratio of noise to margin means."""

from __future__ import annotations

from typing import Literal, cast

from privlearn.errors import InvalidParameter, shown

Verdict = Literal["clear", "noisy", "drowned"]

LARGEST_RATIO = {"clear": 0.25, "noisy": 0.75}
"""Noise over margin up to which a signal is clear, or at least not drowned. Measured (docs/theory/planning.md): up to
the first a model lost a few per cent of what it gains over guessing, beyond the second mostly more than half."""


def verdict_of(ratio: float) -> Verdict:
    for verdict, largest in LARGEST_RATIO.items():
        if ratio <= largest:
            return cast(Verdict, verdict)
    return "drowned"


def largest_ratio(verdict: str) -> float:
    """The largest ratio of that verdict or a better one."""
    if verdict not in LARGEST_RATIO:
        raise InvalidParameter(f"verdict must be one of {', '.join(LARGEST_RATIO)}, not {shown(verdict)}")
    return LARGEST_RATIO[verdict]
