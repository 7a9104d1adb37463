"""Files and folders of rows: CSV, Parquet and those of other programs, and whose rows they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.schema.schema import Schema, SchemaLike, as_schema
from privlearn.data.sources.addresses import StoredPath, TablePath, table_path
from privlearn.data.sources.csv_files import CsvRows, csv_header, read_csv_as_it_is, write_csv
from privlearn.data.sources.folders import check_alike, files_of, partition
from privlearn.data.sources.gaps import read_block
from privlearn.data.sources.identifiers import unclear_persons
from privlearn.data.sources.program_files import ENDINGS, is_program_file, read_program_file
from privlearn.data.sources.row_source import BLOCK, JoinedRows, Places, RowSource, TableRows, joined, taken
from privlearn.data.sources.steady import SteadyRows
from privlearn.data.sources.table import as_source, as_table, column_names, safely
from privlearn.data.sources.wanted import arrow_type, known_columns, wanted_columns
from privlearn.errors import DataError, SchemaError, did_you_mean
from privlearn.heavy import pa, parquet

MOST_SHOWN = 8


def refuse_unclear_persons(schema: Schema, names: Iterable[str]) -> None:
    """Refuse a table to learn from that may hold several rows per person while its schema does not say so.

    Only the columns' names are looked at, which are public, and no cell.
    """
    found = unclear_persons(schema, names)
    if found:
        shown = ", ".join(map(repr, found[:MOST_SHOWN]))
        raise SchemaError(
            f"the table has columns that are named like identifiers ({shown}), and the schema does not say what a "
            "person is: if somebody may have several rows, write in the schema which of them tells people apart, "
            f"`person: {found[0]}` for example (not one that numbers visits or codes), since people would be protected "
            "less than the certificate says; if every row is another person, write `one_row_per_person: true`"
        )


def open_table(data: Any, schema: Schema, columns: Sequence[str]) -> RowSource[pa.Table]:
    """Whatever holds rows to learn from, as a source, once its columns' names leave no doubt what a person is."""
    rows = as_source(data) if isinstance(data, Iterator) else data
    refuse_unclear_persons(schema, column_names(rows))
    return as_source(rows, columns)


NO_PARQUET = "{} is not a Parquet file that can be read: it may be cut off or damaged"


def read_table(path: str | TablePath, schema: SchemaLike | None = None) -> pa.Table:
    """Read a .csv (also .gz, .bz2 or .zst) or .parquet file, or a folder of such; workbooks, SPSS, Stata and SAS files
    with an extra.

    Parameters
    ----------
    path : path or address
        The file. A CSV file starts with a line of column names, unless the schema's ``file`` has them.
    schema : Schema, optional
        With it, only its columns (features, target, person; as far as the file has them) are read, with the
        types it states; without it, a CSV file's types are guessed by pyarrow.
    """
    if schema is None:
        return _read_whole(existing(path), PLAIN, as_text=False)
    return joined(open_rows(path, as_schema(schema)).blocks())


def open_records(path: str | TablePath, schema: SchemaLike) -> RowSource[pa.Table]:
    """The rows to learn from, once their columns' names leave no doubt what a person is; a block at a time.

    Parameters
    ----------
    path : path or address
        A file; a folder, with all files in it and below; or a pattern such as ``data/*.parquet``. Also in S3-compatible
        storage: ``s3://bucket/folder/``.
    schema : Schema
    """
    schema = as_schema(schema)
    reason = "of which the schema speaks: add it to the table, or remove it from the schema"
    check_columns(path, schema, known_columns(schema), reason)
    root, files = files_of(table_path(path))
    for file in files:
        refuse_unclear_persons(schema, [*names_in(file, schema.file), *partition(file, root)])
    return open_rows(path, schema)


def check_columns(path: str | TablePath, schema: Schema, wanted: Iterable[str], reason: str) -> None:
    """Refuse files that lack one of these columns; the reason says who asks for it and what to do."""
    root, files = files_of(table_path(path))
    for file in files:
        names = [*names_in(file, schema.file), *partition(file, root)]
        wanted_columns(names, schema, str(file))  # a file without names has none, and may not be quoted
        for name in wanted:
            if name not in names:
                raise DataError(f"{file} has no column {name!r}, {reason}{did_you_mean(name, names)}")


def names_in(file: TablePath, form: FileFormat = PLAIN) -> list[str]:
    """The names of a file's columns."""
    if is_parquet(file):
        return list(parquet_schema(file).names)
    if is_program_file(file):
        return list(read_program_file(file, form).column_names)
    return csv_header(file, str(file), form)


def read_cells(path: str | TablePath, form: FileFormat = PLAIN) -> pa.Table:
    """A file with every cell as it stands there: those of a CSV file as text, "007" and "NA" too."""
    return _read_whole(existing(path), form, as_text=True)


def _read_whole(path: TablePath, form: FileFormat, *, as_text: bool) -> pa.Table:
    if is_parquet(path):
        return _read_parquet(path)
    return (
        read_program_file(path, form)
        if is_program_file(path)
        else read_csv_as_it_is(path, form, as_text=as_text)
    )


def read_records(path: str | TablePath, schema: Schema) -> pa.Table:
    """The same, all at once."""
    return joined(open_records(path, schema).blocks())


def open_rows(path: str | TablePath, schema: Schema) -> RowSource[pa.Table]:
    """The rows of a file, or of all files of a folder in the order of their names, a block in memory at a time."""
    root, files = files_of(table_path(path))
    known = known_columns(schema)
    check_alike({file: _kinds(file, root, schema.file, known) for file in files})
    parts = [(str(file), _open_file(file, root, schema)) for file in files]
    return parts[0][1] if len(parts) == 1 else JoinedRows(parts)


class ParquetRows(RowSource["pa.Table"]):
    """A Parquet file, read a block at a time."""

    def __init__(self, path: TablePath, schema: Schema) -> None:
        self._path, self._form = path, schema.file
        self._columns = wanted_columns(parquet_schema(path).names, schema, str(path))
        self._problem = NO_PARQUET.format(path)
        self._rows = rows_of_parquet(path)

    def __len__(self) -> int:
        return self._rows

    def blocks(self) -> Iterator[pa.Table]:
        file = opened_parquet(self._path)
        if not self._rows:
            yield as_table(file.schema_arrow.empty_table(), self._columns)
        batches = file.iter_batches(batch_size=BLOCK, columns=self._columns)
        while (batch := safely(lambda: next(batches, None), self._problem)) is not None:
            yield read_block(batch, self._columns, self._form)

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)


class PartitionRows(RowSource["pa.Table"]):
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


def _open_file(file: TablePath, root: TablePath, schema: Schema) -> RowSource[pa.Table]:
    rows: RowSource[pa.Table]
    if is_program_file(file):
        table = read_program_file(file, schema.file)
        rows = TableRows(table.select(wanted_columns(table.column_names, schema, str(file))))
    else:
        rows = ParquetRows(file, schema) if is_parquet(file) else CsvRows(file, str(file), schema)
    common = partition(file, root)
    return SteadyRows(PartitionRows(rows, common, schema) if common else rows, file)


def _kinds(file: TablePath, root: TablePath, form: FileFormat, known: list[str]) -> dict[str, Any]:
    """The columns of a file that a schema speaks of, with their types where the file states them."""
    if is_parquet(file):
        found = {field.name: field.type for field in parquet_schema(file)}
    else:
        found = dict.fromkeys(names_in(file, form))
    found |= dict.fromkeys(partition(file, root))
    return {name: kind for name, kind in found.items() if name in known}


def existing(path: str | TablePath) -> TablePath:
    """The path of a file that is there."""
    path = table_path(path)
    if not path.is_file():
        raise DataError(f"{path} is not a file: check the path")
    return path


def write_table(table: pa.Table, path: str | Path, form: FileFormat = PLAIN) -> None:
    """Write a .csv or .parquet file."""
    if is_program_file(Path(path)):
        raise DataError(f"{path}: tables are written as .csv or .parquet")
    if is_parquet(Path(path)):
        parquet.write_table(table, path)
    else:
        write_csv([table], Path(path), form)


_COMPRESSED = (".gz", ".bz2", ".zst")
TEXT = (".csv", ".tsv", ".txt", ".data", ".dat")


def is_parquet(path: TablePath) -> bool:
    """True for Parquet, False for CSV and for files of other programs; any other name is refused."""
    name = path.name.lower()
    if name.endswith(".parquet"):
        return True
    if name.endswith(ENDINGS) or name.removesuffix(_compression(name)).endswith(TEXT):
        return False
    raise DataError(
        f"{path}: the name of a table must end in .csv, .csv.gz or .parquet, in {', '.join(TEXT[1:])} (text with "
        f"delimiters; {', '.join(_COMPRESSED)} too), or in {', '.join(ENDINGS)}"
    )


def is_compressed(path: Path) -> bool:
    """Whether a file's name says that its text is packed."""
    return _compression(path.name.lower()) != ""


def _compression(name: str) -> str:
    return next((ending for ending in _COMPRESSED if name.endswith(ending)), "")


def _read_parquet(path: TablePath) -> pa.Table:
    names = parquet_schema(path).names
    table = safely(opened_parquet(path).read, NO_PARQUET.format(path))
    return as_table(table, names)


def opened_parquet(path: TablePath) -> Any:
    """A Parquet file, to read its row groups."""
    place = path.open() if isinstance(path, StoredPath) else path
    return safely(lambda: parquet.ParquetFile(place), NO_PARQUET.format(path))


def parquet_schema(path: TablePath) -> pa.Schema:
    """The names and types of a Parquet file's columns."""
    with opened_parquet(path) as file:
        return file.schema_arrow


def rows_of_parquet(path: TablePath) -> int:
    """How many rows a Parquet file says that it has."""
    with opened_parquet(path) as file:
        return int(file.metadata.num_rows)
