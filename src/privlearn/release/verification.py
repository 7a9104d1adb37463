"""Checking a release as a stranger would: from the file alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from privlearn.errors import InvalidParameter, VerificationError
from privlearn.guarantee import Guarantee
from privlearn.release.archive import format_of
from privlearn.release.artifact import Release
from privlearn.release.certified import Certified
from privlearn.release.counts_file import CountsCertificate, CountsFile
from privlearn.release.curvature_file import Curvature
from privlearn.release.files import read_whole
from privlearn.release.run_record import RunRecord
from privlearn.release.session_certificate import SessionCertificate


@dataclass(frozen=True)
class Verification:
    """What the file proves about itself.

    Attributes
    ----------
    claimed, recomputed : Guarantee
        The promise, and what the constants give; the second is never weaker.
    is_private : bool
        False if there is no promise (epsilon = inf) or the noise came from a seeded generator.
    weakness : str or None
        Why the promise, though kept, is hardly private: epsilon above 20, or delta at or above 1/n.
    signer : str or None
        Public key (hexadecimal) whose signature covers the file.
    certificate : Certificate, SessionCertificate or CountsCertificate
        What the file states, with every constant.
    evaluation : CountsCertificate or None
        Of the noisy counts that the model's threshold or calibration was chosen from: a promise of its own, to the
        people of the records that were counted.
    run : RunRecord or None
        Of a model of several holders: whose records are in which sum, signed by the parties.
    """

    claimed: Guarantee
    recomputed: Guarantee
    is_private: bool
    signer: str | None
    certificate: Certified = field(repr=False)
    evaluation: CountsCertificate | None = field(default=None, repr=False)
    run: RunRecord | None = field(default=None, repr=False)

    @property
    def weakness(self) -> str | None:
        beside = None if self.evaluation is None else self.evaluation.weakness
        return self.certificate.weakness or beside


def verify(path: str | Path, signer: Ed25519PublicKey | None = None) -> Verification:
    """Check every byte, recompute the guarantee from the certificate alone, and check the signature.

    Parameters
    ----------
    path : path
        A release, an evaluation, or a session's certificate as `SessionCertificate.save` wrote it; the last bears no
        signature.
    signer : Ed25519PublicKey, optional
        Whose signature is required.

    Raises
    ------
    VerificationError
        If anything contradicts anything else, or the file is not signed by ``signer``.
    """
    proven = verify_bytes(read_whole(path))
    if signer is not None and proven.signer != signer.public_bytes_raw().hex():
        raise VerificationError("the file is not signed by the given key")
    return proven


def verify_bytes(raw: bytes) -> Verification:
    """The same for a file's content."""
    if raw.lstrip().startswith(b'{"format": "privlearn curvature'):
        return _proven(Curvature.from_bytes(raw).certificate, signer=None)
    if raw.lstrip()[:1] == b"{":  # JSON; a release is an archive
        return _proven(SessionCertificate.from_bytes(raw), signer=None)
    kind: type[Release | CountsFile] = CountsFile if format_of(raw) == CountsFile.format else Release
    file = kind.from_bytes(raw)
    signer = file.signature["public_key"] if file.signature else None
    if isinstance(file, CountsFile):
        return _proven(file.certificate, signer)
    evaluation = file.evaluation.certificate if file.evaluation else None
    return _proven(file.certificate, signer, evaluation, file.run)


def _proven(
    certificate: Certified,
    signer: str | None,
    evaluation: CountsCertificate | None = None,
    run: RunRecord | None = None,
) -> Verification:
    recomputed = certificate.mechanism.spends()
    is_private = certificate.is_private and (evaluation is None or evaluation.is_private)
    return Verification(certificate.guarantee, recomputed, is_private, signer, certificate, evaluation, run)


def read_private_key(path: str | Path) -> Ed25519PrivateKey:
    """A holder's signing key in PEM form, as `openssl genpkey -algorithm ed25519` writes it."""
    key = _read_key(path, lambda content: load_pem_private_key(content, password=None))
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidParameter(
            f"{path} is not an Ed25519 key: make one with `openssl genpkey -algorithm ed25519`"
        )
    return key


def read_public_key(path: str | Path) -> Ed25519PublicKey:
    """A holder's public key in PEM form, as `openssl pkey -pubout` writes it."""
    key = _read_key(path, load_pem_public_key)
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidParameter(f"{path} is not an Ed25519 public key: make it with `openssl pkey -pubout`")
    return key


def _read_key(path: str | Path, parse: Callable[[bytes], Any]) -> Any:
    try:
        return parse(Path(path).read_bytes())
    except OSError as error:
        raise InvalidParameter(f"cannot read the key {path}: {error.strerror}") from None
    except (TypeError, ValueError):
        raise InvalidParameter(f"{path} is not an unencrypted PEM key") from None
