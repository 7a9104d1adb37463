"""How a file is written, told from its first lines; the holder reviews it before anything is read by it."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence

from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.sources.addresses import TablePath
from privlearn.data.sources.csv_files import PIECE, opened_bytes
from privlearn.data.sources.table import safely
from privlearn.data.sources.wanted import likely_delimiter
from privlearn.errors import DataError

_LOOKED_AT = 1000  # lines
_CODES = ("?", "-", "--", ".", "*")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")
_NUMBER = re.compile(r"[-+]?[0-9]+([.,][0-9]+)?([eE][-+]?[0-9]+)?")


def detect_format(path: TablePath, names: Sequence[str] = ()) -> FileFormat:
    """PRIVATE: what the first lines of a CSV file look like: signs between cells, never what cells say.

    For a template that the holder reads and corrects. The bits that it takes from rows (is there a ``?``, is the text
    UTF-8) say how the file was exported; whoever thinks that they say more can delete them.

    Parameters
    ----------
    names : sequence of str, optional
        The columns' names, if the first line does not have them.
    """
    start = safely(lambda: _start(path), f"{path} cannot be read: it may be cut off or damaged")
    encoding = _encoding(start)
    text = start.decode(encoding, errors="replace").removeprefix("\ufeff")
    delimiter = likely_delimiter(text.split("\n", 1)[0])
    lines = safely(
        lambda: list(csv.reader(io.StringIO(text), delimiter=delimiter))[:_LOOKED_AT],
        f"{path} is not a regular CSV file: check its lines",
    )
    if not lines:
        raise DataError(f"{path} is empty: its first line must name the columns")
    _check_names(path, lines[0], names)
    cells = {cell.strip() for line in lines[0 if names else 1 :] for cell in line}
    return FileFormat(
        delimiter=delimiter,
        decimal="," if delimiter != "," and any(map(_DECIMAL_COMMA.fullmatch, cells)) else ".",
        encoding=encoding,
        missing=tuple(code for code in _CODES if code in cells),
        names=tuple(names),
        trim=len(lines[0]) > 1 and all(cell.startswith(" ") for cell in lines[0][1:]),
    )


def look_of(path: TablePath, form: FileFormat) -> str:
    """PRIVATE: the end of a message about a file that cannot be read as its format says: what it looks like instead."""
    try:
        found = detect_format(path, form.names)
    except DataError:
        return ""
    if _same_encoding(found.encoding, form.encoding):
        return ""
    seen = f"encoding: {found.encoding}"
    if found.delimiter != form.delimiter:
        seen += f', delimiter: "{found.delimiter}"'.replace("\t", "\\t")
    return f". Its first lines look as if the schema had to say file: {{{seen}}}"


def is_mistaken_for(path: TablePath, form: FileFormat) -> str | None:
    """PRIVATE: UTF-8, where the format states an encoding that can read anything, and reads it wrongly."""
    start = safely(lambda: _start(path), f"{path} cannot be read: it may be cut off or damaged")
    plain = PLAIN.encoding
    mistaken = not start.isascii() and not _same_encoding(form.encoding, plain) and _encoding(start) == plain
    return plain if mistaken else None


def _same_encoding(one: str, other: str) -> bool:
    names = {codecs.lookup(name).name.removesuffix("-sig") for name in (one, other)}
    return len(names) == 1


def _start(path: TablePath) -> bytes:
    with opened_bytes(path) as raw:
        return bytes(raw.read(PIECE))


def _encoding(start: bytes) -> str:
    """UTF-16 has a mark or zeros; what is not UTF-8 was mostly written by Windows, and anything can be latin-1."""
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
    """A first line with numbers is a row; no message may quote it."""
    if names and len(names) != len(first):
        raise DataError(
            f"{path} has {len(first)} columns and there are {len(names)} names: give one for each column"
        )
    if not names and any(_NUMBER.fullmatch(cell.strip()) for cell in first):
        raise DataError(
            f"the first line of {path} holds numbers, not names: put a line of column names before the data, or "
            f"give a name for each of its {len(first)} columns: --names age,job,..."
        )
