"""Audit a release from its file alone: what a stranger can still check."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privlearn.audit.report import AuditReport, Finding, judged
from privlearn.errors import VerificationError
from privlearn.mechanisms import ReleaseMechanism
from privlearn.mechanisms.answers import ball_radius
from privlearn.mechanisms.noise import GAMMA_GRID_BITS, GRID_BITS, grid_step
from privlearn.release import Release, verify
from privlearn.release.encoders import KernelEncoder

Array = NDArray[np.float64]

RARE = 1e-9
"""Probability with which correct noise would be called too large."""


def audit_release(path: str | Path) -> AuditReport:
    """Verify a release and check that its coefficients are what its certificate's noise leaves.

    What no file can show, that its holder ran the mechanism it names on the records it speaks of, is not checked.
    """
    subject = f"release {Path(path).name}"
    try:
        proven = verify(path)
    except VerificationError as refusal:
        return AuditReport(subject, (Finding("file", "failed", "bytes, digests, constants", str(refusal)),))
    findings = [
        Finding("file", "passed", "canonical bytes, digests, certificate and model agree"),
        Finding(
            "certificate",
            "passed",
            f"recomputed from its constants: {proven.recomputed}",
            numbers={
                "claimed epsilon": proven.claimed.epsilon,
                "recomputed epsilon": proven.recomputed.epsilon,
            },
        ),
        judged(
            "randomness",
            "a finite epsilon, and noise from secret bits",
            proven.is_private,
            "the release is consistent, but not private: a seeded generator or an infinite epsilon",
        ),
        *([Finding("strength", "noted", proven.weakness)] if proven.weakness else []),
        Finding("signature", "passed" if proven.signer else "noted", proven.signer or "not signed"),
    ]
    if proven.claimed.is_private:
        findings += _check_coefficients(Release.load(path))
    return AuditReport.of(subject, findings)


def _check_coefficients(release: Release) -> Iterator[Finding]:
    certificate: Any = getattr(release.certificate, "chosen", release.certificate)
    mechanism = certificate.mechanism
    plain = isinstance(mechanism, ReleaseMechanism) and not mechanism.answers_questions
    if not plain or isinstance(release.model.encoder, KernelEncoder):
        why = "they are computed from noisy numbers that are not in the file: nothing to compare"
        yield Finding("coefficients", "noted", "grid and size", why)
        return
    vectors = release.model.coefficients.reshape(mechanism.task.problems, mechanism.task.dimension)
    yield _on_grid(mechanism, vectors)
    yield _plausible_size(mechanism, vectors)


def _on_grid(mechanism: Any, vectors: Array) -> Finding:
    """The noise that was added last leaves multiples of its step; what bypassed it would not be."""
    scale = getattr(mechanism, "tolerance_noise_scale", mechanism.noise_scale)
    step = grid_step(scale, GAMMA_GRID_BITS if mechanism.noise == "norm_gamma" else GRID_BITS)
    steps = vectors / step
    small = np.abs(steps) < 2.0**53
    if not small.any():
        why = "they are so large beside the step that every floating-point number is a multiple of it"
        return Finding("coefficients", "noted", "grid", why)
    return judged(
        "coefficients",
        "multiples of the noise's public grid step",
        bool(np.array_equal(steps[small], np.rint(steps[small]))),
        "they do not come out of the sampler that the certificate names: noise was added in floating point, or not",
        {"step": step, "checked": int(np.count_nonzero(small))},
    )


def _plausible_size(mechanism: Any, vectors: Array) -> Finding:
    """No minimiser is longer than its ball, and noise beyond a rare quantile is not noise of this scale."""
    task, strength = mechanism.task, mechanism.effective_regularization
    allowed = ball_radius(task) + mechanism.solver_distance + _noise_norm(mechanism, mechanism.noise_scale)
    if mechanism.perturbs == "objective":
        pull = task.loss.lipschitz * task.weight_bound
        pull += _noise_norm(mechanism, mechanism.noise_scale) / task.total
        allowed = pull / strength + _noise_norm(mechanism, mechanism.tolerance_noise_scale)
    largest = float(np.max(np.linalg.norm(vectors, axis=1)))
    return judged(
        "coefficients",
        "no longer than the longest minimiser and the noise together",
        largest <= allowed and math.isfinite(largest),
        "no records and no noise of the stated scale lead here",
        {"norm": largest, "allowed": allowed},
    )


def _noise_norm(mechanism: Any, scale: float) -> float:
    """What the norm of a problem's noise stays below, except with probability `RARE`."""
    d = mechanism.task.dimension
    if mechanism.noise == "gaussian":
        return scale * math.sqrt(float(stats.chi2.isf(RARE, d)))
    return scale * float(stats.gamma.isf(RARE, d))  # of the Laplace vector it bounds even the sum of moduli
