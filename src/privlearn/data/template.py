"""A schema to fill in, from a file's column names and types alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import yaml

from privlearn.data.files import csv_header, existing, is_parquet, parquet_schema
from privlearn.data.persons import looks_like_identifier
from privlearn.data.quiet import quietly
from privlearn.errors import DataError

_HEAD = """\
# A schema says what is public about the table before anybody looks at its rows. Take bounds and
# categories from the questionnaire, the law or common knowledge, never from the data: what is
# read from private rows is a release that this file would not account for.
#
# 1. Delete columns that identify people (names, numbers, addresses) and columns you do not need.
# 2. Number columns: fill in lower and upper; cells outside are clamped. Use scale: log for amounts
#    with a long tail (income, capital, counts). A number that is only a code is a category.
# 3. Category columns: list all values that may occur; quote words such as "yes", "no" and "1" if
#    the table has them as text. Long free text: write type: text and delete values.
# 4. missing: zero (and unknown: zero for categories) accepts gaps; without it they are refused.
# 5. Move the column to predict from columns to target and list its classes; or, for a number
#    (regression), write its lower and upper there instead of classes.
# 6. If people have several rows: person: NAME of the column that identifies them (then delete that
#    column below), or rows_per_person: the largest number a person can have. If every row is another
#    person: one_row_per_person: true.
# 7. What nobody knows publicly can be bought with a share of epsilon: write buy instead of a bound or
#    a list (lower: buy, values: buy, classes: buy; or buy whole numbers, where a list shall hold those);
#    privlearn train and privlearn discover buy it.
"""

_TAIL = """\
target:
  name: null        # the column to predict
  classes: []       # all its values, e.g. [healthy, ill]
"""


def schema_template(path: str | Path) -> str:
    """Return a commented YAML schema for a CSV or Parquet file, with every bound and list left to fill in.

    Only column names and column types are read into it; no cell of the table can appear.
    """
    path = existing(path)
    columns = _columns(path)
    identifiers = [name for name, _ in columns if looks_like_identifier(name)]
    lines = [line for name, kind in columns if name not in identifiers for line in _column_lines(name, kind)]
    stem = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    question = _question(identifiers) if identifiers else ""
    return "\n".join([_HEAD, f"name: {_quoted(stem)}\n", "columns:", *lines, "", f"{_TAIL}{question}"])


def _question(identifiers: list[str]) -> str:
    """What a schema must answer if columns are named like identifiers."""
    named = ", ".join(map(_quoted, identifiers))
    return f"""
# Left out above, since named like identifiers: {named}.
# May somebody have several rows? Training asks until one of these two lines is filled in.
person: null                # yes: the column that tells people apart, such as {_quoted(identifiers[-1])}
one_row_per_person: false   # no: write true
"""


def _columns(path: Path) -> list[tuple[str, Any]]:
    if is_parquet(path):
        kinds = parquet_schema(path)
        return list(zip(kinds.names, kinds.types, strict=True))
    names = csv_header(path, str(path))
    if any(_is_number(name) for name in names):
        raise DataError(f"the first line of {path} holds numbers: put a line of column names before the data")
    opened = quietly(lambda: arrow_csv.open_csv(path), f"{path} is not a regular CSV file: check its lines")
    return list(zip(names, opened.schema.types, strict=True))


def _column_lines(name: str, kind: Any) -> Iterator[str]:
    yield f"  {_quoted(name)}:"
    if pa.types.is_boolean(kind):
        yield "    type: category"
        yield "    values: [false, true]"
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        yield "    type: number"
        yield "    lower: null     # smallest possible value"
        yield "    upper: null     # largest possible value"
        yield "    # scale: log    # for amounts with a long tail"
    else:
        yield "    type: category"
        yield "    values: []      # all possible values, e.g. [female, male]"
        if pa.types.is_temporal(kind):
            yield "    # a date or time cannot be used as it is: make it a number (days, years) or delete it"


def _quoted(name: str) -> str:
    """The name as a YAML scalar on one line."""
    return yaml.safe_dump(name, allow_unicode=True, width=10**9, default_style='"').strip()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
