"""Sums of a regression: what one person moves, on rows built to be the worst."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privlearn import Schema
from privlearn.arrays import Array
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.statistics.scoring import unpack_symmetric
from privlearn.statistics import CountsLayout
from privlearn.statistics.regression import RegressionRows, read_cells, read_request, regression_layout

FORMULA = "y ~ x*z + I(x^2) + group"
FAMILIES = ("logistic", "ordinal", "linear", "poisson")
CLASSES = {"logistic": 2, "ordinal": 4}


def schema_for(family: str, *, persons: bool = False) -> Schema:
    target: dict[str, Any] = {"name": "y", "lower": 0.0, "upper": 50.0}
    if family in CLASSES:
        target = {"name": "y", "classes": list(range(CLASSES[family]))}
    columns = {
        "x": {"type": "number", "lower": -1000, "upper": 1000},
        "z": {"type": "number", "lower": 0, "upper": 10},
        "time": {"type": "number", "lower": 0.5, "upper": 2},
        "group": {"type": "category", "values": ["a", "b", "c"]},
    }
    person = {"person": "who"} if persons else {}
    return Schema.from_dict({"name": "t", "columns": columns, "target": target, **person})


def table_of(family: str, size: int, generator: np.random.Generator) -> dict[str, Any]:
    outcome: Any = generator.poisson(3, size) * 1.0
    if family in CLASSES:
        outcome = generator.integers(0, CLASSES[family], size)
    return {
        "x": generator.normal(0, 2, size),
        "z": generator.uniform(0, 10, size),
        "time": generator.uniform(0.5, 2, size),
        "group": generator.choice(["a", "b", "c"], size),
        "y": outcome,
    }


def extreme_rows(family: str) -> dict[str, Any]:
    """Return rows far out, with the outcome that the model expects least, and ordinary ones."""
    outcomes = [0, CLASSES[family] - 1] if family in CLASSES else [0.0, 50.0]
    rows = [
        (x, z, time, group, y)
        for x in (-1000.0, 0.0, 3.0, 1000.0)
        for z in (0.0, 10.0)
        for time in (0.5, 2.0)
        for group in ("a", "c")
        for y in outcomes
    ]
    return {
        name: np.array(values)
        for name, values in zip(("x", "z", "time", "group", "y"), zip(*rows, strict=True), strict=True)
    }


def layout_for(family: str, schema: Schema, records: int) -> CountsLayout:
    exposure = "time" if family == "poisson" else None
    return regression_layout(
        read_request(FORMULA, schema, family, exposure), schema, Guarantee(1.0, 1e-6, "zero_out"), records
    )


def all_sums(
    table: dict[str, Any], family: str, schema: Schema, layout: CountsLayout, at: list[Array]
) -> list[Array]:
    """Return the exact sums of a table at given released values."""
    exposure = "time" if family == "poisson" else None
    rows = read_cells(table, schema, read_request(FORMULA, schema, family, exposure))
    oracle = RegressionRows(rows, layout)
    return [oracle.sums(at[:index]) for index in range(len(layout.mechanism.cells))]


def released_by(table: dict[str, Any], family: str, schema: Schema, layout: CountsLayout) -> list[Array]:
    exposure = "time" if family == "poisson" else None
    oracle = RegressionRows(
        read_cells(table, schema, read_request(FORMULA, schema, family, exposure)), layout
    )
    released: list[Array] = []
    for _ in layout.mechanism.cells:
        released.append(oracle.sums(released))
    return released


@pytest.mark.parametrize("family", FAMILIES)
def test_one_record_moves_each_sum_by_at_most_its_bound(family: str) -> None:
    schema = schema_for(family)
    base = table_of(family, 300, np.random.default_rng(0))
    layout = layout_for(family, schema, 300)
    at = released_by(base, family, schema, layout)
    before = all_sums(base, family, schema, layout, at)
    extreme, largest = extreme_rows(family), np.zeros(len(before))
    for row in range(len(extreme["y"])):
        more = {name: np.append(base[name], extreme[name][row]) for name in base}
        moves = [b - a for a, b in zip(before, all_sums(more, family, schema, layout, at), strict=True)]
        largest = np.maximum(largest, [np.linalg.norm(move) for move in moves])
        for kind, move in zip(layout.mechanism.kinds, moves, strict=True):  # type: ignore[attr-defined]
            if kind == "matrix":
                values = np.linalg.eigvalsh(unpack_symmetric(move))
                assert values.min() >= -1e-9
                assert values.sum() <= 1.0
    assert (largest <= 1.0).all()
    assert largest.max() > 0.99
    kinds = np.array(layout.mechanism.kinds)  # type: ignore[attr-defined]
    for kind in ("vector", "matrix"):  # the bounds are not far from what rows reach
        assert largest[kinds == kind].max() > 0.25


@pytest.mark.parametrize("family", FAMILIES)
def test_all_rows_of_one_person_move_each_sum_by_at_most_its_bound(family: str) -> None:
    schema = schema_for(family, persons=True)
    base = table_of(family, 200, np.random.default_rng(1)) | {"who": np.arange(200)}
    layout = layout_for(family, schema, 200)
    at = released_by(base, family, schema, layout)
    before = all_sums(base, family, schema, layout, at)
    extreme = extreme_rows(family)
    size = len(extreme["y"])
    more = {name: np.concatenate([base[name], np.tile(extreme[name], 5)]) for name in extreme}
    more["who"] = np.concatenate([base["who"], np.full(5 * size, 999)])
    for a, b in zip(before, all_sums(more, family, schema, layout, at), strict=True):
        assert np.linalg.norm(b - a) <= 1.0


@pytest.mark.parametrize("family", FAMILIES)
def test_a_person_with_equal_rows_counts_as_one_row(family: str) -> None:
    schema = schema_for(family, persons=True)
    base = table_of(family, 200, np.random.default_rng(1)) | {"who": np.arange(200)}
    layout = layout_for(family, schema, 200)
    at = released_by(base, family, schema, layout)
    fourfold = {name: np.repeat(values, 4) for name, values in base.items()}
    for a, b in zip(
        all_sums(base, family, schema, layout, at),
        all_sums(fourfold, family, schema, layout, at),
        strict=True,
    ):
        assert np.allclose(a, b, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("family", ["poisson", "ordinal"])
def test_sums_do_not_depend_on_the_order_of_rows(family: str) -> None:
    schema = schema_for(family)
    base = table_of(family, 500, np.random.default_rng(2))
    layout = layout_for(family, schema, 500)
    at = released_by(base, family, schema, layout)
    order = np.random.default_rng(3).permutation(500)
    shuffled = {name: values[order] for name, values in base.items()}
    for a, b in zip(
        all_sums(base, family, schema, layout, at),
        all_sums(shuffled, family, schema, layout, at),
        strict=True,
    ):
        assert np.array_equal(a, b)


def test_many_levels_take_no_more_memory_than_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, sizes = schema_for("ordinal"), []
    base = table_of("ordinal", 300, np.random.default_rng(2))
    layout = layout_for("ordinal", schema, 300)
    at = released_by(base, "ordinal", schema, layout)

    def logistic(predictor: Array) -> Array:
        sizes.append(len(predictor))
        return np.asarray(1.0 / (1.0 + np.exp(-predictor)))

    monkeypatch.setattr("privlearn.statistics.regression.families._logistic", logistic)
    whole = all_sums(base, "ordinal", schema, layout, at)
    assert max(sizes) == 3 * 300
    sizes.clear()
    monkeypatch.setattr("privlearn.statistics.regression.rows.BLOCK", 100)
    parts = all_sums(base, "ordinal", schema, layout, at)
    assert max(sizes) <= 100 + 3
    for a, b in zip(whole, parts, strict=True):
        assert np.array_equal(a, b)


def test_rows_with_a_gap_have_no_weight() -> None:
    schema = schema_for("linear")
    base = table_of("linear", 100, np.random.default_rng(4))
    layout = layout_for("linear", schema, 100)
    at = released_by(base, "linear", schema, layout)
    for name in ("x", "y"):
        more = {key: np.append(values, values[:1]) for key, values in base.items()}
        more[name] = more[name].copy()
        more[name][-1] = np.nan
        for a, b in zip(
            all_sums(base, "linear", schema, layout, at),
            all_sums(more, "linear", schema, layout, at),
            strict=True,
        ):
            assert np.array_equal(a, b)


def test_no_cell_is_in_a_repr() -> None:
    schema = schema_for("linear", persons=True)
    table = table_of("linear", 5, np.random.default_rng(4)) | {"who": [7, 7, 8, 9, 9]}
    rows = read_cells(table, schema, read_request(FORMULA, schema, "linear", None))
    assert "array" not in repr(rows)
