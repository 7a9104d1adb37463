"""Files of rows: CSV and Parquet, and whose rows they are."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from privlearn.data.schema.columns import CategoryColumn, NumberColumn, OrdinalColumn, Target
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import BLOCK, Places, RowSource, TableRows
from privlearn.data.sources.table import as_table, safely
from privlearn.errors import DataError, SchemaError

_ALONE = "patient|person|subject|participant|respondent|customer|ssn|nhs|mrn|account|passport|iban"
_NUMBERED = (
    rf"({_ALONE}|client|member|user|employee|student|individual)s? ?(id|key|code|no|nr|nbr|num|number)"
)
_IDENTIFIER = re.compile(rf"(.+ )?(id|uuid|guid|{_NUMBERED}|({_ALONE})s?)")
MOST_SHOWN = 8
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


def looks_like_identifier(name: str) -> bool:
    """Whether a column is named like a number that people have: ``id``, ``patient_nbr``, ``customerId``, ``SSN``."""
    return _IDENTIFIER.fullmatch(" ".join(_BETWEEN_WORDS.split(name)).lower().strip()) is not None


def refuse_unclear_persons(schema: Schema, names: Iterable[str]) -> None:
    """Refuse a table to learn from that may hold several rows per person while its schema does not say so.

    Only the columns' names are looked at, which are public, and no cell.
    """
    if schema.person is not None or schema.one_row_per_person or schema.rows_per_person > 1:
        return
    known = {*schema.columns, schema.target.name if schema.target else None}
    found = sorted(
        (name for name in names if name not in known and looks_like_identifier(name)), key=_less_like_a_person
    )
    if found:
        shown = ", ".join(map(repr, found[:MOST_SHOWN]))
        raise SchemaError(
            f"the table has columns that are named like identifiers ({shown}), and the schema does not say what a "
            "person is: if somebody may have several rows, write in the schema which of them tells people apart, "
            f"`person: {found[0]}` for example (not one that numbers visits or codes), since people would be protected "
            "less than the certificate says; if every row is another person, write `one_row_per_person: true`"
        )


def _less_like_a_person(name: str) -> bool:
    """Sorts ``patient_nbr`` before ``encounter_id``."""
    return re.search(_ALONE, name.lower()) is None


_LONGEST_HEADER = 1 << 20  # bytes
Reader = Callable[[list[str], dict[str, Any]], pa.Table]
_NO_PARQUET = "{} is not a Parquet file that can be read"
_TYPES = {str: pa.string(), int: pa.float64(), bool: pa.bool_()}  # pandas writes integers with gaps as 3.0
_IN_WORDS = {pa.float64(): "numbers", pa.bool_(): "true or false", pa.string(): "text in UTF-8"}


def read_table(path: str | Path, schema: Schema | None = None) -> pa.Table:
    """Read a .csv, .csv.gz or .parquet file.

    Parameters
    ----------
    path : path
        The file. A CSV file starts with a line of column names.
    schema : Schema, optional
        With it, only its columns (features, target, person; as far as the file has them) are read, with the
        types it states; without it, a CSV file's types are guessed by pyarrow.
    """
    path = existing(path)
    return _read_parquet(path, schema) if is_parquet(path) else _read_csv(path, str(path), schema)


def read_cells(path: str | Path) -> pa.Table:
    """A file with every cell as it stands there: those of a CSV file as text, "007" and "NA" too."""
    path = existing(path)
    if is_parquet(path):
        return _read_parquet(path, None)
    names = csv_header(path, str(path))
    text = dict.fromkeys(names, pa.string())
    if _has_one_line(path):
        return pa.table({name: pa.array([], pa.string()) for name in names})
    read = _csv_reader(path, [], single=len(names) == 1)
    irregular = (
        f"{path} is not a regular CSV file in UTF-8: every line needs as many cells as the first has names"
    )
    return as_table(safely(partial(read, names, text), irregular))


def read_records(path: str | Path, schema: Schema) -> pa.Table:
    """The rows of a file to learn from: `read_table`, once its columns' names leave no doubt what a person is."""
    path = existing(path)
    names = parquet_schema(path).names if is_parquet(path) else csv_header(path, str(path))
    wanted_columns(
        names, schema, str(path)
    )  # refuses a file without names, whose first line no message may quote
    refuse_unclear_persons(schema, names)
    return read_table(path, schema)


def open_rows(path: str | Path, schema: Schema | None = None) -> RowSource[pa.Table]:
    """The same as `read_table` gives, but of a Parquet file no more than a block in memory at a time."""
    path = existing(path)
    return ParquetRows(path, schema) if is_parquet(path) else TableRows(read_table(path, schema))


class ParquetRows(RowSource[pa.Table]):
    """A Parquet file, read a block at a time."""

    def __init__(self, path: Path, schema: Schema | None) -> None:
        self._path = path
        self._columns = wanted_columns(parquet_schema(path).names, schema, str(path))
        self._problem = _NO_PARQUET.format(path)
        self._rows = int(safely(lambda: parquet.read_metadata(path).num_rows, self._problem))

    def __len__(self) -> int:
        return self._rows

    def blocks(self) -> Iterator[pa.Table]:
        file = safely(lambda: parquet.ParquetFile(self._path), self._problem)
        if not self._rows:
            yield as_table(file.schema_arrow.empty_table(), self._columns)
        batches = file.iter_batches(batch_size=BLOCK, columns=self._columns)
        while (batch := safely(lambda: next(batches, None), self._problem)) is not None:
            yield as_table(batch, self._columns)

    def take(self, places: Places) -> TableRows:
        order = np.argsort(places, kind="stable")
        wanted, parts, start = places[order], [], 0
        for block in self.blocks():
            first, last = np.searchsorted(wanted, (start, start + block.num_rows))
            parts.append(block.take(wanted[first:last] - start))
            start += block.num_rows
        return TableRows(pa.concat_tables(parts).take(np.argsort(order)))


def existing(path: str | Path) -> Path:
    """The path of a file that is there."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path} is not a file: check the path")
    return path


def parse_csv(content: bytes, schema: Schema) -> pa.Table:
    """The rows of a CSV text in UTF-8 that starts with a line of column names, with the types the schema states."""
    return _read_csv(content, "the text", schema)


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write a .csv or .parquet file."""
    if is_parquet(Path(path)):
        parquet.write_table(table, path)
    else:
        arrow_csv.write_csv(table, path)


def is_parquet(path: Path) -> bool:
    """True for Parquet, False for CSV; any other name is refused."""
    name = path.name.lower()
    if name.endswith(".parquet"):
        return True
    if name.endswith((".csv", ".csv.gz")):
        return False
    raise DataError(f"{path}: the name of a table must end in .csv, .csv.gz or .parquet")


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


def _has_one_line(source: Path | bytes) -> bool:
    """A header without even a line break: a table without rows, which Arrow takes for a broken file."""
    with _opened(source) as raw:
        return not raw.read(_LONGEST_HEADER).strip(b"\r\n").count(b"\n") and not raw.read(1)


def _read_parquet(path: Path, schema: Schema | None) -> pa.Table:
    wanted = wanted_columns(parquet_schema(path).names, schema, str(path))
    table = safely(lambda: parquet.ParquetFile(path).read(columns=wanted), _NO_PARQUET.format(path))
    return as_table(table, wanted)


def parquet_schema(path: Path) -> pa.Schema:
    """The names and types of a Parquet file's columns."""
    return safely(lambda: parquet.read_schema(path), _NO_PARQUET.format(path))


def _read_csv(source: Path | bytes, label: str, schema: Schema | None) -> pa.Table:
    names = csv_header(source, label)
    wanted = wanted_columns(names, schema, label)
    as_table(pa.table([[]] * len(names), names=names), wanted)  # refuses repeated names
    types = {} if schema is None else {name: arrow_type(schema, name) for name in wanted}
    if _has_one_line(source):
        return pa.table({name: pa.array([], types.get(name, pa.string())) for name in wanted})
    read = _csv_reader(source, _spellings_of_missing(schema), single=len(names) == 1)
    try:
        return read(wanted, types)
    except (pa.ArrowException, ValueError):
        pass  # its message quotes a cell
    _explain(read, wanted, types, label)
    raise DataError(f"{label} is not a CSV file that can be read")


def _explain(read: Reader, names: list[str], types: dict[str, Any], label: str) -> None:
    """Find out, cell by cell unquoted, why a file cannot be read: its lines or one of its columns."""
    bytes_only = dict.fromkeys(names, pa.binary())
    irregular = f"{label} is not a regular CSV file: every line needs as many cells as the first has names"
    safely(partial(read, names, bytes_only), irregular)
    for name, kind in types.items():
        problem = (
            f"{label}: column {name!r} holds cells that are not {_IN_WORDS[kind]}: correct them, or leave them empty "
            "and set missing: zero for it in the schema"
        )
        safely(partial(read, [name], types), problem)


def _csv_reader(source: Path | bytes, missing: list[str], *, single: bool) -> Reader:
    def read(columns: list[str], types: dict[str, Any]) -> pa.Table:
        options = arrow_csv.ConvertOptions(
            include_columns=columns,
            column_types={name: types[name] for name in columns if name in types},
            null_values=missing,
            strings_can_be_null=True,
        )
        opened = pa.BufferReader(source) if isinstance(source, bytes) else source
        # a line break inside a cell must not depend on where Arrow cuts the file into blocks
        # and in a file of one column an empty line is a record with a missing cell
        lines = arrow_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=not single)
        return arrow_csv.read_csv(opened, parse_options=lines, convert_options=options)

    return read


def wanted_columns(names: list[str], schema: Schema | None, source: str) -> list[str]:
    """Those of a source's columns that the schema speaks of: features, target, person."""
    if schema is None:
        return names
    roles = [*schema.columns, schema.target.name if schema.target else None, schema.person]
    wanted = [name for name in roles if name is not None and name in names]
    if not wanted:
        raise DataError(
            f"{source} has none of the schema's columns: does its first line name them, with commas between them?"
        )
    return wanted


def arrow_type(schema: Schema, name: str) -> Any:
    """What a column's cells are read as."""
    column = schema.target if schema.target and schema.target.name == name else schema.columns.get(name)
    if isinstance(column, NumberColumn) or (isinstance(column, Target) and column.bounds):
        return pa.float64()
    listed = _listed(column)
    return _TYPES[type(listed[0])] if listed else pa.string()


def _spellings_of_missing(schema: Schema | None) -> list[str]:
    """Arrow's spellings of a missing cell, except those that the schema lists as values (NA for Namibia)."""
    columns: Iterable[Any] = () if schema is None else (*schema.columns.values(), schema.target)
    values = {value for column in columns for value in _listed(column)}
    return [spelling for spelling in arrow_csv.ConvertOptions().null_values if spelling not in values]


def _listed(column: Any) -> tuple[Any, ...]:
    if isinstance(column, CategoryColumn | OrdinalColumn):
        return column.values
    return column.classes if isinstance(column, Target) else ()
