"""Write the commented schema that a holder fills in, from the names and types of a file's columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from privlearn.data.schema.codebook import LABELLED, Declared, read_codebook
from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.schema.name_ranges import compact_names
from privlearn.data.sources.addresses import TablePath, table_path
from privlearn.data.sources.csv_files import csv_header, guess_types
from privlearn.data.sources.detection import detect_format
from privlearn.data.sources.directories import check_same_columns, list_files, partition
from privlearn.data.sources.files import is_parquet, parquet_schema
from privlearn.data.sources.program_files import WORKBOOKS, is_program_file, read_program_file, visible_sheets
from privlearn.data.sources.schema_columns import less_like_a_person, looks_like_identifier
from privlearn.data.sources.table import is_number, refuse_repeated_names, safely
from privlearn.errors import InvalidParameter

_HEAD = """\
# A schema states what is public about the table before its rows are read. Take bounds and
# categories from the questionnaire, the law or common knowledge, never from the data: what is
# read from private rows is a release that this file would not account for.
#
# 1. Delete columns that identify people (names, numbers, addresses) and columns you do not need.
# 2. Number columns: fill in lower and upper; cells outside are clamped. Use scale: log for amounts
#    with a long tail (income, capital, counts). A number that is only a code is a category.
# 3. Category columns: list all values that may occur; quote words such as "yes", "no" and "1" if
#    the table has them as text. Long free text: write type: text and delete values.
#    Days: write type: date, lower and upper, and for text such as 31.01.2020 file: {dates: dd.mm.yyyy}.
# 4. missing: zero accepts gaps (unknown: zero for categories); missing: indicator learns from them, too.
# 5. Move the column to predict from columns to target and list its classes; or, for a number
#    (regression), write its lower and upper there instead of classes.
# 6. If people have several rows: person: NAME of the column that identifies them (then delete that
#    column below), or rows_per_person: the largest number a person can have. If every row is another
#    person: one_row_per_person: true.
# 7. One entry describes several columns: "BILL_AMT{1..6}" is BILL_AMT1 to BILL_AMT6.
# 8. Bounds and lists that are not public can be estimated with a share of epsilon: write estimate instead
#    (lower: estimate, values: estimate, classes: estimate; or estimate whole numbers for a list of whole numbers);
#    privlearn train and privlearn discover estimate them.
# 9. A column of survey weights: delete it below, and write weight: {column: NAME, upper: its public cap}.
"""

_COPIED = """\
#
# Bounds and lists below are a codebook's. Keep them only if they were written before anyone looked at the rows:
# KEEL's bounds are often the smallest and largest cell, lists written by Weka or pandas the cells that occur.
"""

_FILE = """\

# The format of the file, as its first lines suggest: check it. Codes for a missing cell:
# missing: ["?", -9], or of single columns missing_in: {age: [-9]}; and set missing: zero
# for the columns that may have them.
file:
"""

_TAIL = """\
target:
  name: null        # the column to predict
  classes: []       # all its values, e.g. [healthy, ill]
"""


def schema_template(
    path: str | TablePath,
    names: Sequence[str] = (),
    sheet: str | None = None,
    codebook: str | Path | None = None,
) -> str:
    """Return a commented YAML schema for a table, with every bound and list left to fill in.

    It contains only names and types of columns and the format of the file; no cell of the table can appear in it.
    Bounds and lists of a codebook are copied.

    Parameters
    ----------
    path : path or address
        A file, or a directory or pattern of files with the same columns.
    names : sequence of str, optional
        The names of the columns, if the file has no line of names.
    sheet : str, optional
        The sheet of a workbook; by default the first visible one.
    codebook : path, optional
        See `privlearn.data.schema.codebook.read_codebook`.
    """
    declared = {} if codebook is None else read_codebook(codebook)
    root, files = list_files(table_path(path))
    first = files[0]
    if sheet is not None and first.suffix.lower() not in WORKBOOKS:
        raise InvalidParameter("--sheet is for workbooks. Omit it.")
    sheets = visible_sheets(first)
    if sheet is None and len(sheets) > 1:
        sheet = sheets[0]
    form = FileFormat(sheet=sheet) if _states_types(first) else detect_format(first, names)
    if names and (form == PLAIN or _states_types(first)):
        raise InvalidParameter(
            f"--names is for text files without a line of names. {first.name} has names. Omit it."
        )
    columns = _columns_of_all(root, files, form)
    identifiers = [name for name, _ in columns if looks_like_identifier(name)]
    others = [(name, (kind, declared.get(name))) for name, kind in columns if name not in identifiers]
    lines = [
        line for name, (kind, entry) in compact_names(others) for line in _column_lines(name, kind, entry)
    ]
    stem = (first if len(files) == 1 else root).name.removesuffix(".gz").rsplit(".", 1)[0]
    question = _question(identifiers) if identifiers else ""
    head = _HEAD if codebook is None else _HEAD + _COPIED
    if codebook is None and first.suffix.lower() in LABELLED:
        head += f"#\n# --codebook {first.name} copies the labels of this file's codes as lists.\n"
    return "\n".join(
        [head, f"name: {_scalar(stem)}\n{_file(form, sheets)}", "columns:", *lines, "", f"{_TAIL}{question}"]
    )


def _file(form: FileFormat, sheets: Sequence[str]) -> str:
    """Return the section about the format of the file; empty for a plain one."""
    if form == PLAIN:
        return ""
    if len(sheets) > 1:
        comment = f"# sheets: {', '.join(sheets)}; --sheet NAME reads another"
        return f"\nfile:  {comment}\n  sheet: {_scalar(form.sheet or '')}\n"
    settings = form.model_dump(mode="json").items()
    return _FILE + "".join(f"  {name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in settings)


def _question(identifiers: list[str]) -> str:
    """Return the question about persons, if columns are named like identifiers."""
    names, likely = ", ".join(map(_scalar, identifiers)), _scalar(min(identifiers, key=less_like_a_person))
    return f"""
# Left out above, because they are named like identifiers: {names}.
# May a person have several rows? Training refuses the table until one of these two lines is filled in.
person: null                # yes: the column that tells people apart, such as {likely}
one_row_per_person: false   # no: write true
"""


def _columns_of_all(root: TablePath, files: list[TablePath], form: FileFormat) -> list[tuple[str, Any]]:
    """Return the first file's columns, which all files must have, and those of directories, as text."""
    types = {file: dict(_columns(file, form)) for file in files}
    for file, columns in types.items():
        columns.update(dict.fromkeys(partition(file, root), pa.string()))
    check_same_columns(
        {file: columns if _states_types(file) else dict.fromkeys(columns) for file, columns in types.items()}
    )
    return list(types[files[0]].items())


def _states_types(file: TablePath) -> bool:
    """Return whether a file states the types of its columns; those of text are guessed."""
    return is_parquet(file) or is_program_file(file)


def _columns(path: TablePath, form: FileFormat) -> list[tuple[str, Any]]:
    if _states_types(path):
        kinds = parquet_schema(path) if is_parquet(path) else read_program_file(path, form).schema
        return list(zip(kinds.names, kinds.types, strict=True))
    names = csv_header(path, str(path), form)
    refuse_repeated_names(names, names)
    problem = f"{path} is not a regular CSV file. Check its lines."
    return list(zip(names, safely(lambda: guess_types(path, form, names), problem), strict=True))


def _column_lines(name: str, kind: Any, declared: Declared | None = None) -> Iterator[str]:
    yield f"  {_scalar(name)}:"
    if declared is not None:
        yield from _codebook_lines(kind, declared)
    elif pa.types.is_boolean(kind):
        yield "    type: category"
        yield "    values: [false, true]"
    elif is_number(kind):
        yield "    type: number"
        yield "    lower: null     # smallest possible value"
        yield "    upper: null     # largest possible value"
        yield "    # scale: log    # for amounts with a long tail"
        yield "    # period: 24    # for hours; 12 for months, 360 for angles"
    elif pa.types.is_time(kind):
        yield "    type: number    # the hours of a time of day: 14:30 is 14.5"
        yield "    lower: 0"
        yield "    upper: 24"
        yield "    period: 24"
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        yield "    type: date"
        yield "    lower: null     # first possible day, e.g. 2000-01-01"
        yield "    upper: null     # last possible day"
    else:
        yield "    type: category  # ordinal, if the values have an order"
        yield "    values: []      # all possible values, e.g. [female, male]"


def _codebook_lines(kind: Any, declared: Declared) -> Iterator[str]:
    """Yield the lines of a column that a codebook describes, with the labels of codes as comments."""
    if not declared.values:
        is_day = isinstance(declared.lower or declared.upper, str)
        yield f"    type: {'date' if is_day else 'number'}"
        yield from (
            f"    {side}: {'null' if bound is None else bound}"
            for side, bound in (("lower", declared.lower), ("upper", declared.upper))
        )
        return
    values: Iterable[Any] = declared.values
    if pa.types.is_string(kind):  # codes such as 1 that the file stores as text
        values = map(str, values)
    elif pa.types.is_integer(kind) and all(re.fullmatch(r"-?(0|[1-9][0-9]*)", str(each)) for each in values):
        values = map(int, values)
    yield "    type: category  # ordinal, if the values have an order"
    yield f"    values: {json.dumps(list(values), ensure_ascii=False)}"
    if declared.labels:
        pairs = zip(declared.values, declared.labels, strict=True)
        yield "    # " + " ".join(", ".join(f"{value}: {label}" for value, label in pairs).split())


def _scalar(name: str) -> str:
    """Return a name as a YAML scalar on one line."""
    return yaml.safe_dump(name, allow_unicode=True, width=10**9, default_style='"').strip()
