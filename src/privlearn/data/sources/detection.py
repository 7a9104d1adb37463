"""Detect the format of a CSV file from its first lines; the holder reviews it before a row is read with it."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from privlearn.data.schema.cell_grammar import DAY_FORMS, parse_day
from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.sources.addresses import TablePath
from privlearn.data.sources.csv_lines import PIECE, open_bytes
from privlearn.data.sources.schema_columns import likely_delimiter
from privlearn.data.sources.table import safely
from privlearn.errors import DataError

_MAX_LINES = 1000  # lines
_CODES = ("?", "-", "--", ".", "*")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")
_NUMBER = re.compile(r"[-+]?[0-9]+([.,][0-9]+)?([eE][-+]?[0-9]+)?")


def detect_format(path: TablePath, names: Sequence[str] = ()) -> FileFormat:
    """PRIVATE: detect delimiter, decimal sign, encoding and codes for gaps in the first lines of a CSV file.

    The result goes into a template that the holder reviews. It has a few bits about the rows (is there a ``?``, is the
    text UTF-8), which show how the file was exported; the holder can delete them.

    ``names``: the columns' names, if the first line does not have them.
    """
    start = safely(lambda: _start(path), f"{path} cannot be read. It may be cut off or damaged.")
    encoding = _encoding(start)
    text = start.decode(encoding, errors="replace").removeprefix("\ufeff")
    delimiter = likely_delimiter(text.split("\n", 1)[0])
    lines = safely(
        lambda: list(csv.reader(io.StringIO(text), delimiter=delimiter))[:_MAX_LINES],
        f"{path} is not a regular CSV file. Check its lines.",
    )
    if not lines:
        raise DataError(f"{path} is empty. Its first line must name the columns.")
    _check_names(path, lines[0], names)
    cells = {cell.strip() for line in lines[0 if names else 1 :] for cell in line}
    return FileFormat(
        delimiter=delimiter,
        decimal="," if delimiter != "," and any(map(_DECIMAL_COMMA.fullmatch, cells)) else ".",
        dates=_form_of_dates(cells),
        encoding=encoding,
        missing=tuple(code for code in _CODES if code in cells),
        names=tuple(names),
        trim=len(lines[0]) > 1 and all(cell.startswith(" ") for cell in lines[0][1:]),
    )


def _form_of_dates(cells: set[str]) -> Any:
    """Return the form in which all dates can be read, if exactly one fits; else that of 2020-01-31."""
    days = [cell for cell in cells if any(parse_day(cell, form) is not None for form in DAY_FORMS)]
    forms = [form for form in DAY_FORMS if all(parse_day(cell, form) is not None for cell in days)]
    return forms[0] if len(forms) == 1 else PLAIN.dates


def describe_look(path: TablePath, form: FileFormat) -> str:
    """PRIVATE: return the end of a message about an unreadable file: the format that its first lines suggest."""
    try:
        likely = detect_format(path, form.names)
    except DataError:
        return ""
    if _same_encoding(likely.encoding, form.encoding):
        return ""
    settings = f"encoding: {likely.encoding}"
    if likely.delimiter != form.delimiter:
        settings += f', delimiter: "{likely.delimiter}"'.replace("\t", "\\t")
    return f". Its first lines suggest to write in the schema: file: {{{settings}}}"


def misread_encoding(path: TablePath, form: FileFormat) -> str | None:
    """PRIVATE: return "utf-8" if the file is in UTF-8 and its format states an encoding that misreads it; else None."""
    start = safely(lambda: _start(path), f"{path} cannot be read. It may be cut off or damaged.")
    plain = PLAIN.encoding
    mistaken = not start.isascii() and not _same_encoding(form.encoding, plain) and _encoding(start) == plain
    return plain if mistaken else None


def _same_encoding(one: str, other: str) -> bool:
    names = {codecs.lookup(name).name.removesuffix("-sig") for name in (one, other)}
    return len(names) == 1


def _start(path: TablePath) -> bytes:
    with open_bytes(path) as raw:
        return bytes(raw.read(PIECE))


def _encoding(start: bytes) -> str:
    """Return UTF-16 if there is a mark or zeros, else the first of UTF-8, cp1252 (Windows) and latin-1 that fits."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in start[:2]:
        return "utf-16-be" if start[0] == 0 else "utf-16-le"
    for encoding in (PLAIN.encoding, "cp1252"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(start)  # its last character may be cut in two
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def _check_names(path: TablePath, first: list[str], names: Sequence[str]) -> None:
    """Refuse a first line with numbers: it is a row, and no message may quote it."""
    if names and len(names) != len(first):
        raise DataError(f"{path} has {len(first)} columns, not {len(names)}. Name each column.")
    if not names and any(_NUMBER.fullmatch(cell.strip()) for cell in first):
        raise DataError(
            f"the first line of {path} holds numbers, not names. Put a line of column names before the data, or "
            f"name each of its {len(first)} columns: --names age,job,..."
        )
