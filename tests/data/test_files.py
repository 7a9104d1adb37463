"""Files are read with the schema's types, never by what their first rows look like."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from numpy.testing import assert_array_equal

from privlearn.data import Schema, SchemaEncoder, read_table, write_table
from tests.support.canary import CANARY_TEXT

Refused = Callable[..., AbstractContextManager[None]]
HEADER = "age,income,weight,sex,ward,smoker,outcome,extra"
LINES = [
    "34,0,70,female,1,true,healthy,[1",
    "71,52000.5,81.5,male,30,False,ill,x",
    "5,1e6,19.25,male,2.0,0,ill,",
]


def _written(path: Path, *lines: str) -> Path:
    text = "\n".join([HEADER, *lines]) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("file", ["t.csv", "t.csv.gz", "T.CSV"])
def test_csv(file: str, tmp_path: Path, schema: Schema, columns: dict[str, list[Any]]) -> None:
    table = read_table(_written(tmp_path / file, *LINES), schema)
    assert table.column_names == [*schema.columns, "outcome"]
    encoder = SchemaEncoder(schema)
    expected = encoder.encode({name: cells[:3] for name, cells in columns.items()})
    assert_array_equal(encoder.encode(table), expected)
    assert_array_equal(encoder.encode_labels(table["outcome"]), [0, 1, 1])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_written_is_read(
    suffix: str, tmp_path: Path, schema: Schema, columns: dict[str, Any]
) -> None:
    write_table(pa.table(columns), tmp_path / f"t{suffix}")
    encoder = SchemaEncoder(schema)
    read = read_table(tmp_path / f"t{suffix}", schema)
    assert_array_equal(encoder.encode(read), encoder.encode(columns))


def test_types_come_from_the_schema_not_from_the_first_rows(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {
            "name": "t",
            "columns": {
                "code": {"type": "category", "values": ["007", "7"]},
                "n": {"type": "number", "lower": 0, "upper": 1},
            },
        }
    )
    path = tmp_path / "t.csv"
    path.write_text("code,n\n" + "7,1\n" * 3 + "007,0.5\n")
    table = read_table(path, schema)
    assert table.schema.types == [pa.large_string(), pa.float64()]
    assert table["code"].to_pylist() == ["7", "7", "7", "007"]


def test_line_breaks_in_a_cell_do_not_depend_on_where_arrow_cuts_the_file(tmp_path: Path) -> None:
    content = {
        "name": "t",
        "columns": {"note": {"type": "text", "features": 8}},
        "file": {"line_breaks": True},
    }
    schema = Schema.from_dict(content)
    path = tmp_path / "t.csv"
    path.write_text("note,n\n" + '"one\ntwo\nthree",1\n' * 200_000)  # several blocks of Arrow's
    assert read_table(path, schema)["note"].unique().to_pylist() == ["one\ntwo\nthree"]


def test_a_listed_value_is_not_a_missing_cell(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {"name": "t", "columns": {"country": {"type": "category", "values": ["NA", "ZA"], "missing": "zero"}}}
    )
    path = tmp_path / "t.csv"
    path.write_text('country\nNA\nnull\n""\nZA\n')
    assert read_table(path, schema)["country"].to_pylist() == ["NA", None, None, "ZA"]


def test_without_a_schema_all_columns_are_read(tmp_path: Path) -> None:
    assert read_table(_written(tmp_path / "t.csv", *LINES)).column_names == HEADER.split(",")


def test_a_file_to_predict_may_lack_the_target(tmp_path: Path, schema: Schema) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,sex\n3,male\n")
    assert read_table(path, schema).column_names == ["age", "sex"]


BAD_LINES = {
    "text for a number": (f"{CANARY_TEXT},0,70,female,1,true,ill,", "column 'age'"),
    "text for an integer": (f"1,0,70,female,{CANARY_TEXT},true,ill,", "column 'ward'"),
    "text for a boolean": (f"1,0,70,female,1,{CANARY_TEXT},ill,", "column 'smoker'"),
    "too many cells": (f"1,0,70,female,1,true,ill,{CANARY_TEXT},{CANARY_TEXT}", "regular"),
    "too few cells": (CANARY_TEXT, "regular"),
}


@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_refused_without_quoting_it(
    line: str, message: str, tmp_path: Path, schema: Schema, refused: Refused
) -> None:
    with refused(message):
        read_table(_written(tmp_path / "t.csv", *LINES, line), schema)


def test_text_that_is_not_utf8(tmp_path: Path, schema: Schema, refused: Refused) -> None:
    path = _written(tmp_path / "t.csv")
    path.write_bytes(path.read_bytes() + f"1,0,70,{CANARY_TEXT}\xff,1,true,ill,\n".encode("latin-1"))
    with refused("not in UTF-8"):
        read_table(path, schema)


def test_a_file_without_header_is_refused(tmp_path: Path, schema: Schema, refused: Refused) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{CANARY_TEXT},7364518209\n{CANARY_TEXT},2\n")
    with refused("none of the schema's columns"):
        read_table(path, schema)


@pytest.mark.parametrize(
    ("header", "message"),
    [("age,sex,age", "column 'age' occurs twice"), (f"age,{CANARY_TEXT},{CANARY_TEXT}", "columns 1 and 2")],
)
def test_repeated_names(header: str, message: str, tmp_path: Path, schema: Schema, refused: Refused) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n1,male,2\n")
    with refused(message):
        read_table(path, schema)


def test_repeated_names_in_parquet(tmp_path: Path, schema: Schema, refused: Refused) -> None:
    parquet.write_table(pa.table([[1], [2]], names=["age", "age"]), tmp_path / "t.parquet")
    with refused("column 'age' occurs twice"):
        read_table(tmp_path / "t.parquet", schema)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", None, "is not a file"),
        ("t.csv", CANARY_TEXT.encode() + b"\xff\xfe", "UTF-8"),
        ("t.csv.gz", CANARY_TEXT.encode(), "may be cut off or damaged"),
        ("t.parquet", CANARY_TEXT.encode(), "cannot be read as Parquet"),
        ("t.doc", b"x", "must end in"),
    ],
)
def test_unreadable_tables(
    file: str,
    content: bytes | None,
    message: str,
    tmp_path: Path,
    schema: Schema,
    refused: Refused,
) -> None:
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with refused(message):
        read_table(tmp_path / file, schema)


@pytest.mark.parametrize("text", ["age,sex", "age,sex\n", "age,sex\r\n"])
def test_a_header_alone_is_a_table_without_rows(text: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(text.encode())
    found = read_table(path)
    assert (found.column_names, found.num_rows) == (["age", "sex"], 0)
