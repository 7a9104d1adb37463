"""Guarantees: (epsilon, delta) under a neighbouring relation, their sum, and when one hardly protects people.

A `Relation` states by which change of one person's record a guarantee is measured. It is a value with every property
that the theorems need. No other module compares its name, and no property has a default: a relation that lacks one
cannot be created, and an unknown name is refused.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

from privlearn.errors import DataError, InvalidParameter, did_you_mean, preview

MAX_TABLE_RATIO = 16
"""Where the number of records is private, rounding errors are bounded for tables of up to this multiple of the expected
number. Larger tables are not refused, because a refusal would reveal their size (docs/theory/add-remove.md)."""


@dataclass(frozen=True, kw_only=True)
class Relation:
    """The difference between two neighbouring data sets, for records whose row has norm at most 1.

    Parameters
    ----------
    name : str
        As certificates and parameters write it.
    change : str
        Ends the sentence "than with one person's record ...".
    replaces : bool
        True if the record may become any other one; False if it is present or has no effect.
    gradients : int
        Number of records' gradients that separate the two sums of gradients, each free within the loss's bound.
    moments : float
        Maximal Frobenius distance of the two sums of x x'.
    counts : float
        Maximal L2 distance of the two histograms in which a record counts once.
    replacing : int
        Number of steps of this relation, k, that replace one record by another: (epsilon, delta) implies replace_one at
        (k epsilon, (1 + e^epsilon + ... + e^((k-1) epsilon)) delta).
    count_is_public : bool
        True if neighbours have the same number of records, so that theorems, certificates and messages may use it.
        Otherwise a public expectation replaces it everywhere, also as N in the objective.

    Examples
    --------
    >>> RELATIONS["zero_out"].gradients, RELATIONS["replace_one"].gradients
    (1, 2)
    """

    name: str
    change: str
    replaces: bool
    gradients: int
    moments: float
    counts: float
    replacing: int
    count_is_public: bool

    def __post_init__(self) -> None:
        if self.gradients > 2 or max(self.moments, self.counts) > math.sqrt(2.0):
            raise InvalidParameter(
                f"the relation {self.name!r} changes more than one record, which theorems on Jacobians and searches do "
                "not allow for. State rows_per_person in the schema instead"
            )

    @property
    def max_table_ratio(self) -> int:
        """Maximal number of records, divided by the public number N that the objective divides by."""
        return 1 if self.count_is_public else MAX_TABLE_RATIO

    @property
    def count_label(self) -> str:
        """Name of N in certificates."""
        return "Number of records" if self.count_is_public else "Expected number of records"

    @property
    def count_coverage(self) -> str:
        """Sentence of certificates on the number of records where it is covered too."""
        if self.count_is_public:
            return ""
        return (
            " How many records there are is covered too: for tables of up to "
            f"{MAX_TABLE_RATIO} times the expected number, and for larger ones but for rounding errors."
        )

    def check_expected(self, expected: Any) -> None:
        """Raise InvalidParameter, before a row is read, if an expected number is missing or must not be given."""
        if self.count_is_public and expected is not None:
            private = (repr(name) for name, other in RELATIONS.items() if not other.count_is_public)
            raise InvalidParameter(
                f"expected_records goes with neighbours={' or '.join(private)}: under {self.name!r} the number of "
                "records is public, and is counted. Leave it out"
            )
        if not self.count_is_public and expected is None:
            raise InvalidParameter(
                f"under neighbours={self.name!r} the number of records is private. State how many you expect, from "
                "public knowledge, expected_records=30000 (in the shell --expected-records 30000). A wrong guess costs "
                "accuracy, never privacy"
            )
        if expected is not None and not (
            isinstance(expected, numbers.Integral) and not isinstance(expected, bool) and int(expected) >= 1
        ):
            raise InvalidParameter(
                f"expected_records must be a whole number of at least 1, not {preview(expected)}"
            )

    def total(self, counted: int, expected: Any) -> int:
        """Public: return N, the number of records, or the expected number where that is private."""
        self.check_expected(expected)
        if not self.count_is_public:
            return int(expected)
        if counted == 0:
            raise DataError("the table has no rows. Give at least one")
        return counted


RELATIONS: dict[str, Relation] = {}


def register_relation(relation: Relation) -> None:
    """Add a relation to `RELATIONS`, by its name."""
    if RELATIONS.get(relation.name, relation) != relation:
        raise InvalidParameter(f"there is a relation {relation.name!r} already. Choose another name.")
    RELATIONS[relation.name] = relation


def get_relation(name: Any) -> Relation:
    """Return the relation of that name."""
    if not isinstance(name, str) or name not in RELATIONS:
        raise InvalidParameter(
            f"neighbours must be one of {', '.join(map(repr, RELATIONS))}, not {preview(name)}"
            f"{did_you_mean(name, RELATIONS)}"
        )
    return RELATIONS[name]


register_relation(
    Relation(
        name="replace_one",
        change="replaced by any other",
        replaces=True,
        gradients=2,
        moments=math.sqrt(2.0),  # of two positive semidefinite matrices of trace at most 1
        counts=math.sqrt(2.0),  # one bin loses 1, another gains 1
        replacing=1,
        count_is_public=True,
    )
)
register_relation(
    Relation(
        name="zero_out",
        change="left out",
        replaces=False,
        gradients=1,
        moments=1.0,
        counts=1.0,
        replacing=2,
        count_is_public=True,
    )
)
register_relation(
    Relation(
        name="add_remove",
        change="not there, nor counted",
        replaces=False,
        gradients=1,
        moments=1.0,
        counts=1.0,
        replacing=2,
        count_is_public=False,
    )
)


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy under a stated neighbouring relation.

    Parameters
    ----------
    epsilon : float
        Bound on the privacy loss; ``math.inf`` for no privacy.
    delta : float, default=0.0
        Probability mass that may exceed it, in [0, 1).
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
        ``replace_one``: one person's record is exchanged for any other; the number of records is public.
        ``zero_out``: one person's record is blanked out; the number of records is public.
        ``add_remove``: one person's record is present or absent; the number of records is private.
        ``zero_out`` or ``add_remove`` at (epsilon, delta) implies ``replace_one`` at (2 epsilon, (1 + e^epsilon)
        delta).

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
                "epsilon is not stated. State the privacy loss that people are asked for, e.g. epsilon=1.0 "
                "(math.inf for no privacy at all)"
            )
        if not _is_real(self.epsilon) or math.isnan(self.epsilon) or self.epsilon <= 0:
            raise InvalidParameter(
                f"epsilon must be a number above 0 (or math.inf), not {preview(self.epsilon)}"
            )
        if not _is_real(self.delta) or not 0 <= self.delta < 1:
            raise InvalidParameter(f"delta must be a number in [0, 1), not {preview(self.delta)}")
        get_relation(self.neighbours)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))

    @property
    def relation(self) -> Relation:
        """The neighbouring relation, with the properties that theorems need."""
        return get_relation(self.neighbours)

    @property
    def is_private(self) -> bool:
        """True if epsilon is finite."""
        return math.isfinite(self.epsilon)

    def __add__(self, other: Guarantee) -> Guarantee:
        """Return the sum by basic composition, which also holds if the second release depends on the first."""
        self._same_neighbours(other)
        return Guarantee(
            self.epsilon + other.epsilon, min(self.delta + other.delta, _BELOW_ONE), self.neighbours
        )

    def __le__(self, other: Guarantee) -> bool:
        """Return whether this guarantee is at least as strong as the other."""
        self._same_neighbours(other)
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def _same_neighbours(self, other: Guarantee) -> None:
        if self.neighbours != other.neighbours:
            raise InvalidParameter(
                f"guarantees under {self.neighbours!r} and {other.neighbours!r} neighbours do not mix. "
                "State both under one relation (zero_out at epsilon, delta implies replace_one at 2 epsilon, "
                "(1 + e^epsilon) delta)"
            )

    def in_words(self) -> str:
        """Return a sentence on what epsilon and delta mean for one person."""
        if not self.is_private:
            return "Nothing is guaranteed to anyone in the data."
        factor = math.exp(min(self.epsilon, _MAX_EXPONENT))
        exception = f", up to a probability of {self.delta:g}" if self.delta else ""
        return (
            f"Whatever anyone concludes from it is at most {factor:.3g} times likelier than with one person's "
            f"record {self.relation.change}{exception}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of certificates."""
        return {"epsilon": self.epsilon, "delta": self.delta, "neighbours": self.neighbours}

    def __str__(self) -> str:
        if not self.is_private:
            return "no privacy (epsilon = inf)"
        inside = f"epsilon = {self.epsilon:g}" + (f", delta = {self.delta:g}" if self.delta else "")
        return f"({inside})-differential privacy, neighbours: {self.neighbours}"


_BELOW_ONE = math.nextafter(1.0, 0.0)
_MAX_EXPONENT = 700.0


def check_guarantee(value: Any) -> None:
    """Raise InvalidParameter for a bare number where a guarantee is needed."""
    if not isinstance(value, Guarantee):
        raise InvalidParameter(
            "guarantee must be a Guarantee: Guarantee(1.0, 1e-6) states epsilon 1 and delta 1e-6"
        )


def _is_real(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


MAX_EPSILON = 20.0
"""Beyond it, a conclusion may become e^20 (more than 400 million) times likelier: nearly nothing is excluded."""


def weakness(guarantee: Guarantee, records: int) -> str | None:
    """Return why a guarantee for n records, or persons, is hardly private; ``None`` if it protects people.

    It is weak if epsilon is above 20, or delta at or above 1/n: publishing one of n records, chosen at random,
    satisfies delta = 1/n. An infinite epsilon is not judged here, because it is openly no guarantee at all.

    Examples
    --------
    >>> weakness(Guarantee(1.0, 1e-6), records=30_000) is None
    True
    >>> weakness(Guarantee(1.0, 1e-3), records=1000)
    'hardly private: delta 0.001 is not below 1/1000, so publishing one of the 1000 records as it is would keep it too'
    """
    reasons = []
    if guarantee.is_private and guarantee.epsilon > MAX_EPSILON:
        reasons.append(
            f"epsilon {guarantee.epsilon:g} is above {MAX_EPSILON:g}, so one person's record may make a conclusion "
            "more than 400 million times likelier"
        )
    if guarantee.is_private and guarantee.delta >= 1.0 / records:
        reasons.append(
            f"delta {guarantee.delta:g} is not below 1/{records}, so publishing one of the {records} records as it is "
            "would keep it too"
        )
    return f"hardly private: {'; '.join(reasons)}" if reasons else None


def check_strength(guarantee: Guarantee, records: int, accepted: bool) -> None:
    """Raise InvalidParameter for a weak guarantee unless the caller has accepted it as such."""
    if not isinstance(accepted, bool):
        raise InvalidParameter(f"accept_weak_privacy must be True or False, not {preview(accepted)}")
    weak = weakness(guarantee, records)
    if weak and not accepted:
        raise InvalidParameter(
            f"this guarantee is {weak}. Use a smaller epsilon or delta, or confirm it, which every certificate states: "
            "accept_weak_privacy=True in Python, --accept-weak-privacy in a command, accept_weak_privacy = true in a "
            "file"
        )
