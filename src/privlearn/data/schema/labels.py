"""What a schema says of single classes: which labels count as one, and what each weighs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from privlearn.data.schema.public import Value, distinct_values

SPELLINGS_OF_A_CLASS = 'write other spellings of a class under merge, as in merge: {"yes": ["Yes", "YES"]}'


def by_class(part: Any, classes: Sequence[Value]) -> dict[Value, Any]:
    """A mapping whose keys are classes; JSON keeps keys as text, so 1 may be written "1"."""
    if not isinstance(part, Mapping):
        raise ValueError(f"must name classes, e.g. {{{classes[-1]}: ...}}")
    spelled = {str(label): label for label in classes}
    strange = [key for key in part if str(key) not in spelled]
    if strange:
        hint = ': quote "yes" and "no", which YAML reads otherwise' if isinstance(strange[0], bool) else ""
        raise ValueError(f"{strange[0]} is none of the classes, {', '.join(spelled)}{hint}")
    return {spelled[str(key)]: value for key, value in part.items()}


def check_merged(merge: Mapping[Value, Any], classes: Sequence[Value]) -> dict[Value, tuple[Value, ...]]:
    """The labels that count as each class, beside the class's own."""
    merged = {
        label: tuple(part) if isinstance(part, list | tuple) else (part,) for label, part in merge.items()
    }
    every = [*classes, *(other for label, part in merged.items() for other in part if other != label)]
    if not all(isinstance(label, bool | int | str) for label in every):
        raise ValueError("labels are text, whole numbers, or true and false: write lists of them")
    distinct_values(tuple(every), "merge: {ill: [mild, severe]}")
    return merged


def check_weights(weights: Mapping[Value, Any]) -> dict[Value, float]:
    """The public weight of each class that has one."""
    for label, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise ValueError(f"{label}: must be a number above 0")
    return {label: float(weight) for label, weight in weights.items()}
