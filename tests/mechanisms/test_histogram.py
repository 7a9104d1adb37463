"""Lists of frequent values: the exact law of what is shown, on neighbours, and the noise that is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.stats import norm

from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.statistics import Discovery, frequent, rare_probability, rare_threshold
from privlearn.randomness import Randomness, SecureRandomness, SeededRandomness

ALARM = 1e-6
Table = tuple[int, ...]


def shown(counts: Table, plan: Discovery) -> NDArray[np.float64]:
    """Exact probability of every set of shown values; a value that does not occur cannot be shown."""
    each = [norm.sf((plan.threshold - count) / plan.noise_scale) if count else 0.0 for count in counts]
    sets = product((False, True), repeat=len(counts))
    return np.array(
        [
            math.prod(p if seen else 1.0 - p for p, seen in zip(each, seen_set, strict=True))
            for seen_set in sets
        ]
    )


def excess(one: Table, other: Table, plan: Discovery) -> float:
    """Return the larger hockey-stick divergence of the two directions."""
    p, q = shown(one, plan), shown(other, plan)
    factor = math.exp(plan.guarantee.epsilon)
    return float(max(np.sum(np.maximum(p - factor * q, 0.0)), np.sum(np.maximum(q - factor * p, 0.0))))


def planned(
    epsilon: float, delta: float, neighbours: str = "replace_one", rows: int = 1, lists: int = 1
) -> Discovery:
    return Discovery.calibrate(
        Guarantee(epsilon, delta, neighbours),
        records=10**7,
        rows_per_person=rows,
        bounds=0,
        anchors=0,
        lists=lists,
    )


CASES = [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-2), (4.0, 1e-3)]


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_the_exact_delta_keeps_the_promise(epsilon: float, delta: float) -> None:
    """A person leaves one value and joins another: old, new, vanishing, and all counts around the threshold."""
    plan = planned(epsilon, delta)
    near = range(
        max(1, int(plan.threshold - 4 * plan.noise_scale)), int(plan.threshold + 4 * plan.noise_scale), 7
    )
    for count in [1, 2, 3, *near]:
        pairs = (
            ((count + 1, 1), (count, 2)),
            ((count + 1, 0), (count, 1)),
            ((1, count), (0, count + 1)),
            ((1, 0), (0, 1)),
        )
        assert max(excess(one, other, plan) for one, other in pairs) <= delta


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_the_threshold_is_what_keeps_it(epsilon: float, delta: float) -> None:
    """A value of one person alone is shown with nearly half of delta, the share kept for it; a row less is too much."""
    plan = planned(epsilon, delta)
    assert 0.49 * delta < excess((1, 0), (0, 1), plan) <= delta / 2
    lower = planned(epsilon, delta / 100)
    careless = Discovery(
        lower.guarantee, lower.records, 1, 0, 0, 1, 0.0, lower.noise_scale, lower.threshold * 0.8
    )
    assert not careless.spends() <= careless.guarantee


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
def test_several_lists_and_rows_a_person(neighbours: str, rows: int) -> None:
    """All that a person owns is new, in each list: one value with all rows, or each row its own."""
    plan, delta = planned(1.0, 1e-4, neighbours, rows, lists=2), 1e-4
    for new in ((rows, rows), (1,) * (2 * rows)):
        assert excess(new, (0,) * len(new), plan) <= delta
    common = int(plan.threshold)
    for step in range(-300, 300, 11):
        kept = common + step
        other = (kept - rows, kept + rows) * 2 if neighbours == "replace_one" else (kept - rows, kept) * 2
        assert excess((kept,) * 4, other, plan) <= delta


def test_zero_out_needs_less_noise() -> None:
    replaced, left_out = planned(1.0, 1e-6), planned(1.0, 1e-6, "zero_out")
    assert replaced.noise_scale == pytest.approx(math.sqrt(2) * left_out.noise_scale)


def test_threshold_and_probability_are_inverse() -> None:
    for rows in (1, 5):
        assert rare_probability(30.0, rare_threshold(30.0, 1e-7, rows), rows) == pytest.approx(1e-7)


def share_shown(scale: float, randomness: Randomness, draws: int) -> int:
    counts = np.full(draws, 110, dtype=np.int64)
    return int(np.sum(frequent(counts, scale, 100.0, randomness)))


@pytest.mark.parametrize("source", [lambda: SeededRandomness(1), SecureRandomness], ids=["seeded", "secure"])
def test_values_are_shown_as_often_as_the_noise_says(source: Callable[[], Randomness]) -> None:
    """110 rows, threshold 100, deviation 10: 84 times in 100."""
    assert stats.binomtest(share_shown(10.0, source(), 6000), 6000, norm.cdf(1.0)).pvalue > ALARM


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_the_test_before_notices_wrong_noise(wrong: float) -> None:
    drawn = share_shown(10.0 * wrong, SeededRandomness(1), 6000)
    assert stats.binomtest(drawn, 6000, norm.cdf(1.0)).pvalue < ALARM


@pytest.mark.parametrize("lists", [0, 3])
@pytest.mark.parametrize("bounds", [0, 1, 12])
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
def test_a_plan_spends_its_price_and_not_more(lists: int, bounds: int, rows: int, neighbours: str) -> None:
    if not lists + bounds:
        return
    for epsilon, delta in ((0.05, 1e-9), (0.1, 1e-6), (1.0, 1e-6), (10.0, 1e-3)):
        guarantee = Guarantee(epsilon, delta, neighbours)
        plan = Discovery.calibrate(
            guarantee, records=10**9, rows_per_person=rows, bounds=bounds, anchors=bounds, lists=lists
        )
        assert plan.spends() <= guarantee
        by_epsilon_alone = plan.spends().delta == 0
        assert by_epsilon_alone or plan.spends().delta > 0.9 * delta
        assert lists or plan.renyi(2.0) == pytest.approx(2.0 * plan.zcdp)


def test_pure_bounds_divide_epsilon() -> None:
    plan = Discovery.calibrate(
        Guarantee(1.0), records=10_000, rows_per_person=1, bounds=2, anchors=2, lists=0
    )
    assert plan.quantile_epsilon == pytest.approx(1 / 3)
    assert plan.spends() == Guarantee(1.0)


def test_many_bounds_are_cheaper_by_concentration() -> None:
    plan = Discovery.calibrate(
        Guarantee(1.0, 1e-6), records=10**6, rows_per_person=1, bounds=40, anchors=40, lists=0
    )
    assert plan.quantile_epsilon > 1.5 / 60.0


@pytest.mark.parametrize(
    ("guarantee", "records", "message"),
    [
        (Guarantee(math.inf), 10**6, "finite epsilon"),
        (Guarantee(1.0), 10**6, "needs delta > 0"),
        (Guarantee(0.01, 1e-6), 5000, "4 bounds need"),
        (Guarantee(1e-11, 1e-12), 10**9, "4 bounds need|no amount"),
        (Guarantee(1.0, 1e-6), 300, "to be listed|bounds need"),
        (Guarantee(1e-4, 0.5), 10**6, "well below 1/n"),
    ],
    ids=["no promise", "pure lists", "scarce rows", "next to nothing", "scarce values", "huge delta"],
)
def test_what_would_be_noise_is_not_sold(guarantee: Guarantee, records: int, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Discovery.calibrate(guarantee, records=records, rows_per_person=1, bounds=4, anchors=4, lists=2)
