"""Audits of complete runs of other mechanisms on neighbours: lists of values, shares of noise, sessions.

One person can move a few values by the sensitivity that the mechanism's theorem states. The audit checks the
certificate, the random draws, the distribution of the noise, and an empirical bound from many runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privlearn.accounting import zcdp_budget, zcdp_delta
from privlearn.arrays import Array
from privlearn.audit.empirical import Finding, epsilon_bound, judge, judge_bound
from privlearn.audit.replay import RecordingRandomness
from privlearn.audit.samplers import LEVEL, PValues, judge_p_values, noise_p_values
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.function_release import (
    FACTOR_JITTER,
    VALUE_JITTER,
    FunctionRelease,
    GaussianPaths,
)
from privlearn.mechanisms.session.pinp import PaperPINP, TightPINP
from privlearn.mechanisms.session.task import KernelTask
from privlearn.mechanisms.statistics.discovery import Discovery, frequent
from privlearn.mechanisms.task import Task
from privlearn.parties.secure_sum.noise_share import NoiseShare
from privlearn.parties.secure_sum.session import Cohort
from privlearn.randomness import Randomness, SeededRandomness
from privlearn.solvers.losses import HuberHinge

QUESTIONS = 3


@dataclass(frozen=True, eq=False)
class WholeRun:
    """A calibrated mechanism, how to run it, and two neighbours to run it on.

    Parameters
    ----------
    name : str
    guarantee, spends : Guarantee
        The guarantee that it was calibrated to, and the one recomputed from its constants.
    run : callable
        ``run(data, randomness)`` returns all released numbers.
    one, other
        The neighbours, as arguments of ``run``.
    probe
        Data on which the distribution of the release is known.
    p_values : callable
        ``p_values(outputs)`` tests the outputs on the probe, one row per run, under the theorem's constants.
    draws_follow_answers : bool, default=False
        Whether the number of draws depends on answers, which are released.
    """

    name: str
    guarantee: Guarantee
    spends: Guarantee
    run: Callable[[Any, Randomness], Array]
    one: Any
    other: Any
    probe: Any
    p_values: Callable[[Array], PValues]
    draws_follow_answers: bool = False


def check_whole_run(case: WholeRun, *, runs: int, confidence: float, seed: int) -> Iterator[Finding]:
    """Yield findings about certificate, replay, distribution of the released noise, and an empirical bound."""
    yield judge_certificate(case.spends, case.guarantee)
    yield _replay(case, seed)
    randomness = SeededRandomness(seed + 1)
    outputs, one, other = (
        np.array([case.run(data, randomness) for _ in range(runs)])
        for data in (case.probe, case.one, case.other)
    )
    yield judge_p_values("released noise", "a probe", case.p_values(outputs), LEVEL)
    bound = epsilon_bound(one, other, delta=case.guarantee.delta, confidence=confidence)
    yield judge_bound(bound, case.guarantee.epsilon, "moved as far as one person may")


def judge_certificate(spent: Guarantee, guarantee: Guarantee) -> Finding:
    """Compare the guarantee that follows from the constants with the claimed one."""
    return judge(
        "certificate",
        "guarantee recomputed from the constants",
        spent.epsilon <= guarantee.epsilon and spent.delta <= guarantee.delta,
        "the noise is too small for the guarantee",
        {"epsilon": spent.epsilon, "delta": spent.delta},
    )


def _replay(case: WholeRun, seed: int) -> Finding:
    one, other = RecordingRandomness(seed), RecordingRandomness(seed)
    shapes = {case.run(case.one, one).shape, case.run(case.other, other).shape}
    return judge(
        "replay",
        "random draws and shape of the release, same seed on neighbours",
        len(shapes) == 1 and (case.draws_follow_answers or one.draws == other.draws),
        "they depend on the data",
        {"draws": len(one.draws)},
    )


def _histogram(guarantee: Guarantee) -> Iterator[WholeRun]:
    """Yield a list of two values that occur about as often as the threshold; a person moves from one to the other."""
    mechanism = Discovery.calibrate(
        guarantee, records=10_000, rows_per_person=1, bounds=0, anchors=0, lists=1
    )
    counts = np.full(2, round(mechanism.threshold))
    left, joined = np.array([1, 0]), np.array([0, 1] if guarantee.relation.replaces else [0, 0])

    def select(data: NDArray[np.int64], randomness: Randomness) -> Array:
        return frequent(data, mechanism.noise_scale, mechanism.threshold, randomness).astype(float)

    rare = counts - math.ceil(mechanism.noise_scale)
    chance = float(stats.norm.sf(mechanism.threshold - rare[0], scale=mechanism.noise_scale))

    def p_values(flags: Array) -> PValues:
        return _occurs("first value", flags[:, 0], chance) | _occurs("both", flags.prod(axis=1), chance**2)

    neighbours = counts + left, counts + joined
    yield WholeRun("a list of values", guarantee, mechanism.spends(), select, *neighbours, rare, p_values)


def _noise_share(guarantee: Guarantee) -> Iterator[WholeRun]:
    """Yield a sum in the plane as seen by a coordinator with one colluding party, whose noise does not count."""
    cohort, dimension = Cohort(4, dropouts=1, colluding=1), 2
    step = np.array([0.6, 0.8])
    other = -step if guarantee.relation.replaces else 0.0 * step
    sensitivity = float(np.linalg.norm(step - other))
    rho = zcdp_budget(guarantee.epsilon, guarantee.delta) * (1.0 - 1e-9)
    share = NoiseShare.calibrate(rho, sensitivity, cohort, dimension)
    encoding = share.encoding(bound=1.0)

    def open_sum(vector: Array, randomness: Randomness) -> Array:
        vectors = [vector, *(np.zeros(dimension) for _ in range(cohort.honest - 1))]
        words = [encoding.encode(each) + share.draw(dimension, randomness) for each in vectors]
        return encoding.decode(np.sum(words, axis=0, dtype=np.uint64))

    spent = zcdp_delta(share.zcdp(sensitivity, dimension), guarantee.epsilon)
    recomputed = Guarantee(guarantee.epsilon, spent, guarantee.neighbours)

    def p_values(sums: Array) -> PValues:
        return noise_p_values("gaussian", sums, share.scale) | _correlations(sums)

    neighbours = step, other
    shares, centre = "a sum with shares of noise", np.zeros(dimension)
    yield WholeRun(shares, guarantee, recomputed, open_sum, *neighbours, centre, p_values)


def _function_release(guarantee: Guarantee) -> Iterator[WholeRun]:
    """Yield a function that a person moves along k(z, .): its values at z, near z and far from z."""
    mechanism = FunctionRelease.calibrate(_kernel_task(guarantee), guarantee)
    points = np.array([0.0, 0.3, 2.0])
    kernel = np.exp(-(np.subtract.outer(points, points) ** 2))

    def answer(values: Array, randomness: Randomness) -> Array:
        steps = GaussianPaths().draw(np.zeros((len(points), 0)), kernel, randomness)
        return np.array([mechanism.answer(x, step.noises[0]) for x, step in zip(values, steps, strict=True)])

    covariance = kernel + (FACTOR_JITTER + VALUE_JITTER) * np.eye(len(points))

    def p_values(answers: Array) -> PValues:
        white: Array = np.linalg.solve(np.linalg.cholesky(covariance), answers.T).T.astype(float)
        return noise_p_values("gaussian", white, mechanism.noise_scale) | _correlations(white)

    moved = mechanism.kernel_task.task.minimiser_sensitivity * kernel[0]
    still = np.zeros(len(points))
    yield WholeRun("three answers", guarantee, mechanism.spends(), answer, still, moved, still, p_values)


def _pinp(guarantee: Guarantee) -> Iterator[WholeRun]:
    """Yield three values near the threshold, up to the first answer; a person moves each by the sensitivity."""
    for kind in (TightPINP, PaperPINP):
        mechanism: Any = kind.calibrate(_kernel_task(guarantee), guarantee)

        def ask_all(values: Array, randomness: Randomness, mechanism: Any = mechanism) -> Array:
            threshold, answers = mechanism.draw_threshold(randomness), np.zeros((len(values), 2))
            for index, value in enumerate(values):
                verdict = mechanism.ask(value, 0.0, threshold, randomness)
                if verdict.score is not None:
                    answers[index] = 1.0, verdict.score
                    break
            return answers.ravel()

        values = np.full(QUESTIONS, mechanism.threshold)
        moved = values + mechanism.kernel_task.task.minimiser_sensitivity
        yield WholeRun(
            f"up to an update, {kind.mode}",
            guarantee,
            mechanism.spends(),
            ask_all,
            values,
            moved,
            *_pinp_probe(mechanism),
            draws_follow_answers=True,
        )


def _pinp_probe(mechanism: TightPINP | PaperPINP) -> tuple[Array, Callable[[Array], PValues]]:
    """Return a value below the threshold, and tests of how often it is answered and of the answer's noise."""
    if isinstance(mechanism, PaperPINP):  # one Laplace noise for both
        below, chance = mechanism.answer_scale, math.exp(-1.0) / 2.0
    else:  # scales 2 and 4 S / e: P(A - B >= 2 b) of Laplace variables with scales a = 2 b and b
        below = 4.0 * mechanism.kernel_task.answer_sensitivity / mechanism.test_epsilon
        chance = (4.0 * math.exp(-1.0) - math.exp(-2.0)) / 6.0
    value = mechanism.threshold - below

    def p_values(answers: Array) -> PValues:
        tests = _occurs("answered", answers[:, 0], chance)
        noise = answers[answers[:, 0] > 0, 1:2] - value
        if isinstance(mechanism, PaperPINP):
            # an answered value lies above the threshold, and the excess is memoryless
            beyond = noise.ravel() - below
            return tests | {"noise": float(stats.kstest(beyond, stats.expon(scale=below).cdf).pvalue)}
        return tests | noise_p_values("gaussian", noise, mechanism.answer_scale)

    return np.array([value]), p_values


def _occurs(what: str, flags: Array, probability: float) -> PValues:
    return {what: float(stats.binomtest(int(flags.sum()), len(flags), probability).pvalue)}


def _correlations(columns: Array) -> PValues:
    """Return p-values of the correlation of each column with the one before."""
    return {
        f"number {k} against the one before": float(stats.spearmanr(columns[:, k], columns[:, k - 1]).pvalue)
        for k in range(1, columns.shape[1])
    }


def _kernel_task(guarantee: Guarantee) -> KernelTask:
    return KernelTask(Task(HuberHinge(), 4, 1, 1, 1.0, 1e-10, guarantee.neighbours), solver_distance=0.0)


WHOLE_RUNS: dict[str, Callable[[Guarantee], Iterator[WholeRun]]] = {
    "histogram": _histogram,
    "noise_share": _noise_share,
    "function_release": _function_release,
    "pinp": _pinp,
}
"""Complete runs by the name that `audit_mechanism` takes."""
