"""Open files and directories of rows: CSV, Parquet, workbooks and files of statistics programs.

`open_records` is for rows to learn from: it refuses tables whose columns leave open what a person is.
`open_rows` skips that check, for rows to predict. Both read only the schema's columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.schema.schema import Schema, SchemaLike, as_schema
from privlearn.data.sources.addresses import StoredPath, TablePath, table_path
from privlearn.data.sources.csv_files import CsvRows, csv_header, read_csv_as_it_is, write_csv
from privlearn.data.sources.directories import UnchangedFile, check_same_columns, list_files, partition
from privlearn.data.sources.program_files import ENDINGS, is_program_file, read_program_file
from privlearn.data.sources.read_columns import read_block, read_column
from privlearn.data.sources.row_source import (
    BLOCK,
    JoinedRows,
    RowSource,
    TableRows,
    TableSource,
    concatenate_tables,
)
from privlearn.data.sources.schema_columns import (
    columns_to_read,
    refuse_unclear_persons,
    rules_of,
    schema_columns,
)
from privlearn.data.sources.table import as_source, as_table, column_names, safely
from privlearn.errors import DataError, did_you_mean
from privlearn.imports import pa, parquet

NO_PARQUET = "{} cannot be read as Parquet. It may be cut off or damaged. Write it again."
_COMPRESSED = (".gz", ".bz2", ".zst")
TEXT = (".csv", ".tsv", ".txt", ".data", ".dat")


def open_table(data: Any, schema: Schema, columns: Sequence[str]) -> RowSource[pa.Table]:
    """Return a table in memory, or an iterator of tables, as a source of rows to learn from."""
    rows = as_source(data) if isinstance(data, Iterator) else data
    refuse_unclear_persons(schema, column_names(rows))
    return as_source(rows, columns)


def read_table(path: str | TablePath, schema: SchemaLike | None = None) -> pa.Table:
    """Read a CSV file (.csv; also .gz, .bz2 or .zst), a Parquet file, or a directory of such files.

    Workbooks, SPSS, Stata and SAS files need an extra: ``pip install 'privlearn[files]'``.

    Parameters
    ----------
    path : path or address
        The file. A CSV file starts with a line of column names, unless the schema's ``file`` states them.
    schema : Schema, optional
        With it, only its columns (features, target, person; those that the file has) are read, in the
        types it states; without it, pyarrow guesses the types of a CSV file.
    """
    if schema is None:
        return _read_whole(existing_file(path), PLAIN, as_text=False)
    return concatenate_tables(open_rows(path, as_schema(schema)).blocks())


def open_records(path: str | TablePath, schema: SchemaLike) -> RowSource[pa.Table]:
    """Return the rows to learn from, in blocks; refuse tables whose columns leave open what a person is.

    Parameters
    ----------
    path : path or address
        A file; a directory, with all files in it and below; or a pattern such as ``data/*.parquet``. Also in
        S3-compatible storage: ``s3://bucket/directory/``.
    schema : Schema
    """
    schema = as_schema(schema)
    reason = "which is in the schema. Add it to the table, or remove it from the schema"
    check_columns(path, schema, schema_columns(schema), reason)
    root, files = list_files(table_path(path))
    for file in files:
        refuse_unclear_persons(schema, [*names_in(file, schema.file), *partition(file, root)])
    return open_rows(path, schema)


def check_columns(path: str | TablePath, schema: Schema, required: Iterable[str], reason: str) -> None:
    """Refuse files without one of the required columns; the reason ends the message, with the advice."""
    root, files = list_files(table_path(path))
    for file in files:
        names = [*names_in(file, schema.file), *partition(file, root)]
        # Refuses files without a line of names first: messages about them must not quote their first line.
        columns_to_read(names, schema, str(file))
        for name in required:
            if name not in names:
                raise DataError(f"{file} has no column {name!r}, {reason}{did_you_mean(name, names)}")


def names_in(file: TablePath, form: FileFormat = PLAIN) -> list[str]:
    """Return the names of a file's columns."""
    if is_parquet(file):
        return list(parquet_schema(file).names)
    if is_program_file(file):
        return list(read_program_file(file, form).column_names)
    return csv_header(file, str(file), form)


def read_cells(path: str | TablePath, form: FileFormat = PLAIN) -> pa.Table:
    """Return all cells of a file as written; those of a CSV file as text, including "007" and "NA"."""
    return _read_whole(existing_file(path), form, as_text=True)


def _read_whole(path: TablePath, form: FileFormat, *, as_text: bool) -> pa.Table:
    if is_parquet(path):
        table = safely(open_parquet(path).read, NO_PARQUET.format(path))
        return as_table(table, parquet_schema(path).names)
    if is_program_file(path):
        return read_program_file(path, form)
    return read_csv_as_it_is(path, form, as_text=as_text)


def open_rows(path: str | TablePath, schema: Schema) -> RowSource[pa.Table]:
    """Return the rows of a file, or of all files of a directory in the order of their names, in blocks."""
    root, files = list_files(table_path(path))
    described = schema_columns(schema)
    check_same_columns({file: _column_types(file, root, schema.file, described) for file in files})
    parts = [(str(file), _open_file(file, root, schema)) for file in files]
    return parts[0][1] if len(parts) == 1 else JoinedRows(parts)


class ParquetRows(TableSource):
    """A Parquet file, read in blocks."""

    def __init__(self, path: TablePath, schema: Schema) -> None:
        self._path, self._schema = path, schema
        self._columns = columns_to_read(parquet_schema(path).names, schema, str(path))
        self._rows = rows_of_parquet(path)

    def __len__(self) -> int:
        return self._rows

    def blocks(self) -> Iterator[pa.Table]:
        file = open_parquet(self._path)
        if not self._rows:
            yield as_table(file.schema_arrow.empty_table(), self._columns)
        batches = file.iter_batches(batch_size=BLOCK, columns=self._columns)
        while (batch := safely(lambda: next(batches, None), NO_PARQUET.format(self._path))) is not None:
            yield read_block(batch, self._columns, self._schema)


class PartitionRows(TableSource):
    """A file whose directories state columns for all its rows: ``year=2024/ward=east/part.parquet``."""

    def __init__(self, rows: RowSource[pa.Table], cells: Mapping[str, str | None], schema: Schema) -> None:
        self._rows = rows
        described = schema_columns(schema)
        self._cells = {
            name: _read_stated(name, text, schema) for name, text in cells.items() if name in described
        }

    def __len__(self) -> int:
        return len(self._rows)

    def blocks(self) -> Iterator[pa.Table]:
        for block in self._rows.blocks():
            for name, cell in self._cells.items():
                if name in block.column_names:
                    raise DataError(f"column {name!r} is in the file and in a directory's name. Rename one.")
                block = block.append_column(name, pa.repeat(cell, block.num_rows))
            yield block


def _read_stated(name: str, text: str | None, schema: Schema) -> Any:
    """Return the cell that a directory's name states for a column."""
    cell = pa.chunked_array([pa.array([text], pa.string())])
    return read_column(cell, rules_of(schema, name), f"the name of a directory, for column {name!r},")[0]


def _open_file(file: TablePath, root: TablePath, schema: Schema) -> RowSource[pa.Table]:
    rows: RowSource[pa.Table]
    if is_program_file(file):
        table = read_program_file(file, schema.file)
        rows = TableRows(read_block(table, columns_to_read(table.column_names, schema, str(file)), schema))
    else:
        rows = ParquetRows(file, schema) if is_parquet(file) else CsvRows(file, str(file), schema)
    cells = partition(file, root)
    return UnchangedFile(PartitionRows(rows, cells, schema) if cells else rows, file)


def _column_types(file: TablePath, root: TablePath, form: FileFormat, described: list[str]) -> dict[str, Any]:
    """Return the schema's columns of a file, with their types if the file states them, else None."""
    if is_parquet(file):
        types = {field.name: field.type for field in parquet_schema(file)}
    else:
        types = dict.fromkeys(names_in(file, form))
    types |= dict.fromkeys(partition(file, root))
    return {name: kind for name, kind in types.items() if name in described}


def existing_file(path: str | TablePath) -> TablePath:
    """Return the path of a file; refuse a path without a file."""
    path = table_path(path)
    if not path.is_file():
        raise DataError(f"{path} is not a file. Check the path.")
    return path


def write_table(table: pa.Table, path: str | Path, form: FileFormat = PLAIN) -> None:
    """Write a .csv or .parquet file."""
    if is_program_file(Path(path)):
        raise DataError(f"{path}: tables are written as .csv or .parquet. Change the ending.")
    if is_parquet(Path(path)):
        parquet.write_table(table, path)
    else:
        write_csv([table], Path(path), form)


def is_parquet(path: TablePath) -> bool:
    """Return True for Parquet, False for text and files of other programs; refuse any other name."""
    name = path.name.lower()
    if name.endswith(".parquet"):
        return True
    if name.endswith(ENDINGS) or name.removesuffix(_compression(name)).endswith(TEXT):
        return False
    raise DataError(
        f"{path}: the name of a table must end in .csv, .csv.gz or .parquet, in {', '.join(TEXT[1:])} (text with "
        f"delimiters; also {', '.join(_COMPRESSED)}), or in {', '.join(ENDINGS)}"
    )


def is_compressed(path: Path) -> bool:
    """Return whether a file's name has the ending of compressed text."""
    return _compression(path.name.lower()) != ""


def _compression(name: str) -> str:
    return next((ending for ending in _COMPRESSED if name.endswith(ending)), "")


def open_parquet(path: TablePath) -> Any:
    """Open a Parquet file, to read its row groups."""
    file = path.open() if isinstance(path, StoredPath) else path
    return safely(lambda: parquet.ParquetFile(file, page_checksum_verification=True), NO_PARQUET.format(path))


def parquet_schema(path: TablePath) -> pa.Schema:
    """Return the names and types of a Parquet file's columns."""
    with open_parquet(path) as file:
        return file.schema_arrow


def rows_of_parquet(path: TablePath) -> int:
    """Return the number of rows that a Parquet file states."""
    with open_parquet(path) as file:
        return int(file.metadata.num_rows)
