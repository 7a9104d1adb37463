"""The promise: (epsilon, delta) under a relation of neighbours, how promises add up, and when one says little."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

from privlearn.errors import InvalidParameter, shown
from privlearn.relation import Relation, relation_named


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy under a stated neighbouring relation.

    Parameters
    ----------
    epsilon : float
        Bound on the privacy loss; ``math.inf`` promises nothing.
    delta : float, default=0.0
        Probability mass that may exceed it, in [0, 1).
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
        ``replace_one``: one person's record is exchanged for any other; the number of records is public.
        ``zero_out``: one person's record is deleted, its place kept (the number of records is public).
        ``add_remove``: one person's record is there or not; the number of records is private.
        ``zero_out`` or ``add_remove`` at epsilon implies ``replace_one`` at 2 epsilon.

    Examples
    --------
    >>> Guarantee(0.5) + Guarantee(0.25, 1e-6)
    Guarantee(epsilon=0.75, delta=1e-06, neighbours='replace_one')
    >>> Guarantee(0.5) <= Guarantee(1.0, 1e-6)
    True
    >>> print(Guarantee(1.0, 1e-6))
    (epsilon = 1, delta = 1e-06)-differential privacy, neighbours: replace_one
    """

    epsilon: float
    delta: float = 0.0
    neighbours: str = "replace_one"

    def __post_init__(self) -> None:
        if self.epsilon is None:
            raise InvalidParameter(
                "epsilon is not stated: say how much privacy loss people are asked for, e.g. epsilon=1.0 "
                "(math.inf for no privacy at all)"
            )
        if not _is_real(self.epsilon) or math.isnan(self.epsilon) or self.epsilon <= 0:
            raise InvalidParameter(
                f"epsilon must be a number above 0 (or math.inf), not {shown(self.epsilon)}"
            )
        if not _is_real(self.delta) or not 0 <= self.delta < 1:
            raise InvalidParameter(f"delta must be a number in [0, 1), not {shown(self.delta)}")
        relation_named(self.neighbours)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))

    @property
    def relation(self) -> Relation:
        """What neighbours are, with the facts that theorems take from it."""
        return relation_named(self.neighbours)

    @property
    def is_private(self) -> bool:
        return math.isfinite(self.epsilon)

    def __add__(self, other: Guarantee) -> Guarantee:
        """Basic composition, sound however the second release was chosen."""
        self._same_neighbours(other)
        return Guarantee(
            self.epsilon + other.epsilon, min(self.delta + other.delta, _BELOW_ONE), self.neighbours
        )

    def __le__(self, other: Guarantee) -> bool:
        """True if this promise is at least as strong as the other."""
        self._same_neighbours(other)
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def _same_neighbours(self, other: Guarantee) -> None:
        if self.neighbours != other.neighbours:
            raise InvalidParameter(
                f"guarantees under {self.neighbours!r} and {other.neighbours!r} neighbours do not mix: "
                "state both under one relation (zero_out at epsilon implies replace_one at 2 epsilon)"
            )

    def in_words(self) -> str:
        """What epsilon and delta mean for one person."""
        if not self.is_private:
            return "Nothing is promised to anyone in the data."
        factor = math.exp(min(self.epsilon, _LARGEST_EXPONENT))
        exception = f", up to a probability of {self.delta:g}" if self.delta else ""
        return (
            f"Whatever anyone concludes from it is at most {factor:.3g} times likelier than with one person's "
            f"record {self.relation.otherwise}{exception}."
        )

    def to_dict(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta, "neighbours": self.neighbours}

    def __str__(self) -> str:
        if not self.is_private:
            return "no privacy (epsilon = inf)"
        inside = f"epsilon = {self.epsilon:g}" + (f", delta = {self.delta:g}" if self.delta else "")
        return f"({inside})-differential privacy, neighbours: {self.neighbours}"


_BELOW_ONE = math.nextafter(1.0, 0.0)
_LARGEST_EXPONENT = 700.0


def check_guarantee(value: Any) -> None:
    """Refuse a bare number where a promise is needed."""
    if not isinstance(value, Guarantee):
        raise InvalidParameter(
            "guarantee must be a Guarantee: Guarantee(1.0, 1e-6) promises epsilon 1 and delta 1e-6"
        )


def _is_real(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


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
