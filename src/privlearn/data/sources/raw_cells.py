"""Files with every cell as it stands there, a block at a time: for what copies rows and need not understand them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from privlearn.data.sources.csv_files import PIECE, csv_header, read_csv_as_it_is
from privlearn.data.sources.files import is_parquet, parquet_schema
from privlearn.data.sources.folders import check_alike, files_of, partition
from privlearn.data.sources.row_source import BLOCK, JoinedRows, Places, RowSource, TableRows, taken
from privlearn.data.sources.steady import SteadyRows
from privlearn.data.sources.table import as_table, safely
from privlearn.errors import DataError


def open_cells(path: str | Path) -> RowSource[pa.Table]:
    """A file, or all files of a folder: the cells of a CSV file as text, "007" and "NA" too."""
    root, files = files_of(Path(path))
    parts = [(str(file), RawFile(file, partition(file, root))) for file in files]
    check_alike(
        {file: dict.fromkeys(rows.column_names) for file, (_, rows) in zip(files, parts, strict=True)}
    )
    steady = [(name, SteadyRows(rows, file)) for file, (name, rows) in zip(files, parts, strict=True)]
    return steady[0][1] if len(steady) == 1 else JoinedRows(steady)


class RawFile(RowSource[pa.Table]):
    """All columns of one file, and what its folders' names say of all its rows."""

    def __init__(self, path: Path, common: dict[str, str]) -> None:
        self._path, self._common = path, common
        self._names = list(parquet_schema(path).names) if is_parquet(path) else csv_header(path, str(path))

    @property
    def column_names(self) -> list[str]:
        return [*self._names, *self._common]

    @cached_property
    def _rows(self) -> int:
        return sum(block.num_rows for block in self.blocks())

    def __len__(self) -> int:
        return self._rows

    def blocks(self) -> Iterator[pa.Table]:
        for block in self._parquet() if is_parquet(self._path) else self._csv():
            for name, value in self._common.items():
                block = block.append_column(name, pa.repeat(value, block.num_rows))
            yield block

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)

    def _parquet(self) -> Iterator[pa.Table]:
        problem = f"{self._path} is not a Parquet file that can be read: it may be cut off or damaged"
        file = safely(lambda: parquet.ParquetFile(self._path), problem)
        yield as_table(file.schema_arrow.empty_table(), self._names)
        batches = file.iter_batches(batch_size=BLOCK)
        while (batch := safely(lambda: next(batches, None), problem)) is not None:
            yield as_table(batch, self._names)

    def _csv(self) -> Iterator[pa.Table]:
        yield as_table(
            pa.table([pa.array([], pa.string())] * len(self._names), names=self._names), self._names
        )
        if self._path.stat().st_size <= PIECE:  # also the table without rows, and the one of one column
            yield read_csv_as_it_is(self._path, as_text=True)
            return
        problem = (
            f"{self._path} is not a regular CSV file: every line needs as many cells as the first has names"
        )
        types = dict.fromkeys(self._names, pa.string())
        batches = safely(
            lambda: arrow_csv.open_csv(
                self._path,
                read_options=arrow_csv.ReadOptions(block_size=PIECE),
                parse_options=arrow_csv.ParseOptions(
                    newlines_in_values=True, ignore_empty_lines=len(self._names) > 1
                ),
                convert_options=arrow_csv.ConvertOptions(column_types=types, null_values=[]),
            ),
            problem,
        )
        while (batch := safely(lambda: next(batches, None), problem)) is not None:
            yield pa.Table.from_batches([batch])


def write_rows(rows: RowSource[pa.Table], path: str | Path) -> None:
    """Write a .csv or .parquet file, a block at a time."""
    blocks = rows.blocks()
    first = next(blocks)
    kinds = first.schema
    writes = parquet.ParquetWriter if is_parquet(Path(path)) else arrow_csv.CSVWriter
    with writes(path, kinds) as file:
        file.write_table(first)
        for block in blocks:
            try:
                alike = block.cast(kinds)
            except (pa.ArrowException, ValueError):
                break  # its message may quote a cell
            file.write_table(alike)
        else:
            return
    raise DataError("the files differ in the types of their columns: write a column in one type everywhere")
