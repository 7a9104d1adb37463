"""What pages draw and count: figures, meters, pieces of lists."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from privlearn.guarantee import Guarantee
from privlearn.ledger import Cost, Ledger, Statement
from privlearn.service.pages.figures import Axis, Figure, Line, meter, round_ticks
from privlearn.service.pages.formatting import spending_figure
from privlearn.service.pages.page import SIZE, piece_of


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
def statement(request: pytest.FixtureRequest, tmp_path: Path) -> Statement:
    ledger = Ledger.create(tmp_path / "budgets.db", "x", Guarantee(4.0, 1e-5), composition=request.param)
    for place in range(6):
        reservation = ledger.reserve(Cost(Guarantee(0.3)), "a test")
        if place == 0:
            reservation.cancel()
        elif place < 5:
            reservation.commit()
    return ledger.statement()


def test_the_history_ends_where_the_budget_stands(statement: Statement) -> None:
    figure = spending_figure(statement.entries, statement, "x")
    assert figure is not None
    steps = figure.lines[0].points
    assert steps[-1][1] == pytest.approx(statement.spent.epsilon + statement.reserved.epsilon)
    assert [height for _, height in steps] == sorted(height for _, height in steps)
    assert len({height for _, height in steps}) == 6  # nothing, and five that count


def test_a_long_history_is_drawn_in_few_steps(statement: Statement) -> None:
    many = tuple(dataclasses.replace(statement.entries[-1]) for _ in range(3000))
    figure = spending_figure(many, statement, "x")
    assert figure is not None
    assert len(drawn(figure)) < 10_000
    if statement.composition == "basic":
        assert figure.lines[0].points[-1][1] == 900.0


def test_nothing_spent_is_not_drawn(statement: Statement) -> None:
    assert spending_figure((), statement, "x") is None


@given(st.integers(0, 200), st.integers(0, 300))
def test_pieces_of_a_list_lead_to_each_other(count: int, skip: int) -> None:
    everything = list(range(count))
    piece = piece_of(everything, skip)
    assert list(piece.items) == everything[skip : skip + SIZE]
    assert (piece.newer is None) == (skip == 0)
    assert (piece.older is None) == (skip + SIZE >= count)


def test_every_item_is_on_one_page_on_the_way_from_the_newest() -> None:
    seen: list[int] = []
    place: int | None = 0
    while place is not None:
        piece = piece_of(range(3 * SIZE + 1), place)
        seen += piece.items
        place = piece.older
    assert seen == list(range(3 * SIZE + 1))
