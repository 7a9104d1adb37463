"""The claims of docs/theory/noise.md, at scales where the errors can be seen, and what they mean at ours."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privlearn import Certificate, Guarantee, VerificationError
from privlearn.accounting import MARGIN
from privlearn.errors import InvalidParameter
from privlearn.mechanisms import NoisyCounts, OutputPerturbation, Task, grid_step
from privlearn.mechanisms.noise import GRID_BITS, check_gaussian_numbers
from privlearn.randomness import SecureRandomness
from privlearn.solvers import loss_from_name

ALARM = 1e-7  # in truth 1e-6: with ten draws expected in a cell a chi-square's tail is heavier


def normaliser(scale: float) -> mpmath.mpf:
    reach = math.ceil(20 * scale)  # exp(-200): beyond sixty digits
    return 1 + 2 * mpmath.fsum(mpmath.exp(-((mpmath.mpf(k) / scale) ** 2) / 2) for k in range(1, reach))


def log_ratio(x: int, scale: float, total: mpmath.mpf) -> mpmath.mpf:
    """Return the log-ratio of the rounded continuous Gaussian's mass at x to the discrete one's."""
    s = mpmath.mpf(scale)
    # from the upper tail, whose digits do not cancel
    rounded = (
        mpmath.erfc((x - 0.5) / (s * mpmath.sqrt(2))) - mpmath.erfc((x + 0.5) / (s * mpmath.sqrt(2)))
    ) / 2
    return mpmath.log(rounded * total) + x**2 / (2 * s**2)


@pytest.mark.parametrize("scale", [1.0, 2.0, 5.5, 16.0])
def test_rounded_and_discrete_gaussian_agree_as_the_lemma_says(scale: float) -> None:
    with mpmath.workdps(60):
        total = normaliser(scale)
        constant = mpmath.log(total / (scale * mpmath.sqrt(2 * mpmath.pi)))
        assert (
            -(mpmath.mpf(10) ** -50)
            <= constant
            <= 3 * mpmath.exp(-2 * mpmath.pi**2 * scale**2) + mpmath.mpf(10) ** -50
        )
        for share in (0.0, 0.3, 1.0, 2.0, 5.0, 10.0):
            x = round(share * scale)
            found = log_ratio(x, scale, total) - constant
            assert -1 / (24 * scale**2) <= found <= x**2 / (24 * scale**4) + mpmath.mpf(10) ** -40


@pytest.mark.parametrize("share", [0, 3, 10])
def test_error_shrinks_with_the_square_of_the_scale(share: int) -> None:
    """To first order it is (x^2/s^2 - 1) / (24 s^2), so that s = 2^44 makes it about 2^-93 at the centre."""
    with mpmath.workdps(60):
        for scale in (16, 32, 64):
            found = log_ratio(share * scale, scale, normaliser(scale))
            assert float(found * 24 * scale**2) == pytest.approx(share**2 - 1, rel=0.05)


def test_margin_pays_for_every_dimension_in_reach() -> None:
    """Two factors exp(d tau) against MARGIN * epsilon, and the tails against MARGIN * delta."""
    reached = 0
    for epsilon in (1e-9, 2.0**-10, 1.0, 30.0, 1000.0):
        for delta in (0.1, 1e-6, 1e-250):
            for dimension in (1, 2**20, 2**40, 2**52, 2**56):
                try:
                    check_gaussian_numbers(dimension, Guarantee(epsilon, delta))
                except InvalidParameter:
                    continue
                with mpmath.workdps(60):
                    e, d, n = mpmath.mpf(epsilon), mpmath.mpf(delta), mpmath.mpf(dimension)
                    cut = e - mpmath.log(d) + mpmath.log(n) + 60
                    tau = 2 * cut / (24 * mpmath.mpf(2) ** (2 * GRID_BITS))
                    assert 2 * n * tau <= MARGIN * e
                    tails = 2 * n * mpmath.exp(-cut)
                    other = mpmath.expm1(n * tau) * d + (1 + mpmath.exp(e + n * tau)) * tails
                    assert other <= MARGIN * d
                reached = max(reached, dimension)
    assert reached >= 2**52


def test_plans_beyond_the_margin_are_refused_and_their_certificates_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More numbers than the lemma covers, at an epsilon that is too small for them."""
    task = Task(
        loss=loss_from_name("logistic"), total=1000, dimension=2**20, problems=1, regularization=0.01,
        tolerance=1e-10, neighbours="replace_one",
    )  # fmt: skip
    tiny = Guarantee(1e-11, 1e-6)
    with pytest.raises(InvalidParameter, match="not proven for such a small epsilon"):
        OutputPerturbation.calibrate(task, tiny, "gaussian", "tight")
    with pytest.raises(InvalidParameter, match="not proven"):
        NoisyCounts(tiny, 1000, 1, (2**20,), (1.0,), "gaussian", 1e9)
    with monkeypatch.context() as patched:
        patched.setattr("privlearn.mechanisms.mechanism.check_gaussian_numbers", lambda *_: None)
        mechanism = OutputPerturbation.calibrate(task, tiny, "gaussian", "tight")
        record = Certificate.issue(mechanism, SecureRandomness(), {}).to_dict()
        assert Certificate.from_dict(record).guarantee == tiny
    with pytest.raises(VerificationError, match="not proven"):
        Certificate.from_dict(record)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 50), st.floats(1e-12, 1e3))
def test_rounding_moves_neighbours_apart_by_one_step_a_coordinate(seed: int, d: int, distance: float) -> None:
    rng = np.random.default_rng(seed)
    step = grid_step(2.0**40)  # coarse enough to matter
    one = rng.normal(size=d)
    other = one + distance * rng.normal(size=d)
    rounded = np.rint(one / step) * step - np.rint(other / step) * step
    apart = one - other
    slack = 1.0 + 1e-12
    assert np.linalg.norm(rounded) <= (np.linalg.norm(apart) + math.sqrt(d) * step) * slack
    assert np.abs(rounded).sum() <= (np.abs(apart).sum() + d * step) * slack


@pytest.mark.parametrize("scale", [1.0, 3.7])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_secure_sampler_is_exact_on_the_integers(law: str, scale: float) -> None:
    """At small scales a rounded continuous sampler would be seen: the counts follow the discrete law."""
    source = SecureRandomness()
    draws = 40_000
    sample = (source.discrete_gaussian if law == "gaussian" else source.discrete_laplace)(scale, draws)
    support = np.arange(-60, 61)
    weights = (
        np.exp(-(support**2) / (2 * scale**2)) if law == "gaussian" else np.exp(-np.abs(support) / scale)
    )
    expected = draws * weights / weights.sum()
    kept = expected >= 10.0
    counts = np.array([np.sum(sample == k) for k in support[kept]])
    counts, expected = (
        np.append(counts, draws - counts.sum()),
        np.append(expected[kept], draws - expected[kept].sum()),
    )
    statistic = float(np.sum((counts - expected) ** 2 / np.maximum(expected, 10.0)))
    assert statistic < stats.chi2(len(counts) - 1).isf(ALARM)


def test_integers_are_exact_as_doubles() -> None:
    """256 deviations fit into 53 bits."""
    assert 2.0 ** (GRID_BITS + 1) * 256 <= 2.0**53
