"""What follows from counts: against scikit-learn where there is no noise, and by its law where there is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.isotonic import isotonic_regression
from sklearn.metrics import brier_score_loss, log_loss, precision_score, recall_score, roc_auc_score

from privlearn.arrays import Array
from privlearn.evaluation import bins as bins_of
from privlearn.evaluation import metrics
from privlearn.evaluation.intervals import (
    Estimate,
    NoisyTable,
    estimates,
    magnitude,
    nearest_counts,
    quotient,
    root,
)


def scored(rows: int, seed: int, slope: float = 1.5) -> tuple[Array, Any]:
    """Calibrated probabilities, and labels that follow them."""
    source = np.random.default_rng(seed)
    scores = 1.0 / (1.0 + np.exp(-slope * source.normal(-0.8, 1.2, rows)))
    return scores, source.random(rows) < scores


def counted(scores: Array, labels: Any, edges: Array) -> Array:
    counts = np.zeros((2, len(edges) - 1))
    np.add.at(counts, (labels.astype(int), np.searchsorted(edges[1:-1], scores, side="left")), 1.0)
    return counts


def test_without_noise_the_numbers_are_those_of_scikit_learn() -> None:
    scores, labels = scored(50_000, seed=1)
    edges = bins_of.probability_edges(32)
    counts = counted(scores, labels, edges)
    found = metrics.two_classes(counts, place=16)
    said = scores > 0.5
    assert found["accuracy"] == pytest.approx(np.mean(said == labels))
    assert found["precision"] == pytest.approx(precision_score(labels, said))
    assert found["recall"] == pytest.approx(recall_score(labels, said))
    assert found["false positive rate"] == pytest.approx(np.mean(said[~labels]))
    assert found["false negative rate"] == pytest.approx(np.mean(~said[labels]))
    assert found["share of the second class"] == pytest.approx(np.mean(labels))
    losses = metrics.probability_losses(counts, edges)
    assert losses["Brier score"] == pytest.approx(brier_score_loss(labels, scores), abs=5e-4)
    clipped = np.clip(scores, metrics.CLIP, 1 - metrics.CLIP)
    assert losses["log-loss"] == pytest.approx(log_loss(labels, clipped), abs=1e-3)


@pytest.mark.parametrize("bins", [16, 18, 32])
@pytest.mark.parametrize("slope", [0.5, 1.5, 4.0])
def test_bins_hardly_change_the_area(bins: int, slope: float) -> None:
    scores, labels = scored(100_000, seed=2, slope=slope)
    counts = counted(scores, labels, bins_of.probability_edges(bins))
    assert metrics.area(counts) == pytest.approx(roc_auc_score(labels, scores), abs=0.002)


def test_the_curve_passes_through_the_numbers() -> None:
    counts = counted(*scored(5000, seed=3), bins_of.probability_edges(16))
    curve, numbers = metrics.along_thresholds(counts), metrics.two_classes(counts, place=8)
    assert curve["recall"][8] == pytest.approx(numbers["recall"])
    assert curve["false positive rate"][8] == pytest.approx(numbers["false positive rate"])
    assert (curve["recall"][0], curve["recall"][-1]) == (1.0, 0.0)


def test_confusion_and_several_classes() -> None:
    counts = np.array([[50.0, 10.0, 0.0], [5.0, 20.0, 5.0], [0.0, 2.0, 8.0]])
    found = metrics.several_classes(counts)
    assert found["accuracy"] == pytest.approx(0.78)
    assert found["recall"].tolist() == pytest.approx([50 / 60, 20 / 30, 8 / 10])
    assert found["precision"].tolist() == pytest.approx([50 / 55, 20 / 32, 8 / 13])
    assert metrics.confusion(counts, None)["confusion"].sum() == pytest.approx(1.0)


def test_residuals_are_those_of_the_numbers() -> None:
    source = np.random.default_rng(4)
    truth = source.normal(50.0, 15.0, 200_000).clip(0, 100)
    guess = (truth + source.normal(1.0, 6.0, len(truth))).clip(0, 100)
    edges, target_edges = bins_of.residual_edges(50.0, 9000, 5.66), bins_of.even_edges(0.0, 100.0, 32)
    residual = np.histogram(guess - truth, edges)[0].astype(float)
    target = np.histogram(truth, target_edges)[0].astype(float)
    found = metrics.residuals(residual, edges)
    assert found["mean absolute error"] == pytest.approx(np.abs(guess - truth).mean(), rel=0.002)
    assert found["mean squared error"] == pytest.approx(np.mean((guess - truth) ** 2), rel=0.005)
    variance = metrics.target_variance(target, target_edges)["variance"]
    assert variance == pytest.approx(truth.var(), rel=0.002)
    quantiles = metrics.residual_quantiles(residual, edges)["residual quantiles"]
    assert quantiles.tolist() == pytest.approx(
        np.quantile(guess - truth, metrics.QUANTILES).tolist(), abs=0.4
    )


def test_numbers_of_many_tables_at_once_are_those_of_each() -> None:
    """Intervals are simulated so."""
    source = np.random.default_rng(5)
    tables = source.uniform(1.0, 50.0, (3, 2, 16))
    for statistic in (
        lambda counts: metrics.two_classes(counts, 7),
        lambda counts: metrics.probability_losses(counts, bins_of.probability_edges(16)),
        metrics.along_thresholds,
        lambda counts: metrics.calibration(counts, np.array([0, 5, 11])),
    ):
        together = statistic(tables)
        for place, table in enumerate(tables):
            for name, value in statistic(table).items():
                assert together[name][place] == pytest.approx(value, nan_ok=True)


def test_counts_are_made_plausible() -> None:
    found = nearest_counts(np.array([-5.0, 3.0, 10.0]), 9.0)
    assert found.tolist() == pytest.approx([0.0, 1.0, 8.0])
    table = NoisyTable(np.array([[-8.0, 4.0], [30.0, 80.0]]), "laplace", 4.0, records=100)
    assert table.counts.sum() == pytest.approx(100.0)
    assert table.plausible.min() >= 0.0
    assert table.plausible.sum() == pytest.approx(100.0)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_draws_have_the_variance_of_sampling_and_noise(noise: str) -> None:
    table = NoisyTable(np.array([400.0, 100.0]), noise, 20.0)
    drawn = table.draws(20_000, 0)
    power = 2.0 if noise == "laplace" else 1.0
    assert drawn.mean(axis=0) == pytest.approx(np.array([400.0, 100.0]), abs=1.0)
    assert drawn[:, 0].var() == pytest.approx(500 * 0.8 * 0.2 + power * 400.0, rel=0.05)


@pytest.mark.parametrize(("records", "noise"), [(2000, "laplace"), (None, "gaussian")])
def test_intervals_cover(records: int | None, noise: str) -> None:
    """New records and new noise, 300 times: 95 % of the intervals hold the population's value."""
    source, edges = np.random.default_rng(6), bins_of.probability_edges(12)
    population = counted(*scored(200_000, seed=7), edges)
    true = metrics.two_classes(population, 6)
    hits: dict[str, int] = dict.fromkeys(("accuracy", "auc", "recall"), 0)
    for _ in range(300):
        exact = source.multinomial(2000, population.ravel() / population.sum()).reshape(population.shape)
        draw = source.laplace if noise == "laplace" else source.normal
        table = NoisyTable(exact + draw(0.0, 4.0, exact.shape), noise, 4.0, records)
        found = estimates(lambda counts: metrics.two_classes(counts, 6), table)
        for name in hits:
            hits[name] += bool(found[name][0].lower <= true[name] <= found[name][0].upper)
    assert all(0.91 <= count / 300 <= 0.99 for count in hits.values()), hits


def test_what_the_noise_drowns_is_not_known() -> None:
    table = NoisyTable(np.array([[-3.0, 2.0], [1.0, -4.0]]), "laplace", 50.0)
    found = estimates(lambda counts: metrics.two_classes(counts, 1), table)
    assert not found["recall"][0].is_known
    assert str(found["recall"][0]) == "too noisy"


def test_bins_follow_from_public_numbers_and_grow_with_them() -> None:
    assert bins_of.bins_for(9000, 5.66) == 18
    assert [bins_of.bins_for(records, 5.66) for records in (10, 10**4, 10**7)] == [8, 18, 64]


@pytest.mark.parametrize("bins", [8, 18, 64])
def test_edges_rise_and_hold_the_threshold(bins: int) -> None:
    edges = bins_of.probability_edges(bins)
    assert (np.diff(edges) > 0).all()
    assert (edges[0], edges[bins // 2], edges[-1]) == (0.0, 0.5, 1.0)


@pytest.mark.parametrize("records", [3, 3000, 10**7])
def test_bins_of_residuals_are_narrow_around_0_and_end_at_the_bound(records: int) -> None:
    edges = bins_of.residual_edges(2.0, records, deviation=5.66)
    bins = len(edges) - 1
    assert bins % 4 == 0
    assert (edges[0], edges[bins // 2], edges[-1]) == pytest.approx((-2.0, 0.0, 2.0))
    assert (np.diff(edges) > 0).all()
    assert np.diff(edges).argmin() in (bins // 2 - 1, bins // 2)


def test_intervals_of_residuals_cover_and_noise_adds_no_bias() -> None:
    """Narrow residuals under wide bounds, new records and new noise 200 times."""
    source, edges = np.random.default_rng(10), bins_of.residual_edges(20_000.0, 3600, 5.66)
    hits, means = {"mean absolute error": 0, "mean squared error": 0}, []
    true = {"mean absolute error": 950 * math.sqrt(2 / math.pi), "mean squared error": 950.0**2}
    for _ in range(200):
        exact = np.histogram(source.normal(0.0, 950.0, 3600), edges)[0]
        table = NoisyTable(exact + source.laplace(0.0, 4.0, exact.shape), "laplace", 4.0, 3600)
        found = estimates(
            lambda counts: metrics.residuals(counts, edges), table, within=(-math.inf, math.inf)
        )
        means.append(found["mean absolute error"][0].value)
        for name in hits:
            hits[name] += bool(found[name][0].lower <= true[name] <= found[name][0].upper)
    assert np.mean(means) == pytest.approx(
        true["mean absolute error"], abs=4 * float(np.std(means)) / math.sqrt(200)
    )
    assert all(0.91 <= count / 200 <= 0.99 for count in hits.values()), hits


def test_a_quotient_covers_and_has_no_end_where_its_divisor_may_be_0() -> None:
    source, hits = np.random.default_rng(11), 0
    for _ in range(2000):
        above, below = source.normal(2.0, 0.5), source.normal(8.0, 2.0)
        found = quotient(
            Estimate(above, above - 0.98, above + 0.98), Estimate(below, below - 3.92, below + 3.92)
        )
        hits += (found.is_known and found.lower <= 0.25 <= found.upper) or below <= 3.92
    assert 0.94 <= hits / 2000 <= 0.96
    assert not quotient(Estimate(1.0, 0.5, 1.5), Estimate(1.0, -0.1, 2.1)).is_known


def test_a_magnitude_that_noise_made_negative_is_not_known() -> None:
    assert root(Estimate(4.0, -1.0, 9.0)) == Estimate(2.0, 0.0, 3.0)
    assert not magnitude(Estimate(-1.0, -3.0, 2.0)).is_known


def test_rising_values_are_those_of_isotonic_regression() -> None:
    source = np.random.default_rng(8)
    values = source.normal(size=20) + np.arange(20) / 5
    assert metrics.rising(values).tolist() == pytest.approx(isotonic_regression(values).tolist())


def test_calibration_groups_hold_enough() -> None:
    counts = counted(*scored(5000, seed=9), bins_of.probability_edges(32))
    starts = metrics.calibration_groups(counts, deviation=6.0)
    held = np.add.reduceat(counts.sum(0), starts)
    assert held.min() >= 20 * 6 * math.sqrt(2)
    assert 4 <= len(starts) <= 12
