"""Codebooks: bounds and lists copied into a template, and nothing of the rows."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from privlearn.data import NumberColumn, Schema
from privlearn.data.schema import schema_template
from privlearn.errors import InvalidParameter, SchemaError
from tests.support.canary import CANARY_NUMBER

TABLE = "age,sex,ward,note\n34,1,a b,x\n35,2,c,y\n"
CODEBOOKS = {
    "t.arff": "@RELATION t\n% a comment\n@ATTRIBUTE age REAL [18, 90]\n@attribute 'sex' {1,2}\n"
    f"@attribute ward {{'a b', c}}\n@attribute note string\n@data\n{CANARY_NUMBER},1,'a b',x\n",
    "t.dat": "@relation t\n@attribute age integer [18, 90]\n@attribute sex {1, 2}\n@attribute ward {a b, c}\n"
    "@inputs age, sex\n@data\n34, 1, c\n",
    "t.json": json.dumps(
        {
            "resources": [
                {
                    "schema": {
                        "fields": [
                            {
                                "name": "age",
                                "type": "integer",
                                "constraints": {"minimum": 18, "maximum": 90},
                            },
                            {"name": "sex", "constraints": {"enum": ["1", "2"]}},
                            {"name": "ward", "constraints": {"enum": ["a b", "c"]}},
                            {"name": "note", "type": "string"},
                        ]
                    }
                }
            ]
        }
    ),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize("name", CODEBOOKS)
def test_bounds_and_lists_are_copied(name: str, table: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_text(CODEBOOKS[name])
    text = schema_template(table, codebook=tmp_path / name)
    content = yaml.safe_load(text)
    assert content["columns"] == {
        "age": {"type": "number", "lower": 18, "upper": 90},
        "sex": {"type": "category", "values": [1, 2]},
        "ward": {"type": "category", "values": ["a b", "c"]},
        "note": {"type": "category", "values": []},
    }
    assert "a codebook's" in text
    assert str(CANARY_NUMBER) not in text
    del content["columns"]["note"], content["target"]
    assert Schema.from_dict(content).columns["age"] == NumberColumn(lower=18, upper=90)


def test_the_labels_of_a_statistics_program_are_comments_of_its_codes(table: Path, tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / "people.sav"
    frame = pd.DataFrame({"age": [34.0, 35.0], "sex": [1.0, 2.0]})
    pyreadstat.write_sav(frame, str(path), variable_value_labels={"sex": {1: "female", 2: "male"}})
    text = schema_template(path, codebook=path)
    assert yaml.safe_load(text)["columns"]["sex"]["values"] == [1, 2]
    assert "# 1: female, 2: male" in text
    assert "# --codebook people.sav copies the labels" in schema_template(path)
    assert yaml.safe_load(schema_template(path))["columns"]["sex"] == {
        "type": "number",
        "lower": None,
        "upper": None,
    }


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.json", "[]", "not a Table Schema"),
        ("t.json", '{"fields": [{}]}', "declares no bounds"),
        ("t.json", '{"resources": [{"schema": {}}, {"schema": {}}]}', "not a Table Schema"),
        ("t.arff", "@attribute age real\n", "declares no bounds"),
        ("t.arff", "@attribute age real [low, 3]\n", "not a number"),
    ],
)
def test_other_codebooks_are_refused(
    name: str, content: str, message: str, table: Path, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SchemaError, match=message):
        schema_template(table, codebook=tmp_path / name)
    with pytest.raises(InvalidParameter, match=r"must end in \.arff"):
        schema_template(table, codebook=table)


def test_a_bound_adds_no_line_to_the_template(table: Path, tmp_path: Path) -> None:
    forged = "0\n\none_row_per_person: true\nx:\n  y: 1"
    limits = {"age": {"minimum": forged, "maximum": 90}, "ward": {"minimum": "08:00"}}
    fields = [{"name": name, "constraints": each} for name, each in limits.items()]
    (tmp_path / "t.json").write_text(json.dumps({"fields": fields}))
    content = yaml.safe_load(schema_template(table, codebook=tmp_path / "t.json"))
    assert "one_row_per_person" not in content
    assert content["columns"]["age"] == {"type": "number", "lower": None, "upper": 90}
    assert content["columns"]["ward"] == {"type": "category", "values": []}


def test_cells_that_look_like_an_entry_are_not_read(table: Path, tmp_path: Path) -> None:
    (tmp_path / "t.dat").write_text(
        f"@attribute age real [18, 90]\n34,x @attribute sex {{1, {CANARY_NUMBER}}}\n"
    )
    assert str(CANARY_NUMBER) not in schema_template(table, codebook=tmp_path / "t.dat")
