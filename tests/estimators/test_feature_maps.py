"""Estimators on public feature maps: from raw rows to a release that predicts by itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import PrivateLogisticRegression, PrivateRegressor, Release, verify
from privlearn.errors import InvalidParameter, VerificationError
from privlearn.export import scorecard
from privlearn.features import ScatteringFeatures, TextFeatures
from privlearn.release import check_agreement

RNG = np.random.default_rng(0)


def stripes(count: int) -> tuple[Any, Any]:
    """Return noisy images of vertical and of horizontal stripes."""
    labels = RNG.integers(0, 2, count)
    phase = RNG.uniform(0, 6, (count, 1, 1))
    grid = np.arange(16)
    wave = np.where(labels[:, None, None] == 1, grid[None, None, :], grid[None, :, None])
    images = 127 + 60 * np.sin(1.5 * wave + phase) + 20 * RNG.normal(size=(count, 16, 16))
    return np.clip(images, 0, 255).astype(np.uint8), labels


def test_images_become_a_release_that_predicts_alone(tmp_path: Path) -> None:
    X, y = stripes(600)
    model = PrivateLogisticRegression(
        features="scattering", epsilon=2, delta=1e-5, classes=[0, 1], random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.95
    model.release_.save(tmp_path / "stripes.privlearn")
    verify(tmp_path / "stripes.privlearn")
    release = Release.load(tmp_path / "stripes.privlearn")
    assert np.array_equal(release.model.predict(X[:9]), model.predict(X[:9]))
    stated = release.certificate.encoding["feature_map"]
    features = ScatteringFeatures((16, 16))
    assert stated["sha256"] == features.digest
    assert stated["dimension"] == features.dimension == 1000


def test_a_certificate_of_another_map_is_refused() -> None:
    X, y = stripes(200)
    features = ScatteringFeatures((16, 16), projections=30)
    fits = [
        PrivateLogisticRegression(
            features=each, epsilon=2, delta=1e-5, classes=[0, 1], centre=False, random_state=0
        ).fit(X, y)
        for each in (features, ScatteringFeatures((16, 16), projections=30, seed=1))
    ]
    swapped = dataclasses.replace(fits[0].release_.model, encoder=fits[1].release_.model.encoder)
    with pytest.raises(VerificationError):
        check_agreement(swapped, fits[0].certificate_)


def test_texts_are_learnt() -> None:
    words = {0: ["cat", "purr", "mouse"], 1: ["dog", "bark", "bone"]}
    y = RNG.integers(0, 2, 800)
    X = [" ".join(RNG.choice(words[label], 3)) for label in y]
    model = PrivateLogisticRegression(
        features=TextFeatures(256), epsilon=2, delta=1e-5, classes=[0, 1], random_state=0
    )
    assert model.fit(X, y).score(X, y) > 0.9


def test_numbers_are_predicted_from_features() -> None:
    X, y = stripes(500)
    model = PrivateRegressor(
        features=ScatteringFeatures((16, 16), projections=50),
        epsilon=5,
        delta=1e-5,
        target_bounds=(0, 1),
        random_state=0,
    )
    assert model.fit(X, y).score(X, y) > 0.5


def test_neighbours_have_neighbouring_features() -> None:
    X, _ = stripes(130)
    features = ScatteringFeatures((16, 16))
    before = features.transform(features.read(X), "float32")
    X[64] = 0
    after = features.transform(features.read(X), "float32")
    assert np.flatnonzero(np.any(before != after, axis=1)).tolist() == [64]
    assert np.array_equal(features.transform(features.read(X[1:]), "float32"), after[1:])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"features": "scatering"}, "scattering"),
        ({"features": "scattering", "norm_bound": 1.0}, "norm_bound"),
        ({"features": "absent.npz"}, "absent.npz"),
    ],
)
def test_wrong_features_are_refused(parameters: dict[str, Any], words: str) -> None:
    X, y = stripes(20)
    model = PrivateLogisticRegression(epsilon=1, delta=1e-5, classes=[0, 1], random_state=0, **parameters)
    with pytest.raises(InvalidParameter, match=words):
        model.fit(X, y)


def test_an_export_explains_that_features_mix_columns() -> None:
    X, y = stripes(100)
    release = (
        PrivateLogisticRegression(
            features="scattering", epsilon=1, delta=1e-5, classes=[0, 1], random_state=0
        )
        .fit(X, y)
        .release_
    )
    with pytest.raises(InvalidParameter, match="feature map"):
        scorecard(release)
