"""CSV files, whole or in pieces; what is wrong with one is said without quoting a cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import Places, RowSource, TableRows, joined, taken
from privlearn.data.sources.table import as_table, safely
from privlearn.data.sources.wanted import arrow_type, spellings_of_missing, wanted_columns
from privlearn.errors import DataError

PIECE = 1 << 23  # bytes of text that are read at once
_LONGEST_HEADER = 1 << 20  # bytes
_CUT_OFF = "{} cannot be read to its end: it may be cut off or damaged"
_IN_WORDS = {pa.float64(): "numbers", pa.bool_(): "true or false", pa.string(): "text in UTF-8"}


class CsvRows(RowSource[pa.Table]):
    """A CSV file or text under a schema, read in pieces.

    Parameters
    ----------
    source : path or bytes
        It starts with a line of column names; a file's name may end in .gz.
    label : str
        What messages call it.
    schema : Schema
    """

    def __init__(self, source: Path | bytes, label: str, schema: Schema) -> None:
        self._source, self._label = source, label
        names = csv_header(source, label)
        self.columns = wanted_columns(names, schema, label)
        as_table(pa.table([[]] * len(names), names=names), self.columns)  # refuses repeated names
        self._types = {name: arrow_type(schema, name) for name in self.columns}
        self._options = {"null_values": spellings_of_missing(schema), "strings_can_be_null": True}
        self._lines = _lines(single=len(names) == 1)

    @cached_property
    def _rows(self) -> int:
        return sum(block.num_rows for block in self.blocks())

    def __len__(self) -> int:
        return self._rows

    def blocks(self) -> Iterator[pa.Table]:
        if _has_one_line(self._source, self._label):
            yield pa.table({name: pa.array([], kind) for name, kind in self._types.items()})
            return
        batches = self._batches(self._types)
        while (batch := self._next(batches)) is not None:
            yield pa.Table.from_batches([batch])

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)

    def in_memory(self) -> pa.Table:
        """All rows at once."""
        return joined(self.blocks())

    def _batches(self, types: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        options = arrow_csv.ConvertOptions(include_columns=list(types), column_types=types, **self._options)
        opened = pa.BufferReader(self._source) if isinstance(self._source, bytes) else self._source
        yield from arrow_csv.open_csv(
            opened,
            read_options=arrow_csv.ReadOptions(block_size=PIECE),
            parse_options=self._lines,
            convert_options=options,
        )

    def _next(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        try:
            return next(batches, None)
        except OSError:
            raise DataError(_CUT_OFF.format(self._label)) from None
        except (pa.ArrowException, ValueError):
            pass  # its message quotes a cell
        self._explain()
        raise DataError(f"{self._label} is not a CSV file that can be read")

    def _explain(self) -> None:
        """Find out, cell by cell unquoted, why a file cannot be read: its lines or one of its columns."""
        irregular = "is not a regular CSV file: every line needs as many cells as the first has names"
        self._try(dict.fromkeys(self._types, pa.binary()), f"{self._label} {irregular}")
        for name, kind in self._types.items():
            problem = (
                f"{self._label}: column {name!r} holds cells that are not {_IN_WORDS[kind]}: correct them, or leave "
                "them empty and set missing: zero for it in the schema"
            )
            self._try({name: kind}, problem)

    def _try(self, types: dict[str, Any], problem: str) -> None:
        safely(lambda: sum(batch.num_rows for batch in self._batches(types)), problem)


def parse_csv(content: bytes, schema: Schema) -> pa.Table:
    """The rows of a CSV text in UTF-8 that starts with a line of column names, with the types the schema states."""
    return CsvRows(content, "the text", schema).in_memory()


def read_csv_as_it_is(path: Path, *, as_text: bool = False) -> pa.Table:
    """A CSV file without a schema: all columns, as text or of the types that pyarrow takes them for."""
    names = csv_header(path, str(path))
    as_table(pa.table([[]] * len(names), names=names), names)
    if _has_one_line(path, str(path)):
        return pa.table({name: pa.array([], pa.string()) for name in names})
    options = arrow_csv.ConvertOptions(strings_can_be_null=True)
    if as_text:
        options = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[])
    return safely(
        lambda: arrow_csv.read_csv(path, parse_options=_lines(len(names) == 1), convert_options=options),
        f"{path} is not a regular CSV file: every line needs as many cells as the first has names",
    )


def _lines(single: bool) -> Any:
    """Line breaks inside cells do not depend on where Arrow cuts; an empty line of one column is a missing cell."""
    return arrow_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=not single)


def csv_header(source: Path | bytes, label: str) -> list[str]:
    """The column names of a CSV file or text: its first line."""

    def first_line() -> list[str]:
        with _opened(source) as raw:
            # the reader decodes ahead: bytes that are not UTF-8 may only count against the line they are in
            text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape", newline="")
            names = next(csv.reader(text), [])
        "".join(names).encode("utf-8")
        return names

    names = safely(first_line, f"{label} is not a CSV file in UTF-8: convert it")
    if not names:
        raise DataError(f"{label} is empty: its first line must name the columns")
    return names


def _opened(source: Path | bytes) -> Any:
    return pa.input_stream(str(source), "detect") if isinstance(source, Path) else io.BytesIO(source)


def _has_one_line(source: Path | bytes, label: str) -> bool:
    """A header without even a line break: a table without rows, which Arrow takes for a broken file."""

    def one_line() -> bool:
        with _opened(source) as raw:
            return not raw.read(_LONGEST_HEADER).strip(b"\r\n").count(b"\n") and not raw.read(1)

    return safely(one_line, _CUT_OFF.format(label))
