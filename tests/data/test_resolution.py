"""Rows at a resolution: exact shares, few entries, norms at most 1; and the resolution itself, from public numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privlearn.data import Resolution, Schema, SchemaEncoder
from privlearn.data.encoding import MAX_PAIRS, affordable_pairs, choose_resolution
from privlearn.errors import InvalidParameter, SchemaError
from tests.support.rows import dense, filled

COLUMNS: dict[str, Any] = {
    "age": {"type": "number", "lower": 0, "upper": 100, "missing": "zero"},
    "hour": {"type": "number", "period": 24},
    "since": {"type": "date", "lower": "2000-01-01", "upper": "2020-12-31"},
    "grade": {"type": "ordinal", "values": ["low", "middle", "high"]},
    "sex": {"type": "category", "values": ["female", "male"], "unknown": "other"},
}
ROWS: dict[str, list[Any]] = {
    "age": [0.0, 33.3, 100.0, 1e9, -5.0],
    "hour": [0.0, 24.0, 12.5, 23.9, 6.0],
    "since": ["2000-01-01", "2020-12-31", "2007-05-04", "1990-01-01", "2010-10-10"],
    "grade": ["low", "middle", "high", "low", "high"],
    "sex": ["female", "male", "unknown", "female", "male"],
}
FINE = Resolution(bins=64, bin_share=0.2, grid=8, pair_share=0.3)


def schema(columns: dict[str, Any] = COLUMNS, **settings: Any) -> Schema:
    return Schema.from_dict({"name": "clinic", "columns": columns, **settings})


def encoded(resolution: Resolution, rows: dict[str, list[Any]] = ROWS, **settings: Any) -> np.ndarray:
    return filled(SchemaEncoder(schema(**settings), resolution=resolution).encode(rows))


def shares(resolution: Resolution, **settings: Any) -> list[np.ndarray]:
    """Return the shares of bins, pairs and the rest in each row's squared norm."""
    encoder = SchemaEncoder(schema(**settings), resolution=resolution)
    names = np.array(encoder.feature_names)
    pairs = np.array([" x " in name for name in names])
    bins = np.array([" bin " in name for name in names]) & ~pairs
    squares = filled(encoder.encode(ROWS)) ** 2
    return [squares[:, part].sum(axis=1) for part in (bins, pairs, ~(bins | pairs))]


def test_shares_are_exact() -> None:
    for found, wanted in zip(shares(FINE), (0.2, 0.3, 0.5), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11)


def test_what_has_no_features_leaves_its_share_to_the_rest() -> None:
    for found, wanted in zip(shares(FINE, pairs="none"), (0.2, 0.0, 0.8), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-15)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=5), st.integers(2, 2000), st.integers(2, 16))
def test_no_row_is_longer_than_one_in_exact_arithmetic(cells: list[float], bins: int, grid: int) -> None:
    rows = {name: (cells if name == "age" else [column[0]] * len(cells)) for name, column in ROWS.items()}
    found = encoded(Resolution(bins=bins, bin_share=0.3, grid=grid, pair_share=0.3), rows)
    for row in found:
        assert 1 - 1e-9 < sum(Fraction(float(value)) ** 2 for value in row) <= 1


@pytest.mark.parametrize("bins", [32, 1024, 2**16])
@pytest.mark.parametrize("grid", [8, 200])
def test_entries_do_not_grow_with_the_resolution(bins: int, grid: int) -> None:
    encoder = SchemaEncoder(schema(), resolution=Resolution(bins, 0.2, grid, 0.2))
    rows: Any = encoder.encode(ROWS)
    # two hats and a line for three columns; two hats and two waves for hour; sex; three bins; ten pairs; intercept
    assert np.diff(rows.indptr).max() == 3 * 3 + 4 + 1 + 3 + 10 + 1
    assert rows.shape[1] == encoder.dimension == len(encoder.feature_names)


def test_neighbouring_hours_meet_at_midnight() -> None:
    rows = {name: [column[0]] * 3 for name, column in ROWS.items()} | {"hour": [0.0, 23.99, 12.0]}
    found = dense(SchemaEncoder(schema()).encode(rows))
    near, far = (float(np.linalg.norm(found[0] - found[place])) for place in (1, 2))
    assert near < 0.02 < 0.5 < far


def test_a_missing_cell_fills_neither_bins_nor_pairs() -> None:
    rows = {name: column[:1] for name, column in ROWS.items()} | {"age": [math.nan]}
    encoder = SchemaEncoder(schema(), resolution=FINE)
    found = filled(encoder.encode(rows))[0]
    speaks = [name for name, value in zip(encoder.feature_names, found, strict=True) if value]
    assert not any("age" in name for name in speaks)
    assert np.linalg.norm(found) == pytest.approx(1.0)


def test_a_resolution_survives_its_file() -> None:
    assert Resolution.from_dict(FINE.to_dict()) == FINE


@pytest.mark.parametrize(
    "settings", [{"bins": -1}, {"bin_share": 1.0}, {"bin_share": 0.6, "pair_share": 0.5}]
)
def test_impossible_resolutions_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Resolution(**settings)


class TestTheRule:
    def test_noise_that_grows_with_the_features_leaves_the_coarse_part_alone(self) -> None:
        assert choose_resolution(schema(), 10**6, 1.0, grows=True) == Resolution()

    def test_few_records_get_no_fine_features(self) -> None:
        assert choose_resolution(schema(), 3_700, 30.0) == Resolution(knots=4)

    @given(st.integers(1, 10**7), st.integers(1, 10**7), st.floats(0.0, 1e3))
    def test_shares_grow_with_records_and_fall_with_noise(self, one: int, other: int, noise: float) -> None:
        def shares_of(count: int, noise: float) -> tuple[float, float]:
            chosen = choose_resolution(schema(), count, noise)
            return chosen.bin_share, chosen.pair_share

        fewer, more = (shares_of(count, noise) for count in sorted((one, other)))
        assert all(small <= large for small, large in zip(fewer, more, strict=True))
        louder = shares_of(one, noise + 1.0)
        assert all(small <= large for small, large in zip(louder, shares_of(one, noise), strict=True))

    @pytest.mark.parametrize(("records", "noise", "grows", "knots"), [
        (639, 1e-9, False, 4), (641, 1e-9, False, 16),  # (4 * 640 / 5)^(1/3) = 8
        (6_390, 10.0, False, 4), (6_480, 10.0, False, 16),
        (4_000, 1.0, True, 4), (6_000, 1.0, True, 16),  # (4 * 4049 / 5^1.5)^(2/7) = 8 at noise 1
    ])  # fmt: skip
    def test_knots_follow_the_clarity(self, records: int, noise: float, grows: bool, knots: int) -> None:
        assert choose_resolution(schema(), records, noise, grows=grows).knots == knots

    def test_bins_replace_centred_rows_where_they_gain_more(self) -> None:
        form = schema({name: COLUMNS[name] for name in ("age", "sex")}, pairs="none")
        below, above = (choose_resolution(form, records, 0.0) for records in (4_499, 4_500))
        assert (below.bins, below.bin_share) == (0, 0.0)
        assert (above.bins, above.bin_share) == (256, round(0.3 * (1 - 1200 / 4500), 2))

    def test_stated_knots_stay(self) -> None:
        stated = schema({"x": {"type": "number", "lower": 0, "upper": 1, "knots": 9}, "y": COLUMNS["age"]})
        names = SchemaEncoder(stated, resolution=Resolution(knots=4)).feature_names
        assert len([name for name in names if name.startswith("x")]) == 9 + 1
        assert len([name for name in names if name.startswith("y")]) == 4 + 1
        assert Schema.from_dict(stated.to_dict()) == stated
        assert "knots" not in stated.to_dict()["columns"]["y"]

    def test_records_of_a_rare_class_count_less(self) -> None:
        """At a rate of 3 % the loss has 4 * 0.03 * 0.97 of the curvature that it has at equal shares."""
        target: dict[str, Any] = {"name": "ill", "classes": ["no", "yes"]}
        rare = schema(target=target | {"rate": 0.03})
        assert choose_resolution(rare, 10**6, 1.0) == choose_resolution(schema(target=target), 116_400, 1.0)
        even = schema(target=target | {"rates": {"no": 1.0, "yes": 1.0}})
        assert choose_resolution(even, 10**6, 1.0) == choose_resolution(schema(target=target), 10**6, 1.0)

    def test_a_table_of_lists_has_no_pairs_of_its_own(self) -> None:
        lists = {f"c{place}": COLUMNS["sex"] for place in range(5)}
        assert affordable_pairs(schema({"age": COLUMNS["age"], **lists})) == ()

    def test_too_many_pairs_are_none(self) -> None:
        many = {f"x{place}": COLUMNS["age"] for place in range(MAX_PAIRS)}
        assert affordable_pairs(schema(many)) == ()

    def test_smooth_measurements_have_no_bins(self) -> None:
        numbers = {f"x{place}": COLUMNS["age"] for place in range(4)}
        chosen = choose_resolution(schema(numbers), 10**6, 1.0)
        assert chosen is not None
        assert chosen.bins == 0


class TestPinned:
    def test_bins_and_pairs_that_are_asked_for_are_there(self) -> None:
        columns = {**COLUMNS, "age": {**COLUMNS["age"], "bins": 10}}
        asked = schema(columns, pairs=[["age", "sex"]])
        encoder = SchemaEncoder(asked, resolution=choose_resolution(asked, 10, math.inf))
        names = encoder.feature_names
        assert sum(name.startswith("age bin") for name in names) == 10
        assert sum(name.startswith("age x sex bin") for name in names) == 8 * 3
        assert not any(name.startswith("since bin") for name in names)

    def test_none_is_none(self) -> None:
        columns = {name: {**column, "bins": "none"} for name, column in COLUMNS.items() if name != "sex"}
        refused = schema(columns, pairs="none")
        encoder = SchemaEncoder(refused, resolution=choose_resolution(refused, 10**9, 0.0))
        assert not any(" bin " in name for name in encoder.feature_names)

    @pytest.mark.parametrize(
        ("pairs", "message"),
        [
            ([["age", "age"]], "itself"),
            ([["age", "shoe"]], "is not a column"),
            ([["age", "sex"], ["sex", "age"]], "twice"),
        ],
    )
    def test_pairs_are_of_two_columns(self, pairs: Any, message: str) -> None:
        with pytest.raises(SchemaError, match=message):
            schema(pairs=pairs)

    def test_what_is_not_said_is_not_written(self) -> None:
        written = schema().to_dict()
        assert "pairs" not in written
        assert "bins" not in written["columns"]["age"]
        assert "period" not in written["columns"]["age"]
        assert Schema.from_dict(written) == schema()
