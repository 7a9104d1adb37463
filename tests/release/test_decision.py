"""A threshold or calibration from an evaluation: stored with the counts it was chosen from, and checked with them."""

from __future__ import annotations

import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privlearn import (
    Evaluation,
    InvalidParameter,
    PrivateLogisticRegression,
    PrivateSVC,
    Release,
    ReleaseError,
    VerificationError,
    evaluate,
    verify,
)
from privlearn.data import census_schema, simulated_census
from privlearn.release import CountsFile, Decision, digest_of, json_bytes, pack

pytestmark = pytest.mark.filterwarnings("ignore::privlearn.NothingRecorded")


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return simulated_census(6000, seed=2)


@pytest.fixture(scope="module")
def release() -> Release:
    model = PrivateLogisticRegression(schema=census_schema(), epsilon=1.0, delta=1e-6)
    return model.fit(simulated_census(4000, seed=1)).release_


@pytest.fixture(scope="module")
def evaluation(release: Release, rows: pa.Table) -> Evaluation:
    return evaluate(release, rows, epsilon=2.0)


def likely(release: Release, rows: pa.Table) -> Any:
    return release.model.predict_proba(rows)[:, 1]  # type: ignore[union-attr]


def test_a_threshold_decides(
    release: Release, evaluation: Evaluation, rows: pa.Table, tmp_path: Path
) -> None:
    careful = release.with_threshold(evaluation.best_threshold(false_negative=4.0), evaluation)
    careful.save(tmp_path / "careful.privlearn")
    again = Release.load(tmp_path / "careful.privlearn")
    threshold = evaluation.best_threshold(false_negative=4.0)
    assert threshold < 0.4
    assert (again.model.predict(rows) == np.where(likely(release, rows) > threshold, "high", "low")).all()
    assert np.array_equal(likely(again, rows), likely(release, rows))
    proven = verify(tmp_path / "careful.privlearn")
    assert proven.is_private
    assert proven.evaluation is not None
    assert proven.evaluation.guarantee == evaluation.guarantee
    assert again.undecided.to_bytes() == release.to_bytes()
    assert again.digest != release.digest


def test_the_best_threshold_is_the_best(release: Release, rows: pa.Table) -> None:
    exact = evaluate(release, rows, epsilon=math.inf)
    scores, labels = likely(release, rows), np.array(rows["income"].to_pylist()) == "high"

    def cost(threshold: float) -> float:
        said = scores > threshold
        return float(3.0 * np.sum(said & ~labels) + np.sum(~said & labels))

    found = exact.best_threshold(false_positive=3.0)
    assert cost(found) == min(map(cost, exact.edges))
    assert exact.best_threshold() == pytest.approx(0.5, abs=0.15)


def test_a_calibration_is_read_off_the_curve(rows: pa.Table) -> None:
    """About as many as it says are so, and no two records change their order."""
    model = PrivateLogisticRegression(schema=census_schema(), epsilon=1.0, delta=1e-6, random_state=0)
    release = model.fit(simulated_census(4000, seed=1)).release_
    labels = np.array(rows["income"].to_pylist()) == "high"
    exact = evaluate(release, rows, epsilon=math.inf)
    decided = release.decided_by(exact.decision(calibrate=True), exact)
    found = likely(Release.from_bytes(decided.to_bytes()), rows)
    for low in (0.0, 0.3, 0.6):
        here = (found >= low) & (found < low + 0.3)
        assert found[here].mean() == pytest.approx(labels[here].mean(), abs=0.05)
    order = np.argsort(likely(release, rows))
    assert (np.diff(found[order]) >= 0).all()
    assert np.allclose(decided.model.predict_proba(rows).sum(axis=1), 1.0)  # type: ignore[union-attr]


def test_a_margin_gets_probabilities(rows: pa.Table) -> None:
    machine = PrivateSVC(schema=census_schema(), epsilon=1.0, delta=1e-6, random_state=0)
    machine.fit(simulated_census(4000, seed=1))
    found = evaluate(machine.release_, rows, epsilon=2.0, random_state=0)
    decided = machine.release_.decided_by(found.decision(threshold=0.0, calibrate=True), found)
    assert 0.0 <= likely(decided, rows).min() < 0.3 < 0.5 < likely(decided, rows).max() <= 1.0
    assert (decided.model.predict(rows) == machine.predict(rows)).all()


def test_a_decided_model_can_be_measured_and_decided_again(
    release: Release, evaluation: Evaluation, rows: pa.Table
) -> None:
    careful = release.with_threshold(0.3, evaluation)
    again = evaluate(careful, rows, epsilon=math.inf)
    assert again.about["threshold"] == 0.3
    wrong = careful.model.predict(rows) != rows["income"].to_numpy(zero_copy_only=False)
    assert again["error"].value == pytest.approx(wrong.mean())
    assert careful.with_threshold(0.6, again).undecided.to_bytes() == release.to_bytes()


def test_it_can_be_signed(release: Release, evaluation: Evaluation) -> None:
    key = Ed25519PrivateKey.generate()
    signed = evaluation.signed(key)
    assert Evaluation.from_bytes(signed.to_bytes()).signature is not None
    assert signed.digest == evaluation.digest
    decided = release.with_threshold(0.4, signed).signed(key)
    assert Release.from_bytes(decided.to_bytes()).signature is not None


def test_counts_of_another_model_are_refused(evaluation: Evaluation, rows: pa.Table) -> None:
    other = PrivateLogisticRegression(schema=census_schema(), epsilon=1.0, delta=1e-6)
    stranger = other.fit(simulated_census(3000, seed=3)).release_
    with pytest.raises(VerificationError, match="of another model"):
        stranger.with_threshold(0.4, evaluation)
    scores = evaluate(None, rows, scores=likely(stranger, rows), schema=census_schema(), epsilon=1.0)
    with pytest.raises(VerificationError, match="of another model"):
        stranger.with_threshold(0.4, scores)


def members_of(raw: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def forged(members: dict[str, bytes]) -> bytes:
    """Digests and comment recomputed."""
    digests = {name: digest_of(content) for name, content in members.items() if name != "manifest.json"}
    manifest = json.loads(members["manifest.json"]) | {"sha256": digests}
    content = {"manifest.json": json_bytes(manifest)} | {
        n: c for n, c in members.items() if n != "manifest.json"
    }
    return pack(content, comment=digest_of(content["manifest.json"]))


def test_a_threshold_without_its_counts_is_refused(release: Release, evaluation: Evaluation) -> None:
    members = members_of(release.with_threshold(0.4, evaluation).to_bytes())
    assert forged(members) == release.with_threshold(0.4, evaluation).to_bytes()  # the forger's tool works
    with pytest.raises(VerificationError, match="belong together"):
        Release.from_bytes(
            forged({name: members[name] for name in members if name != "evaluation.privlearn"})
        )
    plain = members_of(release.to_bytes()) | {"evaluation.privlearn": members["evaluation.privlearn"]}
    with pytest.raises(VerificationError, match="belong together"):
        Release.from_bytes(forged(plain))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("certificate.json", lambda it: it["constants"].update(noise_scale=0.1), "noise supports"),
        ("certificate.json", lambda it: it["claim"].update(epsilon=0.5), "noise supports"),
        ("certificate.json", lambda it: it["constants"].update(cells=[9]), "constants|other counts"),
        ("certificate.json", lambda it: it["counted"].update(about_sha256="0"), "other tables"),
        (
            "certificate.json",
            lambda it: it["randomness"].update(secure=False),
            "source of randomness|something",
        ),
        ("about.json", lambda it: it.update(threshold=0.7), "other tables"),
        ("about.json", lambda it: it.update(shapes=[[1, 1]]), "other counts"),
        ("about.json", lambda it: it.pop("shapes"), "malformed"),
    ],
)
def test_forged_counts_are_refused(evaluation: Evaluation, name: str, change: Any, message: str) -> None:
    members = members_of(evaluation.to_bytes())
    record = json.loads(members[name])
    change(record)
    with pytest.raises(ReleaseError, match=message):
        CountsFile.from_bytes(forged(members | {name: json_bytes(record)}))


def test_every_changed_byte_of_an_evaluation_is_refused(evaluation: Evaluation) -> None:
    raw = evaluation.signed(Ed25519PrivateKey.generate()).to_bytes()
    for place in range(0, len(raw), 7):
        changed = bytearray(raw)
        changed[place] ^= 0x01
        with pytest.raises(ReleaseError):
            CountsFile.from_bytes(bytes(changed))


def test_files_are_not_taken_for_each_other(release: Release, evaluation: Evaluation) -> None:
    with pytest.raises(ReleaseError, match="this is an evaluation"):
        Release.from_bytes(evaluation.to_bytes())
    with pytest.raises(ReleaseError, match="this is a release"):
        Evaluation.from_bytes(release.to_bytes())
    with pytest.raises(ReleaseError, match="does not hold an evaluation"):
        Evaluation(evaluation.tables, {"kind": "another"}, evaluation.certificate)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"threshold": math.nan},
        {"scores": (0.0, 1.0)},
        {"scores": (1.0, 0.0), "probabilities": (0.0, 1.0)},
        {"scores": (0.0, 1.0), "probabilities": (0.5, 0.4)},
        {"scores": (0.0, 1.0), "probabilities": (0.0, 1.5)},
    ],
)
def test_what_is_no_decision(settings: Any) -> None:
    with pytest.raises(InvalidParameter):
        Decision(**settings)


def test_only_two_classes_are_decided(release: Release, evaluation: Evaluation) -> None:
    decided = release.with_threshold(0.4, evaluation).model
    record = decided.to_dict() | {"classes": ["a", "b", "c"]}
    with pytest.raises(ReleaseError, match="classes"):
        type(release.model).from_dict(record, release.model.arrays())
