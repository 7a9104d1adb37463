"""What neighbours are: by which change of one person's record a promise is measured.

A relation is a value that carries every fact the theorems take from it. Nothing else in the code asks for its name, and
no fact has a default: a relation that does not state one cannot be made, and an unknown name is refused.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

from privlearn.errors import DataError, InvalidParameter, did_you_mean, shown

LARGEST_TABLE = 16
"""Where the number of records is private, a table may have so many times the expected number. Beyond that nothing is
refused, which would tell, and only the bounds on rounding errors are not proven (docs/theory/add-remove.md)."""


@dataclass(frozen=True, kw_only=True)
class Relation:
    """How two neighbouring data sets differ in one record, for records whose row has norm at most 1.

    Parameters
    ----------
    name : str
        As certificates and parameters write it.
    otherwise : str
        Ends the sentence "than with one person's record ...".
    replaces : bool
        True if the record may become any other one; False if it is there or silent.
    gradients : int
        How many records' gradients separate the two sums of gradients, each free within the loss's bound.
    moments : float
        Largest Frobenius distance of the two sums of x x'.
    counts : float
        Largest L2 distance of the two histograms in which a record counts once.
    replacing : int
        How many steps of this relation replace one record by another: epsilon times so many implies replace_one.
    count_is_public : bool
        True if neighbours have as many records, so that theorems, certificates and messages may use their number. If
        not, a public expectation takes its place everywhere, as N in the objective too.
    """

    name: str
    otherwise: str
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
    def largest_table(self) -> int:
        """Most records that a table may have, over the public number N that the objective divides by."""
        return 1 if self.count_is_public else LARGEST_TABLE

    @property
    def counted(self) -> str:
        """What certificates call N."""
        return "Number of records" if self.count_is_public else "Expected number of records"

    @property
    def on_count(self) -> str:
        """What certificates say of the number of records where it is covered too."""
        if self.count_is_public:
            return ""
        return (
            " How many records there are is covered too: for tables of up to "
            f"{LARGEST_TABLE} times the expected number, and for larger ones but for rounding errors."
        )

    def check_expected(self, expected: Any) -> None:
        """Refuse, before a row is read, an expectation that is missing, or that a public number leaves no room for."""
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
                f"expected_records must be a whole number of at least 1, not {shown(expected)}"
            )

    def total(self, counted: int, expected: Any) -> int:
        """Public: N, the number of records, or what was expected where that is private."""
        self.check_expected(expected)
        if not self.count_is_public:
            return int(expected)
        if counted == 0:
            raise DataError("the table has no rows: give at least one")
        return counted


RELATIONS: dict[str, Relation] = {}


def register_relation(relation: Relation) -> None:
    """Make a relation known by its name, everywhere at once."""
    if RELATIONS.get(relation.name, relation) != relation:
        raise InvalidParameter(f"there is a relation {relation.name!r} already: take another name")
    RELATIONS[relation.name] = relation


def relation_named(name: Any) -> Relation:
    """The relation of that name."""
    if not isinstance(name, str) or name not in RELATIONS:
        raise InvalidParameter(
            f"neighbours must be one of {', '.join(map(repr, RELATIONS))}, not {shown(name)}"
            f"{did_you_mean(name, RELATIONS)}"
        )
    return RELATIONS[name]


register_relation(
    Relation(
        name="replace_one",
        otherwise="replaced by any other",
        replaces=True,
        gradients=2,
        moments=math.sqrt(2.0),  # of two positive semidefinite matrices of trace at most 1
        counts=math.sqrt(2.0),  # one bin loses 1, another wins 1
        replacing=1,
        count_is_public=True,
    )
)
register_relation(
    Relation(
        name="zero_out",
        otherwise="left out",
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
        otherwise="not there, nor counted",
        replaces=False,
        gradients=1,
        moments=1.0,
        counts=1.0,
        replacing=2,
        count_is_public=False,
    )
)
