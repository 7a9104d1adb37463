"""The commented schema to fill in that is made of a file's names and types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import yaml

from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.sources.addresses import TablePath, table_path
from privlearn.data.sources.csv_files import csv_header, opened_csv, types_to_guess
from privlearn.data.sources.detection import detect_format
from privlearn.data.sources.files import is_parquet, parquet_schema
from privlearn.data.sources.folders import check_alike, files_of, partition
from privlearn.data.sources.identifiers import less_like_a_person, looks_like_identifier
from privlearn.data.sources.program_files import is_program_file, read_program_file
from privlearn.data.sources.table import as_table, safely
from privlearn.errors import InvalidParameter

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

_FILE = """\

# How the file is written, as far as its first lines show (never what they say): check it. Codes for a
# missing cell: missing: ["?", -9], or of single columns missing_in: {age: [-9]}; and set missing: zero
# for the columns that may have them.
file:
"""

_TAIL = """\
target:
  name: null        # the column to predict
  classes: []       # all its values, e.g. [healthy, ill]
"""


def schema_template(path: str | TablePath, names: Sequence[str] = ()) -> str:
    """Return a commented YAML schema for a table, with every bound and list left to fill in.

    Only column names and types, and how the file is written, are read into it; no cell of the table can appear.

    Parameters
    ----------
    path : path or address
        A file, or a folder or pattern of files with the same columns.
    names : sequence of str, optional
        The columns' names, of a file that has none.
    """
    root, files = files_of(table_path(path))
    first = files[0]
    form = PLAIN if _states_types(first) else detect_format(first, names)
    if names and form == PLAIN:
        raise InvalidParameter(f"--names are for text files without a line of names: {first.name} has names")
    columns = _columns_of_all(root, files, form)
    identifiers = [name for name, _ in columns if looks_like_identifier(name)]
    lines = [line for name, kind in columns if name not in identifiers for line in _column_lines(name, kind)]
    stem = (first if len(files) == 1 else root).name.removesuffix(".gz").rsplit(".", 1)[0]
    question = _question(identifiers) if identifiers else ""
    return "\n".join(
        [_HEAD, f"name: {_quoted(stem)}\n{_file(form)}", "columns:", *lines, "", f"{_TAIL}{question}"]
    )


def _file(form: FileFormat) -> str:
    """How the file is written, unless it is plain."""
    if form == PLAIN:
        return ""
    settings = form.model_dump(mode="json").items()
    return _FILE + "".join(f"  {name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in settings)


def _question(identifiers: list[str]) -> str:
    """What a schema must answer if columns are named like identifiers."""
    named, likely = ", ".join(map(_quoted, identifiers)), _quoted(min(identifiers, key=less_like_a_person))
    return f"""
# Left out above, since named like identifiers: {named}.
# May somebody have several rows? Training asks until one of these two lines is filled in.
person: null                # yes: the column that tells people apart, such as {likely}
one_row_per_person: false   # no: write true
"""


def _columns_of_all(root: TablePath, files: list[TablePath], form: FileFormat) -> list[tuple[str, Any]]:
    """The first file's columns, which all others must have; and what folders' names say, as text."""
    found = {file: dict(_columns(file, form)) for file in files}
    for file, columns in found.items():
        columns.update(dict.fromkeys(partition(file, root), pa.string()))
    stated = {
        file: columns if _states_types(file) else dict.fromkeys(columns) for file, columns in found.items()
    }
    check_alike(stated)
    return list(found[files[0]].items())


def _states_types(file: TablePath) -> bool:
    """Whether a file says itself of what type its columns are; those of text are guessed."""
    return is_parquet(file) or is_program_file(file)


def _columns(path: TablePath, form: FileFormat) -> list[tuple[str, Any]]:
    if _states_types(path):
        kinds = parquet_schema(path) if is_parquet(path) else read_program_file(path).schema
        return list(zip(kinds.names, kinds.types, strict=True))
    names = csv_header(path, str(path), form)
    as_table(pa.table([[]] * len(names), names=names), names)  # refuses repeated names
    problem = f"{path} is not a regular CSV file: check its lines"
    opened = safely(lambda: opened_csv(path, form, names, types_to_guess(form)), problem)
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
        yield "    # period: 24    # for hours; 12 for months, 360 for angles"
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        yield "    type: date"
        yield "    lower: null     # first possible day, e.g. 2000-01-01"
        yield "    upper: null     # last possible day"
    else:
        yield "    type: category  # ordinal, if the values have an order"
        yield "    values: []      # all possible values, e.g. [female, male]"
        if pa.types.is_temporal(kind):
            yield "    # a time of day cannot be used as it is: make it a number (hours) or delete it"


def _quoted(name: str) -> str:
    """The name as a YAML scalar on one line."""
    return yaml.safe_dump(name, allow_unicode=True, width=10**9, default_style='"').strip()
