"""Audit a mechanism at its own constants, or a release file at those it states."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from privlearn.arrays import Array
from privlearn.audit.empirical import AuditReport, Finding, epsilon_bound, judge_bound, judged
from privlearn.audit.laws import check_curve, exact_laws
from privlearn.audit.neighbours import Pair, Records, worst_pairs
from privlearn.audit.replay import RecordsOracle, check_replay
from privlearn.audit.samplers import LEVEL, judge_p_values, noise_p_values
from privlearn.audit.whole_runs import WHOLE_RUNS, WholeRun, check_whole_run, judge_certificate
from privlearn.erm.losses import Huber, HuberHinge, Logistic, Multinomial
from privlearn.errors import InvalidParameter, VerificationError, shown
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism, mechanisms_of
from privlearn.mechanisms.noise import GAMMA_GRID_BITS, GRID_BITS, grid_step
from privlearn.mechanisms.oracle import Minimises, Solved
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness, SeededRandomness
from privlearn.release.artifact import Release
from privlearn.release.encoders import KernelEncoder
from privlearn.release.verification import verify

Progress = Callable[[str], None]
"""Called with the case that comes next."""

NET = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.6]])
ANSWERED = NET[1:]
"""Public points of TDIL and, two of them, of TDDL, whose answers then have a law in the plane."""


@dataclass(frozen=True, eq=False)
class Case:
    """A calibrated mechanism on a tiny task; ``points`` are the public points of those that answer questions."""

    name: str
    mechanism: Any
    points: Array | None = None
    sampled: bool = True


def audited() -> tuple[str, ...]:
    """The names of the mechanisms that can be audited."""
    return (*mechanisms_of(ReleaseMechanism), *WHOLE_RUNS)


def audit_mechanism(
    name: str,
    *,
    epsilon: float = 1.0,
    delta: float = 0.01,
    neighbours: Any = "replace_one",
    runs: int = 2000,
    confidence: float = 0.999,
    seed: int = 0,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit one of this library's mechanisms, with every noise and calibration it has.

    Parameters
    ----------
    name : {"objective", "output", "tddl", "tddl_norm", "tdil", "tdil_jt13", "histogram", "noise_share", \
            "function_release", "pinp"}
    epsilon, delta, neighbours
        What the mechanism is calibrated to. Mechanisms with pure noise promise delta 0. A large delta is easier to
        measure; the theorems are the same.
    runs : int, default=2000
        Runs on each of two neighbours, for the empirical bound.
    confidence : float, default=0.999
        Of each empirical bound.
    seed : int, default=0
        The draws come from a seeded generator; audit ``samplers`` tests the secure one.

    Examples
    --------
    >>> from privlearn.audit import audit_mechanism
    >>> audit_mechanism("output", runs=400).passed
    True
    """
    promise, findings = Guarantee(epsilon, delta, neighbours), list[Finding]()
    settings: Any = {"runs": runs, "confidence": confidence, "seed": seed}
    for case in WHOLE_RUNS[name](promise) if name in WHOLE_RUNS else cases(name, promise):
        if progress is not None:
            progress(case.name)
        found = (
            check_whole_run(case, **settings) if isinstance(case, WholeRun) else audit_case(case, **settings)
        )
        findings += [_named(finding, case) for finding in found]
    return AuditReport.of(f"mechanism {name}", findings)


def cases(name: str, guarantee: Guarantee) -> Iterator[Case]:
    """Every noise and calibration, on a line, in the plane and (where classes add up) for three classes."""
    if name not in audited():
        raise InvalidParameter(f"mechanism must be one of {', '.join(audited())}, not {shown(name)}")
    kind = mechanisms_of(ReleaseMechanism)[name]
    for calibration, noises in kind.combinations.items():
        for noise in noises:
            promise = guarantee if noise == "gaussian" or kind.answers_questions else _pure(guarantee)
            for place, task, points, sampled in _tasks(kind, guarantee.neighbours):
                if kind.explain_refusal(task, noise) is not None:
                    continue
                asked = (
                    {"rounds": 1} if kind.perturbs == "choices" else {}
                )  # whose law is known for one round
                count = None if points is None else len(points)
                mechanism = kind.calibrate(task, promise, noise, calibration, points=count, **asked)
                yield Case(f"{noise}, {calibration}, {place}", mechanism, points, sampled)


def audit_case(case: Case, *, runs: int, confidence: float, seed: int) -> Iterator[Finding]:
    """All checks that apply to one calibrated mechanism."""
    mechanism, promise = case.mechanism, case.mechanism.guarantee
    yield judge_certificate(mechanism.spends(), promise)
    yield from check_replay(mechanism, points=case.points, seed=seed)
    most = 3 if mechanism.perturbs == "objective" else 2
    exact = mechanism.task.problems == 1 and mechanism.task.dimension <= most
    if exact:
        yield from check_curve(mechanism, case.points)
    randomness = SeededRandomness(seed + 1)
    if not mechanism.answers_questions:
        yield _released_noise(mechanism, randomness, runs)
    if case.sampled:
        yield _empirical(case, randomness, runs, confidence)


def released(
    mechanism: Any, records: Records, randomness: Randomness, runs: int, points: Array | None = None
) -> Array:
    """What leaves, one row per run."""
    oracle: Minimises = RecordsOracle(mechanism.task, records, points)
    if mechanism.perturbs != "objective":  # the others solve the same problem in every run
        oracle = Solved(oracle.minimise(None, mechanism.effective_regularization), points)
    return np.array([mechanism.run(oracle, randomness).ravel() for _ in range(runs)])


def _released_noise(mechanism: Any, randomness: Randomness, runs: int) -> Finding:
    """With silent records the release is noise alone; under objective perturbation, -b / (N Lambda)."""
    task, scale, count = mechanism.task, mechanism.noise_scale, runs
    if mechanism.perturbs == "objective":  # which solves in every run
        scale, count = scale / (task.total * mechanism.effective_regularization), max(100, runs // 5)
    silent = Records.of(np.zeros((1, task.dimension // max(task.classes, 1))))
    sample = released(mechanism, silent, randomness, count).reshape(-1, task.problems, task.dimension)
    p_values = {
        f"{what} of problem {k}": p
        for k in range(task.problems)
        for what, p in noise_p_values(mechanism.noise, sample[:, k], scale).items()
    }
    for k in range(1, task.problems):
        p_values[f"noise of problem {k} beside the one before"] = float(
            stats.spearmanr(sample[:, k, 0], sample[:, k - 1, 0]).pvalue
        )
    return judge_p_values("released noise", "silent records", p_values, LEVEL)


def _empirical(case: Case, randomness: Randomness, runs: int, confidence: float) -> Finding:
    mechanism, promise = case.mechanism, case.mechanism.guarantee
    pair = _most_telling_pair(mechanism, case.points)
    one, other = (
        released(mechanism, records, randomness, runs, case.points) for records in (pair.one, pair.other)
    )
    return judge_bound(
        epsilon_bound(one, other, delta=promise.delta, confidence=confidence), promise.epsilon, pair.name
    )


def _most_telling_pair(mechanism: Any, points: Array | None) -> Pair:
    half = mechanism.guarantee.epsilon / 2.0
    return max(worst_pairs(mechanism.task), key=lambda pair: exact_laws(mechanism, pair, points).delta(half))


def _tasks(kind: Any, neighbours: Any) -> Iterator[tuple[str, Task, Array | None, bool]]:
    """Tiny tasks: description, facts, public points, and whether to sample from them."""

    def task(
        loss: Any, total: int, dimension: int, problems: int, regularization: float, classes: int = 0
    ) -> Task:
        return Task(loss, total, dimension, problems, regularization, 1e-10, neighbours, classes=classes)

    if kind.answers_questions:
        points = ANSWERED if kind.perturbs == "answers" else NET
        yield "in the plane", task(HuberHinge(), 4, 2, 1, 1.0), points, True
        return
    yield "on a line, Huber hinge", task(HuberHinge(), 3, 1, 1, 50.0), None, True
    yield "on a line, logistic, weak regularization", task(Logistic(), 3, 1, 1, 0.2), None, False
    yield "on a line, residuals", task(Huber(0.2), 3, 1, 1, 3.0), None, False
    yield "in the plane, Huber hinge", task(HuberHinge(), 5, 2, 1, 50.0), None, False
    yield "three classes, each against the rest", task(HuberHinge(), 20, 3, 3, 1.0), None, False
    yield "three classes, softmax", task(Multinomial(), 3, 3, 1, 0.2, classes=3), None, False


def _pure(guarantee: Guarantee) -> Guarantee:
    return Guarantee(guarantee.epsilon, 0.0, guarantee.neighbours)


def _named(finding: Finding, case: Case | WholeRun) -> Finding:
    return Finding(
        finding.check, finding.status, f"{case.name}: {finding.what}", finding.why, finding.numbers
    )


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
    allowed = task.ball_radius + mechanism.solver_distance + _noise_norm(mechanism, mechanism.noise_scale)
    if mechanism.perturbs == "objective":
        pull = task.loss.lipschitz * task.mass_bound
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
