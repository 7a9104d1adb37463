"""Files as people have them: delimiters, decimal commas, encodings, codes for gaps, no line of names."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import yaml

from privlearn.data import Schema, open_records, read_table, write_table
from privlearn.data.schema import FileFormat, schema_template
from privlearn.data.sources import parse_csv
from privlearn.data.sources.files import read_cells
from privlearn.errors import SchemaError
from tests.support.canary import CANARIES, CANARY_TEXT

Refused = Callable[..., AbstractContextManager[None]]
COLUMNS = {
    "height": {"type": "number", "lower": 0, "upper": 3, "missing": "zero"},
    "town": {"type": "category", "values": ["Köln", "Bonn"], "missing": "zero"},
}
ROWS = [(1.5, "Köln"), (None, "Bonn"), (2.0, None)]


def _schema(**file: Any) -> Schema:
    return Schema.from_dict({"name": "t", "columns": COLUMNS, "file": file})


def _read(text: str, tmp_path: Path, **file: Any) -> list[tuple[Any, ...]]:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(file.get("encoding", "utf-8")))
    table = read_table(path, _schema(**file))
    return list(zip(*table.to_pydict().values(), strict=True))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("delimiter", [";", "tab", "|"])
def test_delimiters_and_encodings(encoding: str, delimiter: str, tmp_path: Path) -> None:
    sign = {"tab": "\t"}.get(delimiter, delimiter)
    text = "height;town\n1,5;Köln\n;Bonn\n2,0;\n".replace(";", sign)
    assert _read(text, tmp_path, delimiter=delimiter, decimal=",", encoding=encoding) == ROWS


CODES = {
    "of the file": ("height,town\n1.5,Köln\n?,Bonn\n2,?\n", {"missing": ["?"]}),
    "a number": ("height,town\n1.5,Köln\n-9,Bonn\n2,-9\n", {"missing": -9}),
    "of columns": (
        "height,town\n1.5,Köln\n-9,Bonn\n2,none\n",
        {"missing_in": {"height": [-9], "town": ["none"]}},
    ),
    "with a decimal comma": (
        'height;town\n1,5;Köln\n-9,0;Bonn\n2;"?"\n',
        {"missing": ["?"], "missing_in": {"height": ["-9,0"]}, "decimal": ",", "delimiter": ";"},
    ),
    "among blanks": ("height, town\n1.5, Köln\n ?, Bonn\n 2 , NA\n", {"missing": ["?"], "trim": True}),
    "without names": ("1.5,Köln\n?,Bonn\n2,\n", {"missing": ["?"], "names": ["height", "town"]}),
}


@pytest.mark.parametrize(("text", "file"), CODES.values(), ids=CODES)
def test_codes_for_gaps(text: str, file: dict[str, Any], tmp_path: Path) -> None:
    assert _read(text, tmp_path, **file) == ROWS


def test_a_code_of_one_column_is_a_value_of_the_others(tmp_path: Path) -> None:
    columns = {name: {"type": "number", "lower": -9, "upper": 9, "missing": "zero"} for name in "ab"}
    schema = Schema.from_dict({"name": "t", "columns": columns, "file": {"missing_in": {"a": [-9]}}})
    (tmp_path / "t.csv").write_text("a,b\n-9,-9\n")
    assert read_table(tmp_path / "t.csv", schema).to_pylist() == [{"a": None, "b": -9.0}]


def test_codes_for_gaps_in_parquet(tmp_path: Path) -> None:
    parquet.write_table(
        pa.table({"height": [1.5, -9.0, 2.0], "town": ["Köln", "Bonn", "?"]}), tmp_path / "t.parquet"
    )
    table = read_table(tmp_path / "t.parquet", _schema(missing=["?", -9]))
    assert list(zip(*table.to_pydict().values(), strict=True)) == ROWS


def test_how_a_file_is_written_is_not_what_its_rows_mean() -> None:
    plain, other = _schema(), _schema(delimiter=";", missing=["?"])
    assert plain.digest == other.digest
    assert plain.to_dict() == {name: part for name, part in other.to_dict().items() if name != "file"}
    assert Schema.from_dict(other.to_dict()) == other != plain


def test_a_text_that_an_analyst_sends_is_plain_csv() -> None:
    assert (
        parse_csv(b"height,town\n1.5,Bonn\n", _schema(delimiter=";", names=["town", "height"])).num_rows == 1
    )


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ({"delimiter": ";;"}, "file: delimiter: must be one character"),
        ({"decimal": ","}, "State the delimiter"),
        ({"encoding": "utf-9"}, "'utf-9' is not an encoding"),
        ({"missing": ["x", True]}, "quote codes"),
        ({"names": ["a", "a"]}, "'a' is listed twice"),
    ],
)
def test_formats_that_contradict_themselves(file: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        _schema(**file)


WRONG = {
    "one column": ("height;town\n1.5;Köln\n", {}, 'delimiter: ";"'),
    "one column of tabs": ("height\ttown\n", {"delimiter": ";"}, "delimiter: tab"),
    "another encoding": (f"height,town\n1,{CANARY_TEXT}\x81\n", {"encoding": "ascii"}, "is not in ascii"),
    "a code that is not stated": (f"height,town\n{CANARY_TEXT},Bonn\n", {}, 'missing: ["?"]'),
    "the same among blanks": (f"height,town\n {CANARY_TEXT},Bonn\n", {"trim": True}, "column 'height'"),
    "too few names": (f"1,{CANARY_TEXT},3\n", {"names": ["height", "town"]}, "regular"),
}


@pytest.mark.parametrize(("text", "file", "message"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_refused_without_quoting_it(
    text: str, file: dict[str, Any], message: str, tmp_path: Path, refused: Refused
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode("latin-1"))
    with refused(message):
        list(open_records(path, _schema(**file)).blocks())


DETECTED = {
    "semicolons": ("a;b\n1;x\n", {"delimiter": ";"}),
    "tabs": ("a\tb\n1\tx\n", {"delimiter": "\t"}),
    "decimal commas": ("a;b\n1,5;x\n", {"delimiter": ";", "decimal": ","}),
    "codes": ("a,b\n1,?\n", {"missing": ["?"]}),
    "blanks": ("a, b\n1, x\n", {"trim": True}),
    "plain": ("a,b\n1,x\n", None),
}


@pytest.mark.parametrize(("text", "file"), DETECTED.values(), ids=DETECTED)
def test_the_template_states_how_the_file_is_written(
    text: str, file: dict[str, Any] | None, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(text)
    content = yaml.safe_load(schema_template(tmp_path / "t.csv"))
    assert content.get("file") == file
    assert list(content["columns"]) == ["a", "b"]
    assert content["columns"]["a"]["type"] == "number"


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_the_template_states_the_encoding(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,Größe\n1,“x”\n".encode(encoding))
    content = yaml.safe_load(schema_template(tmp_path / "t.csv"))
    assert content["file"] == {"encoding": encoding}
    assert list(content["columns"]) == ["a", "Größe"]


def test_a_file_without_names(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "t.data.gz"
    path.write_bytes(gzip.compress(f"7364518209, {CANARY_TEXT}\n".encode()))
    with refused("2 columns: --names"):
        schema_template(path)
    with refused("has 2 columns, not 3"):
        schema_template(path, ["a", "b", "c"])
    text = schema_template(path, ["a", "b"])
    assert yaml.safe_load(text)["file"] == {"names": ["a", "b"], "trim": True}
    assert not any(cell in text for cell in CANARIES)


@pytest.mark.parametrize("file", [{"delimiter": ";"}, {"names": ["height", "town"]}, {"encoding": "utf-16"}])
def test_what_is_written_as_the_format_says_is_read_by_it(file: dict[str, Any], tmp_path: Path) -> None:
    table = pa.table({"height": ["1.5", "?"], "town": ["Köln", "Bonn"]})
    write_table(table, tmp_path / "t.csv", FileFormat(**file))
    assert read_cells(tmp_path / "t.csv", FileFormat(**file)) == table
    schema = _schema(**file, missing=["?"])
    assert read_table(tmp_path / "t.csv", schema)["height"].to_pylist() == [1.5, None]


def test_names_of_columns_decide_what_rows_mean() -> None:
    plain, one = _schema(), _schema(names=["height", "town"])
    other = _schema(names=["town", "height"])
    assert len({plain.digest, one.digest, other.digest}) == 3
    assert _schema(names=["height", "town"], delimiter=";").digest == one.digest
