"""A session's certificate: saved, read back, recomputed, and refused where its constants do not support its claim."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privlearn import verify
from privlearn.errors import ReleaseError, VerificationError
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import FunctionRelease, PaperPINP, TightPINP
from privlearn.randomness import SecureRandomness, SeededRandomness
from privlearn.sessions import SessionCertificate
from tests.support.session_support import PROMISE, written_learner

KINDS: list[Any] = [FunctionRelease, TightPINP, PaperPINP]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name}-{kind.mode}")
HONEST_IF_RAISED = {
    ("claim", "epsilon"),
    ("claim", "delta"),
    ("constants", "noise_scale"),
    ("constants", "answer_scale"),
}
"""Changes upwards that leave a true statement: a weaker claim, or more noise."""
HONEST_IF_LOWERED = {("constants", "test_epsilon")}
# The threshold, the number of queries it was made for and the loss's width have no part in the guarantee; what the
# session answers from is opaque to it.
HONEST = {
    ("constants", "threshold"), ("constants", "queries"), ("task", "loss", "width"), ("learner", "kernel", "gamma"),
}  # fmt: skip


def issued(kind: Any, promise: Guarantee = PROMISE) -> SessionCertificate:
    learner = written_learner(total=3000)
    plan = kind.calibrate(learner.kernel_task(promise.neighbours), promise)
    return SessionCertificate.issue(plan, SecureRandomness(), learner.describe())


def record_of(certificate: SessionCertificate) -> dict[str, Any]:
    return json.loads(json.dumps(certificate.to_dict()))


def numbers(record: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(record, dict):
        for key, value in record.items():
            yield from numbers(value, (*path, key))
    elif isinstance(record, int | float) and not isinstance(record, bool):
        yield path, record


def changed(record: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(record)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return result


@every_kind
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_saved_loaded_and_verified(tmp_path: Path, kind: Any, neighbours: Any) -> None:
    certificate = issued(kind, Guarantee(0.7, 1e-6, neighbours))
    certificate.save(tmp_path / "session.json")
    again = SessionCertificate.load(tmp_path / "session.json")
    assert again.to_dict() == certificate.to_dict()
    assert str(again) == str(certificate)
    proven = verify(tmp_path / "session.json")
    assert proven.claimed == certificate.guarantee
    assert proven.recomputed <= proven.claimed
    assert proven.recomputed.epsilon == pytest.approx(0.7, rel=1e-6)
    assert proven.is_private
    assert proven.signer is None


@every_kind
@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_a_changed_number_is_refused(kind: Any, factor: float) -> None:
    record = record_of(issued(kind))
    paths = list(numbers(record))
    assert len(paths) >= 12
    for path, value in paths:
        step = max(1, round(value * 0.01))
        new = value + math.copysign(step, factor - 1.0) if isinstance(value, int) else value * factor
        try:
            accepted = SessionCertificate.from_dict(changed(record, path, type(value)(new)))
        except VerificationError:
            continue
        assert path in HONEST | (HONEST_IF_RAISED if factor > 1 else HONEST_IF_LOWERED), path
        assert accepted.mechanism.spends() <= accepted.guarantee


@every_kind
def test_a_consistent_forgery_of_less_noise_is_refused(kind: Any) -> None:
    plan: Any = issued(kind).mechanism
    smaller = [name for name in kind.calibrated_constants if name.endswith("_scale")]
    for name in smaller:
        forged = dataclasses.replace(plan, **{name: 0.999 * getattr(plan, name)})
        lie = SessionCertificate.issue(forged, SecureRandomness(), {})
        with pytest.raises(VerificationError, match="less than the claim"):
            SessionCertificate.from_dict(record_of(lie))
    assert smaller


@every_kind
def test_missing_and_added_parts_are_refused(kind: Any) -> None:
    record = record_of(issued(kind))
    for part in record:
        for wrong in ({k: v for k, v in record.items() if k != part}, record | {part: None}):
            with pytest.raises(VerificationError):
                SessionCertificate.from_bytes(json.dumps(wrong).encode())
    with pytest.raises(VerificationError):
        SessionCertificate.from_dict(record | {"note": "private, trust me"})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("constants", "noise_scale"), 0.0),
        (("constants", "noise_scale"), "NaN"),
        (("constants", "solver_distance"), -1.0),
        (("task", "total"), True),
        (("task", "loss", "name"), "multinomial"),
        (("theorem", "mechanism"), "pinp"),
        (("theorem", "mode"), "paper"),
        (("covers",), "nothing"),
        (("randomness", "secure"), False),
        (("claim", "epsilon"), 0.5),
        (("claim", "delta"), 0.0),
        (("format",), "privlearn session 0"),
    ],
)
def test_what_does_not_follow_is_refused(path: tuple[str, ...], value: Any) -> None:
    record = changed(record_of(issued(FunctionRelease)), path, value)
    with pytest.raises(VerificationError):
        SessionCertificate.from_bytes(json.dumps(record).encode())


@pytest.mark.parametrize("updates", [0, -1, 1.5, 1e300])
def test_a_strange_number_of_updates_is_refused(updates: Any) -> None:
    record = record_of(issued(TightPINP))
    with pytest.raises(VerificationError):
        SessionCertificate.from_dict(changed(record, ("constants", "updates"), updates))


def test_seeded_noise_and_no_promise_are_said_to_be_so(tmp_path: Path) -> None:
    plan = issued(FunctionRelease).mechanism
    seeded = SessionCertificate.issue(plan, SeededRandomness(1), {"encoding": {}})
    seeded.save(tmp_path / "seeded.json")
    assert not verify(tmp_path / "seeded.json").is_private
    with pytest.raises(VerificationError):
        SessionCertificate.from_dict(changed(record_of(seeded), ("randomness", "secure"), True))
    issued(FunctionRelease, Guarantee(math.inf)).save(tmp_path / "plain.json")
    assert not verify(tmp_path / "plain.json").is_private


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"[" * 100_000, b'{"format": 1}', b"\xff{"])
def test_what_is_no_certificate_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(content)
    for read in (verify, SessionCertificate.load):
        with pytest.raises(VerificationError):
            read(path)
    with pytest.raises(ReleaseError, match="cannot read"):
        SessionCertificate.load(tmp_path / "absent.json")


def test_it_reads_well() -> None:
    printed = str(issued(TightPINP))
    assert "  vacuous                   yes\n" in printed
    assert "  kernel                    kernel rbf, gamma 2\n" in printed
    assert "  classes                   no, yes\n" in printed
