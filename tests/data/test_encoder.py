"""The encoder's numbers: what each column becomes, and that a row depends on nothing but itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer

from privlearn.data import NumberColumn, Schema, SchemaEncoder
from privlearn.data.encoding import ColumnCells, coarse_features, from_unit, to_unit
from privlearn.data.encoding.arrays import BLOCK
from privlearn.errors import DataError, SchemaError
from tests.support.rows import dense, filled


def spline_basis(position: np.ndarray[Any, Any], knots: int) -> np.ndarray[Any, Any]:
    """Return the centred features of positions in [0, 1], of shape (n, knots + 1)."""
    hats, line = coarse_features("x", NumberColumn(lower=0, upper=1, knots=knots))
    basis = np.empty((len(position), knots + 1))
    hats.write(ColumnCells.of(position), basis[:, :-1], is_centred=True)
    line.write(ColumnCells.of(position), basis[:, -1:], is_centred=True)
    return basis


def one_column(**settings: Any) -> Schema:
    return Schema.from_dict({"name": "t", "columns": {"x": settings}})


def unscaled(schema: Schema, cells: list[Any]) -> np.ndarray[Any, Any]:
    """Return the column's features before the row is divided by its norm, which the intercept reveals."""
    rows = SchemaEncoder(schema).encode({"x": cells})
    rows = rows.toarray() if sparse.issparse(rows) else rows
    return rows[:, :-1] / rows[:, -1:]


def test_a_linear_number_runs_from_minus_one_to_one() -> None:
    schema = one_column(type="number", lower=10, upper=30, encoding="linear")
    assert_allclose(unscaled(schema, [10, 15, 20, 30]).ravel(), [-1, -0.5, 0, 1], atol=1e-12)


def test_a_log_scale_is_even_in_the_logarithm() -> None:
    schema = one_column(type="number", lower=-5, upper=94, scale="log", encoding="linear")
    middle = -5 + math.sqrt(100) - 1
    assert_allclose(unscaled(schema, [-5, middle, 94]).ravel(), [-1, 0, 1], atol=1e-12)


def test_numbers_outside_are_clamped() -> None:
    schema = one_column(type="number", lower=0, upper=120)
    wide = unscaled(schema, [-(10.0**9), -math.inf, 10.0**9, math.inf, 1.7e308])
    assert_array_equal(wide, unscaled(schema, [0, 0, 120, 120, 120]))


def test_a_spline_is_the_column_s_own_function_of_the_position() -> None:
    schema = one_column(type="number", lower=-1, upper=3, knots=7)
    cells = [-1.0, 0.3, 2.9999, 3.0]
    expected = spline_basis((np.array(cells) + 1) / 4, 7)
    assert_allclose(unscaled(schema, cells), expected, atol=1e-12)


def test_a_category_is_its_centred_indicator() -> None:
    schema = one_column(type="category", values=["a", "b", "c", "d"])
    assert_allclose(unscaled(schema, ["c", "a"]), np.eye(4)[[2, 0]] - 0.25, atol=1e-12)


def test_text_is_its_hashed_words() -> None:
    schema = one_column(type="text", features=64, missing="zero")
    documents = ["the fever of the patient", "broken arm, broken leg", ""]
    expected = HashingVectorizer(n_features=64, norm="l2", alternate_sign=True).transform(documents).toarray()
    assert_allclose(unscaled(schema, documents), expected, atol=1e-12)


MISSING = [None, float("nan")]


@pytest.mark.parametrize("gap", MISSING, ids=str)
@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ({"type": "number", "lower": 0, "upper": 9}, 3.0),
        ({"type": "number", "lower": 0, "upper": 9, "encoding": "linear"}, 3.0),
        ({"type": "category", "values": [1, 2]}, 1.0),
        ({"type": "category", "values": ["a", "b"]}, "a"),
        ({"type": "text", "features": 16}, "word"),
    ],
)
def test_the_rule_zero_makes_a_gap_a_zero_vector(column: dict[str, Any], cell: Any, gap: Any) -> None:
    schema = one_column(missing="zero", **column)
    encoded = unscaled(schema, [cell, gap])
    assert np.any(encoded[0] != 0.0)
    assert_array_equal(encoded[1], 0.0)
    assert_array_equal(unscaled(schema, [gap, gap]), 0.0)


def test_the_rule_zero_makes_an_unknown_category_a_zero_vector() -> None:
    schema = one_column(type="category", values=["a", "b"], unknown="zero")
    assert_array_equal(unscaled(schema, ["a", "z"])[1], [0.0, 0.0])


def test_rows_have_norm_one_unless_they_are_zero() -> None:
    schema = one_column(type="category", values=["a", "b"], unknown="zero")
    rows = SchemaEncoder(schema, fit_intercept=False).encode({"x": ["a", "z", "b"]})
    assert_allclose(np.linalg.norm(dense(rows), axis=1), [1, 0, 1], atol=1e-10)


def test_names_and_dimension(schema: Schema, columns: dict[str, list[Any]]) -> None:
    for fit_intercept in (True, False):
        encoder = SchemaEncoder(schema, fit_intercept=fit_intercept)
        assert encoder.norm_bound == 1.0
        assert len(encoder.feature_names) == len(set(encoder.feature_names)) == encoder.dimension
        assert encoder.encode(columns).shape[1] == encoder.dimension
        assert ("intercept" in encoder.feature_names) == fit_intercept
    names = SchemaEncoder(schema).feature_names
    assert names[0] == "age[0]"
    assert names[-1] == "intercept"
    for name in ("income[4]", "weight", "sex=female", "ward=30", "smoker=True"):
        assert name in names


def test_text_between_other_columns_keeps_the_order_of_the_schema() -> None:
    number = {"type": "number", "lower": 0, "upper": 1, "encoding": "linear"}
    schema = Schema.from_dict(
        {"name": "t", "columns": {"a": number, "note": {"type": "text", "features": 4}, "b": number}}
    )
    encoder = SchemaEncoder(schema)
    rows = encoder.encode({"a": [1.0], "note": ["?"], "b": [0.0]})
    assert isinstance(rows, sparse.csr_array)
    assert encoder.feature_names == ["a", "note[0]", "note[1]", "note[2]", "note[3]", "b", "intercept"]
    assert_allclose(rows.toarray()[0] * math.sqrt(3), [1, 0, 0, 0, 0, -1, 1], atol=1e-10)


def test_dense_rows_are_ready_for_the_solver(schema: Schema, columns: dict[str, list[Any]]) -> None:
    rows = dense(SchemaEncoder(schema).encode(columns))
    assert rows.dtype == np.float64
    assert rows.flags.c_contiguous


@pytest.fixture
def big_table(schema: Schema, random: np.random.Generator) -> pa.Table:
    count = 2 * BLOCK + 17  # several blocks, the last one not full
    return pa.table(
        {
            "age": random.uniform(-20, 150, count),
            "income": random.lognormal(8, 4, count),
            "weight": random.normal(80, 60, count),
            "sex": random.choice(["female", "male"], count),
            "ward": random.choice([1, 2, 30], count),
            "smoker": random.random(count) < 0.3,
        }
    )


def test_a_row_s_encoding_depends_on_that_row_alone(schema: Schema, big_table: pa.Table) -> None:
    encoder = SchemaEncoder(schema)
    whole = encoder.encode(big_table)
    for place in (0, 1, BLOCK - 1, BLOCK, 2 * BLOCK, big_table.num_rows - 1):
        assert_array_equal(encoder.encode(big_table.slice(place, 1))[0], whole[place])


def test_the_order_of_rows_is_kept(schema: Schema, big_table: pa.Table, random: np.random.Generator) -> None:
    encoder = SchemaEncoder(schema)
    order = random.permutation(big_table.num_rows)
    assert_array_equal(encoder.encode(big_table.take(order)), encoder.encode(big_table)[order])


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(st.text(max_size=30) | st.none(), min_size=1, max_size=6))
def test_a_text_s_encoding_depends_on_that_text_alone(texts: list[str | None]) -> None:
    encoder = SchemaEncoder(one_column(type="text", features=32, missing="zero"))
    whole = filled(encoder.encode({"x": texts}))
    assert_array_equal(np.vstack([filled(encoder.encode({"x": [text]})) for text in texts]), whole)


@settings(max_examples=50, deadline=None)
@given(position=st.floats(0, 1), knots=st.integers(2, 40))
def test_splines_are_continuous(position: float, knots: int) -> None:
    here = spline_basis(np.array([position]), knots)[0]
    nearby = spline_basis(np.array([min(position + 1e-9, 1.0)]), knots)[0]
    assert np.linalg.norm(here - nearby) < 1e-6


@settings(max_examples=50, deadline=None)
@given(heights=st.lists(st.floats(-5, 5), min_size=2, max_size=9), position=st.floats(0, 1))
def test_splines_span_the_piecewise_linear_functions(heights: list[float], position: float) -> None:
    """Any function that is linear between equal knots is a linear function of the basis and a constant."""
    knots = np.linspace(0, 1, len(heights))
    at_knots = np.column_stack([spline_basis(knots, len(knots)), np.ones(len(knots))])
    weights = np.linalg.lstsq(at_knots, np.array(heights), rcond=None)[0]
    value = np.append(spline_basis(np.array([position]), len(knots))[0], 1.0) @ weights
    assert_allclose(value, np.interp(position, knots, heights), atol=1e-9)


LABELS = {
    "text": (["healthy", "ill"], ["ill", "healthy", "ill"]),
    "numbers": ([0, 1], [1, 0, 1]),
    "numbers as floats": ([0, 1], [1.0, 0.0, 1.0]),
    "numbers turned": ([4, -4], [-4, 4, -4]),
    "booleans": ([False, True], [True, False, True]),
}


@pytest.mark.parametrize(("classes", "labels"), LABELS.values(), ids=LABELS)
@pytest.mark.parametrize(
    "container", [list, np.array, pa.array, lambda labels: pa.chunked_array([labels[:1], labels[1:]])]
)
def test_labels_become_places_in_the_list_of_classes(classes: Any, labels: Any, container: Any) -> None:
    schema = Schema.from_dict(
        {"name": "t", "columns": {"x": {"type": "text"}}, "target": {"name": "y", "classes": classes}}
    )
    places = SchemaEncoder(schema).encode_labels(container(labels))
    assert places.dtype == np.int64
    assert_array_equal(places, [1, 0, 1])


def test_one_class_in_the_data_is_still_two_in_the_schema(schema: Schema) -> None:
    assert_array_equal(SchemaEncoder(schema).encode_labels(["ill", "ill"]), [1, 1])


def test_labels_need_a_target() -> None:
    with pytest.raises(SchemaError, match="no target"):
        SchemaEncoder(one_column(type="text")).encode_labels([1])


@pytest.mark.parametrize(
    "persons",
    [["b", "a", "b", "b"], [7, 1, 7, 7], [7.0, 1.0, 7.0, 7.0], pa.chunked_array([["b"], ["a", "b"], ["b"]])],
)
def test_every_person_weighs_one(persons: Any) -> None:
    schema = Schema.from_dict({"name": "t", "columns": {"x": {"type": "text"}}, "person": "id"})
    weights, count = SchemaEncoder(schema).person_weights({"id": persons, "x": ["w"] * 4})
    assert count == 2
    assert_allclose(weights, [1 / 3, 1, 1 / 3, 1 / 3])


def test_without_a_person_column_every_row_is_a_person(schema: Schema, columns: dict[str, Any]) -> None:
    weights, count = SchemaEncoder(schema).person_weights(columns)
    assert count == 4
    assert_array_equal(weights, np.ones(4))


def number_target(lower: float, upper: float) -> SchemaEncoder:
    target = {"name": "y", "lower": lower, "upper": upper}
    return SchemaEncoder(
        Schema.from_dict({"name": "t", "columns": {"x": {"type": "text"}}, "target": target})
    )


def test_targets_are_clamped_and_scaled() -> None:
    encoded = number_target(10.0, 20.0).encode_targets([10, 12.5, 20, -1e300, 1e300, np.inf])
    assert encoded.tolist() == [-1.0, -0.5, 1.0, -1.0, 1.0, 1.0]


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.lists(st.floats(allow_nan=False), min_size=1))
def test_scaled_targets_are_within_one_and_come_back(one: float, other: float, values: list[float]) -> None:
    lower, upper = sorted((one, other))
    assume(lower < upper)
    units = to_unit(np.array(values), (lower, upper))
    assert (np.abs(units) <= 1.0).all()
    back = from_unit(units, (lower, upper))
    size = max(abs(lower), abs(upper))
    assert np.allclose(back, np.clip(values, lower, upper), rtol=0.0, atol=1e-14 * size + 5e-324)
    assert ((lower <= back) & (back <= upper)).all()


def test_missing_targets_are_refused() -> None:
    for gap in (None, np.nan):
        with pytest.raises(DataError, match="target 'y' has missing cells"):
            number_target(0.0, 1.0).encode_targets([0.5, gap])


def test_targets_need_a_number_and_labels_need_classes() -> None:
    with pytest.raises(SchemaError, match="is a number"):
        number_target(0.0, 1.0).encode_labels([0, 1])
    columns = {"name": "t", "columns": {"x": {"type": "text"}}}
    with pytest.raises(SchemaError, match="no target"):
        SchemaEncoder(Schema.from_dict(columns)).encode_targets([0.5])
    labelled = columns | {"target": {"name": "y", "classes": [0, 1]}}
    with pytest.raises(SchemaError, match="has classes"):
        SchemaEncoder(Schema.from_dict(labelled)).encode_targets([0.5])
