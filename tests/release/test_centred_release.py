"""A release whose rows were centred: it reads back, and its certificate pays for mean and radius."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import PrivateLogisticRegression, Release, Schema, verify
from privlearn.data import SchemaEncoder, census_schema, simulated_census
from privlearn.data.encoding import CentredEncoder
from privlearn.errors import ReleaseError, VerificationError
from privlearn.mechanisms import MECHANISMS
from privlearn.release import Certificate, describe_encoding, encoder_from_dict, encoder_to_dict
from privlearn.sessions import SessionCertificate
from tests.sessions.test_session_certificate import issued

TABLE = simulated_census(3000, seed=1)


@pytest.fixture(scope="module")
def release() -> Release:
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, schema=census_schema()).fit(TABLE)
    assert isinstance(model.release_.model.encoder, CentredEncoder)
    return model.release_


def test_it_reads_back_and_predicts_the_same(release: Release, tmp_path: Path) -> None:
    path = tmp_path / "centred.privlearn"
    release.save(path)
    assert verify(path).is_private
    read = Release.load(path)
    assert read.to_bytes() == release.to_bytes()
    assert np.array_equal(read.model.predict(TABLE), release.model.predict(TABLE))


def test_the_certificate_says_what_leaves(release: Release) -> None:
    record = release.certificate.to_dict()
    assert "the mean and the radius" in record["covers"]
    assert record["encoding"]["centred"]
    assert "mean noise scale" in str(release.certificate)


def _without(record: dict[str, Any]) -> None:
    del record["centring"]


def _pure(record: dict[str, Any]) -> None:
    record["theorem"]["noise"] = "norm_gamma"


def _quieter(record: dict[str, Any]) -> None:
    record["centring"]["mean_noise_scale"] /= 2.0


def _fewer(record: dict[str, Any]) -> None:
    record["centring"]["counts"] = 1


def _papers(record: dict[str, Any]) -> None:
    record["theorem"]["calibration"] = "ra12"


@pytest.mark.parametrize("forge", [_without, _pure, _quieter, _fewer, _papers])
def test_a_forged_certificate_is_refused(release: Release, forge: Any) -> None:
    record = copy.deepcopy(release.certificate.to_dict())
    forge(record)
    with pytest.raises(VerificationError):
        Certificate.from_dict(record)


def test_model_and_certificate_must_both_be_centred(release: Release) -> None:
    plain = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, schema=census_schema(), centre=False).fit(
        TABLE
    )
    for one, other in ((release, plain.release_), (plain.release_, release)):
        forged = dataclasses.replace(one, certificate=other.certificate)
        with pytest.raises(VerificationError, match="another model"):
            Release.from_bytes(forged.to_bytes())


def _resaved(release: Release, **changed: Any) -> bytes:
    encoder = release.model.encoder
    assert isinstance(encoder, CentredEncoder)
    facts = {"base": encoder.base, "mean": encoder.mean, "radius": encoder.radius} | changed
    other = CentredEncoder(facts["base"], facts["mean"], facts["radius"])
    model = dataclasses.replace(release.model, encoder=other)
    certificate = dataclasses.replace(release.certificate, subject=describe_encoding(other))
    return dataclasses.replace(release, model=model, certificate=certificate).to_bytes()


@pytest.mark.parametrize("persons", [{"rows_per_person": 5}, {"person": "p"}])
def test_the_schema_counts_persons_as_the_certificate_does(release: Release, persons: dict[str, Any]) -> None:
    schema = census_schema().to_dict()
    schema.pop("one_row_per_person", None)
    own: Any = release.model.encoder
    base = SchemaEncoder(Schema.from_dict(schema | persons), resolution=own.base.resolution)
    with pytest.raises(VerificationError, match="another model"):
        Release.from_bytes(_resaved(release, base=base))


def test_nothing_hides_in_the_centre(release: Release) -> None:
    """A radius is one of sixty-four, and an array holds doubles."""
    Release.from_bytes(_resaved(release))
    with pytest.raises(VerificationError, match="another model"):
        Release.from_bytes(_resaved(release, radius=0.123))
    mean = release.model.arrays()["mean"]
    for kind in (np.float32, np.complex128, ">f8"):
        with pytest.raises(VerificationError):
            Release.from_bytes(_resaved(release, mean=mean.astype(kind)))


def test_only_releases_may_have_a_centring(release: Release) -> None:
    record = issued(MECHANISMS["pinp"]).to_dict()
    with pytest.raises(VerificationError):
        SessionCertificate.from_dict(record | {"centring": release.certificate.to_dict()["centring"]})


def test_a_centre_needs_rows(release: Release) -> None:
    with pytest.raises(ReleaseError):
        encoder_from_dict({"base": None, "centred": {"radius": 1.0}}, {"mean": np.zeros(3)}, None)


@pytest.mark.parametrize("mean", [np.zeros(3), np.full(1, np.nan)])
@pytest.mark.parametrize("radius", [0.0, -1.0, float("inf")])
def test_a_strange_centre_is_refused(release: Release, mean: Any, radius: float) -> None:
    encoder = release.model.encoder
    record = encoder_to_dict(encoder)
    assert record is not None
    assert isinstance(encoder, CentredEncoder)
    with pytest.raises(ReleaseError):
        encoder_from_dict(record, {"mean": mean}, None)
    with pytest.raises(ReleaseError):
        encoder_from_dict(record | {"centred": {"radius": radius}}, {"mean": encoder.mean}, None)
