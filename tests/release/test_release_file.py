"""The release file: every byte counts, nothing in it is executed, a signature covers it."""

from __future__ import annotations

import dataclasses
import io
import json
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privlearn import PrivateLogisticRegression, PrivateSVC, Release, ReleaseError, VerificationError, verify
from privlearn.release import digest_of as _digest
from privlearn.release import json_bytes as _json_bytes
from privlearn.release import pack as _pack


@pytest.fixture(scope="module")
def release() -> Release:
    rng = np.random.default_rng(0)
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, norm_bound=3.0, classes=[0, 1, 2])
    return model.fit(rng.normal(size=(60, 2)), rng.integers(0, 3, 60)).release_


def members_of(raw: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes]) -> bytes:
    """Return a consistent file with other contents: a forger recomputes digests and comment."""
    digests = {n: _digest(c) for n, c in members.items() if n not in ("manifest.json", "signature.json")}
    manifest = json.loads(members["manifest.json"]) | {"sha256": digests}
    members = {"manifest.json": _json_bytes(manifest)} | {
        n: c for n, c in members.items() if n != "manifest.json"
    }
    return _pack(members, comment=_digest(members["manifest.json"]))


def with_json(raw: bytes, name: str, change: Any) -> bytes:
    members = members_of(raw)
    content = json.loads(members[name])
    change(content)
    return packed(members | {name: _json_bytes(content)})


def array_bytes(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), **options)
    return buffer.getvalue()


def test_release_reads_back(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "m.privlearn")
    again = Release.load(tmp_path / "m.privlearn")
    assert again.to_bytes() == release.to_bytes()
    assert np.array_equal(again.model.coefficients, release.model.coefficients)
    assert packed(members_of(release.to_bytes())) == release.to_bytes()  # the forger's tool works
    found = verify(tmp_path / "m.privlearn")
    assert found.is_private
    assert found.signer is None
    assert found.recomputed <= found.claimed
    assert [p.name for p in tmp_path.iterdir()] == ["m.privlearn"]


def test_any_changed_byte_is_refused(release: Release) -> None:
    """Every byte of content and container, each flipped in another way (0x20 turns small letters into capitals)."""
    raw = release.signed(Ed25519PrivateKey.generate()).to_bytes()
    for place in range(len(raw)):
        changed = bytearray(raw)
        changed[place] ^= (0x01, 0x20, 0x80, 0xFF, 0x04)[place % 5]
        with pytest.raises(ReleaseError):
            Release.from_bytes(bytes(changed))


def test_changed_member_is_named(release: Release) -> None:
    """Also where the container's own checksums were recomputed."""
    members = members_of(release.to_bytes())
    for name in ("certificate.json", "model.json", "coefficients.npy"):
        comment = _digest(members["manifest.json"])
        with pytest.raises(VerificationError, match=f"{name} was changed"):
            Release.from_bytes(_pack(members | {name: members[name] + b" "}, comment=comment))


def test_any_missing_tail_or_extra_byte_is_refused(release: Release) -> None:
    raw = release.to_bytes()
    for length in (*range(0, len(raw), 37), len(raw) - 1):
        with pytest.raises(ReleaseError):
            Release.from_bytes(raw[:length])
    for extra in (raw + b"\0", b"\0" + raw, raw + raw):
        with pytest.raises(ReleaseError):
            Release.from_bytes(extra)


def test_object_arrays_are_never_unpickled(release: Release, tmp_path: Path) -> None:
    trap = tmp_path / "executed"

    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (trap,))

    array = np.array([[Trap()]], dtype=object)
    assert b"Path" in pickle.dumps(Trap())
    members = members_of(release.to_bytes()) | {"coefficients.npy": array_bytes(array, allow_pickle=True)}
    with pytest.raises(VerificationError):
        Release.from_bytes(packed(members))
    assert not trap.exists()


@pytest.mark.parametrize(
    "array",
    [
        np.full((3, 3), np.nan),
        np.full((3, 3), np.inf),
        np.zeros((3, 4)),
        np.zeros((9, 1)),
        np.zeros((1, 9)),
        np.zeros(9),
        np.array([["text"] * 3] * 3),
    ],
    ids=lambda a: f"{a.dtype}{a.shape}{a.flat[0]}",
)
def test_arrays_that_do_not_fit_are_refused(release: Release, array: Any) -> None:
    members = members_of(release.to_bytes()) | {"coefficients.npy": array_bytes(array)}
    with pytest.raises(ReleaseError):
        Release.from_bytes(packed(members))


def test_array_that_claims_to_be_huge_is_refused(release: Release) -> None:
    members = members_of(release.to_bytes())
    header = members["coefficients.npy"]
    huge = re.sub(rb"\(3, 3\), \}( {12})", rb"(3, 3000000000000), }", header)
    assert huge != header
    with pytest.raises(ReleaseError):
        Release.from_bytes(packed(members | {"coefficients.npy": huge}))


def test_bombs_are_refused_unopened(release: Release) -> None:
    """A deflated member of a gigabyte of zeros is a megabyte long; members must be stored as they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members_of(release.to_bytes()).items():
            archive.writestr(name, content)
        with archive.open("signature.json", "w", force_zip64=True) as member:
            for _ in range(64):
                member.write(bytes(2**20))
    with pytest.raises(VerificationError, match="stored"):
        Release.from_bytes(buffer.getvalue())


def test_overlapping_members_are_refused(release: Release) -> None:
    """A central directory may list one piece of the file many times, and so claim more than the file holds."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("manifest.json", bytes(5000))
        archive.filelist.extend([archive.filelist[0]] * 9)
        archive._didModify = True  # type: ignore[attr-defined]
    with pytest.raises(VerificationError, match="stored"):
        Release.from_bytes(buffer.getvalue())


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["certificate.json", "note.txt"])
def test_duplicate_and_unknown_members_are_refused(release: Release, name: str) -> None:
    raw = release.to_bytes()
    buffer = io.BytesIO(raw)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(name, members_of(raw).get(name, b"hello"))
    with pytest.raises(VerificationError):
        Release.from_bytes(buffer.getvalue())


def test_deeply_nested_json_is_refused(release: Release) -> None:
    nested = b"[" * 100_000 + b"]" * 100_000
    for name in ("certificate.json", "model.json"):
        with pytest.raises(VerificationError):
            Release.from_bytes(packed(members_of(release.to_bytes()) | {name: nested}))


def test_not_a_release_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"PK", b"hello" * 100, pickle.dumps({"model": 1})):
        with pytest.raises(ReleaseError):
            Release.from_bytes(content)
    with pytest.raises(ReleaseError, match="cannot read"):
        Release.load(tmp_path / "absent")


def test_consistent_forgery_of_the_claim_is_refused(release: Release) -> None:
    raw = release.to_bytes()
    Release.from_bytes(with_json(raw, "certificate.json", lambda record: None))

    def lower(record: Any) -> None:
        record["claim"]["epsilon"] = 0.5

    with pytest.raises(VerificationError):
        Release.from_bytes(with_json(raw, "certificate.json", lower))


def test_certificate_of_another_model_is_refused(release: Release) -> None:
    """Three problems of three coefficients are not one of nine; a logistic model is no support vector machine."""
    X, y = np.zeros((60, 8)), np.arange(60) % 2
    one_problem = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, norm_bound=3.0, classes=[0, 1], mechanism="output"
    ).fit(X, y)
    X, y = np.zeros((60, 2)), np.arange(60) % 3
    other_loss = PrivateSVC(
        epsilon=1.0, delta=1e-6, norm_bound=3.0, classes=[0, 1, 2], loss="huber_hinge"
    ).fit(X, y)
    for other in (one_problem.release_, other_loss.release_):
        foreign = members_of(other.to_bytes())["certificate.json"]
        content = json.loads(foreign)
        content["encoding"] = dict(release.certificate.encoding)
        with pytest.raises(VerificationError):
            Release.from_bytes(
                packed(members_of(release.to_bytes()) | {"certificate.json": _json_bytes(content)})
            )


def test_number_of_classes_of_model_and_certificate_must_agree() -> None:
    """Fewer corners and a smaller slack would speak for less noise."""
    X, y = np.zeros((60, 2)), np.arange(60) % 4
    four = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, norm_bound=3.0, classes=[0, 1, 2, 3], fit_intercept=False
    ).fit(X, y)
    certificate: Any = four.certificate_
    assert certificate.task.classes == 4
    fewer = dataclasses.replace(certificate.mechanism, task=dataclasses.replace(certificate.task, classes=2))
    forged = dataclasses.replace(certificate, mechanism=fewer)
    with pytest.raises(VerificationError, match="another model"):
        Release.from_bytes(Release(four.release_.model, forged).to_bytes())


def test_norm_bound_of_model_and_certificate_must_agree(release: Release) -> None:
    def double(record: Any) -> None:
        record["encoder"]["norm_bound"] = 6.0

    with pytest.raises(VerificationError, match="another model"):
        Release.from_bytes(with_json(release.to_bytes(), "model.json", double))


def test_signature_names_its_signer(release: Release, tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    release.signed(key).save(tmp_path / "m")
    assert verify(tmp_path / "m", key.public_key()).signer == key.public_key().public_bytes_raw().hex()
    with pytest.raises(VerificationError, match="not signed by"):
        verify(tmp_path / "m", Ed25519PrivateKey.generate().public_key())


def test_unsigned_release_does_not_pass_for_signed(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "m")
    with pytest.raises(VerificationError, match="not signed by"):
        verify(tmp_path / "m", Ed25519PrivateKey.generate().public_key())


def test_signature_does_not_move_to_another_release(release: Release) -> None:
    key = Ed25519PrivateKey.generate()
    signed = release.signed(key)
    other = PrivateLogisticRegression(epsilon=1.0, norm_bound=1.0, classes=[0, 1]).fit([[0.0], [0.1]], [0, 1])
    moved = Release(other.release_.model, other.release_.certificate, signed.signature)
    with pytest.raises(VerificationError, match="signature"):
        Release.from_bytes(moved.to_bytes())


def test_foreign_key_does_not_fit_a_signature(release: Release) -> None:
    signature = release.signed(Ed25519PrivateKey.generate()).signature
    assert signature is not None
    stranger = Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex()
    for forged in (
        signature | {"public_key": stranger},
        {"public_key": stranger},
        {},
        {**signature, "signature": ""},
    ):
        with pytest.raises(VerificationError):
            Release.from_bytes(Release(release.model, release.certificate, forged).to_bytes())


def test_crash_while_saving_leaves_the_old_file(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "m"
    release.save(target)
    before = target.read_bytes()

    def crash(descriptor: int) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr("os.fsync", crash)
    with pytest.raises(OSError, match="disk is gone"):
        release.signed(Ed25519PrivateKey.generate()).save(target, overwrite=True)
    assert target.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def weighted_release(schema_weight: float | None, **given: Any) -> Release:
    target: dict[str, Any] = {"name": "y", "classes": ["no", "yes"]}
    target |= {} if schema_weight is None else {"weights": {"yes": schema_weight}}
    schema = {"name": "t", "columns": {"x": {"type": "number", "lower": 0, "upper": 1}}, "target": target}
    rows = {"x": np.linspace(0, 1, 60), "y": np.array(["no", "yes"] * 30)}
    return PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=schema, **given).fit(rows).release_


def test_a_release_says_which_class_weights_it_was_trained_with() -> None:
    by_schema, by_call = weighted_release(2.0), weighted_release(2.0, class_weight={"yes": 0.5, "no": 0.5})
    models: list[Any] = [by_schema.model, by_call.model]
    assert [model.class_weights for model in models] == [(1.0, 2.0), (0.5, 0.5)]
    assert by_call.certificate.task.weight_bound == 0.5
    for release in (by_schema, by_call):
        assert Release.from_bytes(release.to_bytes()).to_bytes() == release.to_bytes()


def test_weights_beyond_those_of_the_certificate_are_refused() -> None:
    """What the model says of them, and, where it says nothing, what its schema does."""
    raw = weighted_release(2.0, class_weight={"yes": 0.5, "no": 0.5}).to_bytes()
    for change in (
        lambda model: model.pop("class_weights"),
        lambda model: model.update(class_weights=[1.0, 3.0]),
        lambda model: model.update(class_weights=[0.5]),
        lambda model: model.update(class_weights=[]),
    ):
        with pytest.raises(VerificationError, match="belongs to another model"):
            Release.from_bytes(with_json(raw, "model.json", change))


def test_weights_that_are_nowhere_stated_are_one() -> None:
    raw = weighted_release(None, class_weight={"yes": 3.0}).to_bytes()
    with pytest.raises(VerificationError, match="belongs to another model"):
        Release.from_bytes(with_json(raw, "model.json", lambda model: model.pop("class_weights")))
    model: Any = Release.from_bytes(raw).model
    silent = dataclasses.replace(model, class_weights=None)
    assert [silent.is_weighted_by(bound) for bound in (0.5, 1.0, 3.0)] == [False, True, False]


@pytest.fixture(scope="module")
def schema_release() -> Release:
    schema = {
        "name": "visits",
        "one_row_per_person": True,
        "columns": {"age": {"type": "number", "lower": 0, "upper": 100}},
        "target": {"name": "ill", "classes": ["no", "yes"]},
    }
    table = {"age": [float(age) for age in range(60)], "ill": ["no", "yes"] * 30}
    return PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=schema).fit(table).release_


@pytest.mark.parametrize(
    "classes",
    [
        "no",
        {},
        [],
        [[]],
        ["no"],
        ["no", "no"],
        ["yes", "no"],
        ["no", "yes", "maybe"],
        [None, None],
        ["no", 1],
    ],
    ids=repr,
)
def test_classes_other_than_the_schemas_are_refused(classes: Any, schema_release: Release) -> None:
    forged = with_json(
        schema_release.to_bytes(), "model.json", lambda model: model.__setitem__("classes", classes)
    )
    with pytest.raises(ReleaseError):
        Release.from_bytes(forged)


@pytest.mark.parametrize(
    "classes", [[0, 1], [0, 0, 1], [None, None, None], [0, 1, "a"], [0, 1, [2]]], ids=repr
)
def test_classes_of_arrays_are_distinct_labels_of_one_type(classes: Any, release: Release) -> None:
    forged = with_json(release.to_bytes(), "model.json", lambda model: model.__setitem__("classes", classes))
    with pytest.raises(ReleaseError):
        Release.from_bytes(forged)


def test_coefficients_whose_scores_would_overflow_are_refused(release: Release) -> None:
    members = members_of(release.to_bytes())
    assert array_bytes(release.model.coefficients) in members.values()  # so the forgery below replaces them
    large = np.full_like(release.model.coefficients, 1e308)
    with pytest.raises(ReleaseError):
        Release.from_bytes(packed(members | {"coefficients.npy": array_bytes(large)}))
