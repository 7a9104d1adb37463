"""Files with every cell as it stands there, a block at a time: for what copies rows and need not understand them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.sources.addresses import StoredPath, TablePath, table_path
from privlearn.data.sources.csv_files import IRREGULAR, PIECE, cells_as_text, opened_csv, write_csv
from privlearn.data.sources.files import NO_PARQUET, is_parquet, names_in, opened_parquet, read_cells
from privlearn.data.sources.folders import check_alike, files_of, partition
from privlearn.data.sources.program_files import is_program_file, spelled
from privlearn.data.sources.row_source import BLOCK, JoinedRows, Places, RowSource, TableRows, taken
from privlearn.data.sources.steady import SteadyRows
from privlearn.data.sources.table import UNREADABLE, as_table, is_mixed, kinds_of, safely
from privlearn.errors import DataError


def open_cells(path: str | TablePath, form: FileFormat = PLAIN) -> RowSource[pa.Table]:
    """A file, or all files of a folder: the cells of a CSV file as text, "007" and "NA" too."""
    root, files = files_of(table_path(path))
    parts = {file: RawFile(file, form, partition(file, root)) for file in files}
    check_alike({file: dict.fromkeys(rows.column_names) for file, rows in parts.items()})
    steady = [(str(file), SteadyRows(rows, file)) for file, rows in parts.items()]
    return steady[0][1] if len(steady) == 1 else JoinedRows(steady)


class RawFile(RowSource[pa.Table]):
    """All columns of one file, and what its folders' names say of all its rows."""

    def __init__(self, path: TablePath, form: FileFormat, common: dict[str, str]) -> None:
        self._path, self._form, self._common = path, form, common
        self._names = names_in(path, form)

    @property
    def column_names(self) -> list[str]:
        return [*self._names, *self._common]

    @cached_property
    def _rows(self) -> int:
        return sum(block.num_rows for block in self.blocks())

    def __len__(self) -> int:
        return self._rows

    def blocks(self) -> Iterator[pa.Table]:
        for block in self._pieces():
            for name, value in self._common.items():
                block = block.append_column(name, pa.repeat(value, block.num_rows))
            yield block

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)

    def _pieces(self) -> Iterator[pa.Table]:
        if is_parquet(self._path):
            return self._parquet()
        if is_program_file(self._path) or _size(self._path) <= PIECE:
            return iter([read_cells(self._path, self._form)])
        return self._csv()

    def _parquet(self) -> Iterator[pa.Table]:
        problem = NO_PARQUET.format(self._path)
        file = opened_parquet(self._path)
        yield as_table(file.schema_arrow.empty_table(), self._names)
        batches = file.iter_batches(batch_size=BLOCK)
        while (batch := safely(lambda: next(batches, None), problem)) is not None:
            yield as_table(batch, self._names)

    def _csv(self) -> Iterator[pa.Table]:
        names, problem = self._names, IRREGULAR.format(self._path)
        nothing = pa.table([pa.array([], pa.string())] * len(names), names=names)
        yield as_table(nothing, names)  # refuses repeated names
        batches = safely(lambda: opened_csv(self._path, self._form, names, cells_as_text(names)), problem)
        while (batch := safely(lambda: next(batches, None), problem)) is not None:
            yield pa.Table.from_batches([batch])


def _size(path: TablePath) -> int:
    """Bytes, packed or not."""
    return path.size() if isinstance(path, StoredPath) else path.stat().st_size


def write_rows(rows: RowSource[pa.Table], path: str | Path, form: FileFormat = PLAIN) -> None:
    """Write a .csv file as its format says, or a .parquet file; a block at a time."""
    path, blocks = Path(path), _alike(map(_writable, rows.blocks()))
    try:
        if is_parquet(path):
            _write_parquet(blocks, path)
        else:
            write_csv(blocks, path, form)
    except BaseException:
        path.unlink(missing_ok=True)  # half of the rows would pass for all of them
        raise


def _writable(block: pa.Table) -> pa.Table:
    """No file keeps a workbook's column of numbers and text: it is written as text."""
    for place, name in enumerate(block.column_names):
        column = block.column(place)
        if is_mixed(column.type):
            if any((kinds_of(chunk) == UNREADABLE).any() for chunk in column.chunks):
                raise DataError(
                    f"column {name!r} has cells that cannot be written: make them numbers, dates or text"
                )
            block = block.set_column(place, name, as_text(column))
    return block


def text_of(block: pa.Table) -> pa.Table:
    """Files may differ in how they write the same numbers, which is no problem."""
    return pa.table({name: as_text(block.column(name)) for name in block.column_names})


def as_text(column: Any) -> Any:
    """Cells of any type as text; what cannot be cast is spelled out one by one."""
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        cells = (None if cell is None else spelled(cell) for cell in column.to_pylist())
        return pa.chunked_array([pa.array(cells, pa.string())])


def _write_parquet(blocks: Iterator[pa.Table], path: Path) -> None:
    first = next(blocks)
    with parquet.ParquetWriter(path, first.schema) as file:
        for block in chain([first], blocks):
            file.write_table(block)


def _alike(blocks: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The blocks, in the types of the first one."""
    first = next(blocks)
    yield first
    problem = "the files differ in the types of their columns: write a column in one type everywhere"
    for block in blocks:
        yield safely(partial(block.cast, first.schema), problem)
