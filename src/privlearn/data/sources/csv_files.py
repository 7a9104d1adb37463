"""CSV files, whole or in pieces; what is wrong with one is said without quoting a cell."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.addresses import StoredPath, TablePath
from privlearn.data.sources.row_source import Places, RowSource, TableRows, joined, taken
from privlearn.data.sources.table import as_table, safely
from privlearn.data.sources.wanted import arrow_type, spellings_of_missing, wanted_columns
from privlearn.errors import DataError
from privlearn.heavy import arrow_csv, pa, pc

PIECE = 1 << 23  # bytes of text that are read at once
_LONGEST_HEADER = 1 << 20  # characters
_CUT_OFF = "{} cannot be read to its end: it may be cut off or damaged"
IRREGULAR = "{} is not a regular CSV file: every line needs as many cells as the first has names"
_IN_WORDS = {"double": "numbers", "bool": "true or false", "string": "text in {encoding}"}
_INSTEAD = (
    "correct them, or leave them empty and set missing: zero for it in the schema. A code for a gap, such as ?, is "
    'stated there too: file: {missing: ["?"]}'
)
_OTHER_ENCODING = (
    ". If the whole file is written otherwise, state how: file: {encoding: cp1252}, as of Windows, or utf-16"
)


class CsvRows(RowSource["pa.Table"]):
    """A CSV file or text under a schema, read in pieces.

    Parameters
    ----------
    source : path or bytes
        It starts with a line of column names, unless the schema's file format has them; a file's name may end in .gz,
        .bz2 or .zst.
    label : str
        What messages call it.
    schema : Schema
        Its ``file`` says what separates cells, and how numbers and gaps are written.
    """

    def __init__(self, source: TablePath | bytes, label: str, schema: Schema) -> None:
        self._source, self._label, self._form = source, label, schema.file
        self._names = names = csv_header(source, label, schema.file)
        self.columns = wanted_columns(names, schema, label)
        as_table(pa.table([[]] * len(names), names=names), self.columns)  # refuses repeated names
        self._types = {name: arrow_type(schema, name) for name in self.columns}
        self._gaps = [*spellings_of_missing(schema), *schema.file.missing]

    @cached_property
    def _rows(self) -> int:
        return sum(block.num_rows for block in self.blocks())

    def __len__(self) -> int:
        return self._rows

    def blocks(self) -> Iterator[pa.Table]:
        if not self._form.names and _has_one_line(self._source, self._label, self._form):
            yield pa.table({name: pa.array([], kind) for name, kind in self._types.items()})
            return
        tables = self._tables(self._types)
        while (table := self._next(tables)) is not None:
            yield table

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)

    def in_memory(self) -> pa.Table:
        """All rows at once."""
        return joined(self.blocks())

    def _tables(self, types: dict[str, Any]) -> Iterator[pa.Table]:
        """Blocks whose columns have these types; Arrow reads as text what has blanks or gaps of its own."""
        as_text = {name for name, kind in types.items() if self._has_own_cells(name, kind)}
        options = arrow_csv.ConvertOptions(
            include_columns=list(types),
            column_types={name: pa.string() if name in as_text else kind for name, kind in types.items()},
            null_values=self._gaps,
            strings_can_be_null=True,
            decimal_point=self._form.decimal,
        )
        batches = arrow_csv.open_csv(
            _for_arrow(self._source),
            read_options=_read_options(self._form, self._names, block_size=PIECE),
            parse_options=_lines(self._form, self._names),
            convert_options=options,
        )
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for name in as_text:
                place = table.column_names.index(name)
                table = table.set_column(place, name, self._cells(name, table.column(place), types[name]))
            yield table

    def _has_own_cells(self, name: str, kind: Any) -> bool:
        return kind != pa.binary() and (self._form.trim or name in self._form.missing_in)

    def _cells(self, name: str, column: Any, kind: Any) -> Any:
        """A column that was read as text, without blanks and codes for gaps, in its type."""
        if self._form.trim:
            column = pc.utf8_trim_whitespace(column)
        gaps = pa.array([*self._gaps, *self._form.codes_of(name)], pa.string())
        column = pc.if_else(pc.is_in(column, gaps), pa.scalar(None, pa.string()), column)
        if kind == pa.float64() and self._form.decimal == ",":
            column = pc.replace_substring(column, ",", ".")
        return column.cast(kind)

    def _next(self, tables: Iterator[pa.Table]) -> pa.Table | None:
        try:
            return next(tables, None)
        except OSError:
            raise DataError(_CUT_OFF.format(self._label)) from None
        except (pa.ArrowException, ValueError):
            pass  # its message quotes a cell
        self._explain()
        raise DataError(f"{self._label} is not a CSV file that can be read")

    def _explain(self) -> None:
        """Find out, cell by cell unquoted, why a file cannot be read: its text, its lines or one of its columns."""
        refuse_other_encoding(self._source, self._label, self._form)
        self._try(dict.fromkeys(self._types, pa.binary()), IRREGULAR.format(self._label))
        for name, kind in self._types.items():
            wanted = _IN_WORDS[str(kind)].format(encoding=self._form.encoding.upper())
            problem = f"{self._label}: column {name!r} holds cells that are not {wanted}: {_INSTEAD}"
            problem += _OTHER_ENCODING if kind == pa.string() else ""
            self._try({name: kind}, problem)

    def _try(self, types: dict[str, Any], problem: str) -> None:
        safely(lambda: sum(table.num_rows for table in self._tables(types)), problem)


def parse_csv(content: bytes, schema: Schema) -> pa.Table:
    """The rows of a CSV text in UTF-8 that starts with a line of column names, with the types the schema states."""
    return CsvRows(content, "the text", schema.model_copy(update={"file": PLAIN})).in_memory()


def read_csv_as_it_is(path: TablePath, form: FileFormat = PLAIN, *, as_text: bool = False) -> pa.Table:
    """A CSV file without a schema: all columns, as text or of the types that pyarrow takes them for."""
    names = csv_header(path, str(path), form)
    as_table(pa.table([[]] * len(names), names=names), names)
    if not form.names and _has_one_line(path, str(path), form):
        return pa.table({name: pa.array([], pa.string()) for name in names})
    options = cells_as_text(names) if as_text else types_to_guess(form)
    return safely(lambda: opened_csv(path, form, names, options).read_all(), IRREGULAR.format(path))


def cells_as_text(names: list[str]) -> Any:
    """Every cell as it stands there, "007" and "NA" too."""
    return arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[])


def types_to_guess(form: FileFormat) -> Any:
    """How pyarrow tells types and gaps by itself."""
    codes = [*arrow_csv.ConvertOptions().null_values, *form.missing]
    gaps = [*codes, *(f" {code}" for code in codes)] if form.trim else codes
    return arrow_csv.ConvertOptions(null_values=gaps, strings_can_be_null=True, decimal_point=form.decimal)


def opened_csv(path: TablePath, form: FileFormat, names: list[str], options: Any) -> Any:
    """A file that pyarrow reads in pieces; what it raises may quote a cell."""
    return arrow_csv.open_csv(
        _for_arrow(path),
        read_options=_read_options(form, names),
        parse_options=_lines(form, names),
        convert_options=options,
    )


def write_csv(tables: Iterable[pa.Table], path: Path, form: FileFormat = PLAIN) -> None:
    """Write a file as its format says, from tables of the same columns: the same schema reads it."""
    encoder = codecs.getincrementalencoder(_encoding(form))()
    problem = f"{path}: some cells cannot be written in {form.encoding}: state another encoding in the schema"
    with path.open("wb") as file:
        for number, table in enumerate(tables):
            text = io.BytesIO()
            has_names = number == 0 and not form.names
            options = arrow_csv.WriteOptions(delimiter=form.delimiter, include_header=has_names)
            arrow_csv.write_csv(table, text, options)
            file.write(safely(partial(encoder.encode, text.getvalue().decode("utf-8")), problem))


def _read_options(form: FileFormat, names: list[str], **others: Any) -> Any:
    """Arrow reads names itself, unless there are none, or some with blanks around them."""
    if form.names or form.trim:
        others |= {"column_names": names, "skip_rows": 0 if form.names else 1}
    return arrow_csv.ReadOptions(encoding=_encoding(form), **others)


def _encoding(form: FileFormat) -> str:
    """Arrow's own way to read UTF-8 is the quickest, and it skips a byte order mark."""
    return (
        "utf8" if form.encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig") else form.encoding
    )


def _lines(form: FileFormat, names: list[str]) -> Any:
    """Line breaks inside cells do not depend on where Arrow cuts; an empty line of one column is a missing cell."""
    return arrow_csv.ParseOptions(
        delimiter=form.delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1
    )


def csv_header(source: TablePath | bytes, label: str, form: FileFormat = PLAIN) -> list[str]:
    """The column names of a CSV file or text: those of its format, or else its first line."""
    if form.names:
        return list(form.names)

    def first_line() -> list[str]:
        with _text(source, form) as text:
            names = next(csv.reader(text, delimiter=form.delimiter, skipinitialspace=form.trim), [])
        "".join(names).encode("utf-8")
        return [name.strip() for name in names] if form.trim else names

    problem = f"{label} is not a CSV file in {form.encoding.upper()}: convert it, or state its encoding in the schema, "
    names = safely(first_line, f"{problem}file: {{encoding: cp1252}} or utf-16 for example")
    if not names:
        raise DataError(f"{label} is empty: its first line must name the columns")
    return names


def _text(source: TablePath | bytes, form: FileFormat) -> io.TextIOWrapper:
    """The decoded text; it is decoded ahead, so bytes that do not fit may only count against the line they are in."""
    encoding = "utf-8-sig" if _encoding(form) == "utf8" else form.encoding
    return io.TextIOWrapper(opened_bytes(source), encoding=encoding, errors="surrogateescape", newline="")


def opened_bytes(source: TablePath | bytes) -> Any:
    """A stream of the bytes, unpacked if the name says that they are packed."""
    if isinstance(source, StoredPath):
        return source.stream()
    return pa.input_stream(str(source), "detect") if isinstance(source, Path) else io.BytesIO(source)


def _for_arrow(source: TablePath | bytes) -> Any:
    """What Arrow opens by itself, or reads."""
    if isinstance(source, StoredPath):
        return source.stream()
    return pa.BufferReader(source) if isinstance(source, bytes) else source


def refuse_other_encoding(source: TablePath | bytes, label: str, form: FileFormat) -> None:
    """Refuse a file that is not in the encoding that its format states."""
    if _encoding(form) == "utf8":
        return  # a column that is not says so

    def decoded() -> None:
        with io.TextIOWrapper(opened_bytes(source), encoding=form.encoding, newline="") as text:
            while text.read(PIECE):
                pass

    safely(
        decoded,
        f"{label} is not in {form.encoding}: state its encoding in the schema, file: {{encoding: ...}}",
    )


def _has_one_line(source: TablePath | bytes, label: str, form: FileFormat) -> bool:
    """A header without even a line break: a table without rows, which Arrow takes for a broken file."""

    def one_line() -> bool:
        with _text(source, form) as text:
            return not text.read(_LONGEST_HEADER).strip("\r\n").count("\n") and not text.read(1)

    return safely(one_line, _CUT_OFF.format(label))
