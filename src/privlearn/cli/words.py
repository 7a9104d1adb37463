"""Promises in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from privlearn.guarantee import Guarantee

_OTHERWISE = {"replace_one": "replaced by any other", "zero_out": "left out"}
_LARGEST_EXPONENT = 700.0


def in_words(guarantee: Guarantee) -> str:
    """What epsilon and delta mean for one person."""
    if not guarantee.is_private:
        return "Nothing is promised to anyone in the data."
    factor = math.exp(min(guarantee.epsilon, _LARGEST_EXPONENT))
    exception = f", up to a probability of {guarantee.delta:g}" if guarantee.delta else ""
    return (
        f"Whatever anyone concludes from it is at most {factor:.3g} times likelier than with one person's "
        f"record {_OTHERWISE[guarantee.neighbours]}{exception}."
    )


def listed(values: Sequence[Any], most: int = 8) -> str:
    """The first values of a list, and how many more there are."""
    shown = ", ".join(str(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"
