"""Private centring: what one person moves, how much noise there is, and what centre and fit cost together."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from privlearn import Guarantee, PrivateGridSearch, PrivateLogisticRegression, PrivateRegressor, PrivateSVC
from privlearn.arrays import Array, square_sums
from privlearn.data import ArrayEncoder
from privlearn.data.encoding import CentredEncoder
from privlearn.errors import InvalidParameter
from privlearn.estimators import (
    Centrable,
    ClassTargets,
    MemoryOracle,
    Requests,
    TrainingRows,
    calibrate_mechanism,
)
from privlearn.guarantee import RELATIONS
from privlearn.mechanisms import ObjectivePerturbation, OutputPerturbation, Task
from privlearn.mechanisms.statistics import Centre, Centres, Centring
from privlearn.randomness import SeededRandomness
from privlearn.solvers import Huber, Logistic, Multinomial
from tests.support.combinations import hockey_stick

ALARM = 1e-6


def task_of(neighbours: str = "zero_out", **facts: Any) -> Task:
    default: dict[str, Any] = {
        "loss": Logistic(),
        "total": 50,
        "dimension": 2,
        "problems": 1,
        "regularization": 0.1,
    }
    return Task(**default | {"tolerance": 1e-9} | facts, neighbours=neighbours)


def oracle_of(rows: Array, weights: Array | None = None) -> MemoryOracle:
    encoder = ArrayEncoder(1.0, rows.shape[1], fit_intercept=False)
    targets = ClassTargets(np.zeros(len(rows), np.int64), np.array([0, 1]))
    return MemoryOracle(TrainingRows(encoder.encode(rows), encoder, targets, len(rows), weights), task_of())


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.booleans())
@settings(deadline=None, max_examples=60)
def test_one_person_moves_sum_and_counts_by_no_more_than_is_declared(
    seed: int, features: int, replaced: bool
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(6, features)) * rng.choice([1e-3, 1.0, 50.0], size=(6, 1))
    other = rows.copy()
    other[0] = -50.0 * rows[0] if replaced else 0.0
    one, two = oracle_of(rows), oracle_of(other)
    relation = RELATIONS["replace_one" if replaced else "zero_out"]
    centring = Centring(features, 1.0, mean_noise_scale=1.0, count_noise_scale=1e12)
    apart = np.linalg.norm(one.sum_of_rows() - two.sum_of_rows())
    assert apart <= centring.ratio(relation) - math.sqrt(features) * 2.0**-44
    centre = Centre(one.sum_of_rows() / 6, float(rng.uniform(0.01, 2.0)))
    assert abs(one.rows_within(centre) - two.rows_within(centre)) <= 1
    if replaced and features > 1:
        assert apart > 0.0


@pytest.mark.parametrize("several", [2, 40, 3000])
def test_averaged_rows_of_one_person_move_sum_and_counts_like_one_row(several: int) -> None:
    """However many they are: roundings of one person's rows do not add up."""
    features = 9
    person = np.full((several, features), 1.0 / 3.0)  # of 2 or 3000 rows each share would be rounded up
    others = np.random.default_rng(several).normal(size=(5, features))
    weights = np.concatenate([np.full(several, 1.0 / several), np.ones(5)])
    one = oracle_of(np.concatenate([person, others]), weights)
    two = oracle_of(np.concatenate([0.0 * person, others]), weights)
    centring = Centring(features, 1.0, mean_noise_scale=1.0, count_noise_scale=1e12)
    apart = np.linalg.norm(one.sum_of_rows() - two.sum_of_rows())
    assert 0.9 < apart <= centring.ratio(RELATIONS["zero_out"])
    for radius in (0.2, 0.7, 1.0, 1.4):
        within = [oracle.rows_within(Centre(np.zeros(features), radius)) for oracle in (one, two)]
        assert abs(within[0] - within[1]) <= 1.0
        assert abs(math.floor(within[0]) - math.floor(within[1])) <= 1


class Weight(Centres):
    """PRIVATE: a weight of rows within every radius."""

    def __init__(self, within: float) -> None:
        self.within = within

    def sum_of_rows(self) -> Array:
        return np.zeros(1)

    def rows_within(self, centre: Centre) -> float:
        return self.within


def test_counts_are_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[float] = []

    def record(values: Array, scale: float, randomness: object) -> Array:
        counted.extend(values.tolist())
        return values

    monkeypatch.setattr("privlearn.mechanisms.statistics.centring.add_gaussian", record)
    for within in (1.4, 2.4, 2.6):
        Centring(1, 1.0, 1.0, 1.0).run(Weight(within), 10, SeededRandomness(0))
    assert sorted(set(counted)) == [0.0, 1.0, 2.0]  # the sum of rows is 0


def test_sums_do_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(3000, 3))
    sums = [oracle_of(rng.permutation(rows)).sum_of_rows() for _ in range(5)]
    assert all(np.array_equal(found, sums[0]) for found in sums)


def test_the_bound_on_the_sum_is_reached() -> None:
    direction = np.full((1, 9), 1.0 / 3.0)
    moved = np.linalg.norm(oracle_of(direction).sum_of_rows() - oracle_of(-direction).sum_of_rows())
    declared = Centring(9, 1.0, 1.0, 1e12).ratio(RELATIONS["replace_one"])
    assert 0.999 * declared < moved < declared


@dataclass(frozen=True)
class Told:
    """An oracle that answers what it is told to. Implements `Centres`."""

    rows: Array
    within: int

    def sum_of_rows(self) -> Array:
        return self.rows

    def rows_within(self, centre: Centre) -> int:
        return self.within


def test_noise_in_the_mean_is_as_declared() -> None:
    """Fails if it is halved or doubled."""
    centring = Centring(3000, 1.0, mean_noise_scale=5.0, count_noise_scale=1.0)
    centre = centring.run(Told(np.full(3000, 7.0), 0), 10, SeededRandomness(np.random.default_rng(1)))
    drawn = (10.0 * centre.mean - 7.0) / 5.0
    assert stats.kstest(drawn, "norm").pvalue > ALARM


def test_noise_in_the_counts_is_as_declared() -> None:
    """A count that is one deviation too high is taken for high enough in 84 of 100 cases, each of six times."""
    centring = Centring(1, 1.0, mean_noise_scale=1.0, count_noise_scale=20.0)
    randomness = SeededRandomness(np.random.default_rng(2))
    runs = [centring.run(Told(np.zeros(1), 70), 100, randomness).radius for _ in range(600)]
    smallest = sum(radius < 0.009 for radius in runs)  # high enough all six times
    assert stats.binomtest(smallest, 600, stats.norm.cdf(1.0) ** 6).pvalue > ALARM


def test_the_radius_holds_half_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    rows = 0.3 + 0.02 * rng.normal(size=(20_000, 4))
    centring = Centring(4, 1.0, mean_noise_scale=20.0, count_noise_scale=20.0)
    centre = centring.run(oracle_of(rows), 20_000, SeededRandomness(rng))
    share = np.mean(np.linalg.norm(rows - centre.mean, axis=1) <= centre.radius)
    assert 0.5 <= share < 0.65
    assert np.linalg.norm(centre.mean - 0.3) < 0.01


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("classes", [0, 3])
def test_ratios_add_up_in_squares(neighbours: str, classes: int) -> None:
    """The deltas, by the theorem written out anew."""
    epsilon, delta = 1.3, 1e-4
    promise = Guarantee(epsilon, delta, neighbours)
    bought = Centring(4, 1.0, mean_noise_scale=30.0, count_noise_scale=40.0)
    facts = task_of(neighbours, total=100_000, dimension=12, classes=classes, centring=bought,
                    loss=Multinomial() if classes else Logistic())  # fmt: skip
    moved = 2.0 if neighbours == "replace_one" else 1.0
    spent = (moved * (1.0 + 2.0 * 2.0**-21) / 30.0) ** 2 + 6.0 / 40.0**2
    output = OutputPerturbation.calibrate(facts, promise, "gaussian", "tight")
    ratio = output.sensitivity / output.noise_scale
    assert hockey_stick(epsilon, math.hypot(ratio, math.sqrt(spent))) == pytest.approx(delta, rel=1e-4)
    objective = ObjectivePerturbation.calibrate(facts, promise, "gaussian", "tight")
    beside = math.sqrt(spent + (2.0 * objective.solver_distance / objective.tolerance_noise_scale) ** 2)
    left = epsilon - objective.slack
    found = hockey_stick(left, beside)
    share = facts.gradient_sensitivity / objective.noise_scale
    found += facts.corners * hockey_stick(left, math.hypot(share, beside))
    assert found == pytest.approx(delta, rel=2e-3)
    without = ObjectivePerturbation.calibrate(
        dataclasses.replace(facts, centring=None), promise, "gaussian", "tight"
    )
    assert objective.noise_scale > 1.001 * without.noise_scale
    for mechanism in (output, objective):
        assert 0.99 * delta < mechanism.spends().delta <= delta
        assert not dataclasses.replace(mechanism, noise_scale=0.9 * mechanism.noise_scale).spends() <= promise


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_beside_a_residual_ratios_add_up_in_squares(neighbours: str) -> None:
    """E max(0, 1 - exp(left - m^2/2 - m |Z|)), m of all three noises: by quadrature; and below it the exact law.

    The exact law: of m |Z| and of the noises beside it, in two dimensions.
    """
    epsilon, delta = 1.3, 1e-4
    bought = Centring(4, 1.0, mean_noise_scale=30.0, count_noise_scale=40.0)
    facts = task_of(neighbours, total=100_000, dimension=12, centring=bought, loss=Huber(0.2))
    promise = Guarantee(epsilon, delta, neighbours)
    mechanism = ObjectivePerturbation.calibrate(facts, promise, "gaussian", "tight")
    moved = 2.0 if neighbours == "replace_one" else 1.0
    spent = (moved * (1.0 + 2.0 * 2.0**-21) / 30.0) ** 2 + 6.0 / 40.0**2
    beside = math.sqrt(spent + (2.0 * mechanism.solver_distance / mechanism.tolerance_noise_scale) ** 2)
    left, alone = epsilon - mechanism.slack, moved / mechanism.noise_scale
    z, width = np.linspace(-9.0, 9.0, 3001, retstep=True)
    weights = stats.norm.pdf(z) * width

    def free(ratio: float) -> Array:
        return np.asarray(ratio**2 / 2.0 + ratio * np.abs(z))

    bound = weights @ np.maximum(-np.expm1(left - free(math.hypot(alone, beside))), 0.0)
    assert bound == pytest.approx(delta, rel=2e-3)
    second = beside**2 / 2.0 + beside * z
    exact = weights @ np.maximum(-np.expm1(left - free(alone)[:, np.newaxis] - second), 0.0) @ weights
    assert 0.9 * delta < exact <= 1.001 * bound  # of quadrature
    without = dataclasses.replace(mechanism, task=dataclasses.replace(mechanism.task, centring=None))
    assert without.spends().delta < 0.9 * delta < mechanism.spends().delta <= delta


@dataclass(frozen=True)
class Line:
    """Whole runs on a line: centre, then the fit, each step with the exact log-ratio of what it gave on both tables."""

    mechanism: ObjectivePerturbation
    tables: tuple[tuple[Array, Array], tuple[Array, Array]]
    """Rows and signs of either."""

    def losses(self, side: int, runs: int, rng: np.random.Generator) -> Array:
        return np.array([self._loss(side, rng) for _ in range(runs)])

    def _loss(self, side: int, rng: np.random.Generator) -> float:
        bought, total = self.mechanism.task.centring, self.mechanism.task.total
        assert bought is not None
        told, loss = self._noisy([rows.sum() for rows, _ in self.tables], side, bought.mean_noise_scale, rng)
        mean, low, high = told / total, 0, 64
        for _ in range(6):
            middle = (low + high) // 2
            counts = [np.sum(np.abs(rows - mean) <= 2.0 ** (1.0 - middle / 8.0)) for rows, _ in self.tables]
            told, more = self._noisy(counts, side, bought.count_noise_scale, rng)
            loss += more
            low, high = (middle, high) if told >= total / 2.0 else (low, middle)
        return loss + self._fit(side, mean, 2.0 ** (1.0 - low / 8.0), rng)

    @staticmethod
    def _noisy(exact: list[Any], side: int, scale: float, rng: np.random.Generator) -> tuple[float, float]:
        told = exact[side] + scale * rng.normal()
        here, there = (stats.norm.logpdf(told, exact[place], scale) for place in (side, 1 - side))
        return float(told), float(here - there)

    def _fit(self, side: int, mean: float, radius: float, rng: np.random.Generator) -> float:
        encoder = CentredEncoder(ArrayEncoder(1.0, 1, fit_intercept=False), np.array([mean]), radius)
        margins = [encoder.lift(rows[:, np.newaxis])[:, 0] * signs for rows, signs in self.tables]
        strength = self.mechanism.task.total * self.mechanism.effective_regularization

        def noise_for(place: int, w: float) -> tuple[float, float]:
            """Return the perturbation that makes w the minimiser, and how fast it changes with w."""
            chance = expit(-margins[place] * w)
            slope = strength + margins[place] ** 2 @ (chance * (1.0 - chance))
            return float(margins[place] @ chance - strength * w), float(slope)

        drawn = self.mechanism.noise_scale * rng.normal()
        w = brentq(lambda w: noise_for(side, w)[0] - drawn, -1e3, 1e3)
        here, there = (
            stats.norm.logpdf(noise, scale=self.mechanism.noise_scale) + math.log(slope)
            for noise, slope in (noise_for(side, w), noise_for(1 - side, w))
        )
        return float(here - there)


def test_centre_and_fit_together_keep_the_promise_on_a_line() -> None:
    """Their hockey-stick divergence is below delta, and above it if the noise of all parts is halved."""
    epsilon, delta = 1.0, 0.05
    bought = Centring(1, 1.0, mean_noise_scale=2.5, count_noise_scale=8.0)
    facts = task_of(total=3, dimension=1, regularization=20.0, centring=bought)
    promise = Guarantee(epsilon, delta, "zero_out")
    mechanism = ObjectivePerturbation.calibrate(facts, promise, "gaussian", "tight")
    with_record = np.array([1.0, -0.9, 0.9]), np.array([1.0, 1.0, 1.0])
    without = with_record[0][1:], with_record[1][1:]
    half = dataclasses.replace(bought, mean_noise_scale=1.25, count_noise_scale=4.0)
    halved = dataclasses.replace(
        mechanism,
        task=dataclasses.replace(mechanism.task, centring=half),
        noise_scale=mechanism.noise_scale / 2.0,
    )

    def divergence(plan: ObjectivePerturbation, side: int) -> tuple[float, float]:
        losses = Line(plan, (with_record, without)).losses(side, 2000, np.random.default_rng(side))
        hockey = np.maximum(0.0, 1.0 - np.exp(epsilon - losses))
        return float(hockey.mean()), 4.0 * float(hockey.std()) / math.sqrt(len(hockey))

    for side in (0, 1):
        found, error = divergence(mechanism, side)
        assert found - error <= delta
    found, error = divergence(halved, 0)
    assert found - error > delta


def planned(total: int, epsilon: float, always: bool = False, **facts: Any) -> Any:
    task = task_of(total=total, dimension=facts.pop("dimension", 100), tolerance=0.0, **facts)
    promise = Guarantee(epsilon, 1e-5, "zero_out")
    settings: dict[str, Any] = {
        "mechanism": "auto",
        "noise": "auto",
        "calibration": "tight",
        "regularization": "auto",
    }
    rows = Centrable(100, 1.0, always)
    return calibrate_mechanism(task, promise, **settings, requests=Requests(rows)), calibrate_mechanism(
        task, promise, **settings
    )


def test_when_it_pays() -> None:
    """By the share of the mechanism's own ratio that the mean gets: enough to be near, 1 to 10 %."""
    assert planned(455, 0.1)[0].task.centring is None
    assert planned(455, 0.1, always=True)[0].task.centring is not None
    for total, share in ((10**6, 0.01), (2_000, 0.1)):
        centred, plain = planned(total, 1.0)
        bought = centred.task.centring
        assert (1.0 / bought.mean_noise_scale) ** 2 / plain.ratio**2 == pytest.approx(share, rel=1e-3)
        assert bought.ratio(RELATIONS["zero_out"]) ** 2 == pytest.approx(
            (share + 0.02) * plain.ratio**2, rel=1e-3
        )
        assert plain.noise_scale < centred.noise_scale < (1.02 + share / 2.0) * plain.noise_scale


@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateSVC])
def test_rows_that_share_a_mean_are_learnt_from(kind: Any) -> None:
    """All of the signal is in a twentieth of the rows' length."""
    rng = np.random.default_rng(4)
    X = 1.0 + 0.05 * rng.normal(size=(4000, 4))
    y = (X[:, 0] > 1.0).astype(int)
    settings = {"epsilon": 0.5, "delta": 1e-5, "norm_bound": 2.5, "classes": [0, 1], "random_state": 0}
    centred, plain = (kind(**settings, centre=centre).fit(X, y) for centre in ("auto", False))
    assert centred.score(X, y) > 0.9 > plain.score(X, y)
    assert centred.certificate_.task.centring is not None
    assert plain.certificate_.task.centring is None
    encoder = centred.release_.model.encoder
    inside = X[np.linalg.norm(encoder.base.encode(X)[:, :-1] - encoder.mean, axis=1) <= encoder.radius]
    expected = inside @ centred.coef_.T + centred.intercept_
    assert centred.decision_function(inside) == pytest.approx(expected[:, 0], rel=1e-9)


@pytest.mark.parametrize("neighbours", ["zero_out", "replace_one"])
def test_numbers_of_rows_that_share_a_mean_are_learnt(neighbours: str) -> None:
    rng = np.random.default_rng(4)
    X = 1.0 + 0.05 * rng.normal(size=(4000, 4))
    y = 10.0 * X[:, 0] - 10.0 * X[:, 1] + 0.2 * rng.normal(size=4000)
    facts: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-5, "neighbours": neighbours, "random_state": 0}
    facts |= {"norm_bound": 2.5, "target_bounds": (-3.0, 3.0)}
    centred, plain = (PrivateRegressor(**facts, centre=centre).fit(X, y) for centre in ("auto", False))
    assert centred.score(X, y) > 0.7 > 0.5 > plain.score(X, y)
    assert centred.certificate_.task.centring is not None
    assert plain.certificate_.task.centring is None
    encoder: Any = centred.release_.model.encoder
    inside = X[np.linalg.norm(encoder.base.encode(X)[:, :-1] - encoder.mean, axis=1) <= encoder.radius]
    expected = np.clip(inside @ centred.coef_ + centred.intercept_, -3.0, 3.0)
    assert centred.predict(inside) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_centred_rows_are_short_and_depend_on_themselves(fit_intercept: bool) -> None:
    rng = np.random.default_rng(5)
    base = ArrayEncoder(1.0, 7, fit_intercept=fit_intercept)
    encoder = CentredEncoder(base, rng.normal(size=7), 0.01)
    rows = base.encode(rng.normal(size=(3000, 7)))
    lifted = encoder.lift(rows)
    assert np.max(np.linalg.norm(lifted.astype(np.longdouble), axis=1)) <= 1.0
    assert np.min(np.linalg.norm(lifted, axis=1)) > 0.99
    assert np.array_equal(lifted[1234:1237], encoder.lift(rows[1234:1237]))


def test_a_constant_column_of_the_callers_own_is_kept() -> None:
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(8000), 0.3 * rng.normal(size=(8000, 2))])
    y = (X[:, 1] > 0.3).astype(int)
    model = PrivateSVC(
        epsilon=1.0, delta=1e-5, norm_bound=1.5, classes=[0, 1], random_state=0, fit_intercept=False
    ).fit(X, y)
    assert model.certificate_.task.centring is None
    assert model.score(X, y) > 0.9


def test_what_is_not_centred() -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    settings: dict[str, Any] = {"epsilon": 1.0, "norm_bound": 3.0, "classes": [0, 1], "random_state": 0}
    assert PrivateSVC(**settings).fit(X, y).certificate_.task.centring is None  # pure
    gaussian = settings | {"delta": 1e-4}
    assert PrivateSVC(**gaussian, kernel="rbf").fit(X, y).certificate_.task.centring is None
    assert PrivateSVC(**gaussian, calibration="ra12").fit(X, y).certificate_.task.centring is None
    assert PrivateSVC(**gaussian, loss="hinge").fit(X, y).certificate_.task.centring is not None


@pytest.mark.parametrize("classes", [3, 10, 100])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_it_costs_a_tenth_of_the_noise_at_most(classes: int, epsilon: float) -> None:
    """Each corner pays for it again: shares of the whole promise's ratio would cost far more."""
    centred, plain = planned(
        900, epsilon, loss=Multinomial(), dimension=3 * classes, classes=classes, always=True
    )
    assert centred.task.centring is not None
    assert plain.noise_scale < centred.noise_scale <= 1.1 * plain.noise_scale


def test_rows_that_stand_for_others_count_as_many() -> None:
    """As a server's rehearsal weighs its made-up rows."""
    rows = np.random.default_rng(11).normal(size=(50, 3)) / 3.0
    one = oracle_of(rows)
    heavy = MemoryOracle(dataclasses.replace(one._rows, person_weights=np.full(50, 4.0)), task_of())
    centre = Centre(np.zeros(3), 0.6)
    assert heavy.rows_within(centre) == 4 * one.rows_within(centre) > 0
    assert heavy.sum_of_rows() == pytest.approx(4.0 * one.sum_of_rows(), abs=1e-3)


def test_what_centre_may_be() -> None:
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    settings: dict[str, Any] = {"epsilon": 1.0, "norm_bound": 3.0, "classes": [0, 1], "random_state": 0}
    strange: Any
    for strange in (0, 1, np.False_, "yes"):
        with pytest.raises(InvalidParameter, match="centre must be"):
            PrivateSVC(**settings, delta=1e-4, centre=strange).fit(X, y)
    with pytest.raises(InvalidParameter, match="centre=True needs"):
        PrivateSVC(**settings, centre=True).fit(X, y)
    work = PrivateSVC(**settings, delta=1e-4).prepare(X, y, private=True)
    with pytest.raises(InvalidParameter, match="centred rows"):
        work.run(work.calibrate(Guarantee(1.0, 1e-4)), SeededRandomness(rng))


@pytest.mark.parametrize("grid", [{"centre": [True]}, {"centre": [False, "auto"]}])
def test_a_search_does_not_centre(grid: dict[str, Any]) -> None:
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    estimator = PrivateSVC(norm_bound=3.0, classes=[0, 1])
    search = PrivateGridSearch(estimator, grid | {"regularization": [0.01, 0.1]}, epsilon=2.0, delta=1e-6)
    with pytest.raises(InvalidParameter, match="does not centre"):
        search.fit(X, y)


def test_long_rows_depend_on_themselves() -> None:
    """numpy's own sums of more than 8192 squares depend on how many rows there are."""
    rows = np.random.default_rng(10).normal(size=(3, 9001))
    assert np.array_equal(square_sums(rows)[:1], square_sums(rows[:1]))
    assert square_sums(rows) == pytest.approx(np.sum(rows**2, axis=1))
