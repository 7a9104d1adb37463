"""What follows from counts: against scikit-learn where there is no noise, and by its law where there is."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.isotonic import isotonic_regression
from sklearn.metrics import brier_score_loss, log_loss, precision_score, recall_score, roc_auc_score

from privlearn.arrays import Array
from privlearn.statistics import (
    NO_NOISE,
    Estimate,
    NoisyTable,
    estimates,
    largest_share,
    magnitude,
    nearest_counts,
    quotient,
    root,
)
from privlearn.statistics.evaluation import layout, metrics


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
    edges = layout.probability_edges(32)
    counts = counted(scores, labels, edges)
    found = metrics.two_classes(counts, threshold=16)
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
    counts = counted(scores, labels, layout.probability_edges(bins))
    assert metrics.area(counts) == pytest.approx(roc_auc_score(labels, scores), abs=0.002)


def test_the_curve_passes_through_the_numbers() -> None:
    counts = counted(*scored(5000, seed=3), layout.probability_edges(16))
    curve, numbers = metrics.along_thresholds(counts), metrics.two_classes(counts, threshold=8)
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
    edges, target_edges = layout.residual_edges(50.0, 9000, 5.66), np.linspace(0.0, 100.0, 33)
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
        lambda counts: metrics.probability_losses(counts, layout.probability_edges(16)),
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


@pytest.mark.parametrize("rows_per_person", [1, 7])
def test_rows_of_a_person_may_be_alike(rows_per_person: int) -> None:
    table = NoisyTable(np.array([400.0, 100.0]), "gaussian", 5.0, rows_per_person=rows_per_person)
    drawn = table.draws(20_000, 0)
    assert drawn.mean(axis=0) == pytest.approx(np.array([400.0, 100.0]), abs=1.0)
    assert drawn[:, 0].var() == pytest.approx(rows_per_person * 500 * 0.8 * 0.2 + 25.0, rel=0.05)


@pytest.mark.parametrize(("records", "noise"), [(2000, "laplace"), (None, "gaussian")])
def test_intervals_cover(records: int | None, noise: str) -> None:
    """New records and new noise, 300 times: 95 % of the intervals hold the population's value."""
    source, edges = np.random.default_rng(6), layout.probability_edges(12)
    population = counted(*scored(200_000, seed=7), edges)
    true = metrics.two_classes(population, 6)
    hits: dict[str, int] = dict.fromkeys(("accuracy", "auc", "recall"), 0)
    for _ in range(300):
        exact = source.multinomial(2000, population.ravel() / population.sum()).reshape(population.shape)
        draw = source.laplace if noise == "laplace" else source.normal
        table = NoisyTable(exact + draw(0.0, 4.0, exact.shape), noise, 4.0, records)
        found = estimates(partial(metrics.two_classes, threshold=6), table, quadratic=True)
        for name in hits:
            hits[name] += bool(found[name][0].lower <= true[name] <= found[name][0].upper)
    assert all(0.91 <= count / 300 <= 0.99 for count in hits.values()), hits


def noisy_tables(exact: Array, noise: str, scale: float, records: int | None) -> tuple[Array, Any]:
    """Return many noisy versions of a table, moved to a public total, and what is known of their noise."""
    source = np.random.default_rng(12)
    draw = source.laplace if noise == "laplace" else source.normal
    table = NoisyTable(exact, noise, scale, records)
    return table._shift(exact + draw(0.0, scale, (100_000, *exact.shape)), 1), table.cell_noise


LAWS = pytest.mark.parametrize(
    ("noise", "scale", "moved"),
    [("gaussian", 40.0, True), ("laplace", 28.0, True), ("gaussian", 40.0, False), ("laplace", 28.0, False)],
)


@LAWS
@pytest.mark.parametrize("shape", [(2, 8), (2, 32), (3, 2, 8)])
def test_pairs_counted_with_noise_have_no_bias(
    noise: str, scale: float, moved: bool, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numerator and denominator of the AUC, of a whole table or of each group in one: without the correction the mean
    is off by -variance B^2 / (2 cells), many standard errors."""
    exact = np.random.default_rng(1).integers(0, 60, shape).astype(float)
    tables, known = noisy_tables(exact, noise, scale, int(exact.sum()) if moved else None)
    seen: list[tuple[Array, Array]] = []
    monkeypatch.setattr(metrics, "share", lambda part, whole: seen.append((part, whole)) or part / whole)
    metrics.area(exact)
    metrics.area(tables, known)
    for place in (0, 1):  # fine and joined bins
        for true, found in zip(seen[place], seen[2 + place], strict=True):
            error = found.std(axis=0) / math.sqrt(len(found))
            assert np.all(np.abs(found.mean(axis=0) - true) < 5.5 * error)
    if moved:  # and the correction is one
        fine = seen[2][0] + known.covariance * shape[-1] ** 2 / 2.0
        assert np.all(seen[0][0] - fine.mean(axis=0) > 4.0 * fine.std(axis=0) / math.sqrt(len(fine)))


@pytest.mark.parametrize(("noise", "scale"), [("gaussian", 40.0), ("laplace", 28.0)])
def test_a_variance_of_noisy_counts_has_no_bias(noise: str, scale: float) -> None:
    """A squared noisy mean is too large on average, and the variance was too small by as much."""
    edges = np.linspace(-1.0, 1.0, 33)
    exact = np.round(4000 * stats.norm.pdf(np.linspace(-3, 3, 32)) / 5.3)
    tables, known = noisy_tables(exact, noise, scale, int(exact.sum()))
    true = metrics.target_variance(exact, edges)["variance"]
    found, plain = (metrics.target_variance(tables, edges, known)["variance"] for known in (known, NO_NOISE))
    error = float(found.std()) / math.sqrt(len(found))
    assert abs(found.mean() - true) < 5.5 * error
    assert true - plain.mean() > 8.0 * error


def test_what_the_noise_drowns_is_not_known() -> None:
    table = NoisyTable(np.array([[-3.0, 2.0], [1.0, -4.0]]), "laplace", 50.0)
    found = estimates(partial(metrics.two_classes, threshold=1), table, quadratic=True)
    assert not found["recall"][0].is_known
    assert str(found["recall"][0]) == "too noisy"


def test_bins_follow_from_public_numbers_and_grow_with_them() -> None:
    assert layout.number_of_bins(9000, 5.66) == 18
    assert [layout.number_of_bins(records, 5.66) for records in (10, 10**4, 10**7)] == [8, 18, 64]


@pytest.mark.parametrize("bins", [8, 18, 64])
def test_edges_rise_and_hold_the_threshold(bins: int) -> None:
    edges = layout.probability_edges(bins)
    assert (np.diff(edges) > 0).all()
    assert (edges[0], edges[bins // 2], edges[-1]) == (0.0, 0.5, 1.0)


@pytest.mark.parametrize("records", [3, 3000, 10**7])
def test_layout_residuals_are_narrow_around_0_and_end_at_the_bound(records: int) -> None:
    edges = layout.residual_edges(2.0, records, deviation=5.66)
    bins = len(edges) - 1
    assert bins % 4 == 0
    assert (edges[0], edges[bins // 2], edges[-1]) == pytest.approx((-2.0, 0.0, 2.0))
    assert (np.diff(edges) > 0).all()
    assert np.diff(edges).argmin() in (bins // 2 - 1, bins // 2)


def test_intervals_of_residuals_cover_and_noise_adds_no_bias() -> None:
    """Narrow residuals under wide bounds, new records and new noise 200 times."""
    source, edges = np.random.default_rng(10), layout.residual_edges(20_000.0, 3600, 5.66)
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
    assert metrics.isotonic(values).tolist() == pytest.approx(isotonic_regression(values).tolist())


def test_calibration_groups_hold_enough() -> None:
    counts = counted(*scored(5000, seed=9), layout.probability_edges(32))
    starts = metrics.calibration_groups(counts, deviation=6.0)
    held = np.add.reduceat(counts.sum(0), starts)
    assert held.min() >= 20 * 6 * math.sqrt(2)
    assert 4 <= len(starts) <= 12


@pytest.mark.parametrize(("classes", "records", "scale"), [(12, 1000, 20.0), (12, 300, 40.0), (3, 500, 20.0)])
@pytest.mark.parametrize("decay", [0.0, 0.3, 1.5])
def test_the_largest_of_noisy_shares(classes: int, records: int, scale: float, decay: float) -> None:
    """Without its correction the largest of 12 shares lies above its interval in half of the tables."""
    shares = np.arange(1.0, classes + 1.0) ** -decay
    shares /= shares.sum()
    source, covered, values, tables = np.random.default_rng(3), 0, [], 40
    for _ in range(tables):
        counts = source.multinomial(records, np.repeat(shares / classes, classes)).reshape(classes, classes)
        noisy = counts + source.normal(0.0, scale, counts.shape)
        found = largest_share(metrics.class_shares, NoisyTable(noisy, "gaussian", scale, records))
        assert 1.0 / classes <= found.lower <= found.value <= found.upper <= 1.0
        covered += found.lower <= shares[0] <= found.upper
        values.append(found.value)
    assert stats.binom.cdf(covered, tables, 0.95) > 1e-4
    if records * shares.max() > 6.0 * scale:
        assert np.mean(values) == pytest.approx(shares[0], rel=0.2)
