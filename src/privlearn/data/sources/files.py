"""Files and folders of rows: CSV and Parquet, and whose rows they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from privlearn.data.schema.schema import Schema
from privlearn.data.sources.csv_files import CsvRows, csv_header, read_csv_as_it_is
from privlearn.data.sources.row_source import BLOCK, Places, RowSource, TableRows, joined, taken
from privlearn.data.sources.table import as_table, safely
from privlearn.data.sources.wanted import arrow_type, known_columns, wanted_columns
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


_NO_PARQUET = "{} is not a Parquet file that can be read"


def read_table(path: str | Path, schema: Schema | None = None) -> pa.Table:
    """Read a .csv, .csv.gz or .parquet file, or a folder of such.

    Parameters
    ----------
    path : path
        The file. A CSV file starts with a line of column names.
    schema : Schema, optional
        With it, only its columns (features, target, person; as far as the file has them) are read, with the
        types it states; without it, a CSV file's types are guessed by pyarrow.
    """
    if schema is None:
        path = existing(path)
        return _read_parquet(path) if is_parquet(path) else read_csv_as_it_is(path)
    return joined(open_rows(path, schema).blocks())


def open_records(path: str | Path, schema: Schema) -> RowSource[pa.Table]:
    """The rows to learn from, once their columns' names leave no doubt what a person is; a block at a time."""
    root = Path(path)
    for file in files_of(root):
        names = parquet_schema(file).names if is_parquet(file) else csv_header(file, str(file))
        # refuses a file without names, whose first line no message may quote
        names = [*names, *partition(file, root)]
        wanted_columns(names, schema, str(file))
        refuse_unclear_persons(schema, names)
    return open_rows(root, schema)


def read_cells(path: str | Path) -> pa.Table:
    """A file with every cell as it stands there: those of a CSV file as text, "007" and "NA" too."""
    path = existing(path)
    return _read_parquet(path) if is_parquet(path) else read_csv_as_it_is(path, as_text=True)


def read_records(path: str | Path, schema: Schema) -> pa.Table:
    """The same, all at once."""
    return joined(open_records(path, schema).blocks())


def open_rows(path: str | Path, schema: Schema) -> RowSource[pa.Table]:
    """The rows of a file, or of all files of a folder in the order of their names, a block in memory at a time."""
    root = Path(path)
    parts = [_open_file(file, root, schema) for file in files_of(root)]
    return parts[0] if len(parts) == 1 else JoinedRows(parts)


class ParquetRows(RowSource[pa.Table]):
    """A Parquet file, read a block at a time."""

    def __init__(self, path: Path, schema: Schema) -> None:
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
        return taken(self.blocks(), places)


class JoinedRows(RowSource[pa.Table]):
    """The rows of several sources, one after the other."""

    def __init__(self, parts: list[RowSource[pa.Table]]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def blocks(self) -> Iterator[pa.Table]:
        return chain.from_iterable(part.blocks() for part in self._parts)

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)


class PartitionRows(RowSource[pa.Table]):
    """A file in folders whose names say what all of its rows have in common: ``year=2024/ward=east/part.parquet``."""

    def __init__(self, rows: RowSource[pa.Table], common: Mapping[str, str], schema: Schema) -> None:
        self._rows = rows
        known = known_columns(schema)
        self._common = {name: _stated(name, value, schema) for name, value in common.items() if name in known}

    def __len__(self) -> int:
        return len(self._rows)

    def blocks(self) -> Iterator[pa.Table]:
        for block in self._rows.blocks():
            for name, value in self._common.items():
                block = block.append_column(name, pa.repeat(value, block.num_rows))
            yield block

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)


def _stated(name: str, text: str, schema: Schema) -> Any:
    """What the name of a folder says of a column."""
    return safely(
        lambda: pa.array([text]).cast(arrow_type(schema, name))[0],
        f"a folder's name does not say what the schema's column {name!r} is: correct one of them",
    )


def _open_file(file: Path, root: Path, schema: Schema) -> RowSource[pa.Table]:
    rows: RowSource[pa.Table]
    rows = ParquetRows(file, schema) if is_parquet(file) else CsvRows(file, str(file), schema)
    common = partition(file, root)
    return PartitionRows(rows, common, schema) if common else rows


def partition(file: Path, root: Path) -> dict[str, str]:
    """What the folders between a root and a file say of all its rows."""
    folders = file.relative_to(root).parts[:-1] if root != file else ()
    return dict(part.split("=", 1) for part in folders if "=" in part)


def files_of(path: Path) -> list[Path]:
    """The file, or all files of a folder that do not begin with a dot or an underscore, in the order of their names."""
    if not path.is_dir():
        return [existing(path)]
    found = sorted(file for file in path.rglob("*") if file.is_file() and file.name[0] not in "._")
    if not found:
        raise DataError(
            f"{path} is a folder without a table: it needs files that end in .csv, .csv.gz or .parquet"
        )
    for file in found:
        is_parquet(file)  # refuses other names
    return found


def existing(path: str | Path) -> Path:
    """The path of a file that is there."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path} is not a file: check the path")
    return path


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


def _read_parquet(path: Path) -> pa.Table:
    names = parquet_schema(path).names
    table = safely(lambda: parquet.ParquetFile(path).read(), _NO_PARQUET.format(path))
    return as_table(table, names)


def parquet_schema(path: Path) -> pa.Schema:
    """The names and types of a Parquet file's columns."""
    return safely(lambda: parquet.read_schema(path), _NO_PARQUET.format(path))
