"""Whether a schema says what a person is, where the names of a table's columns give reason to ask."""

from __future__ import annotations

import re
from collections.abc import Iterable

from privlearn.data.schema import Schema
from privlearn.errors import SchemaError

_ALONE = "patient|person|subject|participant|respondent|customer|ssn|nhs|mrn|account|passport|iban"
_NUMBERED = (
    rf"({_ALONE}|client|member|user|employee|student|individual)s? ?(id|key|code|no|nr|nbr|num|number)"
)
_IDENTIFIER = re.compile(rf"(.+ )?(id|uuid|guid|{_NUMBERED}|({_ALONE})s?)")
MOST_SHOWN = 8
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


def looks_like_identifier(name: str) -> bool:
    """Whether a column is named like a number that people have: ``id``, ``patient_nbr``, ``customerId``, ``SSN``."""
    return _IDENTIFIER.fullmatch(" ".join(_BETWEEN_WORDS.split(name)).lower().strip()) is not None


def refuse_unclear_persons(schema: Schema, names: Iterable[str]) -> None:
    """Refuse a table to learn from that may hold several rows per person while its schema does not say so.

    Only the columns' names are looked at, which are public, and no cell.
    """
    if schema.person is not None or schema.one_row_per_person or schema.rows_per_person > 1:
        return
    known = {*schema.columns, schema.target.name if schema.target else None}
    found = sorted(
        (name for name in names if name not in known and looks_like_identifier(name)), key=_less_like_a_person
    )
    if found:
        shown = ", ".join(map(repr, found[:MOST_SHOWN]))
        raise SchemaError(
            f"the table has columns that are named like identifiers ({shown}), and the schema does not say what a "
            "person is: if somebody may have several rows, write in the schema which of them tells people apart, "
            f"`person: {found[0]}` for example (not one that numbers visits or codes), since people would be protected "
            "less than the certificate says; if every row is another person, write `one_row_per_person: true`"
        )


def _less_like_a_person(name: str) -> bool:
    """Sorts ``patient_nbr`` before ``encounter_id``."""
    return re.search(_ALONE, name.lower()) is None
