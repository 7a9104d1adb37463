"""The columns of a source that a schema describes, and the rules by which their cells are read.

Columns that are named like identifiers of people (in English, German, French or Spanish) are recognised, so that a
message can ask whether rows of one person belong together.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from privlearn.data.schema.cell_grammar import HOURS, CellRules, Kind
from privlearn.data.schema.columns import (
    AnyColumn,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    OrdinalColumn,
    TextColumn,
)
from privlearn.data.schema.public import Value
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target, Weight
from privlearn.errors import DataError, SchemaError
from privlearn.imports import pa

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


_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def schema_columns(schema: Schema) -> list[str]:
    """Return the names of the schema's features, target, person column and column of weights."""
    weight = schema.weight.column if schema.weight else None
    roles = [*schema.columns, schema.target.name if schema.target else None, schema.person, weight]
    return [name for name in roles if name is not None]


def columns_to_read(names: list[str], schema: Schema | None, source: str) -> list[str]:
    """Return the columns of a source that the schema describes; all columns without a schema."""
    if schema is None:
        return names
    described = [name for name in schema_columns(schema) if name in names]
    if not described:
        raise DataError(f"{source} has none of the schema's columns. {_advise(names, schema, source)}")
    return described


def _advise(names: list[str], schema: Schema, source: str) -> str:
    """Return what to do; the first line of a file without names contains cells, so it is never quoted."""
    if source.lower().endswith((".xlsx", ".xlsm")):
        read = f"sheet {schema.file.sheet!r}" if schema.file.sheet else "the first visible sheet"
        return f"Its columns were read from {read}. Name another in the schema: file: {{sheet: NAME}}"
    likely, stated = likely_delimiter(names[0]), schema.file.delimiter
    if len(names) == 1 and likely != stated:
        written = "tab" if likely == "\t" else f'"{likely}"'
        return (
            f"It has one column if a {_NAMES.get(stated, stated)} separates cells. If it is a {_NAMES[likely]}, write "
            f"in the schema: file: {{delimiter: {written}}} (`privlearn predict` takes --schema FILE)"
        )
    return (
        f"Its first line must name them, with a {_NAMES.get(stated, stated)} between them. If the file has no line of "
        "names, write them in the schema, file: {names: [...]}"
    )


def likely_delimiter(line: str) -> str:
    """Return the delimiter that occurs most often in a line; a comma if there is none."""
    return max(_NAMES, key=line.count)


def rules_of(schema: Schema, name: str) -> CellRules:
    """Return how the cells of a column are read; a column that is not in the schema has no type."""
    column = described_column(schema, name)
    form, values = schema.file, values_of(column)
    return CellRules(
        _kind(column, values),
        codes=form.codes_of(name),
        decimal=form.decimal,
        trim=form.trim,
        listed=tuple(value for value in values if isinstance(value, str)),
        days=form.dates,
        reads_hours=getattr(column, "period", None) == HOURS,
    )


def described_column(schema: Schema, name: str) -> AnyColumn | Target | Weight | None:
    """Return what the schema declares about a column; ``None`` for identifiers of persons and other columns."""
    if schema.target is not None and schema.target.name == name:
        return schema.target
    if schema.weight is not None and schema.weight.column == name:
        return schema.weight
    return schema.columns.get(name)


def values_of(column: Any) -> tuple[Any, ...]:
    """Return the values or labels that a column lists; none for other columns."""
    if isinstance(column, CategoryColumn | OrdinalColumn):
        return column.values
    return column.labels if isinstance(column, Target) else ()


def kind_of_list(value: Value) -> Kind:
    """Return the kind of cells of a column whose list contains this value."""
    if isinstance(value, str):
        return "text"
    return "truth" if isinstance(value, bool) else "whole"


def _kind(column: Any, values: tuple[Value, ...]) -> Kind:
    if column is None:
        return "any"
    if values:
        return kind_of_list(values[0])
    if isinstance(column, DateColumn):
        return "date"
    return "text" if isinstance(column, TextColumn) else "number"


def arrow_type(schema: Schema, name: str) -> Any:
    """Return the type in which a column's cells are first read from text; `read_columns` then applies the rules."""
    kind = rules_of(schema, name).kind
    if kind in ("number", "whole"):
        return pa.float64()
    return pa.bool_() if kind == "truth" else pa.string()


MAX_NAMES = 8  # in a message


def refuse_unclear_persons(schema: Schema, names: Iterable[str]) -> None:
    """Refuse a table to learn from that may have several rows per person if the schema does not state it.

    Only the names of columns are checked, which are public.
    """
    identifiers = possible_person_columns(schema, names)
    if identifiers:
        raise SchemaError(
            f"columns are named like identifiers ({', '.join(map(repr, identifiers[:MAX_NAMES]))}), and the schema "
            "does not state what a person is. If a person may have several rows, write in the schema which column "
            f"identifies people, for example `person: {identifiers[0]}` (not one that numbers visits or codes): "
            "otherwise people are protected less than the certificate states. If every row is a different person, "
            "write `one_row_per_person: true`."
        )
