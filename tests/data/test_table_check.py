"""A holder is told everything that is wrong with a table at once, in counts and never in cells."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from privlearn import DataError
from privlearn.data import Schema, SchemaEncoder, TableCheck, check_table, read_table, write_table
from privlearn.errors import ON_DROPPING
from tests.support.canary import CANARY_TEXT

COLUMNS: dict[str, Any] = {
    "age": {"type": "number", "lower": 0, "upper": 100},
    "ward": {"type": "category", "values": ["east", "west"]},
    "floor": {"type": "category", "values": [1, 2], "missing": "zero"},
    "seen": {"type": "date", "lower": "2020-01-01", "upper": "2021-01-01", "missing": "zero"},
}
GAP = "; if a number such as -9 stands for a gap, write file: {missing: [-9]}"
PAGE = (
    "correct them; if a word stands for a gap, write file: {missing: [WORD]}; how to write other dates and numbers "
    "is in docs/how-to/schema.md"
)
TARGET = {"name": "ill", "classes": ["no", "yes"], "merge": {"yes": ["very"]}}


def _check(text: str, tmp_path: Path, **more: Any) -> TableCheck:
    (tmp_path / "t.csv").write_text(text)
    content = {"name": "t", "columns": COLUMNS, "target": TARGET} | more
    return check_table(tmp_path / "t.csv", Schema.from_dict(content))


def _told(found: TableCheck) -> dict[str | None, list[tuple[str, bool]]]:
    told: dict[str | None, list[tuple[str, bool]]] = {}
    for finding in found.findings:
        told.setdefault(finding.column, []).append((finding.what, finding.stops))
    return told


def test_a_table_that_fits(tmp_path: Path) -> None:
    found = _check("age,ward,floor,seen,ill\n3,east,1.0,2020-05-01,no\n4,west,2,,very\n", tmp_path)
    assert _told(found) == {"seen": [("1 missing cells", False)]}
    assert (found.rows, found.problems) == (2, 0)


def test_everything_at_once(tmp_path: Path) -> None:
    text = (
        "Age,ward,floor,seen,ill,extra\n"
        f"?,{CANARY_TEXT},3,tomorrow,no,1\n-1, east,1,2020-01-01,,1\n101,,x,2020-01-01,yes,1\n"
    )
    found = _check(text.replace("Age", "age", 1), tmp_path)
    assert _told(found) == {
        "age": [
            ('1 cells are not numbers: 1 seem to be codes for gaps; write file: {missing: ["?"]}', True),
            (f"1 cells below the bounds: they are clamped{GAP}", False),
            (f"1 cells above the bounds: they are clamped{GAP}", False),
        ],
        "ward": [
            ("1 missing cells: fill them in, or set missing: zero", True),
            (
                "2 cells are not listed: without the blanks around them some are; write file: {trim: true}",
                True,
            ),
        ],
        "floor": [
            (f"1 cells are not whole numbers: {PAGE}", True),
            ("1 cells are not listed: list them, or set unknown: zero or other", True),
        ],
        "seen": [(f"1 cells are not dates such as 2020-01-31: {PAGE}", True)],
        "ill": [(f"1 missing cells: fill them in, or drop those rows ({ON_DROPPING})", True)],
        None: [("1 column is not in the schema, and not read: extra", False)],
    }
    assert found.problems == 7
    assert CANARY_TEXT not in str(found)
    assert [(item.column, item.values) for item in found.findings if item.values] == [
        ("age", ("?",)),
        ("ward", (CANARY_TEXT, " east")),
        ("floor", ("x",)),
        ("floor", ("3",)),
        ("seen", ("tomorrow",)),
    ]


def test_spellings_of_a_class_go_under_merge(tmp_path: Path) -> None:
    found = _check("age,ward,floor,seen,ill\n3,east,1,2020-05-01,YES\n", tmp_path)
    ((what, stops),) = _told(found)["ill"]
    assert "only in capital letters or blanks; write other spellings of a class under merge" in what
    assert stops
    with pytest.raises(DataError, match="under merge"):
        SchemaEncoder(Schema.from_dict({"name": "t", "columns": COLUMNS, "target": TARGET})).encode_labels(
            ["YES"]
        )


def test_codes_for_gaps_as_words_and_in_columns_that_are_not_there(tmp_path: Path) -> None:
    text = "age,ward,floor,seen,ill\nk.A.,east,1,2020-05-01,no\n"
    told = _told(_check(text, tmp_path, file={"missing_in": {"Age": [-9]}}))
    assert told["age"][0][0].endswith('write file: {missing: ["k.A."]}')
    assert told["Age"] == [
        ("has codes for gaps under missing_in, and is not in the table. Did you mean 'age'?", False)
    ]


def test_a_missing_column_with_what_was_meant(tmp_path: Path) -> None:
    found = _check("Age,ward,floor,seen,ill\n3,east,1,2020-05-01,no\n", tmp_path)
    assert _told(found)["age"] == [("is not in the table. Did you mean 'Age'?", True)]


def test_a_star_for_several_columns_names_the_range(tmp_path: Path) -> None:
    found = _check("age1,age2,ill\n3,4,no\n", tmp_path, columns={"age*": COLUMNS["age"]})
    assert _told(found)["age*"] == [
        ("is not in the table. Write several columns as a range, such as age{1..6}", True)
    ]


def test_classes_that_yaml_reads_as_true_and_false(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,ill\n3,no\n4,yes\n")
    (tmp_path / "t.yaml").write_text(
        "name: t\ncolumns: {age: {type: number, lower: 0, upper: 9}}\ntarget: {name: ill, classes: [no, yes]}\n"
    )
    schema = Schema.load(tmp_path / "t.yaml")
    ((what, stops),) = _told(check_table(tmp_path / "t.csv", schema))["ill"]
    assert what.endswith('quote them in the schema: ["no", "yes"]')
    assert stops
    with pytest.raises(DataError, match="In a schema, quote yes and no"):
        SchemaEncoder(schema).encode_labels(["no"])


def test_decimal_commas_and_capital_letters(tmp_path: Path) -> None:
    text = "age;ward;floor;seen;ill\n1,5;EAST;1;2020-05-01;no\n"
    told = _told(_check(text, tmp_path, file={"delimiter": ";"}))
    assert told["age"] == [('1 cells are not numbers: with decimal commas; write file: {decimal: ","}', True)]
    assert told["ward"] == [
        (
            "1 cells are not listed: some differ only in capital letters or blanks; correct the table, or list each "
            "spelling",
            True,
        )
    ]
    assert "age" not in _told(_check(text, tmp_path, file={"delimiter": ";", "decimal": ","}))


def test_persons_and_repeated_rows(tmp_path: Path) -> None:
    text = (
        "patient_id,age,ward,floor,seen,ill\n"
        + "7,3,east,1,2020-05-01,no\n" * 3
        + "8,,east,1,2020-05-01,no\n"
    )
    told = _told(_check(text, tmp_path))
    assert any("person: patient_id" in what and stops for what, stops in told[None])
    assert ("2 rows repeat an earlier one in every column", False) in told[None]
    told = _told(_check(text, tmp_path, person="patient_id"))
    assert told["patient_id"] == [("2 persons, with at most 3 rows each", False)]


@pytest.mark.parametrize("age", [[3.0, None], [3, None], ["3", None]])
def test_tables_with_types(age: list[Any], tmp_path: Path) -> None:
    rest = {"ward": ["east", "x"], "floor": [1, 2], "seen": ["2020-05-01"] * 2, "ill": ["no", "yes"]}
    write_table(pa.table({"age": age, **rest}), tmp_path / "t.parquet")
    schema = Schema.from_dict({"name": "t", "columns": COLUMNS, "target": TARGET})
    told = _told(check_table(tmp_path / "t.parquet", schema))
    assert told["age"] == [("1 missing cells: fill them in, or set missing: zero", True)]
    assert [stops for _, stops in told["ward"]] == [True]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le"])
def test_another_encoding_is_recognised(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("age;ward;ill\n3;Zürich;no\n".encode(encoding))
    schema = Schema.from_dict({"name": "t", "columns": COLUMNS, "target": TARGET})
    with pytest.raises(DataError, match=rf'schema: file: {{encoding: {encoding}, delimiter: ";"}}'):
        check_table(tmp_path / "t.csv", schema)


def test_utf_8_that_is_read_as_something_else_is_recognised(tmp_path: Path) -> None:
    text = "age,ward,floor,seen,ill\n3,ö,1,2020-05-01,no\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    schema = {"name": "t", "columns": COLUMNS, "target": TARGET, "file": {"encoding": "cp1252"}}
    found = check_table(tmp_path / "t.csv", Schema.from_dict(schema))
    assert "write file: {encoding: utf-8}" in found.findings[0].what
    assert not found.findings[0].stops
    marked = schema | {"file": {"encoding": "utf-8-sig"}}
    assert "encoding" not in str(check_table(tmp_path / "t.csv", Schema.from_dict(marked)).findings)


@pytest.mark.parametrize(
    ("lower", "scale", "hardly"), [(-1000, "log", True), (-1, "log", False), (-1000, "linear", False)]
)
def test_a_logarithm_that_hardly_sees_small_amounts(
    tmp_path: Path, lower: int, scale: str, hardly: bool
) -> None:
    bill = {"type": "number", "lower": lower, "upper": 100_000, "scale": scale}
    found = _check("bill,ill\n3,no\n", tmp_path, columns={"bill": bill})
    told = [finding for finding in found.findings if finding.what.startswith("scale: log is finest")]
    assert [(finding.what.endswith(": bill"), finding.stops) for finding in told] == [(True, False)] * hardly


def test_a_folder_is_checked_as_one_table(tmp_path: Path) -> None:
    schema = Schema.from_dict({"name": "t", "columns": {"age": COLUMNS["age"], "ward": COLUMNS["ward"]}})
    for ward, ages in (("east", [30, 200]), ("west", [40.5, None])):
        (tmp_path / "rows" / f"ward={ward}").mkdir(parents=True)
        write_table(pa.table({"age": ages}), tmp_path / "rows" / f"ward={ward}" / "a.parquet")
    found = check_table(tmp_path / "rows", schema)
    assert (found.rows, found.problems) == (4, 1)
    assert [what for what, _ in _told(found)["age"]] == [
        "1 missing cells: fill them in, or set missing: zero",
        f"1 cells above the bounds: they are clamped{GAP}",
    ]
    assert check_table(tmp_path / "rows" / "ward=e*" / "*", schema.model_copy()).rows == 2
    (tmp_path / "rows" / "ward=west" / "b.parquet").write_text(CANARY_TEXT)
    with pytest.raises(DataError, match=r"ward=west/b\.parquet cannot be read as Parquet") as refused:
        check_table(tmp_path / "rows", schema)
    assert CANARY_TEXT not in str(refused.value)


TRUTH = {"type": "category", "values": [True, False], "unknown": "zero", "missing": "zero"}
WHOLE = {"type": "category", "values": [1, 2], "unknown": "zero", "missing": "zero"}
TEXTS = {"type": "category", "values": ["1", "2"], "unknown": "zero"}
AGE = {"type": "number", "lower": 0, "upper": 100, "missing": "zero"}
DAY = {"type": "date", "lower": "2000-01-01", "upper": "2029-12-31", "missing": "zero"}
CELLS: list[Any] = [1, 2.0, 1.5, True, None, "a", "1", "NA", "x", "1,5", "1.5", datetime.date(2020, 1, 31)]


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("column", [TRUTH, WHOLE, TEXTS, AGE, DAY])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_check_agrees_with_reading(ending: str, column: Any, decimal: str, tmp_path: Path) -> None:
    content = {
        "name": "t",
        "columns": {"v": column, "z": AGE},
        "file": {"decimal": decimal, "delimiter": ";"},
    }
    schema, path = Schema.from_dict(content | {"one_row_per_person": True}), tmp_path / f"t.{ending}"
    for cell in CELLS:
        if ending == "csv":
            path.write_text(f"v;z\n{'' if cell is None else cell};1\n")
        else:
            write_table(pa.table({"v": [cell], "z": [1]}), path)
        assert (check_table(path, schema).problems == 0) == _is_read(path, schema), cell


def _is_read(path: Path, schema: Schema) -> bool:
    try:
        SchemaEncoder(schema).encode(read_table(path, schema))
    except DataError:
        return False
    return True


def test_times_of_an_unknown_zone_are_refused(tmp_path: Path) -> None:
    times = pa.array([datetime.datetime(2020, 1, 31)], pa.timestamp("us", "Mars/Olympus"))
    write_table(pa.table({"seen": times}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="column 'seen' holds cells that cannot be written as text"):
        check_table(tmp_path / "t.parquet", Schema.from_dict({"name": "t", "columns": {"seen": DAY}}))


def test_blanks_and_capital_letters_at_once(tmp_path: Path) -> None:
    told = _told(_check("age,ward,floor,seen,ill\n1, EAST ,1,2020-05-01,no\n", tmp_path))
    assert "only in capital letters or blanks" in told["ward"][0][0]
