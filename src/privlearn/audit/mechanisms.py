"""The whole audit of this library's own mechanisms, on tiny tasks where every law can be integrated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privlearn.audit.curves import check_curve
from privlearn.audit.empirical import epsilon_bound, judge_bound
from privlearn.audit.laws import exact_laws
from privlearn.audit.neighbours import Pair, Records, worst_pairs
from privlearn.audit.replay import check_replay, fit_on
from privlearn.audit.report import AuditReport, Finding
from privlearn.audit.samplers import LEVEL, judge_p_values, noise_p_values
from privlearn.audit.whole_runs import WHOLE_RUNS, WholeRun, check_whole_run, judge_certificate
from privlearn.erm import Huber, HuberHinge, Logistic
from privlearn.errors import InvalidParameter, shown
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import DataOracle, ReleaseMechanism, Task, mechanisms_of
from privlearn.mechanisms.mechanism import Minimise
from privlearn.randomness import Randomness, SeededRandomness

Array = NDArray[np.float64]
Progress = Callable[[str], None]
"""Called with the case that comes next."""

NET = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.6]])
ANSWERED = NET[1:]
"""Public points of TDIL and, two of them, of TDDL, whose answers then have a law in the plane."""


@dataclass(frozen=True, eq=False)
class Case:
    """A calibrated mechanism on a tiny task; ``probes`` are the public points of those that answer questions."""

    name: str
    mechanism: Any
    probes: Array | None = None
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
    name : {"objective", "output", "tddl", "tdil", "histogram", "noise_share", "function_release", "pinp"}
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
            for place, task, probes, sampled in _tasks(kind, guarantee.neighbours):
                if kind.explain_refusal(task, noise) is not None:
                    continue
                asked = (
                    {"rounds": 1} if kind.perturbs == "choices" else {}
                )  # whose law is known for one round
                points = None if probes is None else len(probes)
                mechanism = kind.calibrate(task, promise, noise, calibration, points=points, **asked)
                yield Case(f"{noise}, {calibration}, {place}", mechanism, probes, sampled)


def audit_case(case: Case, *, runs: int, confidence: float, seed: int) -> Iterator[Finding]:
    """All checks that apply to one calibrated mechanism."""
    mechanism, promise = case.mechanism, case.mechanism.guarantee
    yield judge_certificate(mechanism.spends(), promise)
    yield from check_replay(mechanism, probes=case.probes, seed=seed)
    exact = mechanism.task.problems == 1 and mechanism.task.dimension <= 2
    if exact:
        yield from check_curve(mechanism, case.probes)
    randomness = SeededRandomness(seed + 1)
    if not mechanism.answers_questions:
        yield _released_noise(mechanism, randomness, runs)
    if case.sampled:
        yield _empirical(case, randomness, runs, confidence)


def released(
    mechanism: Any, records: Records, randomness: Randomness, runs: int, probes: Array | None = None
) -> Array:
    """What leaves, a row a run."""
    fit = fit_on(mechanism.task, records)
    if mechanism.perturbs != "objective":  # the others solve the same problem in every run
        fit = _solved_once(fit, mechanism.effective_regularization)
    return np.array([mechanism.run(DataOracle(fit, probes), randomness).ravel() for _ in range(runs)])


def _solved_once(fit: Minimise, regularization: float) -> Minimise:
    found = fit(None, regularization)
    return lambda linear, regularization: found


def _released_noise(mechanism: Any, randomness: Randomness, runs: int) -> Finding:
    """With silent records the release is noise alone; under objective perturbation, -b / (N Lambda)."""
    task, scale, count = mechanism.task, mechanism.noise_scale, runs
    if mechanism.perturbs == "objective":  # which solves in every run
        scale, count = scale / (task.total * mechanism.effective_regularization), max(100, runs // 5)
    silent = Records.of(np.zeros((1, task.dimension)))
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
    pair = _most_telling_pair(mechanism, case.probes)
    one, other = (
        released(mechanism, records, randomness, runs, case.probes) for records in (pair.one, pair.other)
    )
    return judge_bound(
        epsilon_bound(one, other, delta=promise.delta, confidence=confidence), promise.epsilon, pair.name
    )


def _most_telling_pair(mechanism: Any, probes: Array | None) -> Pair:
    half = mechanism.guarantee.epsilon / 2.0
    return max(worst_pairs(mechanism.task), key=lambda pair: exact_laws(mechanism, pair, probes).delta(half))


def _tasks(kind: Any, neighbours: Any) -> Iterator[tuple[str, Task, Array | None, bool]]:
    """Tiny tasks: description, facts, public points, and whether to sample from them."""

    def task(loss: Any, total: int, dimension: int, problems: int, regularization: float) -> Task:
        return Task(loss, total, dimension, problems, regularization, 1e-10, neighbours)

    if kind.answers_questions:
        points = ANSWERED if kind.perturbs == "answers" else NET
        yield "in the plane", task(HuberHinge(), 4, 2, 1, 1.0), points, True
        return
    yield "on a line, Huber hinge", task(HuberHinge(), 3, 1, 1, 50.0), None, True
    yield "on a line, logistic, weak regularization", task(Logistic(), 3, 1, 1, 0.2), None, False
    yield "on a line, residuals", task(Huber(0.2), 3, 1, 1, 3.0), None, False
    yield "in the plane, Huber hinge", task(HuberHinge(), 5, 2, 1, 50.0), None, False
    yield "three classes", task(HuberHinge(), 20, 3, 3, 1.0), None, False


def _pure(guarantee: Guarantee) -> Guarantee:
    return Guarantee(guarantee.epsilon, 0.0, guarantee.neighbours)


def _named(finding: Finding, case: Case | WholeRun) -> Finding:
    return Finding(
        finding.check, finding.status, f"{case.name}: {finding.what}", finding.why, finding.numbers
    )
