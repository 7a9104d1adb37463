"""Which of a source's columns are read, and as what: those that the schema speaks of, with the types that it states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from privlearn.data.schema.columns import CategoryColumn, NumberColumn, OrdinalColumn, Target
from privlearn.data.schema.schema import Schema
from privlearn.errors import DataError
from privlearn.heavy import pa

SPELLINGS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)
"""Of a missing cell, by Arrow; written out because a reader without Arrow takes them as well."""


def wanted_columns(names: list[str], schema: Schema | None, source: str) -> list[str]:
    """Those of a source's columns that the schema speaks of: features, target, person."""
    if schema is None:
        return names
    wanted = [name for name in known_columns(schema) if name in names]
    if not wanted:
        raise DataError(f"{source} has none of the schema's columns: {_why_none(names, schema)}")
    return wanted


def _why_none(names: list[str], schema: Schema) -> str:
    """What to do; the first line of a file without names holds cells, so it is never quoted."""
    likely, stated = (_NAMED.get(sign, sign) for sign in (likely_delimiter(names[0]), schema.file.delimiter))
    if len(names) == 1 and likely != stated:
        written = "tab" if likely == "tab" else f'"{likely_delimiter(names[0])}"'
        return (
            f"it is one column if a {stated} separates cells. Is it a {likely}? Then write in the schema "
            f"(`privlearn predict` takes another with --schema FILE), file: {{delimiter: {written}}}"
        )
    return (
        f"does its first line name them, with a {stated} between them? If it has no line of names, write them in the "
        "schema, file: {names: [...]}"
    )


_NAMED = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def likely_delimiter(line: str) -> str:
    """What separates most cells of a line; a comma if nothing does."""
    return max(_NAMED, key=line.count)


def known_columns(schema: Schema) -> list[str]:
    """Features, target and person."""
    roles = [*schema.columns, schema.target.name if schema.target else None, schema.person]
    return [name for name in roles if name is not None]


def arrow_type(schema: Schema, name: str) -> Any:
    """What a column's cells are read as."""
    column = schema.target if schema.target and schema.target.name == name else schema.columns.get(name)
    if isinstance(column, NumberColumn) or (isinstance(column, Target) and column.bounds):
        return pa.float64()
    listed = _listed(column)
    if not listed or isinstance(listed[0], str):
        return pa.string()
    # pandas writes integers with gaps as 3.0
    return pa.bool_() if isinstance(listed[0], bool) else pa.float64()


def spellings_of_missing(schema: Schema) -> list[str]:
    """Arrow's spellings of a missing cell, except those that the schema lists as values (NA for Namibia)."""
    columns: Iterable[Any] = (*schema.columns.values(), schema.target)
    values = {value for column in columns for value in _listed(column)}
    return [spelling for spelling in SPELLINGS if spelling not in values]


def _listed(column: Any) -> tuple[Any, ...]:
    if isinstance(column, CategoryColumn | OrdinalColumn):
        return column.values
    return column.labels if isinstance(column, Target) else ()
