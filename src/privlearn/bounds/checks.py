"""Refusals that all calculators share."""

from __future__ import annotations

import math

from privlearn.errors import InvalidParameter, shown


def check_positive(**numbers: float) -> None:
    """Each must be a finite number above 0."""
    for name, number in numbers.items():
        if not 0 < number < math.inf:
            raise InvalidParameter(f"{name} must be a finite number above 0, not {shown(number)}")


def check_counts(**numbers: int) -> None:
    """Each must be a whole number of at least 1."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InvalidParameter(f"{name} must be a whole number of at least 1, not {shown(number)}")


def check_failure(failure: float) -> None:
    """The probability with which a mechanism may be further off than its accuracy says."""
    if not 0 < failure < 1:
        raise InvalidParameter(f"failure must lie between 0 and 1, e.g. 0.05, not {shown(failure)}")
