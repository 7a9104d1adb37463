"""The noise of many: enough of it, and a guarantee that holds for its exact law."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import chi2

from privlearn.errors import InvalidParameter
from privlearn.parties import Cohort, NoiseShare, distributed_zcdp
from privlearn.randomness import Randomness, SecureRandomness, SeededRandomness
from tests.support.secure_sum import SecureSum

ORDERS = (1.01, 1.5, 2.0, 4.0, 8.0, 16.0)


def _law_of_the_sum(scale: float, shares: int) -> np.ndarray:
    """Probabilities of a sum of discrete Gaussians around zero, by convolution."""
    reach = math.ceil(40 * scale)
    one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    law = one = one / one.sum()
    for _ in range(shares - 1):
        law = np.convolve(law, one)
    return law


def _renyi_divergence(law: np.ndarray, shift: int, order: float) -> float:
    seen = law > 1e-250
    logarithms = np.log(law[seen])
    exponents = order * logarithms[shift:] + (1 - order) * logarithms[:-shift]
    return float(logsumexp(exponents)) / (order - 1)


@pytest.mark.parametrize("shares", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("scale", [0.5, 0.6, 0.8, 1.0, 1.5])
def test_the_exact_law_keeps_the_theorem(scale: float, shares: int) -> None:
    law = _law_of_the_sum(scale, shares)
    for shift, order in itertools.product((1, 2, 3, 5), ORDERS):
        claim = order * distributed_zcdp(shift, scale, shares, dimension=1)
        assert _renyi_divergence(law, shift, order) <= claim * (1 + 1e-9)


def test_the_theorem_is_tight_and_its_gap_is_needed() -> None:
    claim = 2.0 * distributed_zcdp(1, 1.5, 5, dimension=1)
    assert _renyi_divergence(_law_of_the_sum(1.5, 5), 1, 2.0) > 0.999 * claim
    without_gap = 2.0 * 0.5 / (5 * 0.5**2)
    assert max(_renyi_divergence(_law_of_the_sum(0.5, 5), 1, a) * 2.0 / a for a in ORDERS) > 1.1 * without_gap


def test_the_gap_counts_every_coordinate() -> None:
    one, many = (math.sqrt(2 * distributed_zcdp(0, 0.6, 4, dimension)) for dimension in (1, 100))
    assert many == pytest.approx(10 * one)


@given(
    st.floats(1e-6, 1e3), st.floats(1e-6, 1e6), st.integers(1, 10**5), st.integers(4, 100), st.integers(0, 1)
)
def test_calibrated_noise_spends_what_was_asked_and_no_more(
    rho: float, sensitivity: float, dimension: int, parties: int, dropouts: int
) -> None:
    noise = NoiseShare.calibrate(rho, sensitivity, Cohort(parties, dropouts), dimension)
    assert 0.999 * rho < noise.zcdp(sensitivity, dimension) <= rho


def test_rounding_is_paid_for() -> None:
    noise = NoiseShare(1.0, Cohort(4))
    plain = 0.5 * (1.0 / noise.scale) ** 2
    extra = math.sqrt(2 * noise.zcdp(1.0, 10**6)) - math.sqrt(2 * plain)
    assert extra == pytest.approx(1000 * noise.step, rel=1e-3)


@pytest.mark.parametrize("source", [SecureRandomness(), SeededRandomness(1)], ids=["secure", "seeded"])
@pytest.mark.parametrize("cohort", [Cohort(4, 1, 1), Cohort(6, 1, 2)], ids=str)
def test_the_promised_noise_is_in_the_sum_when_all_that_may_fail_do(
    cohort: Cohort, source: Randomness
) -> None:
    """The shares of the last honest parties add up to the promised variance; a halved or doubled one would show."""
    noise = NoiseShare(7.0, cohort)
    encoding = noise.encoding(bound=1.0)
    draws = sum((noise.draw(3000, source) for _ in range(cohort.honest)), np.zeros(3000, dtype=np.uint64))
    statistic = np.sum((encoding.decode(draws) / noise.scale) ** 2)
    assert 1e-9 < chi2.cdf(statistic, 3000) < 1 - 1e-9
    assert not 1e-9 < chi2.cdf(statistic / 2, 3000) < 1 - 1e-9
    assert not 1e-9 < chi2.cdf(statistic * 2, 3000) < 1 - 1e-9


def test_an_opened_sum_holds_the_vectors_and_everyone_s_noise() -> None:
    cohort = Cohort(4, 1, 1)
    noise = NoiseShare(0.5, cohort)
    encoding = noise.encoding(bound=3.0)
    vector = np.linspace(-3, 3, 2000)
    source = SeededRandomness(3)
    words = {n: encoding.encode(vector) + noise.draw(2000, source) for n in range(4)}
    error = encoding.decode(SecureSum(cohort, 2000).total(words)) - 4 * vector
    assert 1e-9 < chi2.cdf(np.sum(error**2) / (4 * noise.share_scale**2), 2000) < 1 - 1e-9


def test_the_grid_is_fine_and_the_encoding_leaves_room_for_the_noise() -> None:
    noise = NoiseShare(3.0, Cohort(10, 2, 3))
    assert noise.share_scale == pytest.approx(3.0 / math.sqrt(5))
    assert 2.0**32 <= noise.share_scale / noise.step < 2.0**33
    assert noise.encoding(bound=100.0).noise_scale == noise.share_scale
    with pytest.raises(InvalidParameter, match="bits"):
        noise.encoding(bound=1e12)


def test_nonsense_is_refused() -> None:
    cohort = Cohort(3)
    for scale in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidParameter):
            NoiseShare(scale, cohort)
    for rho, sensitivity in ((0.0, 1.0), (math.nan, 1.0), (1.0, 0.0), (1.0, math.inf), (1e-22, 1.0)):
        with pytest.raises(InvalidParameter):
            NoiseShare.calibrate(rho, sensitivity, cohort, dimension=10)
    with pytest.raises(InvalidParameter, match="half a grid step"):
        distributed_zcdp(1.0, 0.4, 3, 1)
    with pytest.raises(InvalidParameter):
        distributed_zcdp(1.0, 1.0, 0, 1)
