"""Splits of a budget: nothing is lost, nothing is spent twice, and people can read them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privlearn import BudgetSplit, Guarantee, InvalidParameter, Ledger
from privlearn.budget import Cost

percent = st.integers(0, 100)


@given(percent, percent, st.floats(1e-3, 100.0), st.floats(0.0, 0.1))
def test_the_stages_fit_into_the_total_in_a_ledger_s_decimals(
    bounds: int, selection: int, epsilon: float, delta: float
) -> None:
    fit = 100 - bounds - selection
    if fit <= 0:
        return
    split = BudgetSplit(bounds / 100, selection / 100, fit / 100)
    total = Guarantee(epsilon, delta)
    plan = split.of(total)
    from privlearn.budget import exact, exact_sum

    stages = [name for name in ("bounds", "selection", "fit") if getattr(split, name)]
    parts = [plan.guarantee(stage) for stage in stages]
    assert exact_sum(part.epsilon for part in parts) <= exact(epsilon)
    assert exact_sum(part.delta for part in parts) <= exact(delta)
    assert math.isclose(sum(part.epsilon for part in parts), epsilon, rel_tol=1e-12)
    assert plan.guarantee(*stages) == total


def test_a_ledger_of_the_total_takes_both_stages(tmp_path: Path) -> None:
    total = Guarantee(0.3, 1e-5, "zero_out")
    ledger = Ledger.create(tmp_path / "b.db", "census", total)
    plan = BudgetSplit(bounds=0.1, fit=0.9).of(total)
    for stage in ("bounds", "fit"):
        ledger.reserve(Cost(plan.guarantee(stage)), stage).commit()
    assert ledger.statement().left.epsilon == 0
    assert plan.guarantee("fit").neighbours == "zero_out"


def test_everything_to_the_model_is_the_total() -> None:
    for total in (Guarantee(1.0), Guarantee(math.inf), Guarantee(0.1, 1e-7)):
        assert BudgetSplit().of(total).guarantee("selection", "fit") == total


def test_typed_splits() -> None:
    assert BudgetSplit.parse("bounds=0.1,fit=0.9") == BudgetSplit(bounds=0.1, fit=0.9)
    assert BudgetSplit.parse(" fit=0.5, selection=0.3 ,bounds=0.2") == BudgetSplit(0.2, 0.3, 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bounds=0.1", "share above 0"),
        ("bounds=0.1,fit=0.8", "add up to 1"),
        ("bounds=0.1,fit=1", "add up to 1"),
        ("bounds=-0.1,fit=1.1", "from 0 to 1"),
        ("bounds=nan,fit=1", "from 0 to 1"),
        ("bounds,fit", "cannot be read"),
        ("bounds=a tenth,fit=0.9", "cannot be read"),
        ("limits=0.1,fit=0.9", "unknown stage 'limits'"),
        ("", "cannot be read"),
    ],
)
def test_splits_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        BudgetSplit.parse(text)


def test_a_plan_is_a_table() -> None:
    lines = str(BudgetSplit(bounds=0.25, selection=0.25, fit=0.5).of(Guarantee(2.0, 1e-6))).splitlines()
    assert [line.split() for line in lines] == [
        ["stage", "share", "epsilon", "delta"],
        ["bounds", "25%", "0.5", "2.5e-07"],
        ["selection", "25%", "0.5", "2.5e-07"],
        ["fit", "50%", "1", "5e-07"],
        ["together", "100%", "2", "1e-06"],
    ]
