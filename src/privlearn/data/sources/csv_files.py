"""Read and write CSV files, in pieces of some megabytes; no error message quotes a cell."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from privlearn.data.schema.cell_grammar import BLANKS, GAPS, CellRules, parse_number
from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.addresses import TablePath
from privlearn.data.sources.csv_lines import check_text, is_utf8, not_encoded, record_pieces
from privlearn.data.sources.read_columns import plain_column, read_column, type_name
from privlearn.data.sources.row_source import TableSource, concatenate_tables
from privlearn.data.sources.schema_columns import columns_to_read, rules_of
from privlearn.data.sources.table import is_text, refuse_repeated_names, safely
from privlearn.errors import DataError
from privlearn.imports import arrow_csv, pa, pc

_MAX_HEADER = 1 << 20  # bytes
_FIRST_READ = 1 << 16  # bytes
IRREGULAR = "{} is not a regular CSV file. Every line must have as many cells as the first line has names."


class CsvRows(TableSource):
    """A CSV file or text under a schema, read in pieces; ``label`` is its name in messages.

    It starts with a line of column names, unless the schema's ``file`` states them. Names of files may end in .gz, .bz2
    or .zst.
    """

    def __init__(self, source: TablePath | bytes, label: str, schema: Schema) -> None:
        self._source, self._label, self._form = source, label, schema.file
        self._names = names = csv_header(source, label, schema.file)
        self.columns = columns_to_read(names, schema, label)
        refuse_repeated_names(names, self.columns)
        self._rules = {name: rules_of(schema, name) for name in self.columns}

    def blocks(self) -> Iterator[pa.Table]:
        empty = True
        for piece in csv_pieces(self._source, self._label, self._form):
            empty = False
            yield self._read(piece)
        if empty:
            nothing = {name: pa.chunked_array([pa.array([], pa.string())]) for name in self._rules}
            yield self._apply_rules(pa.table(nothing))

    def in_memory(self) -> pa.Table:
        """Return all rows at once."""
        return concatenate_tables(self.blocks())

    def _read(self, piece: bytes) -> pa.Table:
        """Return the records of a piece; if Arrow's fast parser of numbers refuses it, all cells are parsed as text."""
        types = {name: _parser_type(rules) for name, rules in self._rules.items()}
        table = self._parse(piece, types)
        if table is None or any(_has_nan(table.column(name)) for name in types):
            table = self._parse(piece, dict.fromkeys(types, pa.string()))
        if table is None:
            raise DataError(IRREGULAR.format(self._label))
        return self._apply_rules(table)

    def _apply_rules(self, table: pa.Table) -> pa.Table:
        label = f"{self._label}: column {{!r}}"
        read = {
            name: read_column(table.column(name), rules, label.format(name))
            for name, rules in self._rules.items()
        }
        return pa.table(read)

    def _parse(self, piece: bytes, types: dict[str, Any]) -> pa.Table | None:
        """Return a piece in these types; None if Arrow refuses it, since its message may quote a cell."""
        texts = {text for text in (*GAPS, *self._form.missing) if parse_number(text) is None}
        options = arrow_csv.ConvertOptions(
            include_columns=list(types),
            column_types=types,
            null_values=sorted(texts),
            strings_can_be_null=False,
            decimal_point=self._form.decimal,
        )
        try:
            return parse_piece(piece, self._form, self._names, options)
        except (pa.ArrowException, ValueError):
            return None


def _parser_type(rules: CellRules) -> Any:
    """Return a type that Arrow may parse a column as: one for which it accepts nothing that the grammar refuses."""
    codes_are_numbers = all(parse_number(code) is not None for code in rules.codes)
    if rules.kind in ("number", "whole") and codes_are_numbers:
        return pa.float64()
    return pa.bool_() if rules.kind == "truth" and not rules.codes else pa.string()


def _has_nan(column: Any) -> bool:
    """Return whether Arrow read a text as NaN: the grammar has fewer spellings."""
    return pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py() is True


def csv_pieces(source: TablePath | bytes, label: str, form: FileFormat) -> Iterator[bytes]:
    """Yield the records of a file as text, some megabytes at a time, without the line of names."""
    has_names = not form.names
    for piece in record_pieces(source, label, form):
        if has_names:
            piece, has_names = piece[_first_record(piece, form) :], False
        if piece:
            check_text(piece, label, form)
            yield piece


def _first_record(piece: bytes, form: FileFormat) -> int:
    """Return where the first record ends."""
    end = piece.find(b"\n") + 1
    while form.line_breaks and piece.count(b'"', 0, end) % 2:
        end = piece.find(b"\n", end) + 1
    return end


def parse_piece(piece: bytes, form: FileFormat, names: list[str], options: Any) -> pa.Table:
    """Return the records of a piece; errors of Arrow may quote a cell.

    With one column, an empty line is a missing cell; with several columns it is skipped.
    """
    if piece.startswith(codecs.BOM_UTF8):
        piece = codecs.BOM_UTF8 + piece  # Arrow drops one, and that of the file was removed before
    table = arrow_csv.read_csv(
        pa.BufferReader(piece),
        read_options=arrow_csv.ReadOptions(column_names=names, block_size=max(len(piece), 1)),
        parse_options=arrow_csv.ParseOptions(
            delimiter=form.delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1
        ),
        convert_options=options,
    )
    if not form.line_breaks and table.num_rows != _lines_in(piece, len(names) > 1):
        raise ValueError("a record is not a line")
    return table


def _lines_in(piece: bytes, skips_empty: bool) -> int:
    lines = piece.count(b"\n")
    if not skips_empty or (b"\n\n" not in piece and b"\n\r\n" not in piece and piece[:1] not in b"\r\n"):
        return lines
    return sum(line not in (b"", b"\r") for line in piece.split(b"\n")[:-1])


def parse_csv(content: bytes, schema: Schema, form: FileFormat | None = None) -> pa.Table:
    """Return the rows of a CSV text in a format, by default UTF-8 with commas, decimal points and a line of names."""
    form = request_format(schema) if form is None else form
    return CsvRows(content, "the text", schema.model_copy(update={"file": form})).in_memory()


def request_format(schema: Schema) -> FileFormat:
    """Return the format of requests: of the schema's own, codes for gaps, ``trim`` and ``dates`` apply.

    These describe cells, and apply to tables in memory too.
    """
    own = schema.file
    return FileFormat(missing=own.missing, missing_in=own.missing_in, trim=own.trim, dates=own.dates)


def upload_format(content: bytes, schema: Schema) -> FileFormat:
    """Public: return the data set's own format if a file's first line has the columns in it, else that of requests."""
    own = schema.file.model_copy(update={"names": (), "sheet": None})
    first = content.partition(b"\n")[0]
    try:
        names = next(csv.reader([first.decode(own.encoding)], delimiter=own.delimiter), [])
    except (UnicodeDecodeError, csv.Error):
        return request_format(schema)
    plain = {name.removeprefix("\ufeff").strip(BLANKS) for name in names}
    return own if {name.strip(BLANKS) for name in schema.columns} <= plain else request_format(schema)


def read_csv_as_it_is(path: TablePath, form: FileFormat = PLAIN, *, as_text: bool = False) -> pa.Table:
    """Return all columns of a CSV file, as text or in the types that pyarrow guesses."""
    names = csv_header(path, str(path), form)
    refuse_repeated_names(names, names)
    options = text_options(names) if as_text else guess_options(form)
    text = b"".join(csv_pieces(path, str(path), form))
    if not text:
        return pa.table({name: pa.array([], pa.string()) for name in names})
    return safely(lambda: parse_piece(text, form, names, options), IRREGULAR.format(path))


def guess_types(path: TablePath, form: FileFormat, names: list[str]) -> list[Any]:
    """Return the types that pyarrow guesses from the file's first records."""
    first = next(csv_pieces(path, str(path), form), None)
    if first is None:
        return [pa.null()] * len(names)
    options = guess_options(form)
    options.timestamp_parsers = [arrow_csv.ISO8601, *_DAY_PARSERS.get(form.dates, ())]
    return list(parse_piece(first, form, names, options).schema.types)


_DAY_PARSERS = {"dd.mm.yyyy": ["%d.%m.%Y"], "dd/mm/yyyy": ["%d/%m/%Y"], "mm/dd/yyyy": ["%m/%d/%Y"]}


def read_csv_cells(path: TablePath, form: FileFormat, names: list[str]) -> Iterator[pa.Table]:
    """Yield a file with every cell as text, a piece at a time."""
    options, problem = text_options(names), IRREGULAR.format(path)
    for piece in csv_pieces(path, str(path), form):
        yield safely(partial(parse_piece, piece, form, names, options), problem)


def text_options(names: list[str]) -> Any:
    """Return options that keep every cell as it is written, including "007" and "NA"."""
    return arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[])


def guess_options(form: FileFormat) -> Any:
    """Return options with which pyarrow guesses types and gaps."""
    codes = [*arrow_csv.ConvertOptions().null_values, *form.missing]
    gaps = [*codes, *(f" {code}" for code in codes)] if form.trim else codes
    return arrow_csv.ConvertOptions(null_values=gaps, strings_can_be_null=True, decimal_point=form.decimal)


def write_csv(tables: Iterable[pa.Table], path: Path, form: FileFormat = PLAIN) -> None:
    """Write tables with the same columns to a file in this format; the same schema reads it."""
    encoder = codecs.getincrementalencoder("utf-8" if is_utf8(form) else form.encoding)()
    problem = f"{path}: some cells cannot be written in {form.encoding}. State another encoding."
    with path.open("wb") as file:
        for number, table in enumerate(tables):
            has_names = number == 0 and not form.names
            text = _csv_text(_plain_table(table, form), form, has_names)
            file.write(safely(partial(encoder.encode, text), problem))


def _csv_text(table: pa.Table, form: FileFormat, has_names: bool) -> str:
    text = io.BytesIO()
    options = arrow_csv.WriteOptions(delimiter=form.delimiter, include_header=has_names)
    problem = "the table has a column that a .csv file cannot store. Write .parquet, or drop the column."
    safely(lambda: arrow_csv.write_csv(table, text, options), problem)
    return text.getvalue().decode("utf-8")


def _plain_table(table: pa.Table, form: FileFormat) -> pa.Table:
    """Return a table that a file of this format can store, numbers with its decimal sign; refuse other tables."""
    for index, name in enumerate(table.column_names):
        column, label = table.column(index), f"column {name!r}"
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_nested(kind) or "binary" in str(kind):
            raise DataError(
                f"{label} holds {type_name(kind)}, which a .csv file cannot store. Write .parquet, or drop the column."
            )
        if has_fractions(kind) and (form.decimal != "." or kind != pa.float64()):
            table = table.set_column(index, name, numbers_as_text(plain_column(column), form.decimal))
        elif is_text(kind):
            _check_line_ends(plain_column(column), form, label)
    return table


def _check_line_ends(text: Any, form: FileFormat, label: str) -> None:
    """Refuse cells whose line breaks the reader would refuse."""
    pattern = r"\r([^\n]|\z)" if form.line_breaks else r"[\r\n]"
    if not pa.types.is_null(text.type) and pc.any(pc.match_substring_regex(text, pattern)).as_py():
        instead = "" if form.line_breaks else ", or state file: {line_breaks: true} in the schema"
        raise DataError(
            f"{label} holds line breaks or carriage returns, which a .csv file of this format cannot store. Write a "
            f".parquet file{instead}"
        )


def has_fractions(kind: Any) -> bool:
    """Return whether numbers of an Arrow type are written with a decimal sign."""
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def numbers_as_text(column: Any, decimal: str) -> Any:
    """Return floats or decimals as text that is read as the same number; single precision is widened first."""
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
    return pc.replace_substring(column.cast(pa.string()), ".", decimal)


def csv_header(source: TablePath | bytes, label: str, form: FileFormat = PLAIN) -> list[str]:
    """Return the column names of a CSV file or text: those of its format, else those of its first line."""
    if form.names:
        return list(form.names)
    pieces = record_pieces(source, label, form, _FIRST_READ, _MAX_HEADER)
    first = next(pieces, b"")
    pieces.close()  # type: ignore[attr-defined]

    def names_in() -> list[str]:
        text = first[: _first_record(first, form)].decode("utf-8")
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=form.delimiter), [])

    names = safely(names_in, not_encoded(label, form))
    if not names:
        raise DataError(f"{label} is empty. Its first line must name the columns.")
    return [name.strip(BLANKS) for name in names] if form.trim else names
