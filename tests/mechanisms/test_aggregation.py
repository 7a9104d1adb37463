"""Local aggregation: its noise against the theorem written out anew and in what is released, and who drops out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privlearn.guarantee import Guarantee
from privlearn.parties import TrustedSum
from privlearn.randomness import SeededRandomness
from tests.support.party_cases import (
    DELTA,
    EPSILON,
    NOWHERE,
    aggregation,
    exact_sum,
    max_ratio,
    parties_of,
    pooled_minimiser,
    random_rows,
    task_of,
)

ALARM = 1e-6


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize(("calibration", "records"), [("weighted", 1000), ("uniform", 3 * 40)])
@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("problems", [1, 4])
def test_scale_is_that_of_the_theorem(
    neighbours: Any, calibration: str, records: int, delta: float, problems: int
) -> None:
    task = task_of(neighbours=neighbours, problems=problems, tolerance=1e-4)
    moved = (2.0 if neighbours == "replace_one" else 1.0) / (records * 0.05) + 2.0 * 1e-4 / 0.05
    mechanism = aggregation(task, calibration, 40, Guarantee(EPSILON, delta, neighbours))
    expected = math.sqrt(problems) * moved / (max_ratio() if delta else EPSILON)
    assert mechanism.noise_scale == pytest.approx(expected, rel=1e-6)
    assert mechanism.spends() <= mechanism.guarantee


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_released_noise(factor: float, delta: float) -> None:
    task = task_of(total=12)
    mechanism = aggregation(task, "weighted", 1, Guarantee(EPSILON, delta))
    parties = parties_of(mechanism, np.zeros((12, 3)), np.ones(12), [1, 4, 7])  # whose minimisers are 0
    sums = TrustedSum(mechanism, parties, SeededRandomness(1))
    drawn = np.array([mechanism.run(sums)[0] for _ in range(300)])
    lengths = np.linalg.norm(drawn, axis=1) / (factor * mechanism.noise_scale)
    if delta:
        plausible = stats.kstest(lengths, stats.chi(3).cdf).pvalue > ALARM
    else:  # three parties add a whole vector each, of E|b|^2 = 3 * 4 scale^2
        simulated = np.random.default_rng(0)
        directions = simulated.normal(size=(20_000, 3, 3))
        directions /= np.linalg.norm(directions, axis=2, keepdims=True)
        sums_of_three = (directions * simulated.gamma(3, size=(20_000, 3, 1))).sum(axis=1)
        plausible = stats.ks_2samp(lengths, np.linalg.norm(sums_of_three, axis=1)).pvalue > ALARM
    assert plausible == (factor == 1.0)


def test_without_noise_it_is_the_mean_of_those_present() -> None:
    rows, signs = random_rows(60, 3, seed=4)
    for calibration in ("weighted", "uniform"):
        mechanism = aggregation(task_of(total=60), calibration, 10, NOWHERE)
        parties = parties_of(mechanism, rows, signs, [10, 20, 30])
        places = np.split(np.arange(60), [10, 30])
        minimisers = [pooled_minimiser(task_of(total=len(own)), rows[own], signs[own]) for own in places]
        shares = np.array([10, 20, 30]) if calibration == "weighted" else np.ones(3)
        everyone = mechanism.run(exact_sum(parties))[0]
        assert everyone == pytest.approx(np.average(minimisers, axis=0, weights=shares), abs=1e-7)
        rest = mechanism.run(exact_sum(parties[1:]))[0]
        assert rest == pytest.approx(np.average(minimisers[1:], axis=0, weights=shares[1:]), abs=1e-7)
