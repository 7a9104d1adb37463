"""Schemas with gaps: what may be marked, what stands in, and what a purchase completes."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privlearn.data import CategoryColumn, PrivateBounds, Schema, SchemaDraft, SchemaEncoder, Target
from privlearn.data.schema import Bound
from privlearn.errors import DataError, SchemaError

AGE = {"type": "number", "lower": "estimate", "upper": "estimate"}
CITY = {"type": "category", "values": "estimate"}
SEX = {"type": "category", "values": ["f", "m"]}


def content(**changes: Any) -> dict[str, Any]:
    base = {
        "name": "t",
        "columns": {"age": AGE, "city": CITY, "sex": SEX},
        "target": {"name": "y", "classes": "estimate"},
    }
    return deepcopy({**base, **changes})  # tests change what they get


def receipt(**changes: Any) -> PrivateBounds:
    stated: dict[str, Any] = {
        "bounds": ("age lower", "age upper"), "anchors": 2, "epsilon": 0.1, "delta": 0.0, "neighbours": "replace_one",
        "records": 1000, "rows_per_person": 1, "person": False, "quantile_epsilon": 0.04, "randomness": "coins",
        "secure": False,
    }  # fmt: skip
    return PrivateBounds(**{**stated, **changes})


def test_marks_are_found_in_the_order_of_the_schema() -> None:
    draft = SchemaDraft.from_dict(content())
    assert [str(bound) for bound in draft.bounds] == ["age lower", "age upper"]
    assert draft.lists == {"city": str, "y": str}
    assert draft.centres == ("age",)
    assert not draft.is_complete


def test_one_side_may_be_public() -> None:
    draft = SchemaDraft.from_dict(
        content(columns={"age": {"type": "number", "lower": 18, "upper": "estimate"}})
    )
    assert draft.bounds == (Bound("age", "upper"),)
    assert draft.centres == ()
    assert draft.public_bound(draft.bounds[0]) == 18.0


def test_a_complete_schema_is_its_own_stand_in() -> None:
    whole = content(columns={"sex": SEX}, target={"name": "y", "classes": [0, 1]})
    draft = SchemaDraft.from_dict(whole)
    assert draft.is_complete
    assert draft.stand_in == Schema.from_dict(whole)


def test_what_is_given_is_not_changed() -> None:
    given = content()
    SchemaDraft.from_dict(given)
    assert given == content()


def test_the_stand_in_reads_any_value() -> None:
    encoder = SchemaEncoder(SchemaDraft.from_dict(content()).stand_in)
    assert encoder.encode({"age": [-1e9, 7.0], "city": ["Ulm", "Bonn"], "sex": ["f", "m"]}).shape[0] == 2


@pytest.mark.parametrize("part", ["lower", "upper", "values", "classes"])
@pytest.mark.parametrize("mark", ["estimate", "estimate whole numbers"])
def test_only_drafts_may_have_marks(part: str, mark: str) -> None:
    whole = content(
        columns={"age": {"type": "number", "lower": 0, "upper": 1}, "sex": SEX},
        target={"name": "y", "classes": [0, 1]},
    )
    place = {"classes": whole["target"], "values": whole["columns"]["sex"]}.get(part, whole["columns"]["age"])
    place[part] = mark
    with pytest.raises(SchemaError, match=rf"{part}: is still to be estimated. Run `privlearn discover`"):
        Schema.from_dict(whole)
    place[part] = 0 if part == "lower" else 1 if part == "upper" else [0, 1]


def test_a_list_s_type_is_declared_and_not_read_from_the_table() -> None:
    draft = SchemaDraft.from_dict(content(columns={"code": {**CITY, "values": "estimate whole numbers"}}))
    assert draft.lists == {"code": int, "y": str}
    code: Any = draft.stand_in.columns["code"]
    assert code.values == (0, 1)
    assert draft.digest != SchemaDraft.from_dict(content(columns={"code": CITY})).digest
    with pytest.raises(SchemaError, match=r"columns\.age: lower"):
        SchemaDraft.from_dict(content(columns={"age": {**AGE, "lower": "estimate whole numbers"}}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": {"city": {**CITY, "unknown": "refuse"}}}, "an estimated list has no rare values"),
        (
            {"target": {"name": "y", "classes": "estimate", "unknown": "refuse"}},
            "an estimated list has no rare values",
        ),
        ({"columns": {"age": {**AGE, "knots": 1}}}, "columns.age: knots"),
        ({"columns": {"age": {**AGE, "lower": "bye"}}}, "columns.age: lower"),
        (
            {"target": {"name": "y", "classes": "estimate", "lower": "estimate"}},
            "needs either classes, or lower",
        ),
        ({"columns": []}, "columns"),
        ({"target": {"name": "age", "classes": "estimate"}}, "is the target"),
    ],
    ids=["refuse", "refuse labels", "knots", "misspelt", "two kinds", "no mapping", "target twice"],
)
def test_the_rest_of_a_draft_is_checked_like_a_schema(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        SchemaDraft.from_dict(content(**changes))


def test_a_draft_must_be_a_mapping() -> None:
    with pytest.raises(SchemaError, match="mapping"):
        SchemaDraft.from_dict([])  # type: ignore[arg-type]


def completed(bounds: tuple[float, float], cities: list[str], classes: list[str]) -> Schema:
    draft = SchemaDraft.from_dict(content())
    bought = dict(zip(draft.bounds, bounds, strict=True))
    return draft.complete(bought, {"city": cities, "y": classes}, receipt())


def test_a_purchase_completes_it() -> None:
    schema = completed((17.0, 90.0), ["Bonn", "Ulm"], ["no", "yes"])
    age: Any = schema.columns["age"]
    assert (age.lower, age.upper) == (17.0, 90.0)
    assert schema.columns["city"] == CategoryColumn(values=("Bonn", "Ulm"), unknown="other")
    assert schema.target == Target(name="y", classes=("no", "yes"), unknown="zero")
    assert schema.private_bounds == (receipt(),)


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_bought_bounds_are_put_in_order_and_apart(lower: float, upper: float) -> None:
    age: Any = completed((lower, upper), ["Bonn"], ["no", "yes"]).columns["age"]
    assert age.lower == min(lower, upper)
    assert age.upper == max(lower, upper) or lower == upper


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_a_public_bound_stays_where_it_is(side: str) -> None:
    public, other = ("upper", 10.0) if side == "lower" else ("lower", 10.0)
    draft = SchemaDraft.from_dict(
        content(columns={"age": {"type": "number", side: "estimate", public: other}})
    )
    beyond = 10.0 if side == "lower" else -3.0
    age: Any = draft.complete({draft.bounds[0]: beyond}, {"y": [0, 1]}, receipt()).columns["age"]
    assert getattr(age, public) == 10.0
    assert age.lower < age.upper


def test_a_list_too_short_leaves_the_column_out() -> None:
    assert "city" not in completed((0.0, 1.0), [], ["no", "yes"]).columns
    assert "city" in completed((0.0, 1.0), ["Bonn"], ["no", "yes"]).columns  # Bonn or other
    with pytest.raises(SchemaError, match="fewer than two classes"):
        completed((0.0, 1.0), ["Bonn"], ["no"])
    only = SchemaDraft.from_dict({"name": "t", "columns": {"city": CITY}})
    with pytest.raises(SchemaError, match="no column is left"):
        only.complete({}, {"city": []}, receipt())


def test_a_second_purchase_keeps_the_first_receipt() -> None:
    first = completed((0.0, 1.0), ["Bonn"], ["no", "yes"]).to_dict()
    first["columns"]["more"] = AGE
    again = SchemaDraft.from_dict(first)
    schema = again.complete(dict.fromkeys(again.bounds, 2.0), {}, receipt(epsilon=0.2))
    assert [part.epsilon for part in schema.private_bounds] == [0.1, 0.2]


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_files_bring_back_drafts_and_receipts(suffix: str, tmp_path: Path) -> None:
    schema = completed((0.1, 1e-300), ["Bonn", "no", "1"], ["no", "yes"])
    schema.save(tmp_path / f"s.{suffix}")
    assert Schema.load(tmp_path / f"s.{suffix}") == schema
    assert SchemaDraft.load(tmp_path / f"s.{suffix}").stand_in == schema


def test_the_digest_depends_on_marks_and_receipts() -> None:
    one, other = (
        SchemaDraft.from_dict(content()),
        SchemaDraft.from_dict(content(target={"name": "y", "classes": [0, 1]})),
    )
    assert one.digest != other.digest
    whole = completed((0.0, 1.0), ["Bonn"], ["no", "yes"])
    assert whole.digest != whole.model_copy(update={"private_bounds": ()}).digest


@pytest.mark.parametrize(
    "changes",
    [
        {"quantile_epsilon": None},
        {"noise_scale": 1.0},
        {"lists": ("city",)},
        {"epsilon": 0},
        {"secure": "yes"},
    ],
    ids=["no constant", "a constant too many", "no noise", "free", "a word"],
)
def test_receipts_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        receipt(**changes)


def test_other_is_one_more_value() -> None:
    schema = Schema.from_dict(
        {"name": "t", "columns": {"city": {"type": "category", "values": ["Bonn"], "unknown": "other"}}}
    )
    encoder = SchemaEncoder(schema, fit_intercept=False)
    rows = np.asarray(encoder.encode({"city": ["Bonn", "Ulm", "Jena"]}))
    assert encoder.feature_names == ["city=Bonn", "city: other"]
    assert rows == pytest.approx(np.array([[1, -1], [-1, 1], [-1, 1]]) / np.sqrt(2))
    with pytest.raises(DataError, match="missing cells"):
        encoder.encode({"city": ["Bonn", None]})


def test_one_value_alone_tells_nothing_apart() -> None:
    with pytest.raises(SchemaError, match="needs at least two"):
        CategoryColumn(values=("Bonn",), unknown="zero")


def test_labels_outside_the_list() -> None:
    base = {"name": "t", "columns": {"sex": SEX}, "target": {"name": "y", "classes": ["a", "b"]}}
    with pytest.raises(DataError, match="unknown: zero"):
        SchemaEncoder(Schema.from_dict(base)).encode_labels(["a", "rare"])
    base["target"] = {"name": "y", "classes": ["a", "b"], "unknown": "zero"}
    assert SchemaEncoder(Schema.from_dict(base)).encode_labels(["a", "rare", "b"]).tolist() == [0, -1, 1]
    with pytest.raises(SchemaError, match="is for classes"):
        Target(name="y", lower=0, upper=1, unknown="zero")
