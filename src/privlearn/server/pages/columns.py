"""A schema shown as a table, and as a form with one field per column."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from privlearn.data.schema.cell_grammar import CellRules, UnreadableCell
from privlearn.data.schema.columns import (
    AnyColumn,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    OrdinalColumn,
    TextColumn,
)
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.data.sources.schema_columns import arrow_type, rules_of

_MISSING = {"refuse": "refused", "zero": "allowed", "indicator": "allowed, a feature"}


@dataclass(frozen=True)
class ColumnView:
    """A column as a row of the table."""

    name: str
    kind: str
    range: str
    missing: str
    description: str = ""


@dataclass(frozen=True)
class FieldView:
    """A column as a field; the form uses ``id``, because a column's name could clash with other fields."""

    id: str
    name: str
    kind: str
    range: str
    required: bool
    options: tuple[str, ...] = ()
    value: str = ""


def column_views(schema: Schema) -> list[ColumnView]:
    return [
        ColumnView(name, column.type, _range(column), _MISSING[column.missing], column.description or "")
        for name, column in schema.columns.items()
    ]


def target_range(target: Target) -> str:
    if target.bounds is None:
        count = len(target.classes)
        return " or ".join(map(str, target.classes)) if count < 8 else f"{count} classes"
    unit = f" {target.unit}" if target.unit else ""
    return f"a number from {_plain(target.bounds[0])} to {_plain(target.bounds[1])}{unit}"


def field_views(schema: Schema, filled: Mapping[str, str]) -> list[FieldView]:
    return [
        _field(f"column{index}", name, column, filled)
        for index, (name, column) in enumerate(schema.columns.items())
    ]


def point_of(schema: Schema, fields: list[FieldView]) -> tuple[pa.Table, dict[str, str]]:
    """Return the row that the form describes, and errors by field."""
    cells, errors = {}, {}
    for field in fields:
        if not field.value and field.required:
            errors[field.id] = "Fill this in."
        try:
            kind = arrow_type(schema, field.name)
            cells[field.name] = (
                pa.array([_number(schema, field.name, field.value)], kind)
                if field.value and pa.types.is_floating(kind)
                else pa.array([field.value or None], pa.string()).cast(kind)
            )
        except (UnreadableCell, pa.ArrowInvalid):
            errors[field.id] = "This is not a number."
    return pa.table(cells), errors


def _number(schema: Schema, name: str, text: str) -> Any:
    """Return what a field spells, with a decimal point or the decimal sign of the data set's own files."""
    rules = rules_of(schema, name)
    with suppress(UnreadableCell):
        return rules.read(text)
    return CellRules(rules.kind, rules.codes, reads_hours=rules.reads_hours).read(text)


def _field(id: str, name: str, column: Any, filled: Mapping[str, str]) -> FieldView:
    options: tuple[str, ...] = ()
    if isinstance(column, CategoryColumn | OrdinalColumn):
        unknown = () if column.missing == "refuse" else ("",)
        options = (*unknown, *map(_text, column.values))
    value = filled.get(id, options[0] if options else "")
    parts = ("" if options else _range(column), column.description)
    hint = "; ".join(part for part in parts if part)
    return FieldView(id, name, column.type, hint, column.missing == "refuse", options, value)


def _range(column: AnyColumn) -> str:
    match column:
        case NumberColumn():
            again = "" if column.period is None else f", again after {_plain(column.period)}"
            unit = f" {column.unit}" if column.unit else ""
            return f"{_plain(column.lower)} to {_plain(column.upper)}{unit}{again}"
        case DateColumn():
            return f"{column.lower} to {column.upper}"
        case OrdinalColumn():
            other = "" if column.unknown == "refuse" else "; others count as unknown"
            return " < ".join(map(_text, column.values)) + other
        case CategoryColumn():
            other = {"refuse": "", "zero": "; others are unknown", "other": ", or another"}[column.unknown]
            return ", ".join(map(_text, column.values)) + other
        case TextColumn():
            return "any words"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(bound: float) -> str:
    return f"{bound:,.10g}"
