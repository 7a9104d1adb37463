"""No encoded row is longer than 1, in exact arithmetic, whatever the table: every theorem stands on it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from privlearn.arrays import margin, rescale_dense, rescale_sparse
from privlearn.data import (
    ArrayEncoder,
    CategoryColumn,
    NumberColumn,
    OrdinalColumn,
    Resolution,
    Schema,
    SchemaEncoder,
    TextColumn,
)
from tests.support.rows import dense, filled

Squares = Callable[[Any], list[Fraction]]
fixture_safe = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
any_float = st.floats(allow_nan=True, allow_infinity=True)


@st.composite
def number_and_cells(draw: st.DrawFn) -> tuple[NumberColumn, list[float]]:
    lower, upper = sorted(draw(st.lists(st.floats(-8e307, 8e307), min_size=2, max_size=2, unique=True)))
    column = NumberColumn(
        lower=lower,
        upper=upper,
        scale=draw(st.sampled_from(["linear", "log"])),
        encoding=draw(st.sampled_from(["spline", "linear"])),
        knots=draw(st.integers(2, 20)),
        missing="zero",
    )
    edges = st.sampled_from([lower, upper, (lower / 2 + upper / 2), np.nextafter(lower, upper)])
    return column, draw(st.lists(any_float | edges, min_size=3, max_size=3))


@st.composite
def category_and_cells(draw: st.DrawFn) -> tuple[CategoryColumn, list[int]]:
    values = draw(st.lists(st.integers(-50, 50), min_size=2, max_size=30, unique=True))
    column = CategoryColumn(values=tuple(values), unknown="zero", missing="zero")
    return column, draw(st.lists(st.integers(-50, 50) | st.sampled_from(values), min_size=3, max_size=3))


@st.composite
def ordered_and_cells(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    if draw(st.booleans()):
        values = draw(st.lists(st.integers(-50, 50), min_size=2, max_size=30, unique=True))
        ordinal = OrdinalColumn(values=tuple(values), unknown="zero", missing="zero")
        return ordinal, draw(st.lists(st.integers(-50, 50), min_size=3, max_size=3))
    hour = NumberColumn.model_validate({"period": draw(st.floats(1e-6, 1e6)), "missing": "zero"})
    return hour, draw(st.lists(any_float, min_size=3, max_size=3))


resolutions = st.none() | st.builds(
    Resolution,
    bins=st.integers(2, 300),
    bin_share=st.floats(0.0, 0.45),
    grid=st.integers(2, 16),
    pair_share=st.floats(0.0, 0.45),
)
text_and_cells = st.tuples(
    st.builds(TextColumn, features=st.integers(2, 40), missing=st.just("zero")),
    st.lists(st.text(max_size=40), min_size=3, max_size=3),
)


@fixture_safe
@given(
    st.lists(
        number_and_cells() | category_and_cells() | ordered_and_cells() | text_and_cells,
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
    resolutions,
)
def test_no_row_of_any_table_is_longer_than_one(
    exact_squares: Squares, parts: Any, fit_intercept: bool, resolution: Resolution | None
) -> None:
    schema = Schema(name="t", columns={f"c{place}": column for place, (column, _) in enumerate(parts)})
    table = {f"c{place}": cells for place, (_, cells) in enumerate(parts)}
    rows = SchemaEncoder(schema, fit_intercept=fit_intercept, resolution=resolution).encode(table)
    squares = exact_squares(rows)
    assert all(square <= 1 for square in squares)
    assert all(square == 0 or square > Fraction(1) - Fraction(1, 10**9) for square in squares)


@fixture_safe
@given(
    st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
        min_size=1,
        max_size=4,
    ),
    st.floats(1e-300, 1e300),
    st.booleans(),
    st.booleans(),
)
def test_no_clipped_row_is_longer_than_one(
    exact_squares: Squares, rows: list[list[float]], bound: float, fit_intercept: bool, is_sparse: bool
) -> None:
    X = sparse.csr_array(np.array(rows)) if is_sparse else np.array(rows)
    encoded = ArrayEncoder(bound, 3, fit_intercept).encode(X)
    assert np.isfinite(filled(encoded) if is_sparse else dense(encoded)).all()
    assert all(square <= 1 for square in exact_squares(encoded))


@pytest.mark.parametrize("width", [1, 3, 104, 4096])
def test_rescaled_rows_of_any_width(width: int, random: np.random.Generator, exact_squares: Squares) -> None:
    rows = random.normal(size=(8, width)) * np.logspace(-100, 100, 8)[:, np.newaxis]
    csr = sparse.csr_array(rows)
    rescale_dense(rows)
    rescale_sparse(csr)
    for result in (rows, csr):
        assert all(0 <= 1 - square < Fraction(1, 2**35) for square in exact_squares(result))


def test_the_margin_grows_with_the_number_of_roundings() -> None:
    assert margin(10) == 1 - 2.0**-40
    for dimension in (1, 10**3, 10**6, 2**24):
        assert 1 - margin(dimension) > (dimension / 2 + 4) * 2.0**-53
        assert margin(dimension) > 1 - 1e-7
