"""How weak a promise may be before it takes an explicit word to make it."""

from __future__ import annotations

from privlearn.errors import InvalidParameter, shown
from privlearn.guarantee import Guarantee

LARGEST_EPSILON = 20.0
"""At 20 a conclusion may be e^20 times likelier, more than 400 million: next to nothing is excluded."""


def weakness(guarantee: Guarantee, records: int) -> str | None:
    """Why a promise about so many records, or persons, is hardly private; ``None`` if it protects people.

    Epsilon above 20, or delta at or above 1/n: whoever publishes one of n records as it is, chosen at random, keeps
    the promise of delta = 1/n. An infinite epsilon promises nothing and says so itself: it is not judged here.

    Examples
    --------
    >>> weakness(Guarantee(1.0, 1e-6), records=30_000) is None
    True
    >>> weakness(Guarantee(1.0, 1e-3), records=1000)
    'hardly private: delta 0.001 is not below 1/1000, so publishing one of the 1000 records as it is would keep it too'
    """
    reasons = []
    if guarantee.is_private and guarantee.epsilon > LARGEST_EPSILON:
        reasons.append(
            f"epsilon {guarantee.epsilon:g} is above {LARGEST_EPSILON:g}, so one person's record may make a conclusion "
            "more than 400 million times likelier"
        )
    if guarantee.is_private and guarantee.delta >= 1.0 / records:
        reasons.append(
            f"delta {guarantee.delta:g} is not below 1/{records}, so publishing one of the {records} records as it is "
            "would keep it too"
        )
    return f"hardly private: {'; '.join(reasons)}" if reasons else None


def check_strength(guarantee: Guarantee, records: int, accepted: bool) -> None:
    """Refuse a weak promise that nobody has accepted as such."""
    if not isinstance(accepted, bool):
        raise InvalidParameter(f"accept_weak_privacy must be True or False, not {shown(accepted)}")
    weak = weakness(guarantee, records)
    if weak and not accepted:
        raise InvalidParameter(
            f"this promise is {weak}. Take a smaller epsilon or delta; or accept it as it is, and every certificate "
            "says so: accept_weak_privacy=True in Python, --accept-weak-privacy in a command, "
            "accept_weak_privacy = true in a file"
        )
