"""Sources of rows: whatever holds them, blocks in order are all of them, and encoding asks for one block at a time."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import sparse

from privlearn.data import (
    ArrayEncoder,
    Schema,
    SchemaEncoder,
    census_schema,
    open_records,
    simulated_census,
    write_table,
)
from privlearn.data.encoding import PackedCells
from privlearn.data.sources import ArrayRows, EncodedRows, RowSource, TableRows, concatenate_tables, open_rows
from privlearn.errors import DataError, SchemaError
from privlearn.features import as_matrix

ROWS = 23
TABLE = simulated_census(ROWS, seed=1)
DENSE = np.random.default_rng(0).normal(size=(ROWS, 3))
PLACES = np.array([22, 0, 7, 8, 7, 1])
TEXT = Schema.from_dict({"name": "notes", "columns": {"note": {"type": "text", "features": 16}}})
NOTES = pa.table({"note": [f"word{row % 5} other{row}" for row in range(ROWS)]})


def parquet(folder: Path) -> RowSource[Any]:
    write_table(TABLE, folder / "rows.parquet")
    return open_rows(folder / "rows.parquet", census_schema())


def csv(folder: Path) -> RowSource[Any]:
    write_table(TABLE, folder / "rows.csv")
    return open_rows(folder / "rows.csv", census_schema())


def folder(where: Path) -> RowSource[Any]:
    """Partitions by sex, Parquet and CSV beside each other."""
    for number, sex in enumerate(("female", "male")):
        part = where / "rows" / f"sex={sex}"
        part.mkdir(parents=True, exist_ok=True)
        rows = TABLE.filter(pc.equal(TABLE["sex"], sex)).drop_columns(["sex"])
        write_table(rows, part / ("part.parquet" if number else "part.csv"))
    (where / "rows" / "_SUCCESS").touch()
    return open_rows(where / "rows", census_schema())


def packed(_: Path) -> RowSource[Any]:
    cells = PackedCells()
    for block in TableRows(TABLE).blocks():
        cells.add(SchemaEncoder(census_schema()).cells(block))
    return EncodedRows(cells, SchemaEncoder(census_schema()).expand, 74, is_sparse=False)


SOURCES: dict[str, Callable[[Path], RowSource[Any]]] = {
    "table": lambda _: TableRows(TABLE),
    "parquet": parquet,
    "csv": csv,
    "folder": folder,
    "packed": packed,
    "dense": lambda _: ArrayRows(DENSE),
    "sparse": lambda _: ArrayRows(sparse.csr_array(DENSE)),
    "encoded table": lambda _: SchemaEncoder(census_schema()).encode_lazily(TABLE),
    "encoded text": lambda _: SchemaEncoder(TEXT).encode_lazily(NOTES),
    "encoded file": lambda folder: SchemaEncoder(census_schema()).encode_lazily(parquet(folder)),
    "encoded dense": lambda _: ArrayEncoder(2.0, 3).encode_lazily(DENSE),
    "encoded sparse": lambda _: ArrayEncoder(2.0, 3).encode_lazily(sparse.csr_array(DENSE)),
}
every_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    make_blocks_small(monkeypatch)


def make_blocks_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("row_source", "files"):
        monkeypatch.setattr(f"privlearn.data.sources.{module}.BLOCK", 7)
    monkeypatch.setattr("privlearn.data.encoding.packed_cells.BLOCK", 7)
    monkeypatch.setattr("privlearn.data.sources.csv_lines.PIECE", 400)  # bytes: some seven rows


def cells(block: Any) -> list[Any]:
    if isinstance(block, pa.Table):
        return block.to_pylist()
    return as_matrix(block).tolist()


def rows_of(source: RowSource[Any]) -> list[Any]:
    return [row for block in source.blocks() for row in cells(block)]


@every_source
def test_blocks_in_order_are_all_rows(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows_of(make(tmp_path))
    make_blocks_small(monkeypatch)
    source = make(tmp_path)
    assert len(source) == ROWS
    sizes = [len(cells(block)) for block in source.blocks()]
    assert len(sizes) > 1
    assert max(sizes) <= 9
    assert rows_of(source) == rows_of(source) == whole


@every_source
@pytest.mark.usefixtures("small_blocks")
def test_rows_at_some_places(make: Any, tmp_path: Path) -> None:
    source = make(tmp_path)
    taken = source.take(PLACES)
    whole = rows_of(source)
    assert len(taken) == len(PLACES)
    assert rows_of(taken) == [whole[place] for place in PLACES]


@pytest.mark.parametrize("make", [SOURCES[name] for name in SOURCES if name.startswith("encoded")])
def test_encoding_does_not_depend_on_the_blocks(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = make(tmp_path).in_memory()
    monkeypatch.setattr("privlearn.data.sources.row_source.BLOCK", 7)
    after = make(tmp_path).in_memory()
    assert type(before) is type(after)
    assert cells(before) == cells(after)


def test_parts_of_packed_cells_are_all_rows_in_order() -> None:
    cells = PackedCells()
    cells.add({"column": np.arange(10_000.0)})
    rows = EncodedRows(cells, lambda part: part["column"][:, np.newaxis], 1, False)
    parts = list(rows.map_blocks(lambda place, part: (place, np.asarray(part))))
    assert [number for _, part in parts for number in part[:, 0]] == list(range(10_000))
    assert all(part[0, 0] == place.start and part[-1, 0] == place.stop - 1 for place, part in parts)


@pytest.mark.usefixtures("small_blocks")
def test_a_row_is_encoded_when_its_block_is_asked_for() -> None:
    ages = {"name": "ages", "columns": {"age": {"type": "number", "lower": 0, "upper": 99}}}
    blocks = SchemaEncoder(Schema.from_dict(ages)).encode_lazily({"age": [*range(20), None, 1]}).blocks()
    next(blocks)
    next(blocks)
    with pytest.raises(DataError, match="missing cells"):
        next(blocks)


@pytest.mark.parametrize("name", ["none.parquet", "none.csv"])
def test_a_file_without_rows_is_one_empty_block(name: str, tmp_path: Path) -> None:
    write_table(TABLE.slice(0, 0), tmp_path / name)
    source = open_rows(tmp_path / name, census_schema())
    assert [block.num_rows for block in source.blocks()] == [0]
    with pytest.raises(DataError, match="no rows"):
        SchemaEncoder(census_schema()).encode(source)


def test_a_file_that_is_cut_off_names_no_cell(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_table(TABLE, path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        open_rows(path, census_schema())


def test_a_folder_says_which_file_is_bad(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "rows" / "sex=male" / "part.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(DataError, match=r"sex=male.part.parquet cannot be read as Parquet"):
        open_records(tmp_path / "rows", census_schema())


@pytest.mark.parametrize("names", [[], ["notes.md"]])
def test_a_folder_without_tables(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=r"must end in .csv|without tables"):
        open_records(tmp_path, census_schema())


def test_identifiers_in_the_names_of_folders_are_seen(tmp_path: Path) -> None:
    part = tmp_path / "rows" / "patient_id=7"
    part.mkdir(parents=True)
    write_table(TABLE, part / "part.parquet")
    with pytest.raises(SchemaError, match="patient_id"):
        open_records(tmp_path / "rows", census_schema())


def test_folders_that_say_what_nobody_asked(tmp_path: Path) -> None:
    part = tmp_path / "rows" / "year=2024"
    part.mkdir(parents=True)
    write_table(TABLE, part / "part.parquet")
    assert rows_of(open_records(tmp_path / "rows", census_schema())) == rows_of(TableRows(TABLE))


def test_a_folders_name_that_is_no_number_is_not_quoted(tmp_path: Path) -> None:
    part = tmp_path / "rows" / "age=secretcell"
    part.mkdir(parents=True)
    write_table(TABLE.drop_columns(["age"]), part / "part.parquet")
    with pytest.raises(DataError, match="'age'") as caught:
        open_records(tmp_path / "rows", census_schema())
    assert "secretcell" not in str(caught.value)


def test_files_of_different_types_quote_no_cell() -> None:
    texts, numbers = (pa.table({"x": cells}) for cells in (["secretcell"], [2**53 + 1]))
    with pytest.raises(DataError, match="differ in the types"):
        concatenate_tables([texts, numbers])


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    write_table(simulated_census(20_000, seed=2), tmp_path / "rows.csv")
    packed_file = gzip.compress((tmp_path / "rows.csv").read_bytes())
    (tmp_path / "rows.csv.gz").write_bytes(packed_file[: len(packed_file) // 2])
    with pytest.raises(DataError, match=r"rows.csv.gz .*(cut off|not a regular)"):
        rows_of(open_records(tmp_path / "rows.csv.gz", census_schema()))
