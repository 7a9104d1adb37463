"""Files that are large, many, compressed, damaged or change: read in blocks, or refused with their name and no cell."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from privlearn import Guarantee, Ledger, PrivateLogisticRegression, describe, evaluate
from privlearn.data import (
    SchemaDraft,
    census_schema,
    open_records,
    simulated_census,
    spill_to,
    split,
    watch_passes,
    write_table,
)
from privlearn.data.encoding import packed_cells
from privlearn.data.sources import RowSource, concatenate_tables
from privlearn.errors import DataError, SchemaError
from privlearn.statistics.discovery import discover

ROWS = 2000
TABLE = simulated_census(ROWS, seed=7)
WANTED: dict[str, Any] = census_schema().to_dict()
WANTED["columns"] |= {
    "age": {"type": "number", "lower": "estimate", "upper": "estimate"},
    "occupation": {"type": "category", "values": "estimate"},
}
DRAFT = SchemaDraft.from_dict(WANTED)


def in_parts(folder: Path, parts: int = 3) -> Path:
    folder.mkdir()
    size = -(-ROWS // parts)
    for part in range(parts):
        write_table(TABLE.slice(part * size, size), folder / f"{part}.parquet")
    return folder


def compressed(path: Path, pack: Callable[[bytes], bytes]) -> Path:
    plain = path.parent / "plain.csv"
    write_table(TABLE, plain)
    path.write_bytes(pack(plain.read_bytes()))
    return path


def zstd(content: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(content, asbytes=True))


SOURCES: dict[str, Callable[[Path], Any]] = {
    "folder": lambda where: open_records(in_parts(where / "rows"), census_schema()),
    "pattern": lambda where: open_records(in_parts(where / "rows") / "*.parquet", census_schema()),
    "gz": lambda where: open_records(compressed(where / "rows.csv.gz", gzip.compress), census_schema()),
    "bz2": lambda where: open_records(compressed(where / "rows.csv.bz2", bz2.compress), census_schema()),
    "zst": lambda where: open_records(compressed(where / "rows.csv.zst", zstd), census_schema()),
    "reader": lambda _: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=700)),
    "iterator": lambda _: iter([TABLE.slice(0, 900), TABLE.slice(900)]),
}


@pytest.fixture(params=SOURCES)
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return SOURCES[request.param](tmp_path)


def test_discover_reads_blocks(rows: Any) -> None:
    promise: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "random_state": 3}
    assert discover(rows, DRAFT, **promise).to_dict() == discover(TABLE, DRAFT, **promise).to_dict()


def test_describe_reads_blocks(rows: Any) -> None:
    promise: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "random_state": 3}
    found, whole = (describe(each, census_schema(), **promise) for each in (rows, TABLE))
    for one, other in zip(found.tables, whole.tables, strict=True):
        np.testing.assert_array_equal(one, other)


def test_evaluate_reads_blocks(rows: Any) -> None:
    model = PrivateLogisticRegression(schema=census_schema(), epsilon=2.0, delta=1e-5, random_state=1)
    release = model.fit(TABLE).release_
    found, whole = (evaluate(release, each, epsilon=1.0, by="sex", random_state=2) for each in (rows, TABLE))
    for one, other in zip(found.tables, whole.tables, strict=True):
        np.testing.assert_array_equal(one, other)


def test_persons_are_told_apart_across_blocks(tmp_path: Path) -> None:
    draft = SchemaDraft.from_dict(WANTED | {"person": "who"})
    owned = TABLE.append_column("who", pa.array(np.arange(ROWS) % 700))
    write_table(owned, tmp_path / "rows.csv")
    promise: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-4, "random_state": 3}
    streamed = discover(open_records(tmp_path / "rows.csv", draft.stand_in), draft, **promise)
    assert streamed.private_bounds[0].records == 700
    assert streamed.to_dict() == discover(owned, draft, **promise).to_dict()


def test_a_source_is_split_into_sources(tmp_path: Path) -> None:
    rows = open_records(in_parts(tmp_path / "rows"), census_schema())
    parts, whole = (split(each, census_schema(), test=0.3, seed="autumn") for each in (rows, TABLE))
    assert isinstance(parts.train, RowSource)
    assert dataclasses.replace(parts.split, draw="") == dataclasses.replace(whole.split, draw="")
    for one, other in ((parts.train, whole.train), (parts.test, whole.test)):
        found = concatenate_tables(one.blocks())
        assert found.equals(other.table().select(found.column_names).cast(found.schema))


def test_predictions_of_a_source(tmp_path: Path) -> None:
    model = PrivateLogisticRegression(schema=census_schema(), epsilon=2.0, delta=1e-5, random_state=1)
    rows = open_records(in_parts(tmp_path / "rows"), census_schema())
    model.fit(rows)
    np.testing.assert_array_equal(model.predict(rows), model.predict(TABLE))


def test_passes_are_counted(tmp_path: Path) -> None:
    told = []
    rows = open_records(in_parts(tmp_path / "rows"), census_schema())
    with watch_passes(lambda passes: told.append((passes.number, passes.rows))):
        PrivateLogisticRegression(schema=census_schema(), epsilon=2.0, delta=1e-5, random_state=1).fit(rows)
    assert told[:3] == [(1, 667), (1, 1334), (1, 2000)]


def test_a_file_that_changes_between_two_passes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_table(TABLE, path)
    rows = open_records(path, census_schema())
    concatenate_tables(rows.blocks())
    write_table(TABLE.slice(1), path)
    with pytest.raises(DataError, match=r"rows\.parquet has changed since it was opened"):
        concatenate_tables(rows.blocks())


def test_a_file_that_changes_under_way_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privlearn.data.sources.files.BLOCK", 500)
    path = tmp_path / "rows.parquet"
    write_table(TABLE, path)
    blocks = open_records(path, census_schema()).blocks()
    next(blocks)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(DataError, match="has changed"):
        list(blocks)


def _cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100:2000] = bytes(1900)
    path.write_bytes(bytes(content))


def _without_hours(path: Path) -> None:
    write_table(TABLE.drop_columns(["hours"]), path)


def _age_as_text(path: Path) -> None:
    ages = pa.array([f"about {age}" for age in TABLE["age"].to_pylist()])
    write_table(TABLE.set_column(0, "age", ages), path)


def _unknown_sex(path: Path) -> None:
    write_table(TABLE.set_column(6, "sex", pa.array(["Xylophon-Quirk"] * ROWS)), path)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (_cut_off, "cut off or damaged"),
        (_damaged, "cut off or damaged"),
        (_without_hours, "has no column 'hours'"),
        (_age_as_text, "different types"),
        (_unknown_sex, "values that the schema does not list"),
    ],
)
def test_one_bad_file_of_a_folder_is_named_and_nothing_is_charged(
    spoil: Callable[[Path], None], problem: str, tmp_path: Path
) -> None:
    folder = in_parts(tmp_path / "rows")
    spoil(folder / "1.parquet")
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(3.0, 1e-4))
    learner = PrivateLogisticRegression(schema=census_schema(), epsilon=1.0, delta=1e-5, ledger=ledger)
    with pytest.raises(DataError, match=problem) as caught:
        learner.fit(open_records(folder, census_schema()))
    assert "1.parquet" in str(caught.value)
    assert "Xylophon" not in str(caught.value)
    assert ledger.statement().entries == ()


def test_a_full_disk_is_said_and_nothing_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_cells, "MEMORY_LIMIT", 1000)
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(3.0, 1e-4))
    learner = PrivateLogisticRegression(schema=census_schema(), epsilon=1.0, delta=1e-5, ledger=ledger)
    (tmp_path / "cache").mkdir()
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing then fails, as it does on a full disk
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
        with spill_to(tmp_path / "cache"), pytest.raises(DataError, match="Name a directory with more space"):
            learner.fit(TABLE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert ledger.statement().entries == ()
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_is_stopped_after_the_charge_says_so(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(3.0, 1e-4))

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    learner = PrivateLogisticRegression(
        schema=census_schema(), epsilon=1.0, delta=1e-5, ledger=ledger, progress=stop
    )
    with pytest.raises(KeyboardInterrupt) as caught:
        learner.fit(TABLE)
    assert "stays reserved in the ledger" in caught.value.__notes__[0]
    assert len(ledger.statement().entries) == 1


def test_an_iterator_of_tables_is_asked_what_a_person_is() -> None:
    owned = TABLE.append_column("patient_id", pa.array(np.arange(ROWS)))
    learner = PrivateLogisticRegression(schema=census_schema(), epsilon=1.0, delta=1e-5)
    with pytest.raises(SchemaError, match="patient_id"):
        learner.fit(iter([owned]))


def test_a_damaged_file_is_read_by_nobody(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_table(TABLE, path)
    assert parquet.read_metadata(path).num_rows == ROWS
    _cut_off(path)
    with pytest.raises(DataError, match=r"rows\.parquet cannot be read as Parquet"):
        open_records(path, census_schema())
