"""A release is audited from its file alone; what its own writer could not have written is noticed."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import PrivateLogisticRegression, PrivateRegressor, PrivateSVC, Release
from privlearn.audit import AuditReport, audit_release

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
LABELS = (X[:, 0] > 0).astype(int)
COMMON: dict[str, Any] = {"epsilon": 1.0, "norm_bound": 3.0}
CLASSES: dict[str, Any] = {"classes": [0, 1]}

MODELS = {
    "objective": PrivateLogisticRegression(**COMMON, **CLASSES, delta=1e-5),
    "pure": PrivateLogisticRegression(**COMMON, classes=[0, 1, 2]),
    "multinomial": PrivateLogisticRegression(**COMMON, classes=[0, 1, 2], loss="multinomial"),
    "laplace": PrivateLogisticRegression(**COMMON, **CLASSES, mechanism="output", noise="laplace"),
    "fourier": PrivateSVC(**COMMON, **CLASSES, delta=1e-5, kernel="rbf", gamma=1.0),
    "landmarks": PrivateSVC(**COMMON, **CLASSES, delta=1e-5, kernel="rbf", gamma=1.0, public_points=X[:9]),
    "regression": PrivateRegressor(**COMMON, delta=1e-5, target_bounds=(0.0, 1.0)),
}


def audited(release: Release, folder: Path) -> AuditReport:
    release.save(folder / "model.privlearn", overwrite=True)
    return audit_release(folder / "model.privlearn")


def failed(report: AuditReport) -> list[str]:
    return [f"{finding.check}: {finding.what}" for finding in report.failures]


@pytest.mark.parametrize("name", MODELS)
def test_releases_pass(name: str, tmp_path: Path) -> None:
    report = audited(MODELS[name].fit(X, LABELS).release_, tmp_path)
    assert report.passed, report
    assert {"file", "certificate", "randomness", "coefficients"} <= {f.check for f in report.findings}


def changed(release: Release, coefficients: Any) -> Release:
    """Return the release with other coefficients, whose file has right bytes and digests."""
    return Release(dataclasses.replace(release.model, coefficients=coefficients), release.certificate)


def test_coefficients_off_the_grid(tmp_path: Path) -> None:
    release = MODELS["laplace"].fit(X, LABELS).release_
    off = release.model.coefficients + 2.0**-60
    report = audited(changed(release, np.where(off == 0, 1e-9, off) * (1.0 + 2.0**-30)), tmp_path)
    assert failed(report) == ["file: bytes, digests, constants"]  # the file itself is refused


def test_coefficients_that_no_noise_leads_to(tmp_path: Path) -> None:
    for name in ("objective", "laplace"):
        release = MODELS[name].fit(X, LABELS).release_
        report = audited(
            changed(release, np.rint(1e6 * (1.0 + np.abs(release.model.coefficients)))), tmp_path
        )
        assert failed(report) == ["coefficients: no longer than the longest minimiser and the noise together"]


def test_seeded_and_damaged_files_fail(tmp_path: Path) -> None:
    seeded = PrivateLogisticRegression(**COMMON, **CLASSES, random_state=1).fit(X, LABELS).release_
    assert failed(audited(seeded, tmp_path)) == ["randomness: a finite epsilon, and noise from secret bits"]
    raw = bytearray((tmp_path / "model.privlearn").read_bytes())
    raw[len(raw) // 2] ^= 1
    (tmp_path / "damaged.privlearn").write_bytes(raw)
    assert failed(audit_release(tmp_path / "damaged.privlearn")) == ["file: bytes, digests, constants"]
