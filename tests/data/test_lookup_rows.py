"""Rows that are looked up: the same products as with their vectors, up to the roundings that the certificate counts."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privlearn.data import Resolution, Schema, SchemaEncoder
from privlearn.data.encoding import (
    MAX_CELLS,
    BinIndicators,
    LookupTables,
    PackedCells,
    cover_pairs,
    lookup_tables,
)
from privlearn.data.encoding.packed_cells import MAX_DISTINCT
from privlearn.data.sources import CachedRows, EncodedRows
from privlearn.solvers import (
    HuberHinge,
    Logistic,
    Objective,
    Problem,
    Rows,
    minimise,
    minimise_multinomial,
    solve,
)
from privlearn.solvers.certifiable import SPARSE_BLOCK, gamma
from privlearn.solvers.multinomial import Softmax
from privlearn.solvers.problem import _tables_of, column_squares, row_squares, sample_rows

COLUMNS: dict[str, Any] = {
    "age": {"type": "number", "lower": 0, "upper": 100, "missing": "indicator"},
    "income": {"type": "number", "lower": 0, "upper": 1e6, "scale": "log"},
    "hour": {"type": "number", "period": 24, "missing": "zero"},
    "straight": {"type": "number", "lower": -1, "upper": 1, "encoding": "linear"},
    "since": {"type": "date", "lower": "2000-01-01", "upper": "2020-12-31", "missing": "zero"},
    "grade": {"type": "ordinal", "values": ["low", "middle", "high"], "missing": "zero"},
    "sex": {"type": "category", "values": ["female", "male"], "unknown": "other"},
    "ward": {"type": "category", "values": list("abcdefgh"), "unknown": "zero", "missing": "indicator"},
}
FINE = Resolution(bins=64, bin_share=0.2, grid=8, pair_share=0.3)
RESOLUTIONS = {
    "both": FINE,
    "bins": Resolution(bins=64, bin_share=0.2),
    "pairs": Resolution(grid=6, pair_share=0.4),
}


def table(rows: int, seed: int = 0, gaps: float = 0.1) -> pa.Table:
    """Return a table with every kind of column, and gaps wherever the schema allows some."""
    random = np.random.default_rng(seed)
    cells: dict[str, Any] = {
        "age": random.integers(-5, 110, rows),
        "income": random.lognormal(9, 2, rows),
        "hour": random.integers(0, 25, rows) * 1.0,
        "straight": random.choice([-1.0, -0.3, 0.0, 1.0], rows),
        "since": random.integers(10000, 19000, rows).astype("datetime64[D]"),
        "grade": random.choice(["low", "middle", "high"], rows),
        "sex": random.choice(["female", "male", "?"], rows),
        "ward": random.choice(list("abcdefghxyz"), rows),
    }
    missing = {name: random.random(rows) < gaps for name in ("age", "hour", "since", "grade", "ward")}
    return pa.table({name: pa.array(column, mask=missing.get(name)) for name, column in cells.items()})


def encoder(resolution: Resolution = FINE, fit_intercept: bool = True, **settings: Any) -> SchemaEncoder:
    schema = Schema.from_dict({"name": "clinic", "columns": COLUMNS} | settings)
    return SchemaEncoder(schema, fit_intercept=fit_intercept, resolution=resolution)


def expanded(rows: int, made: SchemaEncoder | None = None, **how: Any) -> EncodedRows:
    """Looked up however few the features are, which the encoder leaves to vectors."""
    made = encoder() if made is None else made
    cells = PackedCells()
    cells.add(made.cells(table(rows, **how)))
    return EncodedRows(cells, made.expand, made.dimension, True, LookupTables(made.layout))


def tables_of(rows: EncodedRows) -> LookupTables:
    assert isinstance(rows.tables, LookupTables)
    return rows.tables


def check_products(rows: EncodedRows) -> None:
    """Both products and both squares, against the vectors, each within the roundings that are counted."""
    tables, random, start = tables_of(rows), np.random.default_rng(1), 0
    coefficients = random.normal(size=rows.shape[1])
    for block in rows.map_blocks(lambda _, block: block, tables):
        vectors: Any = rows.in_memory()[start : start + block.shape[0]]
        start += block.shape[0]
        weights = random.normal(size=block.shape[0])
        bound = gamma(tables.product_depth) * (abs(vectors) @ abs(coefficients))
        assert np.all(abs(block @ tables.table_coefficients(coefficients) - vectors @ coefficients) <= bound)
        bound = gamma(tables.sum_depth) * (abs(vectors).T @ abs(weights))
        assert np.all(abs(tables.feature_sums(block.T @ weights) - vectors.T @ weights) <= bound)
        np.testing.assert_allclose(row_squares(block), row_squares(vectors), rtol=1e-13)
        squares = tables.feature_square_sums(column_squares(block, abs(weights)))
        np.testing.assert_allclose(squares, column_squares(vectors, abs(weights)), rtol=1e-11)
        assert block.size == vectors.size
    assert start == len(rows)


@pytest.mark.parametrize("resolution", RESOLUTIONS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("gaps", [0.0, 0.3, 1.0])
def test_products_are_those_of_the_vectors(resolution: str, fit_intercept: bool, gaps: float) -> None:
    check_products(expanded(700, encoder(RESOLUTIONS[resolution], fit_intercept), gaps=gaps))


@given(
    st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=8, unique=True),
    st.integers(2, 300),
    st.integers(2, 20),
    st.integers(1, 40),
    st.integers(0, 9),
    st.data(),
)
def test_any_columns_and_pairs(
    names: list[str], bins: int, grid: int, rows: int, seed: int, data: st.DataObject
) -> None:
    pairs = (
        data.draw(st.lists(st.sampled_from(list(combinations(names, 2))), unique=True)) if names[1:] else []
    )
    settings: dict[str, Any] = {
        "columns": {name: COLUMNS[name] for name in names},
        "pairs": [list(pair) for pair in pairs] or "none",
    }
    made = encoder(Resolution(bins, 0.3, grid, 0.3), **settings)
    check_products(expanded(rows, made, seed=seed))


def test_several_vectors_at_once() -> None:
    rows = expanded(500)
    tables, vectors = tables_of(rows), rows.in_memory()
    (block,) = rows.map_blocks(lambda _, block: block, tables)
    random = np.random.default_rng(2)
    coefficients, weights = random.normal(size=(rows.shape[1], 3)), random.normal(size=(500, 3))
    np.testing.assert_allclose(
        block @ tables.table_coefficients(coefficients), vectors @ coefficients, atol=1e-12
    )
    np.testing.assert_allclose(tables.feature_sums(block.T @ weights), vectors.T @ weights, atol=1e-11)


def test_cells_that_are_not_packed() -> None:
    made = encoder()
    cells, tables = made.cells(table(300)), tables_of(expanded(1, made))
    vector = np.random.default_rng(0).normal(size=made.dimension)
    np.testing.assert_allclose(
        tables.block(cells) @ tables.table_coefficients(vector), made.expand(cells) @ vector, atol=1e-12
    )


@pytest.mark.parametrize("numbers", [3, 9])
@pytest.mark.parametrize("last", [[], [5], [5, 90], [-1, 90]])
def test_few_rows_of_a_list_behind_many_features(numbers: int, last: list[int]) -> None:
    """Their numbers are packed in a byte each, which does not hold where their features are."""
    columns = {f"number {place}": COLUMNS["age"] for place in range(numbers)} | {
        "ward": {"type": "category", "values": [f"{place}" for place in range(100)], "unknown": "zero"}
    }
    made = encoder(columns=columns)
    cells = {name: np.full(len(last), 0.5) for name in columns} | {"ward": np.array(last, dtype=np.int64)}
    packed = PackedCells()
    packed.add(cells)
    check_products(made.expand_lazily(packed))


def test_every_pair_is_in_one_table_and_few_tables_tell_them_all() -> None:
    sizes = {**{f"number {place}": 16 for place in range(7)}, "long list": 5000, "short list": 3}
    cuts = [BinIndicators({name: sizes[name] for name in pair}) for pair in combinations(sizes, 2)]
    tables = cover_pairs(cuts)
    assert sorted(cut.columns for told in tables.values() for cut in told) == sorted(
        cut.columns for cut in cuts
    )
    for table, told in tables.items():
        assert math.prod(size + 1 for _, size in table) <= MAX_CELLS or len(told) == 1
    assert len(tables) <= 8 + 28 // 2  # nothing can be beside the long list


def test_places_in_tables_are_exact_whole_numbers() -> None:
    """Single precision counts to 2^24; the features are limited so that there are never as many cells."""
    longest = {name: {"type": "category", "values": [f"{place}" for place in range(9000)]} for name in "ab"}
    columns = {"age": COLUMNS["age"], "hour": COLUMNS["hour"], **longest}
    made = encoder(Resolution(grid=8, pair_share=0.4), columns=columns, pairs=[["age", "a"], ["hour", "b"]])
    for one in (tables_of(expanded(1)), lookup_tables(made.layout)):
        assert one is not None
        assert one.width < 2**24
        assert np.array_equal(one.strides, one.strides.astype(np.int64))


def tables_chosen(made: SchemaEncoder) -> Any:
    return made.expand_lazily(PackedCells()).tables


def test_whoever_reads_under_the_same_schema_shares_the_tables() -> None:
    first, again = tables_chosen(encoder()), tables_chosen(encoder())
    assert first is not None
    assert first is again
    assert tables_chosen(encoder(FINE, fit_intercept=False)) is not first
    assert tables_chosen(encoder(Resolution(bins=64, bin_share=0.2, grid=9, pair_share=0.3))) is not first


def test_few_features_or_too_many_or_words_are_not_looked_up() -> None:
    assert tables_chosen(encoder(Resolution(2**16, 0.3, 2**12, 0.3))) is None
    assert tables_chosen(encoder(Resolution())) is None
    columns = {f"list {place}": COLUMNS["sex"] for place in range(40)}  # 780 pairs
    assert (
        tables_chosen(encoder(columns=columns, pairs=[list(pair) for pair in combinations(columns, 2)]))
        is None
    )
    columns = {"age": COLUMNS["age"], "note": {"type": "text", "missing": "zero"}}
    assert tables_chosen(encoder(columns=columns)) is None


def test_what_the_encoder_chooses_is_what_the_solver_certifies() -> None:
    """Else rows at hand would be expanded in every pass."""
    for columns in (3, 30, 60, 90, 150):
        named = {
            f"{name} {place}": COLUMNS[name]
            for place in range(columns)
            for name in ("age", "ward", "straight")
        }
        made = encoder(Resolution(bins=64, bin_share=0.2), columns=named)
        rows = EncodedRows(PackedCells(), made.expand, made.dimension, True, tables_chosen(made))
        assert (_tables_of(rows) is None) == (rows.tables is None)


@pytest.mark.parametrize(("lists", "looked_up"), [(1, False), (20, True)])
def test_numbers_that_hardly_repeat_are_not_looked_up(lists: int, looked_up: bool) -> None:
    """Unless most of a row is something else: four numbers fill three slots each, a list and a pair one."""
    columns: dict[str, Any] = {f"x{place}": {"type": "number", "lower": 0, "upper": 1} for place in range(4)}
    columns |= {f"list {place}": {"type": "category", "values": ["a", "b"]} for place in range(lists)}
    made = encoder(Resolution(grid=40, pair_share=0.3), columns=columns, pairs=[["x0", "x1"]])
    random = np.random.default_rng(0)
    own, few = random.random(MAX_DISTINCT + 1), random.integers(0, 9, MAX_DISTINCT + 1) / 9
    for numbers, expected in ((own, looked_up), (few, True)):
        cells = PackedCells()
        words = dict.fromkeys((name for name in columns if name.startswith("list")), ["a"] * len(own))
        cells.add(made.cells(pa.table({f"x{place}": numbers for place in range(4)} | words)))
        assert (made.expand_lazily(cells).tables is not None) == expected


def problem(rows: Any, loss: Any, count: int) -> Problem:
    signs = np.sign(np.random.default_rng(3).normal(size=count))
    return Problem(rows, signs, loss, 1e-3, count)


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge()], ids=["logistic", "huber hinge"])
def test_the_gradient_is_within_the_certified_rounding(loss: Any) -> None:
    rows = expanded(3000)
    looked_up, made = (Objective(problem(each, loss, 3000)) for each in (rows, rows.in_memory()))
    assert looked_up.rows.width == tables_of(rows).width != rows.shape[1]
    coefficients = 10.0 * np.random.default_rng(4).normal(size=rows.shape[1])
    one, other = looked_up.at(coefficients), made.at(coefficients)
    assert np.linalg.norm(one.gradient - other.gradient) <= looked_up.rounding(one) + made.rounding(other)
    assert np.linalg.norm(one.gradient - other.gradient) > 0  # two ways indeed
    vector = np.random.default_rng(5).normal(size=rows.shape[1])
    np.testing.assert_allclose(
        looked_up.hessian_product(looked_up.second_derivatives(one), vector),
        made.hessian_product(made.second_derivatives(other), vector),
        atol=1e-7,  # curvatures are kept in single precision
    )
    found, entries = looked_up.diagonal(looked_up.second_derivatives(one))
    wanted, entries_of_vectors = made.diagonal(made.second_derivatives(other))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12)
    assert entries == entries_of_vectors


def test_the_same_minimiser() -> None:
    rows = expanded(2000)
    found = minimise(problem(rows, Logistic(), 2000), tolerance=1e-10)
    wanted = minimise(problem(rows.in_memory(), Logistic(), 2000), tolerance=1e-10)
    assert np.linalg.norm(found.coefficients - wanted.coefficients) <= found.distance + wanted.distance


def test_the_same_minimiser_of_several_classes() -> None:
    rows, labels = expanded(1000), np.arange(1000) % 3
    settings: Any = {
        "labels": labels,
        "n_classes": 3,
        "regularization": 1e-2,
        "total": 1000,
        "tolerance": 1e-9,
    }
    found, wanted = (minimise_multinomial(each, **settings) for each in (rows, rows.in_memory()))
    assert np.linalg.norm(found.coefficients - wanted.coefficients) <= found.distance + wanted.distance


def test_the_diagonal_of_several_classes() -> None:
    rows, labels = expanded(400), np.arange(400) % 3
    diagonals: list[Any] = []
    for each in (rows, rows.in_memory()):
        zero = np.zeros(3 * rows.shape[1])
        softmax = Softmax(Rows(each, 1.0), labels, 3, 1e-2, np.full(400, 1 / 400), 1.0, zero)
        diagonals.append(softmax.diagonal(softmax.second_derivatives(softmax.at(zero))))
    np.testing.assert_allclose(diagonals[0], diagonals[1], rtol=1e-10, atol=1e-15)


def test_what_would_round_more_often_than_is_certified_is_not_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = expanded(50)
    assert Rows(rows, 1.0).width != rows.shape[1]
    monkeypatch.setattr(tables_of(rows), "product_depth", 10**6)
    assert Rows(rows, 1.0).width == rows.shape[1]
    monkeypatch.undo()
    monkeypatch.setattr(tables_of(rows), "sum_depth", SPARSE_BLOCK + 1)
    assert Rows(rows, 1.0).width == rows.shape[1]


def test_a_block_has_no_more_rows_than_its_sums_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LookupTables, "max_rows", 70)
    rows = expanded(300)
    sizes = list(rows.map_blocks(lambda _, block: block.shape[0], rows.tables))
    assert max(sizes) == 70
    assert sum(sizes) == 300
    check_products(rows)


def test_rows_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from privlearn.errors import InvalidParameter

    monkeypatch.setattr("privlearn.arrays.margin", lambda dimension: 1.001)
    with pytest.raises(InvalidParameter, match="longer than norm_bound"):
        minimise(problem(expanded(300), Logistic(), 300), tolerance=1e-6)


def test_kept_rows_are_made_once() -> None:
    rows = expanded(6000)
    kept = rows.for_many_passes()
    assert isinstance(kept, CachedRows)
    assert isinstance(kept.take(np.arange(5)), CachedRows)
    first = list(kept.map_blocks(lambda _, block: id(block), kept.tables))
    assert list(kept.map_blocks(lambda _, block: id(block), kept.tables)) == first
    assert not isinstance(expanded(20).for_many_passes(), EncodedRows)  # too few for tables
    assert isinstance(sample_rows(rows, 2), CachedRows)
    assert isinstance(sample_rows(rows, 1000), type(rows.in_memory()))
    check_products(kept)


def test_a_small_table_has_a_cell_more_for_gaps() -> None:
    """Two columns with 2 and 3 bins: 3 x 4 cells, of which 6 are the pair's features."""
    columns = {
        "sex": COLUMNS["sex"] | {"unknown": "zero"},
        "grade": {"type": "category", "values": ["a", "b", "c"]},
    }
    made = encoder(Resolution(grid=2, pair_share=0.5), columns=columns, pairs=[["sex", "grade"]])
    tables = LookupTables(made.layout)
    assert tables.cells == slice(5, 17)
    assert np.count_nonzero(tables.squares[tables.cells]) == 6


def test_a_sample_grows_with_the_rows_only_where_they_take_little_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(solve, "MAX_SAMPLE_ROWS", 600)
    monkeypatch.setattr(solve, "ROWS_PER_COLUMN", 0)
    rows = expanded(20_000, encoder(columns={"age": COLUMNS["age"], "ward": COLUMNS["ward"]}))
    of_vectors = EncodedRows(rows._source, rows._encode, rows.shape[1], True)
    sizes = []
    for features in (rows, of_vectors):
        part = solve._sample(problem(features, Logistic(), 20_000))
        assert part is not None
        sizes.append(part.features.shape[0])
    assert sizes == [625, 607]
