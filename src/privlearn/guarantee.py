"""What is promised: a value, not a mechanism."""

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
    neighbours : {"replace_one", "zero_out"}, default="replace_one"
        ``replace_one``: one person's record is exchanged for any other; the number of records is public.
        ``zero_out``: one person's record is deleted, its place kept (the number of records is public).
        ``zero_out`` at epsilon implies ``replace_one`` at 2 epsilon.

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
