"""Neighbouring relations: by which change of one person's record a guarantee is measured.

A relation is a value with every property that the theorems need. No other module compares its name, and no property has
a default: a relation that lacks one cannot be created, and an unknown name is refused.
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
    """How two neighbouring data sets differ in one record, for records whose row has norm at most 1.

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
                "not allow for: say rows_per_person in the schema instead"
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
                f"under neighbours={self.name!r} the number of records is private: say how many you expect, from "
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
            raise DataError("the table has no rows: give at least one")
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
