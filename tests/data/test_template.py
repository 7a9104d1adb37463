"""The template: a schema to fill in that shows no cell."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import yaml

from privlearn.data import Schema, open_records, write_table
from privlearn.data.schema import schema_template
from privlearn.errors import DataError, SchemaError
from tests.support.canary import CANARIES, CANARY_NUMBER, CANARY_TEXT

TABLE = pa.table(
    {
        "age": [CANARY_NUMBER, 2],
        "height": [CANARY_NUMBER + 0.5, 3.0],
        "Größe: no": [CANARY_TEXT, "x"],
        "member": [True, False],
        "born": [datetime.date(1913, 4, 27), datetime.date(1987, 6, 5)],
    }
)


@pytest.fixture(params=["people.csv", "people.parquet"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path: Path = tmp_path / request.param
    write_table(TABLE, path)
    return path


def test_names_and_types_and_no_cell(file: Path) -> None:
    text = schema_template(file)
    assert yaml.safe_load(text) == {
        "name": "people",
        "columns": {
            "age": {"type": "number", "lower": None, "upper": None},
            "height": {"type": "number", "lower": None, "upper": None},
            "Größe: no": {"type": "category", "values": []},
            "member": {"type": "category", "values": [False, True]},
            "born": {"type": "date", "lower": None, "upper": None},
        },
        "target": {"name": None, "classes": []},
    }
    assert not any(cell in text for cell in (*CANARIES, "1913", "1987"))


@pytest.mark.parametrize("answer", ["person", "one_row_per_person", None])
def test_it_asks_about_persons_where_a_column_is_named_like_an_identifier(
    answer: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("encounter_id,patient_nbr,age,ill\n1,5,34,no\n2,5,35,yes\n")
    text = schema_template(path)
    assert list(yaml.safe_load(text)["columns"]) == ["age", "ill"]
    if answer == "person":
        text = text.replace("person: null ", "person: patient_nbr ")
    elif answer is not None:
        text = text.replace("one_row_per_person: false", "one_row_per_person: true")
    content = yaml.safe_load(text)
    content |= {"columns": {"age": {"type": "number", "lower": 0, "upper": 9}}, "target": None}
    schema = Schema.from_dict(content)
    if answer is None:
        with pytest.raises(SchemaError, match=r"person: patient_nbr.*one_row_per_person: true"):
            list(open_records(path, schema).blocks())
    else:
        assert len(open_records(path, schema)) == 2


def test_the_template_depends_on_names_and_types_alone(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "t.parquet")
    first = schema_template(tmp_path / "t.parquet")
    write_table(TABLE.slice(1).filter([False]), tmp_path / "t.parquet")
    assert schema_template(tmp_path / "t.parquet") == first


def test_left_as_it_is_the_template_is_refused_line_by_line(file: Path, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(schema_template(file), encoding="utf-8")
    with pytest.raises(SchemaError) as caught:
        Schema.load(tmp_path / "s.yaml")
    lines = str(caught.value).splitlines()
    assert len(lines) == 9
    assert all("still empty" in line for line in lines)


def test_filled_in_it_is_a_schema(tmp_path: Path) -> None:
    write_table(TABLE.select(["age", "Größe: no", "member"]), tmp_path / "t.csv")
    text = schema_template(tmp_path / "t.csv")
    text = text.replace("lower: null", "lower: 0").replace("upper: null", "upper: 120")
    text = text.replace("values: []", "values: [x, y]").replace("name: null", "name: ill")
    (tmp_path / "s.yaml").write_text(text.replace("classes: []", "classes: [a, b]"), encoding="utf-8")
    assert list(Schema.load(tmp_path / "s.yaml").columns) == ["age", "Größe: no", "member"]


@pytest.mark.parametrize(
    ("file_name", "content", "message"),
    [
        ("t.csv", f"{CANARY_TEXT},7364518209\nx,1\n", "column names before the data"),
        ("t.csv", f"a,b\n1,2\n{CANARY_TEXT}\n", "regular CSV"),
        ("t.csv", "", "is empty"),
        ("t.parquet", CANARY_TEXT, "cannot be read as Parquet"),
        ("t.doc", CANARY_TEXT, "must end in"),
    ],
)
def test_files_without_a_template(
    file_name: str, content: str, message: str, tmp_path: Path, refused: Callable[..., Any]
) -> None:
    (tmp_path / file_name).write_text(content)
    with refused(message):
        schema_template(tmp_path / file_name)


def test_no_file(tmp_path: Path, refused: Callable[..., Any]) -> None:
    with refused("is not a file"):
        schema_template(tmp_path / "absent.csv")


def test_many_columns_stay_one_line_each(tmp_path: Path) -> None:
    name = "a very long name " * 20
    parquet.write_table(pa.table({name: [1]}), tmp_path / "t.parquet")
    assert list(yaml.safe_load(schema_template(tmp_path / "t.parquet"))["columns"]) == [name]


def test_a_folder_gets_one_template(tmp_path: Path) -> None:
    for ward in ("east", "west"):
        (tmp_path / "people" / f"ward={ward}").mkdir(parents=True)
        write_table(TABLE, tmp_path / "people" / f"ward={ward}" / "a.csv")
    text = schema_template(tmp_path / "people")
    template = yaml.safe_load(text)
    assert template["name"] == "people"
    assert list(template["columns"]) == [*TABLE.column_names, "ward"]
    assert template["columns"]["ward"] == {"type": "category", "values": []}
    assert not [canary for canary in CANARIES if canary in text]
    write_table(TABLE.drop_columns(["age"]), tmp_path / "people" / "ward=west" / "b.csv")
    with pytest.raises(DataError, match=r"ward=west/b\.csv has no column 'age'"):
        schema_template(tmp_path / "people")
