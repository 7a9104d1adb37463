"""Counts of scores: what one person moves, how much noise there is, what fit and counts cost together, and the odds."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit

from privlearn import Guarantee
from privlearn.arrays import Array
from privlearn.data import ArrayEncoder
from privlearn.errors import InvalidParameter
from privlearn.estimators import ClassTargets, MemoryOracle, Requests, TrainingRows, calibrate_mechanism
from privlearn.guarantee import RELATIONS
from privlearn.mechanisms import ObjectivePerturbation, OutputPerturbation, Task
from privlearn.mechanisms.statistics import log_odds_at, log_odds_from_counts
from privlearn.mechanisms.statistics.score_counts import BINS, EDGES, ScoreCounts
from privlearn.randomness import SeededRandomness
from privlearn.solvers import HuberHinge, Logistic
from tests.support.combinations import hockey_stick

ALARM = 1e-6


def task_of(neighbours: str = "zero_out", **facts: Any) -> Task:
    default: dict[str, Any] = {"loss": HuberHinge(), "total": 50, "dimension": 2, "problems": 1}
    return Task(**default | {"regularization": 0.1, "tolerance": 1e-9} | facts, neighbours=neighbours)


def oracle_of(
    rows: Array,
    labels: NDArray[np.int64],
    ignored: NDArray[np.bool_] | None = None,
    weights: Array | None = None,
) -> MemoryOracle:
    encoder = ArrayEncoder(1.0, rows.shape[1], fit_intercept=False)
    targets = ClassTargets(labels, np.array([0, 1]), ignored)
    return MemoryOracle(TrainingRows(encoder.encode(rows), encoder, targets, len(rows), weights), task_of())


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(deadline=None, max_examples=60)
def test_one_person_moves_the_counts_by_no_more_than_is_declared(seed: int, replaced: bool) -> None:
    rng = np.random.default_rng(seed)
    rows, labels = rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
    coefficients = rng.normal(size=(1, 3)) * 3.0
    one = oracle_of(rows, labels).score_counts(coefficients, EDGES)
    others = rows.copy(), labels.copy()
    others[0][0], others[1][0] = -rows[0], 1 - labels[0]
    start = 0 if replaced else 1
    two = oracle_of(others[0][start:], others[1][start:]).score_counts(coefficients, EDGES)
    declared = ScoreCounts(1.0).ratio(RELATIONS["replace_one" if replaced else "zero_out"])
    assert np.linalg.norm(one - two) == pytest.approx(declared)  # the labels differ, so the bound is reached


def test_the_averaged_rows_of_a_person_count_one_together() -> None:
    rows, labels = np.linspace(-1.0, 1.0, 9)[:, np.newaxis], np.zeros(9, np.int64)
    found = oracle_of(rows, labels, weights=np.full(9, 1.0 / 9.0)).score_counts(np.array([[3.0]]), EDGES)
    assert np.count_nonzero(found) > 5  # spread over many cells, none of them rounded up
    assert 1.0 - 9 * 2.0**-20 <= found.sum() <= 1.0


def test_a_record_is_counted_once_where_its_score_lies() -> None:
    rows, labels = np.array([[0.5], [-0.5], [1.0], [0.1]]), np.array([1, 0, 1, 1])
    counts = oracle_of(rows, labels, np.array([False, False, False, True])).score_counts(
        np.array([[4.0]]), EDGES
    )
    expected = np.zeros((2, BINS))
    expected[1, -1] += 1  # a score of 4, beyond the outermost edge
    expected[1, np.searchsorted(EDGES, 2.0)] += 1
    expected[0, np.searchsorted(EDGES, -2.0)] += 1
    assert np.array_equal(counts, expected)


def test_bits_of_a_score_depend_on_its_row_alone() -> None:
    """Else another person's record could move this one from bin to bin."""
    rng = np.random.default_rng(3)
    rows, coefficients = rng.normal(size=(400, 37)) / 6.0, rng.normal(size=(1, 37))
    labels, edges = np.zeros(400, np.int64), np.array([0.0])
    scores = np.array([np.einsum("ij,kj->ik", rows[place : place + 1], coefficients) for place in range(400)])
    exact = np.array([float(np.quantile(scores, share)) for share in (0.2, 0.5, 0.8)])
    for edge in exact:
        edges[0] = edge
        whole = oracle_of(rows, labels).score_counts(coefficients, edges)
        parts = sum(
            oracle_of(rows[at : at + 1], labels[:1]).score_counts(coefficients, edges) for at in range(400)
        )
        assert np.array_equal(whole, parts)


@dataclass(frozen=True)
class Told:
    """An oracle that answers what it is told to. Implements `CountsScores`."""

    counts: Array

    def score_counts(self, coefficients: Array, edges: Array) -> Array:
        return self.counts


def test_noise_in_the_counts_is_as_declared() -> None:
    """Fails if it is halved or doubled."""
    randomness = SeededRandomness(np.random.default_rng(1))
    told = Told(np.arange(2.0 * BINS).reshape(2, BINS))
    bought = ScoreCounts(7.0)
    runs = [bought.run(told, np.zeros((1, 1)), randomness) - told.counts for _ in range(100)]
    assert stats.kstest(np.ravel(runs) / 7.0, "norm").pvalue > ALARM
    assert np.array_equal(ScoreCounts(0.0).run(told, np.zeros((1, 1)), randomness), told.counts)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_ratios_add_up_in_squares(neighbours: str) -> None:
    """The deltas, by the theorem written out anew."""
    epsilon, delta = 1.3, 1e-4
    promise = Guarantee(epsilon, delta, neighbours)
    facts = task_of(neighbours, total=100_000, dimension=12, score_counts=ScoreCounts(25.0))
    spent = (math.sqrt(2.0) if neighbours == "replace_one" else 1.0) / 25.0
    output = OutputPerturbation.calibrate(facts, promise, "gaussian", "tight")
    ratio = output.sensitivity / output.noise_scale
    assert hockey_stick(epsilon, math.hypot(ratio, spent)) == pytest.approx(delta, rel=1e-4)
    objective = ObjectivePerturbation.calibrate(facts, promise, "gaussian", "tight")
    beside = math.hypot(spent, 2.0 * objective.solver_distance / objective.tolerance_noise_scale)
    left, own = epsilon - objective.slack, facts.gradient_sensitivity / objective.noise_scale
    found = hockey_stick(left, beside) + hockey_stick(left, math.hypot(own, beside))
    assert found == pytest.approx(delta, rel=2e-3)
    for mechanism in (output, objective):
        assert 0.99 * delta < mechanism.spends().delta <= delta
        assert mechanism.renyi(3.0) > dataclasses.replace(
            mechanism, task=dataclasses.replace(mechanism.task, score_counts=None)
        ).renyi(3.0)


def divergence(mechanism: ObjectivePerturbation, epsilon: float, side: int) -> float:
    """Return the exact divergence of fit and counts on a line: quadrature over the fit, closed form over the counts.

    The tables: margins 1, -0.9 and 0.9; the first record is there or left out.
    """
    bought = mechanism.task.score_counts
    assert bought is not None
    tables = np.array([1.0, -0.9, 0.9]), np.array([-0.9, 0.9])
    strength = mechanism.task.total * mechanism.effective_regularization
    w, width = np.linspace(-3.0, 3.0, 20001, retstep=True)

    def log_density(margins: Array) -> Array:
        chance = expit(-np.outer(w, margins))
        noise = chance @ margins - strength * w
        slope = strength + (chance * (1.0 - chance)) @ margins**2
        return np.asarray(stats.norm.logpdf(noise, scale=mechanism.noise_scale) + np.log(slope))

    here, there = log_density(tables[side]), log_density(tables[1 - side])
    counted = [hockey_stick(epsilon - loss, 1.0 / bought.noise_scale) for loss in here - there]
    assert np.exp(here).sum() * width == pytest.approx(1.0, rel=1e-6)
    return float(np.exp(here) @ counted * width)


def test_fit_and_counts_together_keep_the_promise_on_a_line() -> None:
    """Their hockey-stick divergence is below delta, and above it if the noise of both is halved."""
    epsilon, delta = 1.0, 0.05
    facts = task_of(total=3, dimension=1, regularization=20.0, loss=Logistic(), score_counts=ScoreCounts(2.0))
    promise = Guarantee(epsilon, delta, "zero_out")
    mechanism = ObjectivePerturbation.calibrate(facts, promise, "gaussian", "tight")
    found = [divergence(mechanism, epsilon, side) for side in (0, 1)]
    assert 0.2 * delta < max(found) <= delta
    half = dataclasses.replace(mechanism.task, score_counts=ScoreCounts(1.0))
    halved = dataclasses.replace(mechanism, task=half, noise_scale=mechanism.noise_scale / 2.0)
    assert max(divergence(halved, epsilon, side) for side in (0, 1)) > delta
    free = dataclasses.replace(mechanism, task=half)  # the counts alone
    assert not free.spends() <= promise


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_it_costs_a_fortieth_of_the_noise(neighbours: str) -> None:
    options: dict[str, Any] = {"mechanism": "auto", "noise": "auto", "calibration": "tight"}
    task = task_of(neighbours, total=30_000, dimension=100, tolerance=0.0)
    promise = Guarantee(0.5, 1e-5, neighbours)
    plain, scored = (
        calibrate_mechanism(
            task, promise, **options, regularization=1e-4, requests=Requests(is_scored=scored)
        )
        for scored in (False, True)
    )
    assert scored.task.other_ratio**2 == pytest.approx(0.05 * plain.ratio**2)
    assert 1.01 < scored.noise_scale / plain.noise_scale < 1.05


@pytest.mark.parametrize("scale", [-1.0, math.nan, math.inf, 2.0**44])
def test_a_scale_that_is_none(scale: float) -> None:
    with pytest.raises(InvalidParameter):
        ScoreCounts(scale)


def counts_of(odds: Array, total: float) -> Array:
    return total * np.array([expit(-odds), expit(odds)])


def test_exact_counts_give_their_odds() -> None:
    middles = np.linspace(-3.0, 3.0, 2 * BINS + 1)[1::2]
    odds = np.sort(np.random.default_rng(0).uniform(-4.0, 4.0, BINS))
    found = log_odds_from_counts(counts_of(odds, 1e7), 0.0)
    assert found == pytest.approx(odds, abs=0.02)
    assert log_odds_at(middles, found) == pytest.approx(found)
    assert log_odds_at(np.array([-1e9, 1e9]), found).tolist() == [found[0], found[-1]]


def test_odds_never_fall() -> None:
    rng = np.random.default_rng(1)
    for scale in (0.0, 30.0, 1e6):
        found = log_odds_from_counts(rng.normal(size=(2, BINS)) * (scale or 10.0), scale)
        assert np.isfinite(found).all()
        assert (np.diff(found) >= 0.0).all()


def test_drowned_counts_leave_what_was_known_before() -> None:
    """Slope 1.5, even at 0: within a tenth, where the noise is a hundred times the counts."""
    rng = np.random.default_rng(2)
    noisy = rng.normal(size=(2, BINS)) * 1e4 + 10.0
    expected = 1.5 * np.linspace(-3.0, 3.0, 2 * BINS + 1)[1::2]
    weightless = log_odds_from_counts(np.zeros((2, BINS)), 1e4)
    assert weightless == pytest.approx(expected, abs=1e-3)
    assert log_odds_from_counts(noisy, 1e7) == pytest.approx(expected, abs=0.1)
