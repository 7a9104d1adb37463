"""Recognise columns that are named like identifiers of people, in English, German, French and Spanish."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from privlearn.data.schema.columns import NumberColumn, TextColumn
from privlearn.data.schema.schema import Schema

_ACRONYMS = "pid|ssn|nhs|mrn|nino|iban|kvnr|svnr|ahv|ipp|nhc|dni"
_PEOPLE = "patient|person|subject|participant|respondent|customer|account|passport|proband|paciente|sujet"
_ALONE = f"{_PEOPLE}|encounter|pseudonym"
_NUMBERED = "|".join(
    (
        rf"({_ACRONYMS}|{_ALONE}|pat|subj|usubj|client|member|user|employee|student|individual|beneficiary)s? ?"
        "(id|key|code|no|nr|nbr|num|number)",
        "(case|record|chart|admission|hospital|hosp|study|insurance|policy|social security) ?"
        "(id|no|nr|nbr|num|number)",
        "(patient|person|proband|klient|kunde|teilnehmer|versicherte|krankenversicherte|kranken|fall|studie)(e?n)? ?"
        "(id|nr|nummer|kennung|kennzeichen|code|pseudonym)",
        "(pat|kv|sv|personal|mitglieds|versicherungs|krankenversicherungs|sozialversicherungs|akten|aufnahme) ?"
        "(id|nr|nummer|kennung|kennzeichen)",
        "(id|identifiant|identificador|n|no|num|numero) (de |del |du |d )?"
        "(patient|paciente|sujet|sujeto|dossier|sejour|assure|asegurado|expediente|historia|caso)( clinica)?",
    )
)
_COUNTED = r"(?!(.* )?(of|per|n|num|number|count|total|days|years|age|is|has) )"
_IDENTIFIER = re.compile(rf"(.+ )?(id|uuid|guid|{_ACRONYMS}|{_NUMBERED})|{_COUNTED}(.+ )?({_ALONE})s?")
_PERSON = re.compile(rf"\b(pat|subj|usubj|{_ACRONYMS})|{_PEOPLE}|versicherte")
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


def _plain_name(name: str) -> str:
    """Return ``PatientenNr`` as ``patienten nr``, ``Numéro`` as ``numero``."""
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", name) if not unicodedata.combining(sign))
    return " ".join(_BETWEEN_WORDS.split(plain)).lower().strip()


def looks_like_identifier(name: str) -> bool:
    """Return whether a column is named like an identifier: ``id``, ``patient_nbr``, ``Fallnr``, ``SSN``."""
    return _IDENTIFIER.fullmatch(_plain_name(name)) is not None


def less_like_a_person(name: str) -> bool:
    """Return a sort key that puts ``patient_nbr`` before ``encounter_id``."""
    return _PERSON.search(_plain_name(name)) is None


def possible_person_columns(schema: Schema, names: Iterable[str]) -> list[str]:
    """Return the columns that may identify persons, the likeliest first; none if the schema states what a person is.

    Only the names of columns are read, which are public. Columns with listed values or dates, and the target, do not
    identify persons; a feature that is a number or text may.
    """
    if schema.person is not None or schema.one_row_per_person or schema.rows_per_person > 1:
        return []
    clear = {name for name, kind in schema.columns.items() if not isinstance(kind, NumberColumn | TextColumn)}
    clear |= {schema.target.name} if schema.target else set()
    possible = (name for name in names if name not in clear and looks_like_identifier(name))
    return sorted(possible, key=less_like_a_person)
