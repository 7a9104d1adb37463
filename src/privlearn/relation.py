"""What neighbours are: by which change of one person's record a promise is measured.

A relation is a value that carries every fact the theorems take from it. Nothing else in the code asks for its name, and
no fact has a default: a relation that does not state one cannot be made, and an unknown name is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privlearn.errors import InvalidParameter, shown


@dataclass(frozen=True, kw_only=True)
class Relation:
    """How two neighbouring data sets differ, for records whose row has norm at most 1.

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
    """

    name: str
    otherwise: str
    replaces: bool
    gradients: int
    moments: float
    counts: float
    replacing: int


RELATIONS: dict[str, Relation] = {}


def register_relation(relation: Relation) -> None:
    """Make a relation known by its name, everywhere at once."""
    if relation.name in RELATIONS:
        raise InvalidParameter(f"there is a relation {relation.name!r} already: take another name")
    RELATIONS[relation.name] = relation


def relation_named(name: Any) -> Relation:
    """The relation of that name."""
    if not isinstance(name, str) or name not in RELATIONS:
        raise InvalidParameter(
            f"neighbours must be one of {', '.join(map(repr, RELATIONS))}, not {shown(name)}"
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
    )
)
