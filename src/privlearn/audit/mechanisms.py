"""Audit a mechanism at its own constants, or a release file at the constants that it states."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from privlearn.arrays import Array
from privlearn.audit.densities import check_curve, exact_densities
from privlearn.audit.empirical import AuditReport, Finding, epsilon_bound, judge, judge_bound
from privlearn.audit.neighbours import Pair, Records, worst_pairs
from privlearn.audit.replay import RecordsOracle, check_replay
from privlearn.audit.samplers import LEVEL, judge_p_values, noise_p_values
from privlearn.audit.whole_runs import WHOLE_RUNS, WholeRun, check_whole_run, judge_certificate
from privlearn.errors import InvalidParameter, VerificationError, preview
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism, mechanisms_of
from privlearn.mechanisms.noise import GAMMA_GRID_BITS, GRID_BITS, grid_step
from privlearn.mechanisms.oracle import MinimiserOracle, PrecomputedMinimisers
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness, SeededRandomness
from privlearn.release.artifact import Release
from privlearn.release.encoders import KernelEncoder
from privlearn.release.verification import verify
from privlearn.solvers.losses import Huber, HuberHinge, Logistic, Multinomial

Progress = Callable[[str], None]
"""Called with the name of the next case."""

NET = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.6]])
ANSWERED = NET[1:]
"""Public points of TDIL and, two of them, of TDDL, so that its answers have a density in the plane."""


@dataclass(frozen=True, eq=False)
class Case:
    """A calibrated mechanism on a tiny task; ``points`` are the public points of mechanisms that use them."""

    name: str
    mechanism: Any
    points: Array | None = None
    sampled: bool = True


def mechanism_names() -> tuple[str, ...]:
    """Return the names of the mechanisms that can be audited."""
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
        The guarantee to calibrate to; mechanisms with pure noise have delta 0. A large delta is easier to measure, and
        the theorems are the same.
    runs : int, default=2000
        Runs on each of two neighbours, for the empirical bound.
    confidence : float, default=0.999
        Confidence of each empirical bound.
    seed : int, default=0
        The draws come from a seeded generator; `audit_samplers` tests the secure one.

    Examples
    --------
    >>> from privlearn.audit import audit_mechanism
    >>> audit_mechanism("output", runs=400).passed
    True
    """
    guarantee, findings = Guarantee(epsilon, delta, neighbours), list[Finding]()
    settings: Any = {"runs": runs, "confidence": confidence, "seed": seed}
    for case in WHOLE_RUNS[name](guarantee) if name in WHOLE_RUNS else cases(name, guarantee):
        if progress is not None:
            progress(case.name)
        results = (
            check_whole_run(case, **settings) if isinstance(case, WholeRun) else audit_case(case, **settings)
        )
        findings += [replace(finding, what=f"{case.name}: {finding.what}") for finding in results]
    return AuditReport.of(f"mechanism {name}", findings)


def cases(name: str, guarantee: Guarantee) -> Iterator[Case]:
    """Yield every noise and calibration, on a line, in the plane and for three classes."""
    if name not in mechanism_names():
        raise InvalidParameter(
            f"mechanism must be one of {', '.join(mechanism_names())}, not {preview(name)}"
        )
    kind = mechanisms_of(ReleaseMechanism)[name]
    for calibration, noises in kind.combinations.items():
        for noise in noises:
            is_pure = noise != "gaussian" and not kind.answers_questions
            target = replace(guarantee, delta=0.0) if is_pure else guarantee
            for description, task, points, sampled in _tasks(kind, guarantee.neighbours):
                if kind.explain_refusal(task, noise) is not None:
                    continue
                # with choices the density is known for one round only
                settings = {"rounds": 1} if kind.perturbs == "choices" else {}
                count = None if points is None else len(points)
                mechanism = kind.calibrate(task, target, noise, calibration, points=count, **settings)
                yield Case(f"{noise}, {calibration}, {description}", mechanism, points, sampled)


def audit_case(case: Case, *, runs: int, confidence: float, seed: int) -> Iterator[Finding]:
    """Yield the findings of all checks that apply to one calibrated mechanism."""
    mechanism, guarantee = case.mechanism, case.mechanism.guarantee
    yield judge_certificate(mechanism.spends(), guarantee)
    yield from check_replay(mechanism, points=case.points, seed=seed)
    max_dimension = 3 if mechanism.perturbs == "objective" else 2
    if mechanism.task.problems == 1 and mechanism.task.dimension <= max_dimension:
        yield from check_curve(mechanism, case.points)
    randomness = SeededRandomness(seed + 1)
    if not mechanism.answers_questions:
        yield _check_released_noise(mechanism, randomness, runs)
    if case.sampled:
        yield _empirical(case, randomness, runs, confidence)


def run_many(
    mechanism: Any, records: Records, randomness: Randomness, runs: int, points: Array | None = None
) -> Array:
    """Return the releases of many runs, one row per run."""
    oracle: MinimiserOracle = RecordsOracle(mechanism.task, records, points)
    if mechanism.perturbs != "objective":  # the others solve the same problem in every run
        oracle = PrecomputedMinimisers(oracle.minimise(None, mechanism.effective_regularization), points)
    return np.array([mechanism.run(oracle, randomness).ravel() for _ in range(runs)])


def _check_released_noise(mechanism: Any, randomness: Randomness, runs: int) -> Finding:
    """Test the noise, which is the whole release on rows of zeros; under objective perturbation, -b / (N Lambda)."""
    task, scale, count = mechanism.task, mechanism.noise_scale, runs
    if mechanism.perturbs == "objective":  # it solves in every run
        scale, count = scale / (task.total * mechanism.effective_regularization), max(100, runs // 5)
    silent = Records.of(np.zeros((1, task.dimension // max(task.classes, 1))))
    sample = run_many(mechanism, silent, randomness, count).reshape(-1, task.problems, task.dimension)
    by_problem = [noise_p_values(mechanism.noise, sample[:, k], scale) for k in range(task.problems)]
    p_values = {
        f"{what} of problem {k}": p for k, found in enumerate(by_problem) for what, p in found.items()
    }
    for k in range(1, task.problems):
        p_values[f"noise of problem {k} against the one before"] = float(
            stats.spearmanr(sample[:, k, 0], sample[:, k - 1, 0]).pvalue
        )
    return judge_p_values("released noise", "silent records", p_values, LEVEL)


def _empirical(case: Case, randomness: Randomness, runs: int, confidence: float) -> Finding:
    mechanism, guarantee = case.mechanism, case.mechanism.guarantee
    pair = _best_pair(mechanism, case.points)
    one, other = (run_many(mechanism, rows, randomness, runs, case.points) for rows in (pair.one, pair.other))
    return judge_bound(
        epsilon_bound(one, other, delta=guarantee.delta, confidence=confidence), guarantee.epsilon, pair.name
    )


def _best_pair(mechanism: Any, points: Array | None) -> Pair:
    half = mechanism.guarantee.epsilon / 2.0
    return max(
        worst_pairs(mechanism.task), key=lambda pair: exact_densities(mechanism, pair, points).delta(half)
    )


def _tasks(kind: Any, neighbours: Any) -> Iterator[tuple[str, Task, Array | None, bool]]:
    """Yield tiny tasks: description, task, public points, and whether to sample many runs."""

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


RARE = 1e-9
"""Probability that correct noise is judged too large."""


def audit_release(path: str | Path) -> AuditReport:
    """Verify a release and check that its coefficients could result from its certificate's noise.

    No file can prove that its holder ran the mechanism on the stated records; that is not checked.
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
        judge(
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
        why = "not checked: they are computed from noisy numbers that are not in the file"
        yield Finding("coefficients", "noted", "grid and size", why)
        return
    vectors = release.model.coefficients.reshape(mechanism.task.problems, mechanism.task.dimension)
    yield _on_grid(mechanism, vectors)
    yield _plausible_size(mechanism, vectors)


def _on_grid(mechanism: Any, vectors: Array) -> Finding:
    """Check that coefficients are multiples of the step of the noise that was added last."""
    scale = getattr(mechanism, "tolerance_noise_scale", mechanism.noise_scale)
    step = grid_step(scale, GAMMA_GRID_BITS if mechanism.noise == "norm_gamma" else GRID_BITS)
    steps = vectors / step
    small = np.abs(steps) < 2.0**53
    if not small.any():
        why = "not checked: they are so large that every floating-point number is a multiple of the step"
        return Finding("coefficients", "noted", "grid", why)
    return judge(
        "coefficients",
        "multiples of the noise's public grid step",
        bool(np.array_equal(steps[small], np.rint(steps[small]))),
        "they are not from the certificate's sampler: noise is missing, or was added in floating point",
        {"step": step, "checked": int(np.count_nonzero(small))},
    )


def _plausible_size(mechanism: Any, vectors: Array) -> Finding:
    """Check that coefficients are not longer than the longest minimiser plus a rare quantile of the noise."""
    task, strength = mechanism.task, mechanism.effective_regularization
    allowed = task.ball_radius + mechanism.solver_distance + _noise_norm(mechanism, mechanism.noise_scale)
    if mechanism.perturbs == "objective":
        pull = task.loss.lipschitz * task.mass_bound
        pull += _noise_norm(mechanism, mechanism.noise_scale) / task.total
        allowed = pull / strength + _noise_norm(mechanism, mechanism.tolerance_noise_scale)
    norm = float(np.max(np.linalg.norm(vectors, axis=1)))
    return judge(
        "coefficients",
        "no longer than the longest minimiser and the noise together",
        norm <= allowed and math.isfinite(norm),
        "no records with noise of the stated scale lead to these coefficients",
        {"norm": norm, "allowed": allowed},
    )


def _noise_norm(mechanism: Any, scale: float) -> float:
    """Return a bound of the norm of a problem's noise that holds except with probability `RARE`."""
    d = mechanism.task.dimension
    if mechanism.noise == "gaussian":
        return scale * math.sqrt(float(stats.chi2.isf(RARE, d)))
    return scale * float(stats.gamma.isf(RARE, d))  # for a Laplace vector it even bounds the sum of moduli
