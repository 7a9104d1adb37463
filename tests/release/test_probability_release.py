"""A release with probabilities that were bought: it reads back, and its certificate pays for them."""

from __future__ import annotations

import copy
import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import PrivateLogisticRegression, PrivateSVC, Release, verify
from privlearn.data import census_schema, simulated_census
from privlearn.errors import ReleaseError, VerificationError
from privlearn.mechanisms import MECHANISMS
from privlearn.release import Certificate, LinearModel
from privlearn.sessions import SessionCertificate
from tests.sessions.test_session_certificate import issued

TABLE = simulated_census(3000, seed=1)
SVC = PrivateSVC(epsilon=1.0, delta=1e-5, schema=census_schema())


@pytest.fixture(scope="module")
def release() -> Release:
    return PrivateSVC(**SVC.get_params() | {"probability": True}).fit(TABLE).release_


def model_of(release: Release) -> LinearModel:
    assert isinstance(release.model, LinearModel)
    return release.model


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_it_reads_back_and_says_the_same(epsilon: float, tmp_path: Path) -> None:
    facts = SVC.get_params() | {"epsilon": epsilon, "probability": True}
    release = PrivateSVC(**facts).fit(TABLE).release_
    path = tmp_path / "scored.privlearn"
    release.save(path)
    assert verify(path).is_private is math.isfinite(epsilon)
    read = Release.load(path)
    assert read.to_bytes() == release.to_bytes()
    assert np.array_equal(model_of(read).predict_proba(TABLE), model_of(release).predict_proba(TABLE))


def test_the_certificate_says_what_leaves(release: Release) -> None:
    record = release.certificate.to_dict()
    assert "the probabilities of its scores" in record["covers"]
    assert record["score_counts"]["bins"] == 16
    assert "score counts" in str(release.certificate)


def _without(record: dict[str, Any]) -> None:
    del record["score_counts"]


def _pure(record: dict[str, Any]) -> None:
    record["theorem"]["noise"] = "norm_gamma"


def _quieter(record: dict[str, Any]) -> None:
    record["score_counts"]["noise_scale"] /= 2.0


def _silent(record: dict[str, Any]) -> None:
    record["score_counts"]["noise_scale"] = 0.0


def _finer(record: dict[str, Any]) -> None:
    record["score_counts"]["bins"] = 64


@pytest.mark.parametrize("forge", [_without, _pure, _quieter, _silent, _finer])
def test_a_forged_certificate_is_refused(release: Release, forge: Any) -> None:
    record = copy.deepcopy(release.certificate.to_dict())
    forge(record)
    with pytest.raises(VerificationError):
        Certificate.from_dict(record)


def test_model_and_certificate_must_both_have_probabilities(release: Release) -> None:
    plain = SVC.fit(TABLE).release_
    assert model_of(plain).log_odds is None
    for one, other in ((release, plain), (plain, release)):
        hidden = dataclasses.replace(model_of(one), log_odds=model_of(other).log_odds)
        with pytest.raises(VerificationError, match="another model"):
            Release.from_bytes(dataclasses.replace(one, model=hidden).to_bytes())


def test_nothing_hides_in_the_odds(release: Release) -> None:
    odds = model_of(release).log_odds
    assert odds is not None
    forgeries: list[Any] = [
        odds[::-1],
        odds[:-1],
        odds.astype(np.float32),
        np.full(16, np.nan),
        odds.reshape(4, 4),
    ]
    for forged in forgeries:
        model = dataclasses.replace(model_of(release), log_odds=forged)
        with pytest.raises(ReleaseError):
            Release.from_bytes(dataclasses.replace(release, model=model).to_bytes())


def test_a_logistic_model_has_its_own(release: Release) -> None:
    logistic = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, schema=census_schema()).fit(TABLE).release_
    model = dataclasses.replace(model_of(logistic), log_odds=model_of(release).log_odds)
    with pytest.raises(ReleaseError):
        Release.from_bytes(dataclasses.replace(logistic, model=model).to_bytes())


def test_only_releases_may_count_scores(release: Release) -> None:
    record = issued(MECHANISMS["pinp"]).to_dict()
    with pytest.raises(VerificationError):
        SessionCertificate.from_dict(record | {"score_counts": release.certificate.to_dict()["score_counts"]})
