"""Where partitions come from: files that workers read themselves, or a Dask data frame's own tasks."""

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
from privlearn.data.sources.files import (
    PartitionRows,
    is_parquet,
    open_records,
    opened_parquet,
    parquet_schema,
    rows_of_parquet,
)
from privlearn.data.sources.folders import files_of, partition
from privlearn.data.sources.gaps import read_block
from privlearn.data.sources.row_source import BLOCK, Places, RowSource, TableRows, taken
from privlearn.data.sources.table import as_table, safely
from privlearn.data.sources.wanted import wanted_columns
from privlearn.errors import DataError
from privlearn.estimators.cluster.partition import Readable, Refusal, load, refusal_of

if TYPE_CHECKING:
    from distributed import Client, Future

FEWEST_ROWS = 1 << 18  # of a file that are worth a partition of their own
MOST_PARTS = 1 << 10  # of all files together, where files are few


@dataclass(frozen=True)
class FilePart(Readable):
    """A CSV file, or rows ``start`` to ``stop`` of a Parquet file, as a worker finds it."""

    root: TablePath
    file: TablePath
    start: int = 0
    stop: int = 0

    def rows(self, schema: Schema) -> RowSource[pa.Table]:
        file = self.file
        if not file.is_file():
            raise DataError(
                f"a worker cannot read {file}: every worker needs the folder under the same name (a shared file system)"
            )
        rows: RowSource[pa.Table]
        if is_parquet(file):
            rows = SomeParquetRows(file, schema, self.start, self.stop)
        else:
            rows = CsvRows(file, str(file), schema)
        common = partition(file, self.root)
        return PartitionRows(rows, common, schema) if common else rows


class SomeParquetRows(RowSource[pa.Table]):
    """Rows ``start`` to ``stop`` of a Parquet file; of its row groups only those that hold some are read."""

    def __init__(self, path: TablePath, schema: Schema, start: int, stop: int) -> None:
        self._path, self._form, self._start, self._stop = path, schema.file, start, stop
        self._columns = wanted_columns(parquet_schema(path).names, schema, str(path))
        self._problem = f"{path} is not a Parquet file that can be read"

    def __len__(self) -> int:
        return self._stop - self._start

    def blocks(self) -> Iterator[pa.Table]:
        file = opened_parquet(self._path)
        ends = np.cumsum([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)])
        if self._stop > (ends[-1] if len(ends) else 0):
            raise DataError(
                f"{self._path} has fewer rows than it had: rows must not change while a model learns"
            )
        groups = [
            group
            for group, end in enumerate(ends)
            if end > self._start and (ends[group - 1] if group else 0) < self._stop
        ]
        yield as_table(file.schema_arrow.empty_table(), self._columns)
        place = int(ends[groups[0] - 1]) if groups and groups[0] else 0
        batches = file.iter_batches(batch_size=BLOCK, row_groups=groups, columns=self._columns)
        while (batch := safely(lambda: next(batches, None), self._problem)) is not None:
            first, last = max(self._start - place, 0), min(self._stop - place, batch.num_rows)
            if first < last:
                yield read_block(batch.slice(first, last - first), self._columns, self._form)
            place += batch.num_rows

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)


def parts_of(path: TablePath, schema: Schema) -> list[FilePart] | Refusal:
    """On a worker: the parts that a file or folder is read in; they follow from the files alone."""
    return refusal_of(lambda: _parts_of(path, schema))  # type: ignore[no-any-return]


def _parts_of(place: str | TablePath, schema: Schema) -> list[FilePart]:
    path = table_path(place)
    if not (path.is_file() or path.is_dir()):
        raise DataError(
            f"a worker finds no {path}: every worker needs it under the same name (a shared file system)"
        )
    open_records(path, schema)  # refuses columns that do not fit, and doubts about persons
    root, files = files_of(path)
    lengths = [rows_of_parquet(file) if is_parquet(file) else 0 for file in files]
    most = max(FEWEST_ROWS, -(-sum(lengths) // MOST_PARTS))
    return [
        FilePart(root, file, start, min(start + most, length))
        for file, length in zip(files, lengths, strict=True)
        for start in range(0, max(length, 1), most)
    ]


class FileParts:
    """Implements `held.Parts`."""

    def __init__(self, parts: list[FilePart]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts)

    def start(self, client: Client, number: int, schema: Schema, secret: bytes) -> Future:
        key = f"privlearn-load-{uuid4().hex}"
        return client.submit(load, self._parts[number], schema, secret, __version__, key=key)


class FrameParts:
    """A Dask data frame's partitions, made by its own tasks. Implements `held.Parts`."""

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
