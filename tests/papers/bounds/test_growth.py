"""Growth laws: ratios by hand, and where there is a number with constants, against it."""

from __future__ import annotations

import math

import pytest

from privlearn.accounting import ra12_noise_scale
from privlearn.papers.bounds import GROWTH_RATES, ROWS, GrowthRate, Sizes, gaussian_excess

SIZES = Sizes(rows=36_000, columns=104, epsilon=1.0, excess=0.05, failure=0.05, queries=10_000)


def law(source: str) -> GrowthRate:
    return next(law for law in GROWTH_RATES if law.source == source)


def test_ratios_by_hand() -> None:
    output = law("CMS11 Theorem 3, Corollaries 5, 6")
    assert output.ratio(SIZES, "columns") == pytest.approx(2 * math.log(208 / 0.05) / math.log(104 / 0.05))
    assert output.ratio(SIZES, "excess", 0.5) == pytest.approx(2**1.5)
    assert output.ratio(SIZES, "epsilon") == pytest.approx(0.5)
    pinp = law("JT13 Theorem 3")
    assert pinp.ratio(SIZES, "rows", 4) == pytest.approx(0.5)
    assert pinp.ratio(SIZES, "columns", 100) == 1.0
    assert 1.0 < pinp.ratio(SIZES, "queries", 1000) < 1.3


def test_the_print_of_theorem_6_asks_for_fewer_rows_in_more_columns() -> None:
    assert law("CMS11 Theorem 6").ratio(SIZES, "columns") < 1e-100
    assert "NOT CREDIBLE" in law("CMS11 Theorem 6").meaning


def test_proposition_5_2_is_the_growth_of_the_number_with_constants() -> None:
    """For many columns and a small epsilon, where the print's order is meant."""

    def squared(columns: int, epsilon: float) -> float:
        sigma = ra12_noise_scale(epsilon, 1e-6, 2.0, columns)
        return gaussian_excess(sigma, 1, 0.5, columns, 1.0, 0.05).sharp

    few = Sizes(1, 10**6, 1e-3, 0.05, 0.05, 1)
    for quantity, changed in (("columns", squared(2 * 10**6, 1e-3)), ("epsilon", squared(10**6, 2e-3))):
        ratio = law("RA12 Proposition 5.2").ratio(few, quantity)
        assert changed / squared(10**6, 1e-3) == pytest.approx(ratio, rel=0.01)


def test_every_law_falls_with_epsilon_and_speaks_of_rows_or_of_an_error() -> None:
    for each in GROWTH_RATES[1:]:
        assert each.ratio(SIZES, "epsilon") < 1
    for each in GROWTH_RATES:
        assert ("rows" not in each.powers) if each.bounds == ROWS else ("excess" not in each.powers)
