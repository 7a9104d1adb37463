"""Private quantiles: what one person moves, the exact law on neighbours, and the law that is drawn from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from privlearn.arrays import Array
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import Cells, ColumnOracle, Sides
from privlearn.mechanisms.statistics import Discovery, quantile
from privlearn.mechanisms.statistics.quantile import (
    candidates,
    centre_losses,
    choose_centre,
    choose_reach,
    choose_scale,
    reach_losses,
)
from privlearn.randomness import Randomness, SecureRandomness, SeededRandomness

ALARM = 1e-7  # chi-square tails are heavier where few draws are expected: in truth 1e-6
DRAWS = 3000
MISSING = math.nan
POINTS = np.array([-1e12, -3.0, -1.0, 0.0, 0.05, 0.1, 1.0, 1.2, 1.5, 2.0, 5.0, 1e9, 1e12])

cell = st.sampled_from([MISSING, -math.inf, -3.0, 0.0, 0.1, 1.0, 1.5, 2.0, 1e9, math.inf])
numbers = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=40)


def sides(values: Any, points: Array = POINTS) -> Sides:
    return Cells(np.array(values, dtype=float)).sides(points)


@given(st.lists(cell, max_size=8), cell, cell, st.integers(0, 9))
def test_one_person_moves_every_loss_by_at_most_the_sensitivity(
    others: list[float], old: float, new: float, beyond: int
) -> None:
    """replace_one, also to and from a missing cell; zero_out and add_remove are replacing by a missing one."""
    one, other = sides([*others, old]), sides([*others, new])
    assert np.abs(centre_losses(one) - centre_losses(other)).max() <= 2
    assert np.abs(reach_losses(one, beyond) - reach_losses(other, beyond)).max() <= 1


def test_the_sensitivities_are_reached() -> None:
    one, other = sides([-1e5, 0.0, 1.0]), sides([0.0, 1.0, 1e5])
    assert np.ptp(centre_losses(one) - centre_losses(other)) == 4
    assert np.ptp(reach_losses(one, 1) - reach_losses(other, 1)) == 2


@given(numbers)
def test_exactly_the_medians_cost_nothing(values: list[float]) -> None:
    points = np.arange(-21, 21.5, 0.5)
    free = points[centre_losses(sides(values, points)) == 0]
    medians = [np.quantile(values, 0.5, method=kind) for kind in ("inverted_cdf", "higher")]
    assert free[0] <= min(medians)
    assert free[-1] >= np.quantile(values, 0.5, method="inverted_cdf")
    assert all(
        2 * max(np.sum(np.less(values, c)), np.sum(np.greater(values, c))) <= len(values) for c in free
    )


@given(numbers, st.integers(0, 50))
def test_exactly_the_wanted_reaches_cost_nothing(values: list[float], beyond: int) -> None:
    points = np.arange(-21, 21.5, 0.5)
    losses = reach_losses(sides(values, points), beyond)
    for point, loss in zip(points, losses, strict=True):
        above, from_here_on = np.sum(np.greater(values, point)), np.sum(np.greater_equal(values, point))
        assert (loss == 0) == (above <= beyond <= from_here_on)
    highest = losses[points > max(values)]
    assert np.all(highest == beyond)


def test_candidates_cover_all_magnitudes() -> None:
    points, log_weights = candidates()
    assert np.all(np.diff(points) > 0)
    assert np.array_equal(points, -points[::-1])
    assert np.isfinite(points[-1] - points[0])
    for number in (0.0, 17.0, 90.0, 1990.0, 2020.0, 1e-3, 1.7e9, 1e18):
        nearest = points[np.argmin(np.abs(points - number))]
        assert nearest == pytest.approx(number, rel=1e-3)
    distances, _ = candidates(True)
    assert np.array_equal(distances, points[points >= 0])
    octave = (points >= 64) & (points < 128)
    assert np.sum(np.exp(log_weights[octave])) == pytest.approx(1 / 22**2)


Choose = Callable[[ColumnOracle, float, int, Randomness], float]


def reach(beyond: int, spread: float = 0.0) -> Choose:
    return lambda cells, epsilon, rows, randomness: choose_reach(
        cells, spread, beyond, epsilon, rows, randomness
    )


CHOICES: dict[str, Choose] = {
    "centre": choose_centre,
    "spread": choose_scale,
    "none beyond": reach(0),
    "one beyond": reach(1, spread=30.0),
    "three beyond": reach(3),
}
choices = pytest.mark.parametrize("choose", CHOICES.values(), ids=CHOICES)
Law = Callable[..., Array]


@pytest.fixture
def law(monkeypatch: pytest.MonkeyPatch) -> Law:
    """Return the exact probabilities of all candidates, which the exact sampler receives; it has its own tests.

    Every 31st candidate, so that it is quick.
    """
    seen: list[Array] = []
    grids = {kind: tuple(column[::31] for column in candidates(kind)) for kind in (False, True)}
    monkeypatch.setattr(quantile, "candidates", lambda distances=False: grids[distances])
    monkeypatch.setattr(quantile, "choose_row", lambda weights, _: seen.append(weights) or 0)

    def probabilities(choose: Choose, table: list[float], epsilon: float, rows: int = 1) -> Array:
        choose(Cells(np.array(table)), epsilon, rows, SeededRandomness(0))
        return np.asarray(seen[-1] / seen[-1].sum())

    return probabilities


def neighbours() -> Iterator[tuple[list[float], list[float]]]:
    """Small tables and what one person can make of them; zero_out and add_remove are the case of a missing cell."""
    for others in (
        [],
        [1.0],
        [0.0, 0.0, 5.0],
        [-2.0, 1.0, 7.0, 40.0, 1e4],
        [1.0, 10.0, 100.0, 1e3, 1e4, 1e5],
    ):
        for old, new in ((-1e6, 1e6), (-1e6, MISSING), (1e6, MISSING), (0.0, 3.0), (2.0, MISSING)):
            yield [*others, old], [*others, new]


@choices
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_the_exact_privacy_loss_keeps_the_claim(law: Law, choose: Choose, epsilon: float) -> None:
    for one, other in neighbours():
        ratios = np.log(law(choose, one, epsilon)) - np.log(law(choose, other, epsilon))
        assert np.ptp(ratios) <= epsilon * (1 + 1e-9)
        assert np.abs(ratios).max() <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("choose", [choose_centre, reach(1), reach(3)], ids=["centre", "one", "three"])
def test_the_claim_is_used_up(law: Law, choose: Choose) -> None:
    """With half the noise it would be exceeded."""
    ranges = [
        np.ptp(np.log(law(choose, one, 1.0)) - np.log(law(choose, other, 1.0))) for one, other in neighbours()
    ]
    assert max(ranges) == pytest.approx(1.0)


@pytest.mark.parametrize("choose", [choose_centre, reach(3)], ids=["centre", "reach"])
def test_several_rows_a_person(law: Law, choose: Choose) -> None:
    others = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]
    one, other = [*others, -1e6, -1e6, -1e6], [*others, 1e6, 1e6, 1e6]
    ratios = np.log(law(choose, one, 0.5, 3)) - np.log(law(choose, other, 0.5, 3))
    assert 0.3 < np.ptp(ratios) <= 0.5 * (1 + 1e-9)


@choices
def test_renyi_divergence_of_one_choice_is_at_most_the_claim(law: Law, choose: Choose) -> None:
    for one, other in neighbours():
        p, q = law(choose, one, 0.5), law(choose, other, 0.5)
        for order in (1.5, 2.0, 8.0):
            for mine, theirs in ((p, q), (q, p)):
                divergence = logsumexp(order * np.log(mine) + (1 - order) * np.log(theirs)) / (order - 1)
                assert divergence <= order * 0.5**2 / 8 * (1 + 1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
def test_two_bounds_together_keep_their_promise(law: Law, delta: float) -> None:
    """The hockey-stick divergence of both choices, enumerated, in both directions."""
    guarantee = Guarantee(0.8, delta)
    plan = Discovery.calibrate(guarantee, records=100_000, rows_per_person=1, bounds=2, anchors=0, lists=0)
    for one, other in neighbours():
        levels = [
            _levels(law(choose, one, plan.quantile_epsilon), law(choose, other, plan.quantile_epsilon))
            for choose in (reach(1), reach(3))
        ]
        mine, theirs = (np.outer(levels[0][i], levels[1][i]) for i in range(2))
        for p, q in ((mine, theirs), (theirs, mine)):
            excess = float(np.sum(np.maximum(p - math.exp(guarantee.epsilon) * q, 0.0)))
            assert excess <= guarantee.delta + 1e-12


def _levels(mine: Array, theirs: Array) -> tuple[Array, Array]:
    """Probabilities of the sets of candidates with one ratio each: few, because the losses are."""
    _, places = np.unique(np.round(np.log(mine) - np.log(theirs), 9), return_inverse=True)
    return np.asarray(np.bincount(places, mine), float), np.asarray(np.bincount(places, theirs), float)


FEW = np.array([0.0, 1.0, 1.5, 2.0, 30.0])
WEIGHTS = np.array([0.1, 0.3, 0.3, 0.2, 0.1])
TABLE = np.array([0.0, 0.0, 0.5, 1.0, 1.0, 1.5, 2.0, 4.0, MISSING])
BY_HAND = {  # of the 8 cells 0, 3, 5, 6, 8 lie below the points and 6, 3, 2, 1, 0 above
    "centre": (choose_centre, np.array([4, 0, 2, 4, 8]) / 2),
    "reach": (reach(1), np.array([5, 2, 1, 0, 1])),
}
hands = pytest.mark.parametrize(("choose", "losses"), BY_HAND.values(), ids=BY_HAND)


def p_value(
    monkeypatch: pytest.MonkeyPatch, choose: Choose, losses: Array, factor: float, randomness: Randomness
) -> float:
    """Return the p-value of many draws at ``factor`` against the distribution at 1."""
    monkeypatch.setattr(quantile, "candidates", lambda distances=False: (FEW, np.log(WEIGHTS)))
    chosen = np.array([choose(Cells(TABLE), factor, 1, randomness) for _ in range(DRAWS)])
    weights = WEIGHTS * np.exp(-losses / 2)
    counts = [np.sum(chosen == point) for point in FEW]
    return float(stats.chisquare(counts, DRAWS * weights / weights.sum()).pvalue)


@hands
@pytest.mark.parametrize("source", [lambda: SeededRandomness(5), SecureRandomness], ids=["seeded", "secure"])
def test_draws_follow_the_law(
    monkeypatch: pytest.MonkeyPatch, choose: Choose, losses: Array, source: Callable[[], Randomness]
) -> None:
    assert p_value(monkeypatch, choose, losses, 1.0, source()) > ALARM


@hands
@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_draws_would_notice_a_wrong_scale(
    monkeypatch: pytest.MonkeyPatch, choose: Choose, losses: Array, wrong: float
) -> None:
    assert p_value(monkeypatch, choose, losses, wrong, SeededRandomness(5)) < ALARM


@pytest.mark.parametrize("spread", [3e-7, 5.0, 1e12])
def test_distances_of_the_spread_s_magnitude_weigh_most(spread: float) -> None:
    points, log_weights = candidates(distances=True)
    weights = np.exp(quantile._around(spread, points, log_weights))
    octaves = [weights[(points >= spread * 2**k) & (points < spread * 2 ** (k + 1))].sum() for k in range(5)]
    assert np.diff(np.log2(octaves)) == pytest.approx(-np.ones(4), abs=0.1)
    assert weights[points == 0] == pytest.approx(1 / 16)
    assert weights[(points > spread / 4) & (points < spread * 4)].sum() > 0.7 * weights.sum()


@pytest.mark.parametrize("spread", [2.0**-1000, 2.0**1000])
def test_no_spread_overflows(spread: float) -> None:
    points, log_weights = candidates(distances=True)
    assert np.isfinite(quantile._around(spread, points, log_weights)).all()


def test_large_losses_lose_no_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after 10^15 rows: what decides is the difference of losses, of which rounding must not take anything."""
    seen: list[Array] = []
    monkeypatch.setattr(quantile, "choose_row", lambda weights, _: seen.append(weights) or 0)
    for losses in (np.array([0, 1, 2, 3, 700]), 10**15 + np.array([0, 1, 2, 3, 700])):
        quantile._choose(FEW, np.log(WEIGHTS), losses, 1, 0.1, 1, SeededRandomness(0))
    assert np.array_equal(seen[0], seen[1])


@pytest.mark.parametrize(
    ("draw", "lower", "upper"),
    [
        (lambda rng, n: rng.integers(17, 91, n), (17, 22), (86, 91)),
        (lambda rng, n: rng.integers(1990, 2021, n), (1989, 1994), (2017, 2021)),
        (lambda rng, n: rng.lognormal(10, 1, n), (100, 6000), (8e4, 1e6)),
        (lambda rng, n: rng.normal(0, 1e-6, n), (-5e-6, -1.3e-6), (1.3e-6, 5e-6)),
        (lambda rng, n: np.where(rng.random(n) < 0.8, 0, rng.lognormal(8, 1, n)), (0, 0), (3000, 40000)),
        (lambda rng, n: 1.7e9 + rng.uniform(0, 3e7, n), (1.7e9, 1.7025e9), (1.7275e9, 1.731e9)),
        (
            lambda rng, n: np.where(rng.random(n) < 0.6, MISSING, rng.normal(-40, 2, n)),
            (-48, -41.5),
            (-38.5, -32),
        ),
    ],
    ids=["ages", "years", "incomes", "tiny", "mostly zero", "seconds", "gaps"],
)
def test_bounds_of_six_columns_for_a_tenth_on_36000_rows(
    draw: Callable[[np.random.Generator, int], Array], lower: tuple[float, float], upper: tuple[float, float]
) -> None:
    plan = Discovery.calibrate(
        Guarantee(0.1, 1e-6), records=36_000, rows_per_person=1, bounds=12, anchors=12, lists=0
    )
    assert plan.beyond < 0.05 * 36_000
    values = Cells(np.asarray(draw(np.random.default_rng(0), 36_000), dtype=np.float64))
    for seed in range(3):
        randomness = SeededRandomness(seed)
        centre = plan.centre(values, randomness)
        spread = plan.scale(values, centre, randomness)
        assert lower[0] <= plan.bound(values, "lower", centre, spread, randomness) <= lower[1]
        assert upper[0] <= plan.bound(values, "upper", centre, spread, randomness) <= upper[1]
