"""Schemas: what they accept, what they say when they do not, and how they are stored."""

from __future__ import annotations

import copy
import datetime
import json
import pickle
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privlearn.data import CategoryColumn, DateColumn, NumberColumn, OrdinalColumn, Schema, Target, TextColumn
from privlearn.data.schema import parse_json, parse_yaml
from privlearn.errors import SchemaError

AGE = {"type": "number", "lower": 0, "upper": 120}
SEX = {"type": "category", "values": ["female", "male"]}


def described(**changes: Any) -> dict[str, Any]:
    base = {"name": "t", "columns": {"age": AGE, "sex": SEX}, "target": {"name": "y", "classes": [0, 1]}}
    return {**base, **changes}


def test_defaults_are_those_documented() -> None:
    schema = Schema.from_dict(described(columns={"age": AGE, "sex": SEX, "note": {"type": "text"}}))
    assert schema.columns["age"] == NumberColumn(lower=0.0, upper=120.0)
    assert schema.columns["note"] == TextColumn(features=2**18, missing="refuse")
    assert (schema.person, schema.rows_per_person) == (None, 1)


COLUMN_PROBLEMS = {
    "equal bounds": ({**AGE, "lower": 120}, "lower (120) must be below upper (120)"),
    "reversed bounds": ({**AGE, "upper": -5}, "must be below"),
    "infinite bound": ({**AGE, "upper": float("inf")}, "finite"),
    "NaN bound": ({**AGE, "lower": float("nan")}, "finite"),
    "overflowing width": ({**AGE, "lower": -1.7e308, "upper": 1.7e308}, "overflows"),
    "bound left empty": ({**AGE, "upper": None}, "Fill in a public bound"),
    "bound forgotten": ({"type": "number", "lower": 1}, "upper: missing"),
    "bound true": ({**AGE, "upper": True}, "not true or false"),
    "one knot": ({**AGE, "knots": 1}, "at least 2"),
    "unknown setting": ({**AGE, "knot": 3}, "knot: unknown setting"),
    "unknown scale": ({**AGE, "scale": "root"}, "linear or log"),
    "unknown rule": ({**AGE, "missing": "mean"}, "refuse, zero or indicator"),
    "unknown type": ({**AGE, "type": "colour"}, "number, ordinal, date, category or text"),
    "no values": ({**SEX, "values": []}, "List every value"),
    "one value": ({**SEX, "values": ["female"]}, "at least two"),
    "repeated value": ({**SEX, "values": ["female", "male", "male"]}, "different"),
    "mixed values": ({**SEX, "values": ["female", False]}, "one type"),
    "true is not 1": ({**SEX, "values": [True, 0]}, "one type"),
    "fractional value": ({**SEX, "values": [1.5, 2.5]}, "values"),
}


@pytest.mark.parametrize(("column", "message"), COLUMN_PROBLEMS.values(), ids=COLUMN_PROBLEMS)
def test_a_bad_column_is_named_with_its_remedy(column: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict(described(columns={"sex": SEX, "odd one": column}))
    assert str(caught.value).startswith("columns.odd one")
    assert message in str(caught.value)


SCHEMA_PROBLEMS = {
    "no columns": ({"columns": {}}, "columns"),
    "column is the target": ({"target": {"name": "age", "classes": [0, 1]}}, "columns.age: is the target"),
    "column is the person": ({"person": "age"}, "columns.age: identifies a person"),
    "person is the target": ({"person": "y"}, "person: is the target"),
    "person and rows_per_person": ({"person": "id", "rows_per_person": 3}, "rows_per_person: remove it"),
    "one row per person and person": (
        {"one_row_per_person": True, "person": "id"},
        "one_row_per_person: remove it",
    ),
    "one row per person and several": (
        {"one_row_per_person": True, "rows_per_person": 2},
        "one_row_per_person: remove it",
    ),
    "a number that floats cannot tell apart": (
        {"target": {"name": "y", "classes": [0, 2**53]}},
        "Write them as text",
    ),
    "no rows per person": ({"rows_per_person": 0}, "rows_per_person"),
    "one class": ({"target": {"name": "y", "classes": ["ill"]}}, "target: classes: needs at least two"),
    "equal classes": (
        {"target": {"name": "y", "classes": [1, 1]}},
        "target: classes: must all be different. Remove the repeated ones (1)",
    ),
    "mixed classes": (
        {"target": {"name": "y", "classes": ["ill", 0]}},
        "target: classes: must all be of one",
    ),
    "target of two kinds": (
        {"target": {"name": "y", "classes": [0, 1], "lower": 0, "upper": 1}},
        "target: needs either classes, or lower and upper",
    ),
    "target of no kind": ({"target": {"name": "y"}}, "target: needs either classes, or lower and upper"),
    "target with one bound": ({"target": {"name": "y", "lower": 0}}, "target: a number needs both bounds"),
    "target with an empty bound": (
        {"target": {"name": "y", "lower": 0, "upper": None}},
        "target: upper: still empty. Fill in a public bound",
    ),
    "target with a true bound": ({"target": {"name": "y", "lower": True, "upper": 2}}, "not true or false"),
    "target with equal bounds": ({"target": {"name": "y", "lower": 1, "upper": 1}}, "must be below"),
    "target with an infinite bound": (
        {"target": {"name": "y", "lower": 1, "upper": float("inf")}},
        "target: upper",
    ),
    "target left empty": ({"target": {"name": None, "classes": []}}, "target: name: still empty"),
    "nameless": ({"name": ""}, "name"),
    "unknown key": ({"colums": {}}, "colums: unknown setting"),
    "column name not text": ({"columns": {1: AGE}}, "columns.1"),
}


@pytest.mark.parametrize(("change", "message"), SCHEMA_PROBLEMS.values(), ids=SCHEMA_PROBLEMS)
def test_a_contradictory_schema_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict(described(**change))
    assert message in str(caught.value)


def test_every_problem_has_its_line() -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict(
            described(columns={"a": {**AGE, "lower": None, "knots": 0}, "b": {**SEX, "values": []}})
        )
    starts = [line.split(":")[0] for line in str(caught.value).splitlines()]
    assert starts == ["columns.a", "columns.a", "columns.b"]


@pytest.mark.parametrize("content", [None, [], "name", 3, {1: 2}])
def test_what_is_no_mapping_is_no_schema(content: Any) -> None:
    with pytest.raises(SchemaError, match="mapping"):
        Schema.from_dict(content)


@pytest.mark.parametrize(
    "build",
    [
        lambda: NumberColumn(lower=1, upper=1),
        lambda: CategoryColumn(values=("a",)),
        lambda: TextColumn(features=0),
        lambda: Target(name="y", classes=()),
    ],
)
def test_parts_built_in_python_raise_the_same_error(build: Any) -> None:
    with pytest.raises(SchemaError):
        build()


def test_parts_cannot_be_changed() -> None:
    schema = Schema.from_dict(described())
    with pytest.raises(ValueError, match="frozen"):
        schema.name = "other"
    with pytest.raises(ValueError, match="frozen"):
        schema.columns["age"].upper = 1e9  # type: ignore[union-attr]


NOON, NEXT = datetime.date(2000, 1, 1), datetime.date(2000, 1, 2)
names = st.text(min_size=1, max_size=8)
rules = st.sampled_from(["refuse", "zero"])
bounds = st.floats(-1e300, 1e300)
values = st.one_of(
    st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=5, unique=True),
    st.lists(st.integers(1 - 2**53, 2**53 - 1), min_size=2, max_size=5, unique=True),
    st.just([True, False]),
)
number_columns = (
    st.tuples(bounds, bounds)
    .filter(lambda pair: pair[0] != pair[1])
    .map(sorted)
    .flatmap(
        lambda pair: st.builds(
            NumberColumn,
            lower=st.just(pair[0]),
            upper=st.just(pair[1]),
            scale=st.sampled_from(["linear", "log"]),
            encoding=st.sampled_from(["spline", "linear"]),
            knots=st.integers(2, 64),
            missing=rules,
        )
    )
)
category_columns = st.builds(CategoryColumn, values=values, unknown=rules, missing=rules)
bins = st.sampled_from(["auto", "none"]) | st.integers(2, 2**16)
other_columns = (
    st.builds(OrdinalColumn, values=values, unknown=rules, missing=rules, bins=bins)
    | st.builds(DateColumn, lower=st.dates(max_value=NOON), upper=st.dates(min_value=NEXT), bins=bins)
    | st.floats(1e-9, 1e9).map(lambda period: NumberColumn.model_validate({"period": period}))
    | st.builds(TextColumn)
)
schemas = st.builds(
    Schema,
    name=names,
    columns=st.dictionaries(
        names.map("f_".__add__),
        number_columns | category_columns | other_columns,
        min_size=1,
        max_size=4,
    ),
    target=st.none()
    | st.builds(Target, name=names.map("t_".__add__), classes=values)
    | st.builds(Target, name=names.map("t_".__add__), lower=st.floats(-1e9, 0.0), upper=st.floats(1e-9, 1e9)),
    person=st.none() | names.map("p_".__add__),
    pairs=st.sampled_from(["auto", "none"]),
)


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@settings(max_examples=60, deadline=None)
@given(schema=schemas)
@example(schema=Schema(name="\x85", columns={"é": TextColumn()}))
def test_files_bring_back_the_same_schema(
    schema: Schema, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"schema{suffix}"
    schema.save(path)
    loaded = Schema.load(path)
    assert loaded == schema
    assert loaded.digest == schema.digest
    assert list(loaded.columns) == list(schema.columns)


def test_copies_are_equal() -> None:
    schema = Schema.from_dict(described())
    assert copy.deepcopy(schema) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_the_digest_is_fixed_for_all_time() -> None:
    """Ledgers and certificates hold it: a change here breaks what people have stored."""
    assert (
        Schema.from_dict(described()).digest
        == "0a58540cd879dbae07c3040bae5ae478636e3110a90341101f51bb6313c06568"
    )


def test_the_digest_depends_on_the_order_of_columns_but_not_on_spelled_out_defaults() -> None:
    plain = Schema.from_dict(described())
    turned = Schema.from_dict(described(columns={"sex": SEX, "age": AGE}))
    spelled = Schema.from_dict(described(columns={"age": {**AGE, "knots": "auto", "lower": 0.0}, "sex": SEX}))
    assert plain.digest != turned.digest
    assert plain.digest == spelled.digest


@pytest.mark.parametrize(
    "change",
    [
        {"name": "u"},
        {"rows_per_person": 2},
        {"one_row_per_person": True},
        {"person": "id"},
        {"target": None},
        {"columns": {"age": AGE}},
    ],
)
def test_the_digest_depends_on_every_setting(change: dict[str, Any]) -> None:
    assert Schema.from_dict(described(**change)).digest != Schema.from_dict(described()).digest


def test_a_repeated_key_is_refused(tmp_path: Any) -> None:
    (tmp_path / "s.yaml").write_text("name: a\ncolumns:\n  age: {type: text}\n  age: {type: text}\n")
    (tmp_path / "s.json").write_text('{"name": "a", "name": "b", "columns": {"age": {"type": "text"}}}')
    with pytest.raises(SchemaError, match="'age' occurs twice"):
        Schema.load(tmp_path / "s.yaml")
    with pytest.raises(SchemaError, match="'name' occurs twice"):
        Schema.load(tmp_path / "s.json")


def test_other_keys_of_yaml_still_work() -> None:
    assert parse_yaml("a: &x {k: 1}\nb: *x\n") == {"a": {"k": 1}, "b": {"k": 1}}
    assert parse_json(json.dumps({"a": [1, {"k": None}]})) == {"a": [1, {"k": None}]}


def test_yaml_that_runs_code_is_refused(tmp_path: Any) -> None:
    (tmp_path / "s.yaml").write_text("name: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(SchemaError, match="not valid YAML"):
        Schema.load(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("s.yaml", "name: [", "not valid YAML"),
        ("s.json", "{", "not valid JSON"),
        ("s.toml", "", "must end in"),
        ("s.yaml", "", "mapping"),
        ("s.yaml", None, "cannot be read"),
    ],
)
def test_unreadable_files(file: str, text: str | None, message: str, tmp_path: Any) -> None:
    if text is not None:
        (tmp_path / file).write_text(text)
    with pytest.raises(SchemaError, match=message):
        Schema.load(tmp_path / file)


def test_a_target_is_stored_as_what_it_is() -> None:
    """A list of classes has no bounds: its stored form, and so the schema's digest, does not mention any."""
    assert Schema.from_dict(described()).to_dict()["target"] == {"name": "y", "classes": [0, 1]}
    number = Schema.from_dict(described(target={"name": "y", "lower": 0, "upper": 9}))
    assert number.to_dict()["target"] == {"name": "y", "lower": 0.0, "upper": 9.0}
    assert number.target is not None
    assert number.target.bounds == (0.0, 9.0)
