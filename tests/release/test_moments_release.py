"""Regressions from one noisy sum as release files: found again from the sum, paid for once, nothing else believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from privlearn import verify
from privlearn.errors import InvalidParameter, ReleaseError, VerificationError
from privlearn.export import export_release
from privlearn.mechanisms import SummedCounts
from privlearn.parties import simulate
from privlearn.release import (
    Moments,
    MomentsCertificate,
    Release,
    Round,
    digest_of,
    json_bytes,
    read_certificate,
)
from tests.support.moments_cases import AGREEMENT
from tests.support.run_cases import SIZES, TABLES


@pytest.fixture(scope="module")
def moments() -> Moments:
    return simulate(AGREEMENT, TABLES)


@pytest.fixture(scope="module")
def hours(moments: Moments) -> Release:
    return Release.from_moments(moments, "hours")


def certificate_of(release: Release) -> MomentsCertificate:
    assert isinstance(release.certificate, MomentsCertificate)
    return release.certificate


def test_every_target_has_a_file_that_verifies(moments: Moments, tmp_path: Path) -> None:
    for target in moments.targets:
        release = Release.from_moments(moments, target)
        release.save(tmp_path / f"{target}.privlearn")
        proven = verify(tmp_path / f"{target}.privlearn")
        assert (proven.claimed, proven.is_private) == (AGREEMENT.guarantee, True)
        assert proven.recomputed <= AGREEMENT.guarantee
        assert proven.run == moments.run is not None
        assert "count the claim of one of them" in proven.properties["paid once"]
        assert moments.model_digest[:12] in proven.properties["paid once"]
        assert proven.properties["paid once"] in proven.certificate.to_dict()["covers"]
        expected = moments.model(target).predict(TABLES["north"])
        read = Release.load(tmp_path / f"{target}.privlearn").model
        np.testing.assert_allclose(read.predict(TABLES["north"]), expected)


def test_it_is_a_release_like_others(moments: Moments) -> None:
    release = Release.from_moments(moments, "education_years", regularization=0.5)
    assert release.certificate.task.regularization == 0.5
    assert release.certificate.properties["records in the plan"] == f"{sum(SIZES.values())} (public)"
    refined = Release.from_bytes(release.refined([Round(2)]).to_bytes())
    assert refined.origin.digest == release.digest
    assert b"education_years" in export_release(release, "json")
    with pytest.raises(InvalidParameter, match="no intervals are known"):
        release.effects()


def other_coefficients(release: Release) -> Release:
    coefficients = release.model.coefficients * (1.0 + 1e-6)
    return replace(release, model=replace(release.model, coefficients=coefficients))


def other_digits(release: Release) -> Release:
    coefficients = release.model.coefficients * (1.0 + 1e-13)
    return replace(release, model=replace(release.model, coefficients=coefficients))


def without_the_sum(release: Release) -> Release:
    return replace(release, moments=None)


def another_sum(release: Release) -> Release:
    return replace(release, moments=simulate(AGREEMENT, TABLES))


def another_regularization(release: Release) -> Release:
    certificate = certificate_of(release)
    changed = replace(certificate.mechanism, regularization=1.01 * certificate.mechanism.regularization)
    return replace(release, certificate=replace(certificate, mechanism=changed))


def another_target(release: Release) -> Release:
    certificate = certificate_of(release)
    changed = replace(certificate.mechanism, target="education_years")
    return replace(release, certificate=replace(certificate, mechanism=changed))


def more_noise(release: Release) -> Release:
    certificate = certificate_of(release)
    moments = certificate.mechanism.sum
    changed = replace(certificate.mechanism, sum=replace(moments, noise_scale=2 * moments.noise_scale))
    return replace(release, certificate=replace(certificate, mechanism=changed))


@pytest.mark.parametrize(
    "forge",
    [
        other_coefficients,
        other_digits,
        without_the_sum,
        another_sum,
        another_regularization,
        another_target,
        more_noise,
    ],
)
def test_what_does_not_follow_is_refused(hours: Release, forge: Callable[[Release], Release]) -> None:
    assert Release.from_bytes(hours.to_bytes()).digest == hours.digest
    with pytest.raises(VerificationError, match="does not follow from the noisy sum"):
        Release.from_bytes(forge(hours).to_bytes())


def test_a_regularization_that_hardly_determines_coefficients_is_refused(moments: Moments) -> None:
    """Else whatever lies in the directions that noise left empty would pass."""
    with pytest.raises(InvalidParameter, match="Give at least"):
        moments.model("hours", 1e-12)


def test_a_sum_of_another_schema_is_refused(moments: Moments) -> None:
    schema = moments.about["schema"] | {"name": "others"}
    about = {**moments.about, "schema": schema}
    subject = {**moments.certificate.subject, "about_sha256": digest_of(json_bytes(about))}
    forged = replace(
        moments, about=about, certificate=replace(moments.certificate, subject=subject), run=None
    )
    with pytest.raises(VerificationError, match="another schema"):
        Moments.from_bytes(forged.to_bytes())


def test_a_sum_of_counts_is_no_sum_of_moments(moments: Moments) -> None:
    """Refused when it is read, before anything is computed from it."""
    mechanism = moments.certificate.mechanism
    counts = SummedCounts(**{field.name: getattr(mechanism, field.name) for field in fields(mechanism)})
    with pytest.raises(ReleaseError, match="does not hold second moments"):
        replace(moments, certificate=replace(moments.certificate, mechanism=counts))


def test_a_claim_that_the_noise_does_not_support_is_refused(hours: Release) -> None:
    record = json.loads(json.dumps(hours.certificate.to_dict()))
    assert read_certificate(record) == hours.certificate
    record["claim"]["epsilon"] = 1.0
    with pytest.raises(VerificationError, match="less than the claim"):
        read_certificate(record)
