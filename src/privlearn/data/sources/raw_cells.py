"""Read and write files with every cell as it is written, in blocks: for copying rows without interpreting them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.sources import table
from privlearn.data.sources.addresses import TablePath, table_path
from privlearn.data.sources.csv_files import has_fractions, numbers_as_text, read_csv_cells, write_csv
from privlearn.data.sources.directories import UnchangedFile, check_same_columns, list_files, partition
from privlearn.data.sources.files import NO_PARQUET, is_parquet, names_in, open_parquet, read_cells
from privlearn.data.sources.program_files import cell_text, is_program_file
from privlearn.data.sources.row_source import BLOCK, JoinedRows, RowSource, TableSource
from privlearn.errors import DataError


def open_cells(path: str | TablePath, form: FileFormat = PLAIN) -> RowSource[pa.Table]:
    """Return the rows of a file or directory, with all cells of CSV files as text, including "007" and "NA"."""
    root, files = list_files(table_path(path))
    parts = {file: RawFile(file, form, partition(file, root)) for file in files}
    check_same_columns({file: dict.fromkeys(rows.column_names) for file, rows in parts.items()})
    sources = [(str(file), UnchangedFile(rows, file)) for file, rows in parts.items()]
    return sources[0][1] if len(sources) == 1 else JoinedRows(sources)


class RawFile(TableSource):
    """All columns of one file, and those that names of its directories state for all its rows."""

    def __init__(self, path: TablePath, form: FileFormat, common: dict[str, str | None]) -> None:
        self._path, self._form, self._common = path, form, common
        self._names = names_in(path, form)

    @property
    def column_names(self) -> list[str]:
        return [*self._names, *self._common]

    def blocks(self) -> Iterator[pa.Table]:
        for block in self._pieces():
            for name, value in self._common.items():
                block = block.append_column(name, pa.repeat(pa.scalar(value, pa.string()), block.num_rows))
            yield block

    def _pieces(self) -> Iterator[pa.Table]:
        if is_parquet(self._path):
            return self._parquet()
        if is_program_file(self._path):
            return iter([read_cells(self._path, self._form)])
        return self._csv()

    def _parquet(self) -> Iterator[pa.Table]:
        problem = NO_PARQUET.format(self._path)
        file = open_parquet(self._path)
        yield table.as_table(file.schema_arrow.empty_table(), self._names)
        batches = file.iter_batches(batch_size=BLOCK)
        while (batch := table.safely(lambda: next(batches, None), problem)) is not None:
            yield table.as_table(batch, self._names)

    def _csv(self) -> Iterator[pa.Table]:
        table.refuse_repeated_names(self._names, self._names)
        yield pa.table([pa.array([], pa.string())] * len(self._names), names=self._names)
        yield from read_csv_cells(self._path, self._form, self._names)


def write_rows(rows: RowSource[pa.Table], path: str | Path, form: FileFormat = PLAIN) -> None:
    """Write a .csv file in the given format, or a .parquet file, in blocks."""
    path, blocks = Path(path), _in_one_type(_writable(block, form) for block in rows.blocks())
    try:
        if is_parquet(path):
            _write_parquet(blocks, path)
        else:
            write_csv(blocks, path, form)
    except BaseException:
        path.unlink(missing_ok=True)  # half of the rows could be taken for all of them
        raise


def _writable(block: pa.Table, form: FileFormat) -> pa.Table:
    """Return a block whose mixed columns are text: no file can store a column of numbers and text."""
    for index, name in enumerate(block.column_names):
        column = block.column(index)
        if table.is_mixed(column.type):
            if any((table.kinds_of(chunk) == table.UNREADABLE).any() for chunk in column.chunks):
                raise DataError(
                    f"column {name!r} has cells that cannot be written. Convert them to numbers, dates or text."
                )
            block = block.set_column(index, name, as_text(column, f"column {name!r}", form.decimal))
    return block


def text_of(block: pa.Table, decimal: str = ".") -> pa.Table:
    """Return a block as text; files may differ in how they store the same numbers."""
    return pa.table(
        {name: as_text(block.column(name), f"column {name!r}", decimal) for name in block.column_names}
    )


def as_text(column: Any, label: str, decimal: str = ".") -> Any:
    """Return cells of any type as text, numbers with this decimal sign."""
    if has_fractions(column.type):
        return numbers_as_text(column, decimal)
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        pass  # convert cell by cell
    problem = f"{label} holds cells that cannot be written as text. Convert them to numbers, dates or text."
    cells = table.safely(lambda: [_cell_as_text(cell, decimal) for cell in column.to_pylist()], problem)
    return pa.chunked_array([pa.array(cells, pa.string())])


def _cell_as_text(cell: Any, decimal: str) -> str | None:
    if cell is None:
        return None
    return cell_text(cell).replace(".", decimal) if isinstance(cell, float) else cell_text(cell)


def _write_parquet(blocks: Iterator[pa.Table], path: Path) -> None:
    first = next(blocks)
    with parquet.ParquetWriter(path, first.schema) as file:
        for block in chain([first], blocks):
            file.write_table(block)


def _in_one_type(blocks: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the blocks, in the types of the first one."""
    first = next(blocks)
    yield first
    problem = "the files differ in the types of their columns. Write each column in one type everywhere."
    for block in blocks:
        yield table.safely(partial(block.cast, first.schema), problem)
