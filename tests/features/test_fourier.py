"""Fourier features estimate their kernel, at the rate theory says, from frequencies that anybody can draw again."""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from privlearn.errors import InvalidParameter
from privlearn.features import FourierFeatures, Kernel, ShiftInvariantKernel, kernel_from_name, kernel_names
from tests.support.feature_cases import COLUMNS, SHIFT_INVARIANT, ball

over_kernels = pytest.mark.parametrize("kernel", SHIFT_INVARIANT, ids=str)
LAWS = {
    "rbf": lambda gamma: stats.norm(scale=np.sqrt(2 * gamma)),
    "laplacian": lambda gamma: stats.cauchy(scale=gamma),
    "cauchy": lambda gamma: stats.laplace(scale=gamma),
}


@pytest.mark.parametrize("name", kernel_names(ShiftInvariantKernel))
def test_frequencies_fit_the_formula_of_every_listed_kernel(name: str) -> None:
    """At places spread evenly over the law: the mean of cos(w t) is the kernel of two points t apart."""
    kernel: Any = kernel_from_name(name)
    frequencies = kernel.frequencies((np.arange(20_000) + 0.5) / 20_000)
    apart = np.linspace(0.0, 2.0, 9)[:, np.newaxis]
    means = np.cos(apart * frequencies).mean(axis=1)
    assert_allclose(means, kernel(apart, np.zeros((1, 1)))[:, 0], atol=1e-3)


@over_kernels
def test_frequencies_follow_the_law_of_the_kernel(kernel: Any) -> None:
    frequencies = FourierFeatures(kernel, 10, 20_000, 3).frequencies
    assert frequencies.shape == (10, 20_000)
    assert stats.kstest(frequencies.ravel(), LAWS[kernel.name](kernel.gamma).cdf).pvalue > 1e-3
    coordinates = np.corrcoef(np.sign(frequencies))
    assert np.abs(coordinates - np.eye(10)).max() < 5 / np.sqrt(20_000)


@over_kernels
@pytest.mark.parametrize("pairs", [100, 1_600, 25_600])
def test_the_error_is_that_of_an_average_over_the_pairs(kernel: Any, pairs: int) -> None:
    """A pair's cos <w, x - z> has variance (1 + k(2x, 2z))/2 - k(x, z)^2; Bernstein and the union over 400 values."""
    X, Z = ball(20, 1), ball(20, 2)
    features = FourierFeatures(kernel, COLUMNS, pairs, 7)
    errors = features.transform(X) @ features.transform(Z).T - kernel(X, Z)
    variances = (1 + kernel(2 * X, 2 * Z)) / 2 - kernel(X, Z) ** 2
    level = np.log(2 * errors.size / 1e-4)
    assert np.all(np.abs(errors) <= np.sqrt(2 * variances * level / pairs) + 4 * level / (3 * pairs))
    standardised = errors * np.sqrt(pairs / variances)
    assert 0.3 < np.sqrt(np.mean(standardised**2)) < 3  # no smaller either: it really is sampling error


@over_kernels
def test_rows_have_norm_one_up_to_the_margin(kernel: Any) -> None:
    features = FourierFeatures(kernel, COLUMNS, 500, 0)
    short: dict[Literal["float64", "float32"], float] = {"float64": 2**-38, "float32": 2**-19}
    for dtype, missing in short.items():
        squares = np.sum(features.transform(ball(50), dtype).astype(np.longdouble) ** 2, axis=1)
        assert np.all(squares <= 1)
        assert np.all(squares > 1 - missing)


def test_the_seed_fixes_the_frequencies_for_ever() -> None:
    """Written down once: if these change, no release made before can be read."""
    first = {
        "rbf": [0.6449849, -1.119364, -0.7034357],
        "laplacian": [0.616399, -1.253657, -0.6821188],
        "cauchy": [0.4333442, -0.8471229, -0.479805],
    }
    for name, expected in first.items():
        features = FourierFeatures(kernel_from_name(name, gamma=1.0), 1, 3, 2024)
        assert_allclose(features.frequencies[0], expected, rtol=1e-6)


@over_kernels
def test_made_again_from_its_description(kernel: Any) -> None:
    features = FourierFeatures(kernel, COLUMNS, 11, 2**80)
    again = FourierFeatures.from_dict(json.loads(json.dumps(features.to_dict())))
    assert_array_equal(again.frequencies, features.frequencies)
    assert_array_equal(again.transform(ball(5)), features.transform(ball(5)))
    other = FourierFeatures(kernel, COLUMNS, 11, 2**80 + 1)
    assert np.all(other.frequencies != features.frequencies)


@pytest.mark.parametrize("content", [{}, {"kernel": {}, "n_inputs": 1, "n_pairs": 1, "seed": 1}])
def test_other_descriptions_are_refused(content: Any) -> None:
    with pytest.raises(InvalidParameter, match="describe"):
        FourierFeatures.from_dict(content)


@pytest.mark.parametrize(
    "kernel",
    [
        kernel_from_name("linear"),
        kernel_from_name("polynomial"),
        kernel_from_name("precomputed", bound=1.0),
        Kernel.from_callable(lambda X, Z: np.ones((len(X), len(Z))), bound=1.0, name="rbf"),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_kernels_without_a_spectrum_are_sent_to_landmarks(kernel: Kernel) -> None:
    with pytest.raises(InvalidParameter, match="landmark"):
        FourierFeatures(kernel, 2, 10, 0)


@pytest.mark.parametrize("name", ["n_inputs", "n_pairs", "seed"])
@pytest.mark.parametrize("value", [-1, 1.5, None, "7", True])
def test_counts_and_seeds_are_whole_numbers(name: str, value: Any) -> None:
    settings = {"n_inputs": 2, "n_pairs": 10, "seed": 0} | {name: value}
    with pytest.raises(InvalidParameter, match=name):
        FourierFeatures(kernel_from_name("rbf"), **settings)


def test_maps_that_would_not_fit_into_memory_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="gigabyte"):
        FourierFeatures(kernel_from_name("rbf"), 2**20, 500, 0)


def test_gamma_so_large_that_frequencies_overflow() -> None:
    with pytest.raises(InvalidParameter, match="gamma"):
        FourierFeatures(kernel_from_name("laplacian", gamma=1e308), 2, 1000, 0).draw()


def test_heavy_tails_keep_their_phase_in_single_precision() -> None:
    features = FourierFeatures(kernel_from_name("laplacian", gamma=1e6), COLUMNS, 300, 0)
    assert np.abs(features.frequencies).max() > 1e8  # float32 would keep nothing of the phase
    points = ball(10)
    assert_allclose(features.transform(points, "float32"), features.transform(points), atol=1e-6)
