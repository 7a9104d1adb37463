"""Files that contradict themselves are refused, though all digests and derived constants were computed afresh."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privlearn import (
    Guarantee,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Release,
    VerificationError,
    curvature,
    evaluate,
    refine,
)
from privlearn.data import census_schema, simulated_census
from privlearn.features import CallableKernel
from privlearn.mechanisms import grid_step
from privlearn.release import Curvature, CurvatureCertificate, verify_bytes

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(400, 3))
TWO, THREE, NUMBER = (X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.5, 0.5]), X[:, 0].clip(-1, 1)
POINTS = RANDOM.normal(size=(12, 3))
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "norm_bound": 3.0}
LANDMARKS: dict[str, Any] = {"kernel": "rbf", "gamma": 4.0, "public_points": POINTS}


def two(**settings: Any) -> Release:
    return PrivateLogisticRegression(**PROMISE | {"classes": [0, 1]} | settings).fit(X, TWO).release_


def svc(**settings: Any) -> Release:
    return PrivateSVC(**PROMISE | {"classes": [0, 1]} | settings).fit(X, TWO).release_


def of_three(maker: Any = PrivateLogisticRegression, **settings: Any) -> Any:
    return maker(**PROMISE | {"classes": [0, 1, 2]} | settings).fit(X, THREE).release_


RELEASES: dict[str, Callable[[], Release]] = {
    "objective": two,
    "objective, pure": functools.partial(two, delta=0.0),
    "output": functools.partial(two, mechanism="output"),
    "output, laplace": functools.partial(svc, mechanism="output", noise="laplace", delta=0.0),
    "output, norm-Gamma": functools.partial(svc, mechanism="output", noise="norm_gamma", delta=0.0),
    "softmax": functools.partial(of_three, mechanism="output"),
    "softmax, objective": of_three,
    "one against the rest": functools.partial(of_three, PrivateSVC, mechanism="output"),
    "centred": functools.partial(two, centre=True),
    "probability": functools.partial(svc, probability=True),
    "regression": lambda: PrivateRegressor(**PROMISE, target_bounds=(-1.0, 1.0)).fit(X, NUMBER).release_,
    "Fourier": functools.partial(svc, kernel="rbf", fourier_pairs=6),
    "landmarks": functools.partial(svc, **LANDMARKS, mechanism="output", noise="laplace", delta=0.0),
    "landmarks, plain rows": functools.partial(svc, **LANDMARKS, mechanism="function_release"),
    "landmarks, softmax": functools.partial(of_three, **LANDMARKS, mechanism="output"),
    "tddl": functools.partial(svc, **LANDMARKS, mechanism="tddl"),
    "no promise": functools.partial(two, epsilon=float("inf"), delta=0.0),
}


@functools.cache
def release_of(name: str) -> Release:
    return RELEASES[name]()


def forged(release: Release, task: dict[str, Any], **constants: Any) -> bytes:
    """Return the file with other facts, under a promise that is weak enough for them."""
    stated = release.certificate
    mechanism: Any = stated.mechanism
    weak = Guarantee(1e6, mechanism.guarantee.delta, mechanism.guarantee.neighbours)
    changed = dataclasses.replace(
        mechanism, task=dataclasses.replace(mechanism.task, **task), guarantee=weak, **constants
    )
    certificate = dataclasses.replace(stated, mechanism=changed)
    return dataclasses.replace(release, certificate=certificate).to_bytes()


@pytest.mark.parametrize("name", RELEASES)
def test_true_files_are_accepted(name: str) -> None:
    release = release_of(name)
    verify_bytes(release.to_bytes())
    if release.certificate.is_private:
        verify_bytes(forged(release, {}))  # what follows is refused for its own sake


def shapes(release: Release) -> list[dict[str, Any]]:
    """Other numbers of coefficients, problems and classes, as far as a task may have them."""
    task = release.certificate.task
    classes = max(task.classes, 1)
    changes: list[dict[str, Any]] = [
        {"dimension": classes},
        {"dimension": task.dimension + classes},
        {"dimension": task.dimension - classes},
        {"problems": task.problems + 1},
    ]
    if task.problems > 1:
        changes += [{"problems": 1}, {"problems": 1, "dimension": task.problems * task.dimension}]
    if task.classes:
        changes += [
            {"classes": 0},
            {"classes": 0, "problems": task.classes, "dimension": task.dimension // task.classes},
        ]
    return changes


@pytest.mark.parametrize(
    "name", [name for name in RELEASES if name not in ("no promise", "softmax, objective")]
)
def test_the_shape_is_that_of_the_model(name: str) -> None:
    for change in shapes(release_of(name)):
        with pytest.raises(VerificationError, match=r"another model|no theorem"):
            verify_bytes(forged(release_of(name), change))


@pytest.mark.parametrize("change", [{"rows_per_person": 2}, {"averaged": True}], ids=str)
def test_rows_of_arrays_are_one_for_each_person(change: dict[str, Any]) -> None:
    with pytest.raises(VerificationError, match="another model"):
        verify_bytes(forged(release_of("output, laplace"), change))


ON_A_GRID = {
    "objective": "tolerance_noise_scale",
    "objective, pure": "tolerance_noise_scale",
    "output": "noise_scale",
    "output, laplace": "noise_scale",
    "output, norm-Gamma": "noise_scale",
    "softmax": "noise_scale",
    "one against the rest": "noise_scale",
    "centred": "tolerance_noise_scale",
    "regression": "tolerance_noise_scale",
    "Fourier": "tolerance_noise_scale",
}


@pytest.mark.parametrize(("name", "scale"), ON_A_GRID.items(), ids=ON_A_GRID)
def test_more_noise_than_there_is_shows_in_the_last_bits(name: str, scale: str) -> None:
    """A thousandfold scale has 512 times the step: d coefficients lie on it by chance once in 512^d, d at least 4."""
    release = release_of(name)
    truth = getattr(release.certificate.mechanism, scale)
    with pytest.raises(VerificationError, match="grid of the stated noise"):
        verify_bytes(forged(release, {}, **{scale: 1024.0 * truth}))


def off_the_grid(release: Release, step: float) -> Release:
    """Return the release with its smallest coefficient moved by half a step."""
    moved = release.model.coefficients.copy()
    moved.flat[np.argmin(np.abs(moved))] += step / 2.0
    return dataclasses.replace(release, model=dataclasses.replace(release.model, coefficients=moved))


def test_the_chosen_candidate_of_a_search_is_looked_at() -> None:
    search = PrivateGridSearch(
        PrivateLogisticRegression(norm_bound=3.0, classes=[0, 1], mechanism="output"),
        {"regularization": [0.01, 0.1]},
        epsilon=1.0,
        delta=1e-6,
    ).fit(X, TWO)
    verify_bytes(search.release_.to_bytes())
    mechanism: Any = search.certificate_.mechanism
    moved = off_the_grid(search.release_, mechanism.fit.coefficient_step)
    with pytest.raises(VerificationError, match="grid"):
        verify_bytes(moved.to_bytes())


def rounded(release: Release) -> Release:
    return refine(release, digits=3)


def test_refined_coefficients_need_no_grid_but_their_origin_does() -> None:
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=census_schema(), mechanism="output")
    release = model.fit(simulated_census(400, seed=1)).release_
    verify_bytes(rounded(release).to_bytes())
    step = release.certificate.mechanism.coefficient_step
    assert step is not None
    for refined in (lambda found: found, rounded):
        with pytest.raises(VerificationError, match="grid"):
            verify_bytes(refined(off_the_grid(release, step)).to_bytes())


SCORES = {
    "name": "y",
    "columns": {"p": {"type": "number", "lower": 0, "upper": 1}},
    "target": {"name": "y", "classes": [0, 1]},
}


def test_counts_lie_on_their_grid() -> None:
    counts = evaluate(
        None,
        {"y": TWO, "p": np.full(400, 0.3)},
        scores="p",
        schema=SCORES,
        epsilon=1.0,
    )
    verify_bytes(counts.to_bytes())
    mechanism = counts.certificate.mechanism
    weak = dataclasses.replace(mechanism, noise_scale=1024.0 * mechanism.noise_scale)
    certificate = dataclasses.replace(counts.certificate, mechanism=weak)
    with pytest.raises(VerificationError, match="grid"):
        verify_bytes(dataclasses.replace(counts, certificate=certificate).to_bytes())


def test_counts_are_those_that_their_certificate_names() -> None:
    schema = SCORES | {"weight": {"column": "w", "upper": 2}}
    table = {"y": TWO, "p": np.full(400, 0.3), "w": np.ones(400)}
    counts = evaluate(None, table, scores="p", schema=schema, epsilon=1.0)
    stated = dict(counts.certificate.subject)
    changes: list[dict[str, Any]] = [
        {"dataset": "z"}, {"schema_sha256": "0"}, {"evaluated": "a release"}, {"weight": {"column": "w"}},
    ]  # fmt: skip
    for subject in [*(stated | change for change in changes), dict(stated, weight=None)]:
        certificate = dataclasses.replace(counts.certificate, subject=subject)
        with pytest.raises(VerificationError, match="another subject"):
            verify_bytes(dataclasses.replace(counts, certificate=certificate).to_bytes())


def test_the_mean_of_centred_rows_lies_on_the_grid_of_its_noise() -> None:
    release = release_of("centred")
    centring: Any = release.certificate.task.centring
    for factor in (2.0**14, 1e30):
        louder = dataclasses.replace(centring, mean_noise_scale=factor * centring.mean_noise_scale)
        with pytest.raises(VerificationError, match="another model"):
            verify_bytes(forged(release, {"centring": louder}))


def test_numbers_are_counted_around_a_public_number() -> None:
    release = (
        PrivateRegressor(**PROMISE | {"epsilon": 10.0}, target_bounds=(-1.0, 1.0)).fit(X, NUMBER).release_
    )
    verify_bytes(forged(release, {}))
    counted: Any = release.certificate.task.target_locations
    (grid,) = counted.grids
    for other in (dataclasses.replace(grid, origin=0.25), dataclasses.replace(grid, upper=2.0)):
        changed = dataclasses.replace(counted, grids=(other,))
        with pytest.raises(VerificationError, match="another model"):
            verify_bytes(forged(release, {"target_locations": changed}))


@pytest.mark.parametrize("scale", ["hessian_noise_scale", "gradient_noise_scale"])
def test_matrices_of_a_curvature_lie_on_their_grids(scale: str) -> None:
    bought = curvature(release_of("objective"), X, TWO, epsilon=1.0, delta=1e-6)
    verify_bytes(bought.to_bytes())
    mechanism = bought.certificate.mechanism
    weak = dataclasses.replace(mechanism, **{scale: 1024.0 * getattr(mechanism, scale)})
    certificate = dataclasses.replace(bought.certificate, mechanism=weak)
    assert isinstance(certificate, CurvatureCertificate)
    with pytest.raises(VerificationError, match="grid"):
        verify_bytes(Curvature(certificate, bought.hessian, bought.gradients).to_bytes())


def test_without_the_kernel_the_rank_is_at_most_the_number_of_points() -> None:
    def overlap(left: Any, right: Any) -> Any:
        return np.exp(-np.abs(np.subtract.outer(np.asarray(left, float), np.asarray(right, float))))

    rows, points = X[:, 0].tolist(), [0.0, 1.0, 2.0]
    model = PrivateSVC(
        epsilon=1.0,
        delta=1e-6,
        classes=[0, 1],
        kernel=CallableKernel(overlap, 1.0, "overlap"),
        public_points=points,
    )
    release = model.fit(rows, TWO).release_
    verify_bytes(release.to_bytes())
    verify_bytes(forged(release, {"dimension": 1}))
    with pytest.raises(VerificationError, match="another model"):
        Release.from_bytes(forged(release, {"dimension": 1}), kernel=overlap)
    with pytest.raises(VerificationError, match="another model"):
        verify_bytes(forged(release, {"dimension": 5}))


def test_a_grid_is_a_power_of_two_below_the_scale() -> None:
    """So a scale that is too large by a factor below 2 need not show; docs/how-to/verify.md says so."""
    assert grid_step(1.0) == grid_step(1.99) == 2.0**-44
    assert grid_step(2.0) == 2.0**-43
