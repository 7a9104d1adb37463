"""Split the bytes of a CSV file into pieces of whole records in UTF-8; refuse ambiguous quotes and line ends.

A quote that is not closed would join the records of several people to one cell. Therefore a cell ends on its line,
unless the file's format has ``line_breaks: true``; a quoted cell ends before a delimiter or a line end; and one kind of
line end is used throughout. All other files are refused. docs/reference/cells.md has the rules.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.schema.file_format import FileFormat
from privlearn.data.sources.addresses import StoredPath, TablePath, compression
from privlearn.errors import DataError
from privlearn.imports import pa

PIECE = 1 << 23  # bytes of text that are read at once; no record may be longer
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_BLANK = tuple(b" \t\xa0")  # the last is the end of a no-break space
_CUT_OFF = "{} cannot be read to its end. It may be cut off or damaged. Write it again."
_QUOTES = (
    "{} has a record whose quotes do not match. A cell that begins with a quote must end with one, before the next "
    'delimiter or line end, and a quote inside it is written twice, "like ""this""". Correct the file'
)
_TRIMMED = "; with trim: true, no blank may precede the first quote of a cell"
_BREAKS = "; if cells may hold line breaks, write file: {line_breaks: true} in the schema"
_RETURNS = (
    "{} has several kinds of line ends, or a carriage return in a record. Write it again with one kind."
)
_LONG = "{} has a line of more than {} bytes. A CSV file must have one record per line."
_NOT_ENCODED = (
    "{} holds text that is not in {}. Correct it, or state the file's encoding in the schema: "
    "file: {{encoding: cp1252}} (Windows), or utf-16"
)


def is_utf8(form: FileFormat) -> bool:
    """Return whether a file of this format is read as UTF-8."""
    return form.encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")


def open_bytes(source: TablePath | bytes) -> Any:
    """Return a stream of the bytes, decompressed if the name has such an ending."""
    if isinstance(source, StoredPath):
        return source.stream()
    return (
        pa.input_stream(str(source), compression(source)) if isinstance(source, Path) else io.BytesIO(source)
    )


def record_pieces(
    source: TablePath | bytes,
    label: str,
    form: FileFormat,
    size: int | None = None,
    max_length: int | None = None,
) -> Iterator[bytes]:
    """Yield the file in UTF-8, about ``size`` bytes at a time; each piece has whole records, and a line feed last.

    Raises
    ------
    DataError
        If the file is damaged, is not in its encoding, or has quotes or line ends that do not match.
    """
    size, max_length = size or PIECE, max_length or PIECE
    rest = b""
    for text in _with_line_feeds(_decode(source, label, form, size), label):
        piece, rest = _split(rest + text, form)
        if len(rest) > max_length:
            raise DataError(_LONG.format(label, max_length))
        if piece:
            _check_quotes(piece, label, form)
            yield piece
    if rest:
        _check_quotes(rest + b"\n", label, form)
        # The last line of a file may lack its line feed.
        yield rest + b"\n"


def not_encoded(label: str, form: FileFormat) -> str:
    """Return the message about text that is not in the encoding of a format."""
    return _NOT_ENCODED.format(label, "UTF-8" if is_utf8(form) else form.encoding)


def check_text(piece: bytes, label: str, form: FileFormat) -> None:
    """Refuse a piece that is not UTF-8, even in columns that are not read."""
    if not piece.isascii() and not _is_utf8(piece):
        raise DataError(not_encoded(label, form))


def _is_utf8(piece: bytes) -> bool:
    # Arrow checks the bytes where they are; decoding would copy megabytes into a Python string.
    ends = pa.py_buffer(np.array([0, len(piece)], np.int64).tobytes())
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, ends, pa.py_buffer(piece)]).validate(full=True)
    except pa.ArrowException:
        return False
    return True


def _decode(source: TablePath | bytes, label: str, form: FileFormat, size: int) -> Iterator[bytes]:
    """Yield the file's text in UTF-8, without a byte order mark."""
    plain = is_utf8(form)
    decoder = None if plain else codecs.getincrementaldecoder(form.encoding)()
    start = True
    for raw in _read_bytes(source, label, size):
        text = raw if decoder is None else _recode(decoder, raw, label, form)
        if start and text:
            text, start = text.removeprefix(codecs.BOM_UTF8), False
        yield text
    if decoder is not None:
        yield _recode(decoder, b"", label, form, final=True)


def _recode(decoder: Any, raw: bytes, label: str, form: FileFormat, final: bool = False) -> bytes:
    try:
        return bytes(decoder.decode(raw, final).encode("utf-8"))
    except UnicodeError:
        pass  # its message quotes the text
    raise DataError(not_encoded(label, form))


def _read_bytes(source: TablePath | bytes, label: str, size: int) -> Iterator[bytes]:
    try:
        with open_bytes(source) as file:
            while raw := bytes(file.read(size)):
                yield raw
            return
    except (OSError, pa.ArrowException):
        pass
    raise DataError(_CUT_OFF.format(label))


def _with_line_feeds(texts: Iterable[bytes], label: str) -> Iterator[bytes]:
    """Yield text whose lines end with a line feed, after a carriage return or not.

    The first line decides whether carriage returns alone end lines. Both kinds in one file are refused, since the
    number of records would depend on a cell.
    """
    alone: bool | None = None
    held = b""
    for part in texts:
        text, held = held + part, b""
        if not alone and text.endswith(b"\r"):  # a line feed may follow
            text, held = text[:-1], b"\r"
        if alone is None:
            alone = _ends_with_return(text)
        if alone and b"\n" in text:
            raise DataError(_RETURNS.format(label))
        if alone:
            text = text.replace(b"\r", b"\n")
        elif b"\r" in text and text.count(b"\r") > text.count(b"\r\n"):
            raise DataError(_RETURNS.format(label))
        yield text
    if held:
        if alone is False:
            raise DataError(_RETURNS.format(label))
        yield b"\n"


def _ends_with_return(text: bytes) -> bool | None:
    """Return whether a carriage return alone ends the first line; None if there is no line end."""
    feed, back = text.find(b"\n"), text.find(b"\r")
    if feed < 0 and back < 0:
        return None
    return back >= 0 and (feed < 0 or back < feed - 1)


def _split(text: bytes, form: FileFormat) -> tuple[bytes, bytes]:
    """Return the records that are complete, and the beginning of the next one."""
    end = text.rfind(b"\n") + 1
    if form.line_breaks and b'"' in text:
        # A cell may hold line feeds: a record ends at one that follows an even number of quotes.
        marks, quotes = _marks(np.frombuffer(text, np.uint8))
        outside = marks[~quotes & (np.cumsum(quotes) % 2 == 0)]
        end = int(outside[-1]) + 1 if len(outside) else 0
    return text[:end], text[end:]


def _marks(text: NDArray[np.uint8]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where quotes and line feeds are, and which of them are quotes."""
    marks = np.flatnonzero((text == _QUOTE) | (text == _NEWLINE))
    return marks, text[marks] == _QUOTE


def _check_quotes(piece: bytes, label: str, form: FileFormat) -> None:
    """Refuse records whose quotes do not match; a quote inside a cell that does not begin with one is plain text."""
    if b'"' not in piece:
        return
    text = np.frombuffer(piece, np.uint8)
    marks, quotes = _marks(text)
    # A quick test accepts the usual file; only other files need the exact one.
    if _pairs_match(text, marks, quotes, form):
        return
    count = np.cumsum(quotes)
    feeds = ~quotes
    line: NDArray[np.intp] = np.cumsum(feeds) - feeds  # a line feed belongs to the line that it ends
    if not form.line_breaks:
        count = count - np.append(0, count[~quotes])[line]
    delimiter = ord(form.delimiter)
    at, odd = marks[quotes], count[quotes] % 2 == 1
    before = np.where(at > 0, text[at - 1], _NEWLINE)
    after = text[at + 1]  # a piece ends with a line feed
    opens = (before == delimiter) | (before == _NEWLINE) | (before == _QUOTE)
    closes = (after == delimiter) | (after == _NEWLINE) | (after == _RETURN) | (after == _QUOTE)
    wrong = ~np.where(odd, opens, closes)
    unclosed = ~quotes & (count % 2 == 1)
    if form.line_breaks:
        if wrong.any() or count[-1] % 2 == 1:
            raise DataError(_QUOTES.format(label))
        return
    if form.trim:
        wrong |= np.isin(before, _BLANK)
    suspect: NDArray[np.intp] = np.union1d(line[quotes][wrong], line[unclosed])
    if len(suspect):
        _check_lines(piece, np.append(-1, marks[~quotes]), suspect, label, form)


def _pairs_match(
    text: NDArray[np.uint8], marks: NDArray[np.intp], quotes: NDArray[np.bool_], form: FileFormat
) -> bool:
    """Return whether every other quote opens a cell and the next one closes it, on the same line: the usual file."""
    numbers = np.flatnonzero(quotes)
    opening, closing = numbers[::2], numbers[1::2]
    if len(opening) != len(closing) or not (form.line_breaks or bool((closing - opening == 1).all())):
        return False
    before = np.zeros(256, dtype=bool)
    before[[ord(form.delimiter), _NEWLINE, _QUOTE]] = True
    after = before.copy()
    after[_RETURN] = True
    opens = before[text[marks[opening] - 1]]  # the text ends with a line feed, which also precedes its start
    return bool(opens.all()) and bool(after[text[marks[closing] + 1]].all())


def _check_lines(
    piece: bytes, ends: NDArray[np.intp], suspect: NDArray[np.intp], label: str, form: FileFormat
) -> None:
    delimiter = re.escape(form.delimiter)
    plain = '(?![ \\t\xa0]+")' if form.trim else ""
    cell = rf'(?:"(?:[^"]|"")*"|{plain}[^"{delimiter}][^{delimiter}]*|)'
    record = re.compile(f"{cell}(?:{delimiter}{cell})*\r?".encode())
    for number in suspect:
        if record.fullmatch(piece, ends[number] + 1, ends[number + 1]) is None:
            raise DataError(_QUOTES.format(label) + (_TRIMMED if form.trim else "") + _BREAKS)
