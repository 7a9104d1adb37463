"""What a cell becomes, whatever type its column has; `test_row_local.py` exchanges rows in whole tables."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privlearn.data import Schema, SchemaEncoder
from privlearn.data.encoding import owners
from privlearn.data.encoding.column_cells import MISSING, UNKNOWN, codes, distinct, numbers
from privlearn.data.sources import as_array
from tests.support.canary import CANARY_TEXT

Refused = Callable[..., AbstractContextManager[None]]
LARGEST = 2**53 - 1


def test_a_number_is_the_nearest_float() -> None:
    cells = [2**53 + 1, 2**63, 10**30 + 1, Decimal("0.1"), np.float32(0.1), True, 0.1, -0.0, None]
    expected = [2.0**53, 2.0**63, 1e30, 0.1, float(np.float32(0.1)), 1.0, 0.1, 0.0, np.nan]
    assert numbers(as_array(cells, "x"), "x").tobytes() == np.array(expected).tobytes()


@pytest.mark.parametrize("digits", [2, 7, 20, 40])
def test_a_decimal_does_not_depend_on_the_digits_of_its_column(digits: int) -> None:
    """Arrow's own conversion is wrong in the last bit for a third of these, each scale for others."""
    cells = [f"0.{place:07d}" for place in range(1, 10**7, 99_991)]
    longest = Decimal(1) / 10**digits
    column = pa.array([*map(Decimal, cells), longest], pa.decimal256(76, 45))
    assert numbers(column, "x")[:-1].tolist() == [float(cell) for cell in cells]
    assert numbers(as_array([*map(Decimal, cells), longest], "x"), "x")[:-1].tolist() == [
        float(cell) for cell in cells
    ]


KEPT: list[Callable[[list[int]], Any]] = [
    pa.array,
    lambda cells: pa.array(np.array(cells, dtype=np.float64)),
    lambda cells: as_array([*map(Decimal, cells)], "x"),
    lambda cells: as_array([cells[0], float(cells[1]), *cells[2:]], "x"),
    lambda cells: as_array([*cells[:-1], Decimal(cells[-1])], "x"),
]


@pytest.mark.parametrize("kept", KEPT, ids=["integers", "floats", "decimals", "one float", "one decimal"])
def test_listed_integers_are_found_and_larger_ones_are_never(kept: Callable[[list[int]], Any]) -> None:
    cells = [LARGEST, -LARGEST, LARGEST + 1, LARGEST + 2, 7]
    assert codes(kept(cells), [7, LARGEST, -LARGEST], "x").tolist() == [1, 2, UNKNOWN, UNKNOWN, 0]
    assert sorted(distinct(kept(cells), int, "x")[0]) == [-LARGEST, 7, LARGEST]


def test_only_the_stated_type_is_counted(refused: Refused) -> None:
    assert distinct(pa.array([1.5, 2.0, None, np.nan]), int, "x")[0] == [2]
    for column in (pa.array([1, 2]), pa.array([True]), as_array(["a", 1], "x")):
        with refused("x holds", "`estimate whole numbers`"):
            distinct(column, str, "x")


@pytest.mark.parametrize(
    "cell",
    [CANARY_TEXT, "7_0", "\u0667", "0x7", b"7", [7], {7}, 7j, Fraction(7), np.datetime64("2001-01-01")],
)
def test_a_cell_of_another_type_is_no_missing_cell(cell: Any, refused: Refused) -> None:
    number = {"type": "number", "lower": 0, "upper": 9, "missing": "zero"}
    category = {"type": "category", "values": [1, 2], "missing": "zero", "unknown": "zero"}
    for column in (number, category):
        encoder = SchemaEncoder(Schema.from_dict({"name": "t", "columns": {"x": column}}))
        with refused("column 'x' holds"):
            encoder.encode({"x": [1, cell]})


def test_arrow_finds_no_type_for_all_cells_of_a_list(refused: Refused) -> None:
    """pyarrow 26 makes an integer of 1.5 beside 300, and ends the process for a date beside a single float."""
    assert numbers(as_array([np.float16(1.5), 300], "x"), "x").tolist() == [1.5, 300.0]
    with refused("x holds cells of several types"):
        numbers(as_array([np.datetime64("2001-01-01"), np.float32(1.0)], "x"), "x")


def test_missing_in_every_kind_of_column() -> None:
    gaps = as_array([None, float("nan"), Decimal("NaN")], "x")
    assert np.isnan(numbers(gaps, "x")).all()
    for values in ([1, 2], ["a", "b"], [True, False]):
        assert (codes(gaps, values, "x") == MISSING).all()
        assert (codes(pa.array([None, float("nan")]), values, "x") == MISSING).all()


@pytest.mark.parametrize(
    "persons",
    [
        [7, 8, 7],
        [7.0, 8.0, 7.0],
        ["7", "8", "007"],
        ["7", "8", " 7.00"],
        [7, 8, "7"],
        [7, "x", 7.0],
        [2**53 + 1, 2**53, 2**53 + 1],
        [2**53 + 1, 2**53, str(2**53 + 1)],
        [Decimal(7), Decimal(8), Decimal("7.0")],
        ["a", "A", "a"],
    ],
)
def test_the_first_and_the_last_row_are_one_person_s(persons: list[Any]) -> None:
    assert owners(as_array(persons, "x"), "x").tolist() == [0, 1, 0]
