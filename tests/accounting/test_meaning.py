"""What an attacker can do at best: closed forms of Gaussian noise and of randomised response, and honest bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from privlearn.accounting import (
    ComposedCurve,
    EpsilonDeltaCurve,
    GaussianCurve,
    GaussianObjectiveCurve,
    JointCurve,
    PureCurve,
    ZcdpCurve,
    curve_of_runs,
)
from privlearn.accounting.meaning import (
    _dominating,
    best_advantage,
    best_true_positives,
    gaussian_mu,
    max_odds,
    sharpened_log_delta,
)

FALSE = (0.001, 0.01, 0.2, 0.7)


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("rate", FALSE)
def test_of_gaussian_noise_it_is_the_closed_form(mu: float, rate: float) -> None:
    expected = norm.cdf(norm.ppf(rate) + mu)
    assert best_true_positives(GaussianCurve(mu), rate) == pytest.approx(expected, rel=1e-6)
    assert gaussian_mu(GaussianCurve(mu)) == mu


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("rate", FALSE)
def test_of_randomised_response_it_is_its_own_table(epsilon: float, rate: float) -> None:
    """Tests of one bit that is true with probability p: always, at one answer, or a mixture."""
    p = 1.0 / (1.0 + math.exp(-epsilon))
    expected = rate * p / (1.0 - p) if rate <= 1.0 - p else p + (rate - 1.0 + p) * (1.0 - p) / p
    assert best_true_positives(PureCurve(epsilon), rate) == pytest.approx(expected, rel=1e-5)
    assert max_odds(PureCurve(epsilon), 0.0) == pytest.approx(math.exp(epsilon), rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_mu_of_randomised_response_touches_its_corner_and_is_the_least(epsilon: float) -> None:
    mu = gaussian_mu(PureCurve(epsilon))
    assert mu is not None
    places = np.linspace(0.0, epsilon, 101)
    assert np.all(GaussianCurve(mu).delta(places) >= PureCurve(epsilon).delta(places) * (1 - 1e-9))
    assert GaussianCurve(0.999 * mu).delta(0.0) < PureCurve(epsilon).delta(0.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [699.0, 701.0, 720.0, 1e4, 1e6])
def test_bounds_go_on_growing_with_epsilon(epsilon: float) -> None:
    mu = gaussian_mu(PureCurve(epsilon))
    assert mu is not None
    assert norm.logcdf(-mu / 2.0) == pytest.approx(-epsilon, rel=1e-9)
    for curve in (PureCurve(epsilon), JointCurve(PureCurve(epsilon / 2.0), epsilon / 2.0, 0.0)):
        assert best_true_positives(curve, 0.001) == 1.0
        odds = max_odds(curve, 0.0)
        assert odds == math.inf or math.log(odds) == pytest.approx(epsilon, rel=1e-5)


def test_with_delta_the_worst_gives_itself_away_and_has_no_mu() -> None:
    curve = EpsilonDeltaCurve(1.0, 1e-3)
    assert best_true_positives(curve, 1e-9) == pytest.approx(1e-3, rel=1e-3)
    assert best_true_positives(curve, 0.01) == pytest.approx(math.e * 0.01 + 1e-3, rel=1e-5)
    assert gaussian_mu(curve) is None
    assert gaussian_mu(EpsilonDeltaCurve(1.0)) == gaussian_mu(PureCurve(1.0))
    assert max_odds(curve, 2e-3) == pytest.approx(2.0 * math.e, rel=1e-4)  # by Markov's inequality at epsilon


@pytest.mark.parametrize("curve", [GaussianCurve(0.3), GaussianCurve(3.0), PureCurve(0.5)])
def test_the_search_on_a_grid_errs_upwards_and_by_little(curve: GaussianCurve | PureCurve) -> None:
    exact, found = gaussian_mu(curve), _dominating(curve)
    assert exact is not None
    assert exact <= found <= 1.006 * exact


def test_the_mu_of_a_curve_dominates_it_everywhere() -> None:
    for curve in (
        GaussianObjectiveCurve(0.2, 0.3),
        GaussianObjectiveCurve(0.34, 0.01, corners=9, other_ratio=0.05),
        ZcdpCurve(0.05),
    ):
        mu = gaussian_mu(curve)
        assert mu is not None
        places = np.linspace(0.0, curve.reach(), 997)
        assert np.all(GaussianCurve(mu).log_delta(places) >= sharpened_log_delta(curve, places))
        for rate in FALSE:
            assert best_true_positives(curve, rate) <= norm.cdf(norm.ppf(rate) + mu) * (1 + 1e-6)


def test_deltas_that_add_up_to_1_say_nothing_there_but_larger_epsilons_do() -> None:
    """Nine corners of a softmax: as a sum of deltas the curve is 1 at epsilon 0, which would need mu = 9.8."""
    curve = GaussianObjectiveCurve(0.34, 0.01, corners=9, other_ratio=0.05)
    mu = gaussian_mu(curve)
    assert curve.delta(0.0) >= 1.0
    assert mu is not None
    assert mu < 0.9
    assert best_advantage(curve) < 0.35
    assert best_advantage(GaussianCurve(0.34)) == pytest.approx(2.0 * norm.cdf(0.17) - 1.0)


@pytest.mark.parametrize("curve", [GaussianCurve(0.3), GaussianCurve(3.0), PureCurve(0.5)])
def test_exact_curves_are_not_sharpened(curve: GaussianCurve | PureCurve) -> None:
    places = np.linspace(0.0, curve.reach() * 0.9, 301)
    np.testing.assert_allclose(np.exp(sharpened_log_delta(curve, places)), curve.delta(places), rtol=1e-12)


def test_several_runs_are_the_optimal_test_of_all_answers() -> None:
    """Neyman and Pearson on the number of true bits among 30."""
    epsilon, times, rate = 0.2, 30, 0.01
    p = 1.0 / (1.0 + math.exp(-epsilon))
    least = int(binom.isf(rate, times, 1.0 - p))  # alarm above it, and partly at it
    rest = (rate - binom.sf(least, times, 1.0 - p)) / binom.pmf(least, times, 1.0 - p)
    expected = binom.sf(least, times, p) + rest * binom.pmf(least, times, p)
    assert best_true_positives(curve_of_runs(PureCurve(epsilon), times), rate) == pytest.approx(
        expected, rel=1e-4
    )
    assert curve_of_runs(PureCurve(epsilon), 1).delta(0.1) == pytest.approx(
        float(PureCurve(epsilon).delta(0.1))
    )


def test_several_runs_of_gaussian_noise_are_one_of_the_joint_ratio() -> None:
    several = curve_of_runs(GaussianCurve(0.1), 9)
    assert isinstance(several, ComposedCurve)
    assert gaussian_mu(several) == pytest.approx(0.3)
    assert best_true_positives(several, 0.01) == pytest.approx(norm.cdf(norm.ppf(0.01) + 0.3), rel=1e-3)
    assert curve_of_runs(GaussianCurve(0.1), 1) == GaussianCurve(0.1)


def test_odds_hold_but_for_the_stated_probability() -> None:
    """Of a Gaussian mechanism the loss is normal: beyond the factor lies less than the exception, and not far less."""
    mu, exception = 0.5, 1e-4
    loss = math.log(max_odds(GaussianCurve(mu), exception))
    beyond = norm.sf((loss - mu**2 / 2.0) / mu)
    assert exception / 10.0 < beyond <= exception


def test_what_was_bought_beside_it_shifts_the_curve() -> None:
    joint = JointCurve(PureCurve(1.0), 0.5, 0.0)
    assert best_true_positives(joint, 0.001) == pytest.approx(0.001 * math.exp(1.5), rel=1e-4)
    assert max_odds(joint, 0.0) == pytest.approx(math.exp(1.5), rel=1e-4)
    assert gaussian_mu(JointCurve(GaussianCurve(0.3), 0.5, 1e-7)) is None
    pure = gaussian_mu(PureCurve(0.5))
    assert pure is not None
    assert gaussian_mu(JointCurve(GaussianCurve(0.3), 0.5, 0.0)) == math.hypot(0.3, pure)
