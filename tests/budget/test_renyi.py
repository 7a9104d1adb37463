"""Renyi composition at one fixed order."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import rdp
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn import Ledger
from privlearn.budget import Cost, RenyiComposition, best_order, divergence_limit
from privlearn.errors import BudgetExceeded, LedgerError
from privlearn.guarantee import Guarantee

TOTAL = Guarantee(2.0, 1e-6)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budgets.db", "census", TOTAL, composition="renyi")


def gaussian(noise_multiplier: float) -> Cost:
    """Return a Gaussian mechanism whose own guarantee is the classical bound sqrt(2 log(1.25/delta)) / noise."""
    own = Guarantee(math.sqrt(2 * math.log(1.25e7)) / noise_multiplier, 1e-7)
    return Cost(own, renyi=lambda order: order / (2 * noise_multiplier**2))


def spend_until_refused(ledger: Ledger, cost: Cost) -> int:
    for count in range(1000):
        try:
            ledger.reserve(cost, "a test").commit()
        except BudgetExceeded:
            return count
    raise AssertionError("the budget never ran out")


def test_many_gaussians_fit_and_their_total_keeps_the_promise(ledger: Ledger, tmp_path: Path) -> None:
    noise_multiplier = 20.0
    admitted = spend_until_refused(ledger, gaussian(noise_multiplier))
    basic = Ledger.create(tmp_path / "basic.db", "census", TOTAL)
    assert admitted > 5 * spend_until_refused(basic, gaussian(noise_multiplier))

    # All orders in hindsight: an independent and tighter account of the same releases.
    orders = np.linspace(1.5, 60, 1000)
    epsilon, _ = rdp.compute_epsilon(orders, admitted * orders / (2 * noise_multiplier**2), TOTAL.delta)
    assert epsilon <= TOTAL.epsilon
    beyond, _ = rdp.compute_epsilon(orders, (admitted + 1) * orders / (2 * noise_multiplier**2), TOTAL.delta)
    assert beyond > TOTAL.epsilon * 0.999, "one more would nearly have fitted: the order is a good one"


def test_statement_shows_epsilon_at_the_totals_delta(ledger: Ledger) -> None:
    ledger.reserve(gaussian(5.0), "a test").commit()
    ledger.reserve(gaussian(10.0), "a test")
    statement = ledger.statement()
    order = statement.renyi_order
    assert order is not None
    one, _ = rdp.compute_epsilon([order], [order / 50], TOTAL.delta)
    both, _ = rdp.compute_epsilon([order], [order / 50 + order / 200], TOTAL.delta)
    assert statement.spent.epsilon == pytest.approx(one, rel=1e-12)
    assert statement.reserved.epsilon == pytest.approx(both - one, rel=1e-9)
    assert statement.left.epsilon == pytest.approx(TOTAL.epsilon - both, rel=1e-9)
    assert {a.delta for a in (statement.spent, statement.reserved, statement.left)} == {TOTAL.delta}


def test_fresh_ledger_has_all_of_it_left(ledger: Ledger) -> None:
    assert ledger.statement().left.epsilon == TOTAL.epsilon
    assert ledger.statement().spent.epsilon == 0.0


def test_what_is_left_can_be_spent(ledger: Ledger) -> None:
    ledger.reserve(gaussian(5.0), "a test").commit()
    left = ledger.statement().left.renyi
    assert left is not None
    with pytest.raises(BudgetExceeded, match=r"left: .*Renyi divergence"):
        ledger.reserve(Cost(Guarantee(1.0), renyi=lambda _: left * (1 + 1e-15)), "a test")
    ledger.reserve(Cost(Guarantee(1.0), renyi=lambda _: left), "a test")
    assert ledger.statement().left.renyi == 0.0


def test_the_order_is_fixed_at_creation_and_stored(ledger: Ledger) -> None:
    asked: list[float] = []
    ledger.reserve(Cost(Guarantee(0.1, 1e-9), renyi=lambda order: asked.append(order) or 0.01), "a test")
    with sqlite3.connect(ledger.store) as connection:
        [(order, limit)] = connection.execute("SELECT renyi_order, renyi_limit FROM budgets").fetchall()
        [(value,)] = connection.execute("SELECT renyi FROM entries WHERE kind = 'reserved'").fetchall()
    connection.close()
    assert asked == [order]
    assert order == best_order(TOTAL)
    assert limit == divergence_limit(TOTAL, order)
    assert value == 0.01


def test_pure_cost_without_curve_uses_the_smaller_of_two_bounds() -> None:
    assert Cost(Guarantee(0.1)).renyi_at(8.0) == pytest.approx(0.04)
    assert Cost(Guarantee(3.0)).renyi_at(8.0) == 3.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 0.0])
def test_unusable_curves_are_refused(ledger: Ledger, value: float) -> None:
    with pytest.raises(LedgerError, match="positive and finite"):
        ledger.reserve(Cost(Guarantee(0.1, 1e-9), renyi=lambda _: value), "a test")
    assert ledger.statement().entries == ()


def test_delta_without_curve_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="Renyi curve"):
        ledger.reserve(Cost(Guarantee(0.1, 1e-9)), "a test")
    assert ledger.statement().entries == ()


def test_total_without_delta_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="delta > 0"):
        Ledger.create(tmp_path / "new.db", "census", Guarantee(1.0), composition="renyi")
    assert not (tmp_path / "new.db").exists()


totals = st.builds(Guarantee, st.floats(1e-3, 50), st.floats(1e-12, 1e-2))


@settings(deadline=None)
@given(totals)
def test_limit_is_the_largest_that_converts_to_the_total(total: Guarantee) -> None:
    rule = RenyiComposition.of(total)
    at_limit, _ = rdp.compute_epsilon([rule.order], [rule.limit], total.delta)
    above, _ = rdp.compute_epsilon([rule.order], [rule.limit * (1 + 1e-9)], total.delta)
    assert at_limit <= total.epsilon < above


@settings(deadline=None)
@given(totals)
def test_order_is_the_best_for_gaussians(total: Guarantee) -> None:
    order = best_order(total)
    grid = 1 + np.geomspace(0.02, 1e7, 4000)
    rates = [divergence_limit(total, a) / a for a in grid]
    assert divergence_limit(total, order) / order >= 0.9999 * max(rates)
