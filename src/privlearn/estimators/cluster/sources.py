"""Division of a table into partitions: files that workers read themselves, or a Dask data frame's partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from privlearn._version import __version__
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.addresses import TablePath, table_path
from privlearn.data.sources.csv_files import CsvRows
from privlearn.data.sources.directories import list_files, partition
from privlearn.data.sources.files import (
    PartitionRows,
    is_parquet,
    open_parquet,
    open_records,
    parquet_schema,
    rows_of_parquet,
)
from privlearn.data.sources.read_columns import read_block
from privlearn.data.sources.row_source import BLOCK, RowSource, TableSource
from privlearn.data.sources.schema_columns import columns_to_read
from privlearn.data.sources.table import safely
from privlearn.errors import DataError
from privlearn.estimators.cluster.partition import Readable, Refusal, load, or_refusal

if TYPE_CHECKING:
    from distributed import Client, Future

MIN_ROWS = 1 << 18  # per partition of a file, unless the file has fewer
MAX_PARTS = 1 << 10  # in total, unless there are more files


@dataclass(frozen=True)
class FilePart(Readable):
    """A CSV file, or rows ``start`` to ``stop`` of a Parquet file, as a worker reads it."""

    root: TablePath
    file: TablePath
    start: int = 0
    stop: int = 0

    def rows(self, schema: Schema) -> RowSource[pa.Table]:
        file = self.file
        if not file.is_file():
            raise DataError(
                f"a worker cannot read {file}: every worker needs it under the same name (a shared file system)"
            )
        rows: RowSource[pa.Table]
        if is_parquet(file):
            rows = SomeParquetRows(file, schema, self.start, self.stop)
        else:
            rows = CsvRows(file, str(file), schema)
        common = partition(file, self.root)
        return PartitionRows(rows, common, schema) if common else rows


class SomeParquetRows(TableSource):
    """Rows ``start`` to ``stop`` of a Parquet file; only row groups with such rows are read."""

    def __init__(self, path: TablePath, schema: Schema, start: int, stop: int) -> None:
        self._path, self._schema, self._start, self._stop = path, schema, start, stop
        self._columns = columns_to_read(parquet_schema(path).names, schema, str(path))
        self._problem = f"{path} is not a Parquet file that can be read"

    def __len__(self) -> int:
        return self._stop - self._start

    def blocks(self) -> Iterator[pa.Table]:
        file = open_parquet(self._path)
        ends = np.cumsum([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)])
        if self._stop > (ends[-1] if len(ends) else 0):
            raise DataError(
                f"{self._path} has fewer rows than before: rows must not change while a model learns"
            )
        groups = [
            group
            for group, end in enumerate(ends)
            if end > self._start and (ends[group - 1] if group else 0) < self._stop
        ]
        yield read_block(file.schema_arrow.empty_table(), self._columns, self._schema)
        offset = int(ends[groups[0] - 1]) if groups and groups[0] else 0
        batches = file.iter_batches(batch_size=BLOCK, row_groups=groups, columns=self._columns)
        while (batch := safely(lambda: next(batches, None), self._problem)) is not None:
            first, last = max(self._start - offset, 0), min(self._stop - offset, batch.num_rows)
            if first < last:
                yield read_block(batch.slice(first, last - first), self._columns, self._schema)
            offset += batch.num_rows


def parts_of(path: TablePath, schema: Schema) -> list[FilePart] | Refusal:
    """Return, on a worker, the parts in which a file or directory is read; they depend on the files alone."""
    return or_refusal(lambda: _parts_of(path, schema))  # type: ignore[no-any-return]


def _parts_of(location: str | TablePath, schema: Schema) -> list[FilePart]:
    path = table_path(location)
    if not (path.is_file() or path.is_dir()):
        raise DataError(
            f"a worker finds no {path}: every worker needs it under the same name (a shared file system)"
        )
    open_records(path, schema)  # refuses columns that do not fit, and undeclared persons
    root, files = list_files(path)
    lengths = [rows_of_parquet(file) if is_parquet(file) else 0 for file in files]
    rows_per_part = max(MIN_ROWS, -(-sum(lengths) // MAX_PARTS))
    return [
        FilePart(root, file, start, min(start + rows_per_part, length))
        for file, length in zip(files, lengths, strict=True)
        for start in range(0, max(length, 1), rows_per_part)
    ]


class FileParts:
    """Files that workers read themselves. Implements `remote_rows.PartSource`."""

    def __init__(self, parts: list[FilePart]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts)

    def start(self, client: Client, number: int, schema: Schema, secret: bytes) -> Future:
        key = f"privlearn-load-{uuid4().hex}"
        return client.submit(load, self._parts[number], schema, secret, __version__, key=key)


class FrameParts:
    """A Dask data frame's partitions, loaded by its own tasks. Implements `remote_rows.PartSource`."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._loads: list[Any] = []

    def __len__(self) -> int:
        return int(self._frame.npartitions)

    def start(self, client: Client, number: int, schema: Schema, secret: bytes) -> Future:
        if not self._loads:
            loaded = self._frame.map_partitions(
                load, schema, secret, __version__, meta=("partition", object), enforce_metadata=False
            )
            self._loads = loaded.to_delayed()
        return client.compute(self._loads[number])
