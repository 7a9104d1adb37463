"""What pages draw and count: figures, meters, pieces of lists."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from privlearn import Ledger
from privlearn.budget import Cost
from privlearn.guarantee import Guarantee
from privlearn.server.pages import MAX_STEPS, Axis, Figure, Line, meter, round_ticks, spending_figure
from privlearn.server.pages.page import SIZE, list_page


def drawn(figure: Figure) -> str:
    return str(escape(figure))


def test_a_figure_is_named_and_what_it_is_named_is_not_markup() -> None:
    figure = Figure(
        id="x",
        title="<b>bold</b>",
        description="it climbs",
        x=Axis(1.0, 100.0, "log"),
        y=Axis(0.0, 2.0),
        x_ticks=[(10.0, "10")],
        y_ticks=[(1.0, "1")],
        x_label="epsilon",
        lines=[Line("line", [(1.0, 0.0), (10.0, 1.0), (100.0, 3.0)], "line-main")],
    )
    assert "<b>" not in drawn(figure)
    assert 'role="img" aria-labelledby="x-title x-desc"' in drawn(figure)
    # A hundred on a scale of logarithms is as far from ten as ten from one; what is too high stays at the edge.
    assert 'points="0,1000 500,500 1000,0"' in drawn(figure)


@given(st.floats(1e-6, 1e6))
def test_ticks_are_round_few_and_inside(high: float) -> None:
    ticks = round_ticks(high)
    assert 2 <= len(ticks) <= 6
    assert ticks[0] == 0.0
    assert ticks[-1] <= high * (1 + 1e-9)


def test_a_meter_says_its_numbers_and_never_leaves_its_track() -> None:
    said = str(meter("epsilon & more", 0.5, 3.0, 2.0, "a lot"))
    assert 'aria-label="epsilon &amp; more"' in said
    assert 'aria-valuemax="2"' in said
    assert max(float(width) for width in re.findall(r'width="([\d.]+)%"', said)) == 100.0


@pytest.fixture(params=["basic", "renyi"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    ledger = Ledger.create(tmp_path / "budgets.db", "x", Guarantee(4.0, 1e-5), composition=request.param)
    for place in range(6):
        reservation = ledger.reserve(Cost(Guarantee(0.3)), "a test")
        if place == 5:
            reservation.cancel()
        elif place > 0:
            reservation.commit()
    return ledger


def test_the_history_ends_where_the_budget_stands(ledger: Ledger) -> None:
    standing = ledger.standing()
    figure = spending_figure(ledger.history(MAX_STEPS), standing, "x")
    assert figure is not None
    steps = [height for _, height in figure.lines[0].points]
    counted = standing.spent.epsilon + standing.reserved.epsilon
    assert steps[-1] == pytest.approx(counted)
    assert max(steps) > counted  # one was given back
    assert len(set(map("{:.9f}".format, steps))) == 7  # nothing, five that count, and the one given back


def test_a_long_history_is_drawn_in_few_steps(ledger: Ledger) -> None:
    moments = ledger.history(MAX_STEPS)
    many = [moments[0]] * (MAX_STEPS - 1) + [moments[-1]]
    figure = spending_figure(many, ledger.standing(), "x")
    assert figure is not None
    assert len(drawn(figure)) < 10_000


def test_nothing_spent_is_not_drawn(ledger: Ledger) -> None:
    assert spending_figure([], ledger.standing(), "x") is None


def test_every_item_is_on_one_page_on_the_way_from_the_newest() -> None:
    everything = [str(number) for number in range(3 * SIZE + 1)]
    seen: list[str] = []
    before: str | None = None
    while not seen or before is not None:
        rest = everything[len(seen) :]
        piece = list_page(functools.partial(_first, rest), before, str)
        assert len(piece.items) <= SIZE
        seen += piece.items
        before = piece.older
        assert before == (seen[-1] if len(seen) < len(everything) else None)
    assert seen == everything


def _first(items: list[str], most: int) -> list[str]:
    return items[:most]
