"""Cells as they stand in a file, block by block, in every dialect that a schema can state."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privlearn.data import Schema, open_records, split, write_table
from privlearn.data.schema import FileFormat
from privlearn.data.sources import concatenate_tables, csv_lines, open_cells, write_rows
from privlearn.data.sources.files import read_cells
from privlearn.errors import DataError

ROWS = 100_000
DIALECTS: list[dict[str, Any]] = [
    {},
    {"delimiter": ";", "decimal": ",", "encoding": "latin-1", "missing": ["-9"]},
    {"delimiter": "tab", "names": ["size", "town", "ill"]},
    {"encoding": "utf-16", "delimiter": "|"},
    {"trim": True, "missing_in": {"size": ["?"]}},
]


def schema_of(dialect: dict[str, Any]) -> Schema:
    return Schema.from_dict(
        {
            "name": "towns",
            "columns": {
                "size": {"type": "number", "lower": 0, "upper": 100, "missing": "zero"},
                "town": {"type": "category", "values": ["Köln", "Ulm"]},
            },
            "target": {"name": "ill", "classes": ["no", "yes"]},
            "file": dialect,
        }
    )


def written(path: Path, dialect: dict[str, Any]) -> pa.Table:
    """Return the text of a file in a dialect: decimals, codes for gaps and blanks as they are written there."""
    random, form = np.random.default_rng(1), FileFormat(**dialect)
    sizes = np.char.replace(random.integers(0, 10, ROWS).astype(str), "7", f"7{form.decimal}5")
    gap = next(iter(form.codes_of("size")), "")
    sizes = np.where(random.random(ROWS) < 0.1, gap, np.char.add(" " if form.trim else "", sizes))
    towns, answers = random.choice(["Köln", "Ulm"], ROWS), random.choice(["no", "yes"], ROWS)
    table = pa.table({"size": sizes, "town": towns, "ill": answers})
    write_table(table, path, form)
    return table


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.get("encoding", "utf-8") + str(len(dialect)))
def dialect(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(csv_lines, "PIECE", 1000)
    return dict(request.param)


def test_blocks_have_the_cells_of_the_whole_file(dialect: dict[str, Any], tmp_path: Path) -> None:
    table, form = written(tmp_path / "rows.csv", dialect), FileFormat(**dialect)
    blocks = list(open_cells(tmp_path / "rows.csv", form).blocks())
    assert len(blocks) > 2
    assert concatenate_tables(blocks) == table == read_cells(tmp_path / "rows.csv", form)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_parts_are_written_in_the_dialect_that_was_read(
    dialect: dict[str, Any], ending: str, tmp_path: Path
) -> None:
    table, schema = written(tmp_path / "rows.csv", dialect), schema_of(dialect)
    parts = split(open_cells(tmp_path / "rows.csv", schema.file), schema, seed="autumn")
    paths = [tmp_path / f"{name}.{ending}" for name in ("train", "test")]
    for rows, path in zip((parts.train, parts.test), paths, strict=True):
        write_rows(rows, path, schema.file)
    whole = split(table, schema, seed="autumn")
    assert [read_cells(path, schema.file) for path in paths] == [whole.train.table(), whole.test.table()]
    if ending == "csv":
        learnt = concatenate_tables(open_records(tmp_path / "rows.csv", schema).blocks())
        assert concatenate_tables(open_records(paths[1], schema).blocks()).num_rows == ROWS // 5
        assert learnt["size"].null_count > 0


def test_the_same_dialect_holds_for_a_folder(dialect: dict[str, Any], tmp_path: Path) -> None:
    folder, schema = tmp_path / "rows", schema_of(dialect)
    folder.mkdir()
    one, other = written(folder / "1.csv", dialect), written(folder / "2.csv", dialect)
    assert concatenate_tables(open_cells(folder, schema.file).blocks()) == pa.concat_tables([one, other])
    assert concatenate_tables(open_records(folder, schema).blocks()).num_rows == 2 * ROWS


def test_what_an_encoding_lacks_is_refused_without_quoting_it(tmp_path: Path) -> None:
    table = pa.table({"size": ["1"], "town": ["Łódź"], "ill": ["no"]})
    with pytest.raises(DataError, match="latin-1") as refused:
        write_table(table, tmp_path / "rows.csv", FileFormat(encoding="latin-1"))
    assert "Ł" not in f"{refused.value} {refused.value.__context__}"


@pytest.mark.parametrize(
    "size", [pa.array([17.75, None]), pa.array([Decimal("17.75"), None]), pa.array([0.1, 2.0], pa.float32())]
)
def test_numbers_are_written_with_the_decimal_sign_of_the_schema(size: Any, tmp_path: Path) -> None:
    schema = schema_of({"decimal": ",", "delimiter": ";"})
    table = pa.table({"size": size, "town": ["Ulm", "Ulm"], "ill": ["no", "yes"]})
    write_table(table, tmp_path / "rows.parquet")
    write_rows(open_cells(tmp_path / "rows.parquet"), tmp_path / "rows.csv", schema.file)
    one, other = (
        concatenate_tables(open_records(tmp_path / f"rows.{end}", schema).blocks())
        for end in ("parquet", "csv")
    )
    assert one.to_pydict() == other.to_pydict()


@pytest.mark.parametrize(
    ("cells", "breaks"),
    [
        ([[1]], False),
        ([b"\xff"], False),
        (["x\ny"], False),
        (["x\ry"], False),
        (["x\ry"], True),
        (pa.array([datetime.datetime(2020, 1, 1)], pa.timestamp("us", "Mars/Olympus")), False),
    ],
)
def test_what_a_csv_file_cannot_hold_is_refused(cells: Any, breaks: bool, tmp_path: Path) -> None:
    write_table(pa.table({"size": [1.0], "note": cells}), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"[Ww]rite (a )?\.parquet"):
        write_rows(
            open_cells(tmp_path / "rows.parquet"), tmp_path / "rows.csv", FileFormat(line_breaks=breaks)
        )
    assert not (tmp_path / "rows.csv").exists()


def test_line_breaks_are_written_where_the_schema_has_them(tmp_path: Path) -> None:
    form, table = FileFormat(line_breaks=True), pa.table({"size": ["1", "2"], "note": ["x\ny", "x\r\ny"]})
    write_table(table, tmp_path / "rows.csv", form)
    assert read_cells(tmp_path / "rows.csv", form) == table
