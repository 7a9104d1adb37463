"""Read what a codebook declares about columns: ARFF, KEEL, Frictionless Table Schema, labels of SPSS and Stata.

A codebook that was written after a look at the rows is as private as they are; its reader cannot tell.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privlearn.data.schema.cell_grammar import parse_day, parse_number
from privlearn.data.schema.public import Value
from privlearn.data.sources.program_files import value_labels
from privlearn.errors import InvalidParameter, SchemaError

_ATTRIBUTE = re.compile(
    r"^\s*@attribute\s+('[^']*'|\"[^\"]*\"|[^\s{]+)\s*(\{.*\}|[a-z]+\s*(?:\[[^\]]*\])?)",
    re.IGNORECASE | re.MULTILINE,
)
_BOUNDS = re.compile(r"\[\s*([^,\s]+)\s*,\s*([^\s\]]+)\s*\]")
LABELLED = (".sav", ".zsav", ".dta")
_FIELDS_EXPECTED = (
    '{"fields": [{"name": ..., "constraints": {"minimum": ..., "maximum": ..., "enum": [...]}}]}'
)


@dataclass(frozen=True)
class Declared:
    """A codebook's entry for one column: bounds or a list, and the labels of the list's codes."""

    lower: float | str | None = None
    upper: float | str | None = None
    values: tuple[Value, ...] = ()
    labels: tuple[str, ...] = ()


def read_codebook(path: str | Path) -> dict[str, Declared]:
    """Return a codebook's entries by column; columns without bounds and lists have none.

    Parameters
    ----------
    path : path
        A file that ends in .arff or .dat (KEEL), .json (a Table Schema or data package), .sav, .zsav or .dta.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".arff") as file:
    ...     _ = file.write("@attribute age real [18, 90]\\n@attribute sex {female, male}\\n@data\\n")
    ...     file.flush()
    ...     read_codebook(file.name)["sex"].values
    ('female', 'male')
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in LABELLED:
        return {name: _from_labels(labels) for name, labels in value_labels(path).items()}
    if suffix not in (".arff", ".dat", ".json"):
        raise InvalidParameter(
            f"{path} is not a codebook: it must end in .arff, .dat, .json, {', '.join(LABELLED)}"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise SchemaError(f"{path} cannot be read as text in UTF-8. Save it as such.") from None
    entries = dict(_fields(text, path) if suffix == ".json" else _attributes(text))
    if not entries:
        raise SchemaError(f"{path} declares no bounds and no lists. Fill in the template by hand.")
    return entries


def _from_labels(labels: Mapping[Any, str]) -> Declared:
    """Return the codes of a list and their labels; whole numbers that are stored as floats become whole."""
    codes = {
        int(code) if isinstance(code, float) and code.is_integer() else code: labels[code] for code in labels
    }
    return Declared(values=tuple(codes), labels=tuple(map(str, codes.values())))


def _attributes(text: str) -> Iterator[tuple[str, Declared]]:
    """Yield the entries of the head of an ARFF or KEEL file; its rows are not read."""
    head = re.split(r"^\s*@data\b", text, maxsplit=1, flags=re.IGNORECASE | re.MULTILINE)[0]
    for name, kind in _ATTRIBUTE.findall(head):
        bounds = _BOUNDS.search(kind)
        if kind.startswith("{"):
            (cells,) = csv.reader([kind.strip("{} ").replace("'", '"')], skipinitialspace=True)
            yield name.strip("'\""), Declared(values=tuple(cell.strip() for cell in cells))
        elif bounds is not None:
            yield name.strip("'\""), Declared(_number(bounds[1]), _number(bounds[2]))


def _number(text: str) -> float:
    bound = _bound(text)
    if bound is None or isinstance(bound, str):
        raise SchemaError(f"a codebook's bound is not a number: {text!r}")
    return bound


def _bound(limit: Any) -> float | str | None:
    """Return a bound that is a number or a day; None for other text, which could add lines to the template."""
    if isinstance(limit, str) and parse_day(limit) is not None:
        return limit[:10]
    number = parse_number(str(limit))
    if number is None or not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def _fields(text: str, path: Path) -> Iterator[tuple[str, Declared]]:
    """Yield the entries of a Table Schema, or of the only table of a data package."""
    try:
        content = json.loads(text)
        if "resources" in content:
            (table,) = content["resources"]
            content = table["schema"]
        for field in content["fields"]:
            limits = field.get("constraints", {})
            values = tuple(limits.get("enum", ()))
            if field.get("type") == "boolean" and not values:
                values = (False, True)
            lower, upper = (_bound(limits.get(side)) for side in ("minimum", "maximum"))
            if values or (lower, upper) != (None, None):
                yield field["name"], Declared(lower, upper, values)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SchemaError(f"{path} is not a Table Schema: it must hold {_FIELDS_EXPECTED}") from None
