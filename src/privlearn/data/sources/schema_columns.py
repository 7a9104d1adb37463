"""The columns of a source that a schema describes, and the rules by which their cells are read."""

from __future__ import annotations

from typing import Any

from privlearn.data.schema.cell_grammar import CellRules, Kind
from privlearn.data.schema.columns import CategoryColumn, DateColumn, OrdinalColumn, TextColumn
from privlearn.data.schema.public import Value
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.errors import DataError
from privlearn.imports import pa

_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def schema_columns(schema: Schema) -> list[str]:
    """Return the names of the schema's features, target and person column."""
    roles = [*schema.columns, schema.target.name if schema.target else None, schema.person]
    return [name for name in roles if name is not None]


def columns_to_read(names: list[str], schema: Schema | None, source: str) -> list[str]:
    """Return the columns of a source that the schema describes; all columns without a schema."""
    if schema is None:
        return names
    described = [name for name in schema_columns(schema) if name in names]
    if not described:
        raise DataError(f"{source} has none of the schema's columns. {_advise(names, schema)}")
    return described


def _advise(names: list[str], schema: Schema) -> str:
    """Return what to do; the first line of a file without names contains cells, so it is never quoted."""
    likely, stated = likely_delimiter(names[0]), schema.file.delimiter
    if len(names) == 1 and likely != stated:
        written = "tab" if likely == "\t" else f'"{likely}"'
        return (
            f"It has one column if a {_NAMES.get(stated, stated)} separates cells. If it is a {_NAMES[likely]}, write "
            f"in the schema file: {{delimiter: {written}}} (`privlearn predict` takes --schema FILE)"
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
    column = schema.target if schema.target and schema.target.name == name else schema.columns.get(name)
    form, values = schema.file, values_of(column)
    return CellRules(
        _kind(column, values),
        codes=form.codes_of(name),
        decimal=form.decimal,
        trim=form.trim,
        listed=tuple(value for value in values if isinstance(value, str)),
    )


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
