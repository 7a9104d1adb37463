"""Verify a release from its file alone: no data, no server and no trust in the sender is needed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

from privlearn.errors import VerificationError
from privlearn.guarantee import Guarantee
from privlearn.release.archive import read_whole
from privlearn.release.artifact import Release, read_outcome
from privlearn.release.base_certificate import BaseCertificate
from privlearn.release.counts_file import CountsCertificate, CountsFile
from privlearn.release.curvature_file import Curvature
from privlearn.release.html import notebook_view
from privlearn.release.moments_file import MomentsCertificate
from privlearn.release.run_record import RunRecord
from privlearn.release.session_certificate import SessionCertificate
from privlearn.release.signatures import PublicKey, key_hex


@dataclass(frozen=True)
class Verification:
    """The result of `verify`: the guarantee that follows from a file, and its signer.

    Attributes
    ----------
    claimed, recomputed : Guarantee
        The stated guarantee, and the one that the constants give; the second is never weaker.
    is_private : bool
        False if nothing is guaranteed (epsilon = inf) or the noise came from a seeded generator.
    weakness : str or None
        The reason why the guarantee holds but protects hardly anyone: epsilon above 20, or delta at or above 1/n.
    signer : str or None
        Public key (hexadecimal) whose signature covers the file.
    certificate : Certificate, SessionCertificate or CountsCertificate
        The certificate in the file, with every constant.
    evaluation : CountsCertificate or None
        Certificate of the noisy counts from which the model's threshold or calibration was chosen: a separate
        guarantee, to the people whose records were counted.
    origin, steps : str or None
        Digest of the release from which this one was refined, and the steps as text. `verify` has repeated the steps
        and found the same coefficients.
    run : RunRecord or None
        For a model of several holders: which parties' records are in which sum, signed by the parties.
    """

    claimed: Guarantee
    recomputed: Guarantee
    is_private: bool
    signer: str | None
    certificate: BaseCertificate = field(repr=False)
    evaluation: CountsCertificate | None = field(default=None, repr=False)
    origin: str | None = None
    steps: str | None = None
    run: RunRecord | None = field(default=None, repr=False)

    @property
    def properties(self) -> dict[str, str]:
        """Return what was checked, as text by name."""
        certificate, evaluation = self.certificate, self.evaluation
        lines = {
            "claimed": str(self.claimed),
            "recomputed": str(self.recomputed),
            "with schema": _with_schema(certificate),
            "randomness": certificate.randomness,
            "signer": self.signer or "not signed",
            "meaning": certificate.meaning.in_words() if certificate.meaning else "",
        }
        if evaluation is not None:
            lines["evaluation"] = (
                f"{evaluation.guarantee}, recomputed {evaluation.mechanism.spends()}: counts of this model's scores, "
                "from which its threshold or calibration was chosen"
            )
        if self.origin is not None:
            lines["refined"] = f"from {self.origin[:12]}, at no cost, and found again: {self.steps}"
        if isinstance(certificate, MomentsCertificate):
            lines["paid once"] = certificate.mechanism.shared_cost
        if self.run is not None:
            lines |= self.run.properties
        return {name: line for name, line in lines.items() if line}

    @property
    def verdict(self) -> str:
        """Return whether the file is consistent, and whether it is private."""
        if self.is_private:
            return f"consistent, but {self.weakness}" if self.weakness else "consistent and private"
        seeded = self.claimed.is_private
        reason = "its noise can be computed from the seed" if seeded else "its epsilon is infinite"
        return f"consistent, but NOT PRIVATE: {reason}"

    def __str__(self) -> str:
        lines = [f"{name:<12}{fact}" for name, fact in self.properties.items()]
        return "\n".join([*lines, f"The file is {self.verdict}."])

    def _repr_html_(self) -> str:
        return notebook_view(f"Verified: {self.verdict}", self.properties)

    @property
    def weakness(self) -> str | None:
        of_evaluation = None if self.evaluation is None else self.evaluation.weakness
        return self.certificate.weakness or of_evaluation


def verify(
    path: str | Path, signer: PublicKey | None = None, origin: str | Path | None = None
) -> Verification:
    """Check every byte, recompute the guarantee from the certificate alone, and check the signature.

    Parameters
    ----------
    path : path
        A release, an evaluation, or a session's certificate as `SessionCertificate.save` wrote it; the last bears no
        signature.
    signer : Ed25519PublicKey or EllipticCurvePublicKey, optional
        The key whose signature is required.
    origin : path, optional
        The release from which the file must have been refined.

    Raises
    ------
    VerificationError
        If parts of the file contradict each other, or the file is not signed by ``signer``, or has another origin.
    """
    proven = verify_bytes(read_whole(path))
    if signer is not None and proven.signer != key_hex(signer):
        raise VerificationError("the file is not signed by the given key")
    if origin is not None and proven.origin != Release.load(origin).digest:
        raise VerificationError("the file was not refined from the given release")
    return proven


def verify_bytes(raw: bytes) -> Verification:
    """Verify the content of a file; see `verify`."""
    if raw.lstrip().startswith(b'{"format": "privlearn curvature'):
        return _verification_of(Curvature.from_bytes(raw).certificate, signer=None)
    if raw.lstrip()[:1] == b"{":  # JSON; a release is an archive
        return _verification_of(SessionCertificate.from_bytes(raw), signer=None)
    file = read_outcome(raw)
    signer = file.signature["public_key"] if file.signature else None
    if isinstance(file, CountsFile):
        return _verification_of(file.certificate, signer, run=file.run)
    evaluation = file.evaluation.certificate if file.evaluation else None
    proven = _verification_of(
        file.certificate, signer, evaluation, file.moments.run if file.moments else file.run
    )
    if file.refinement is None:
        return proven
    return dataclasses.replace(proven, origin=file.origin.digest, steps=file.refinement.description)


def _with_schema(certificate: BaseCertificate) -> str:
    return (
        f"{certificate.together}, with the cost of its estimated bounds and lists"
        if certificate.private_bounds
        else ""
    )


def _verification_of(
    certificate: BaseCertificate,
    signer: str | None,
    evaluation: CountsCertificate | None = None,
    run: RunRecord | None = None,
) -> Verification:
    recomputed = certificate.mechanism.spends()
    is_private = certificate.is_private and (evaluation is None or evaluation.is_private)
    return Verification(
        certificate.guarantee, recomputed, is_private, signer, certificate, evaluation, run=run
    )
