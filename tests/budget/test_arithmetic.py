"""Basic composition: what fits, what does not, and that nothing rounds."""

from __future__ import annotations

import math
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn import Ledger
from privlearn.budget import Amount, BasicComposition, Cost, Reservation, Sum, difference, exact_sum
from privlearn.errors import BudgetExceeded, LedgerError
from privlearn.guarantee import Guarantee


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0, 1e-6))


def spend(ledger: Ledger, epsilon: float, delta: float = 0.0) -> Reservation:
    reservation = ledger.reserve(Cost(Guarantee(epsilon, delta)), "a test")
    reservation.commit()
    return reservation


def test_ten_tenths_fit_into_one_and_an_eleventh_does_not(ledger: Ledger) -> None:
    for _ in range(10):
        spend(ledger, 0.1, 1e-7)
    statement = ledger.statement()
    assert statement.spent == Amount(1.0, 1e-6)
    assert statement.left == Amount(0.0, 0.0)
    with pytest.raises(BudgetExceeded):
        spend(ledger, 1e-300)


def test_one_release_of_the_whole_budget_fits(ledger: Ledger) -> None:
    spend(ledger, 1.0, 1e-6)
    assert ledger.statement().left == Amount(0.0, 0.0)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(math.nextafter(1.0, 2), 0.0), (0.1, math.nextafter(1e-6, 1))]
)
def test_one_bit_too_much_is_refused(ledger: Ledger, epsilon: float, delta: float) -> None:
    with pytest.raises(BudgetExceeded):
        spend(ledger, epsilon, delta)
    assert ledger.statement().entries == ()


def test_what_is_left_can_be_spent(ledger: Ledger) -> None:
    spend(ledger, 1 / 3, 1e-6 / 7)
    left = ledger.statement().left
    spend(ledger, left.epsilon, left.delta)


def test_reserved_counts_until_cancelled(ledger: Ledger) -> None:
    reservation = ledger.reserve(Cost(Guarantee(0.7)), "a test")
    assert ledger.statement().reserved == Amount(0.7, 0.0)
    assert ledger.statement().spent == Amount(0.0, 0.0)
    with pytest.raises(BudgetExceeded):
        spend(ledger, 0.7)
    reservation.cancel()
    spend(ledger, 0.7)


def test_refusal_shows_the_four_numbers(ledger: Ledger) -> None:
    spend(ledger, 0.3, 1e-7)
    ledger.reserve(Cost(Guarantee(0.25)), "a test")
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.reserve(Cost(Guarantee(0.5, 2e-7)), "a test")
    message = str(refusal.value)
    assert "Spent: epsilon 0.3, delta 1e-07; " in message
    assert "reserved: epsilon 0.25; " in message
    assert "requested: epsilon 0.5, delta 2e-07; " in message
    assert "left: epsilon 0.45, delta 9e-07. " in message


def test_other_neighbours_are_refused_and_the_factor_is_named(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"neighbours='replace_one'.*2 epsilon"):
        ledger.reserve(Cost(Guarantee(0.1, neighbours="zero_out")), "a test")
    assert ledger.statement().entries == ()


def test_infinite_epsilon_fits_no_budget(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="finite epsilon"):
        ledger.reserve(Cost(Guarantee(math.inf)), "a test")
    with pytest.raises(LedgerError, match="must be finite"):
        Ledger.create(tmp_path / "new.db", "census", Guarantee(math.inf))
    assert not (tmp_path / "new.db").exists()


amounts = st.builds(
    Amount,
    st.floats(0, 0.6, exclude_min=True) | st.sampled_from([0.1, 0.2, 0.5]),
    st.floats(0, 6e-7) | st.sampled_from([0.0, 1e-7]),
)


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.tuples(amounts, st.sampled_from(["leave", "commit", "cancel"])), max_size=8))
def test_no_sequence_exceeds_the_total(steps: list[tuple[Amount, str]]) -> None:
    total = Guarantee(1.0, 1e-6)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "budgets.db", "census", total)
        counted: list[Amount] = []
        for amount, end in steps:
            before = ledger.statement()
            try:
                reservation = ledger.reserve(Cost(Guarantee(amount.epsilon, amount.delta)), "a test")
            except BudgetExceeded:
                assert not _fits([*counted, amount], total)
                assert ledger.statement() == before
                continue
            assert _fits([*counted, amount], total)
            if end != "leave":
                getattr(reservation, end)()
            if end == "cancel":
                assert ledger.statement().left == before.left
            else:
                counted.append(amount)
        states = {"leave": "reserved", "commit": "committed", "cancel": "cancelled"}
        assert {e.state for e in ledger.statement().entries} <= {states[end] for _, end in steps}


def _fits(amounts: list[Amount], total: Guarantee) -> bool:
    """Apply the rule once more, with fractions instead of decimals."""
    return all(
        sum(Fraction(repr(getattr(a, name))) for a in amounts) <= Fraction(repr(getattr(total, name)))
        for name in ("epsilon", "delta")
    )


@given(st.lists(st.floats(0, 1e308), max_size=30))
def test_sums_are_exact(numbers: list[float]) -> None:
    assert Fraction(exact_sum(numbers)) == sum(map(Fraction, map(repr, numbers)))


@given(st.floats(0, 1e9), st.lists(st.floats(0, 1e9), max_size=5))
def test_a_difference_is_never_rounded_up(whole: float, parts: list[float]) -> None:
    rest = Fraction(repr(whole)) - sum(map(Fraction, map(repr, parts)))
    shown = difference(whole, parts)
    assert Fraction(repr(shown)) <= rest
    assert shown == pytest.approx(float(rest), rel=1e-15)


def test_balance_of_many_entries_does_not_drift() -> None:
    tenth = Amount(0.1, 0.0)
    balance = BasicComposition(Guarantee(1000.0)).balance(Sum.of(*[tenth] * 5000), Sum.of(*[tenth] * 3))
    assert balance.spent.epsilon == 500.0
    assert balance.reserved.epsilon == 0.3
    assert balance.left.epsilon == 499.7
