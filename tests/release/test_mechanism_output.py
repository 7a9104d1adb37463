"""Releases around a public model or with weighted columns: what the mechanism released is in the file and checked."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privlearn import (
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    Release,
    VerificationError,
    refine,
)
from privlearn.data import census_schema, simulated_census
from privlearn.errors import ReleaseError
from privlearn.release import MechanismOutput, on_grid, verify_bytes
from tests.release.test_contradictions import NUMBER, PROMISE, X, forged, of_three, svc, two

W0 = np.array([[0.1, 0.2, 0.3, 0.7]])
G = [1.0, 3.0, 7.0]
OUTPUT: dict[str, Any] = {"mechanism": "output"}


def census(**settings: Any) -> Release:
    plain: dict[str, Any] = {"schema": census_schema(), "epsilon": 1.0, "delta": 1e-6, "centre": False}
    table = simulated_census(400, seed=1)
    width = PrivateLogisticRegression(**plain).fit(table).release_.model.coefficients.shape
    towards = np.linspace(-1.0, 1.0, width[1])[np.newaxis]
    model = PrivateLogisticRegression(**plain | {"regularize_towards": towards} | settings)
    return model.fit(table).release_


def search() -> Release:
    model = PrivateLogisticRegression(
        norm_bound=3.0, classes=[0, 1], mechanism="output", regularize_towards=W0, regularization_weights=G
    )
    grid = {"regularization": [0.01, 0.1]}
    return PrivateGridSearch(model, grid, epsilon=1.0, delta=1e-6).fit(X, X[:, 0] > 0).release_


def regression() -> Release:
    settings = PROMISE | {"target_bounds": (-1.0, 1.0), "regularize_towards": W0, "regularization_weights": G}
    return PrivateRegressor(**settings | OUTPUT).fit(X, NUMBER).release_


RELEASES: dict[str, Callable[[], Release]] = {
    "towards": functools.partial(two, regularize_towards=W0, **OUTPUT),
    "towards, objective": functools.partial(two, regularize_towards=W0),
    "towards, pure": functools.partial(two, regularize_towards=W0, delta=0.0, **OUTPUT),
    "towards, Fourier": functools.partial(
        svc, kernel="rbf", fourier_pairs=2, fit_intercept=False, regularize_towards=W0, **OUTPUT
    ),
    "towards, schema": functools.partial(census, **OUTPUT),
    "towards next to nothing": functools.partial(two, regularize_towards=1e-30 * W0, **OUTPUT),
    "towards nothing": functools.partial(two, regularize_towards=0.0 * W0, **OUTPUT),
    "towards far away": functools.partial(two, regularize_towards=1e12 * W0, **OUTPUT),
    "weights": functools.partial(two, regularization_weights=G, **OUTPUT),
    "weights, objective": functools.partial(two, regularization_weights=G),
    "weights of 1": functools.partial(two, regularization_weights=[1.0, 1.0, 1.0], **OUTPUT),
    "weights, no intercept": functools.partial(
        two, regularization_weights=[2.0, 3.0, 7.0], fit_intercept=False, **OUTPUT
    ),
    "weights, softmax": functools.partial(of_three, regularization_weights=G, **OUTPUT),
    "weights, probability": functools.partial(svc, regularization_weights=G, probability=True),
    "both": functools.partial(two, regularize_towards=W0, regularization_weights=G, **OUTPUT),
    "both, regression": regression,
    "both, search": search,
    "both, no promise": functools.partial(
        two, regularize_towards=W0, regularization_weights=G, epsilon=math.inf, delta=0.0
    ),
}


@functools.cache
def release_of(name: str) -> Release:
    return RELEASES[name]()


def output_of(release: Release) -> MechanismOutput:
    assert release.model.output is not None
    return release.model.output


@pytest.mark.parametrize("name", RELEASES)
def test_an_honest_release_is_read_back_with_the_same_coefficients(name: str) -> None:
    release = release_of(name)
    verify_bytes(release.to_bytes())
    again = Release.from_bytes(release.to_bytes())
    assert np.array_equal(again.model.coefficients, release.model.coefficients)
    assert again.to_bytes() == release.to_bytes()
    output = output_of(again)
    coefficients = output.coefficients + (0.0 if output.prior is None else output.prior)
    assert np.array_equal(
        coefficients * (1.0 if output.scales is None else output.scales), again.model.coefficients
    )


def test_a_plain_release_has_no_second_coefficients() -> None:
    assert two(**OUTPUT).model.output is None


@pytest.mark.parametrize("name", ["towards, schema", "both"])
def test_refined_it_still_follows_from_the_mechanism(name: str) -> None:
    refined = refine(release_of(name), digits=3)
    again = Release.from_bytes(refined.to_bytes())
    assert np.array_equal(again.model.coefficients, np.round(release_of(name).model.coefficients, 3) + 0.0)
    assert again.origin.digest == release_of(name).digest


def changed(release: Release, **fields: Any) -> Release:
    """Return the release with another output, and the coefficients that follow from it."""
    output = dataclasses.replace(output_of(release), **fields)
    model = dataclasses.replace(release.model, output=output, coefficients=output.model_coefficients)
    return dataclasses.replace(release, model=model)


GRIDS = [name for name in RELEASES if name not in ("both, no promise", "both, search", "towards far away")]


@pytest.mark.parametrize("name", GRIDS)
def test_more_noise_than_there_is_shows_in_the_mechanisms_coefficients(name: str) -> None:
    release = release_of(name)
    mechanism: Any = release.certificate.mechanism
    scale = "tolerance_noise_scale" if hasattr(mechanism, "tolerance_noise_scale") else "noise_scale"
    with pytest.raises(VerificationError, match="grid of the stated noise"):
        verify_bytes(forged(release, {}, **{scale: 1024.0 * getattr(mechanism, scale)}))


@pytest.mark.parametrize("name", ["towards", "both"])
def test_a_public_model_cannot_hold_the_bits_below_a_coarser_grid(name: str) -> None:
    """The author rounds what the mechanism released to the grid of a larger noise, and adds the rest to w0."""
    release = release_of(name)
    mechanism: Any = release.certificate.mechanism
    scale = 1024.0 * mechanism.noise_scale
    coarse = dataclasses.replace(mechanism, noise_scale=scale).coefficient_step
    output = output_of(release)
    assert output.prior is not None
    own = on_grid(output.coefficients, coarse)
    hidden = changed(release, coefficients=own, prior=output.prior + (output.coefficients - own))
    assert np.allclose(hidden.model.coefficients, release.model.coefficients, rtol=0.0, atol=1e-15)
    with pytest.raises(VerificationError, match="public model's coefficients do not lie on the grid"):
        verify_bytes(forged(hidden, {}, noise_scale=scale))


@pytest.mark.parametrize(
    "task", [{"prior_norm": 1e-300}, {"prior_norm": 1.0}, {"largest_ridge": 7.0}], ids=str
)
def test_a_regularizer_that_only_the_certificate_states_is_refused(task: dict[str, Any]) -> None:
    with pytest.raises(VerificationError, match="stated regularizer"):
        verify_bytes(forged(two(**OUTPUT), task))


@pytest.mark.parametrize(
    "task",
    [{"prior_norm": 0.0}, {"prior_norm": 0.5}, {"largest_ridge": 1.0}, {"largest_ridge": 7.1}],
    ids=str,
)
def test_the_stated_regularizer_is_that_of_the_file(task: dict[str, Any]) -> None:
    with pytest.raises(VerificationError, match="stated regularizer"):
        verify_bytes(forged(release_of("both"), task))


def test_coefficients_that_follow_from_no_output_are_refused() -> None:
    release = release_of("both")
    moved = dataclasses.replace(release.model, coefficients=release.model.coefficients * (1.0 + 2.0**-52))
    with pytest.raises(VerificationError, match="do not follow from the mechanism's"):
        verify_bytes(dataclasses.replace(release, model=moved).to_bytes())


SCALES = np.append(1.0 / np.sqrt(G), 1.0)
WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing public": ("towards", {"prior": None}),
    "another public model": ("towards", {"prior": 2.0 * W0}),
    "a public model of NaN": ("towards", {"prior": W0 * math.nan}),
    "one public model for all": ("towards", {"prior": W0[0]}),
    "a public model of softmax": ("weights, softmax", {"prior": np.zeros((3, 4))}),
    "weights below 1": ("weights", {"scales": SCALES * [2.0, 1.0, 1.0, 1.0]}),
    "infinite weights": ("weights", {"scales": SCALES * [1.0, 1.0, 1e-200, 1.0]}),
    "no weight": ("weights", {"scales": SCALES * [0.0, 1.0, 1.0, 1.0]}),
    "weights of NaN": ("weights", {"scales": SCALES * [math.nan, 1.0, 1.0, 1.0]}),
    "a weight of the intercept": ("weights", {"scales": SCALES * [1.0, 1.0, 1.0, 0.5]}),
    "a weight for each class": ("weights, softmax", {"scales": np.tile(SCALES, (3, 1))}),
    "weights of a schema's features": ("towards, schema", {"scales": np.ones(1)}),
}


@pytest.mark.parametrize("name", WRONG)
def test_public_numbers_that_no_fit_has_are_refused(name: str) -> None:
    source, fields = WRONG[name]
    with pytest.raises((ReleaseError, VerificationError), match=r"stated regularizer|do not fit"):
        verify_bytes(changed(release_of(source), **fields).to_bytes())


def test_one_more_array_without_the_others_is_refused() -> None:
    release = two(**OUTPUT)
    output = MechanismOutput(release.model.coefficients)
    with pytest.raises(VerificationError, match="stated regularizer"):
        verify_bytes(
            dataclasses.replace(release, model=dataclasses.replace(release.model, output=output)).to_bytes()
        )


def test_numbers_go_to_the_nearest_multiple_and_long_ones_stay() -> None:
    values = np.array([0.3, -0.3, 0.12, 1e300, -1e300, 0.0])
    assert on_grid(values, 0.25).tolist() == [0.25, -0.25, 0.0, 1e300, -1e300, 0.0]
    assert on_grid(values, 2.0**-900)[3] == 1e300
