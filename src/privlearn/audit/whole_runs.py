"""Mechanisms that are not one noisy minimiser, run whole on neighbours: lists of values, shares of noise, sessions.

What one person can do to them is to move a few values by the sensitivity that their theorems state. The audit looks at
the certificate, at what is drawn, and at what many runs tell apart.
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
from privlearn.audit.empirical import Finding, epsilon_bound, judge_bound, judged
from privlearn.audit.replay import RecordingRandomness
from privlearn.audit.samplers import LEVEL, PValues, judge_p_values, noise_p_values
from privlearn.erm.losses import HuberHinge
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.function_release import (
    FACTOR_JITTER,
    VALUE_JITTER,
    FunctionRelease,
    GaussianPaths,
)
from privlearn.mechanisms.session.pinp import PaperPINP, TightPINP
from privlearn.mechanisms.session.task import KernelTask
from privlearn.mechanisms.statistics.discovery import Discovery
from privlearn.mechanisms.statistics.histogram import frequent
from privlearn.mechanisms.task import Task
from privlearn.multiparty.secure_sum.noise_share import NoiseShare
from privlearn.multiparty.secure_sum.session import Cohort
from privlearn.randomness import Randomness, SeededRandomness

QUESTIONS = 3


@dataclass(frozen=True, eq=False)
class WholeRun:
    """A calibrated mechanism, how to run it, and two neighbours to run it on.

    Parameters
    ----------
    name : str
    promise, spends : Guarantee
        What it was calibrated to, and the same recomputed from its constants.
    run : callable
        ``run(data, randomness)`` returns all numbers that leave.
    one, other
        The neighbours, as ``run`` takes them.
    probe
        Data on which the law of what leaves is known.
    law : callable
        ``law(outputs)`` returns p-values of what left on the probe, one row per run, under the theorem's constants.
    draws_follow_answers : bool, default=False
        How much is drawn depends on answers, which leave.
    """

    name: str
    promise: Guarantee
    spends: Guarantee
    run: Callable[[Any, Randomness], Array]
    one: Any
    other: Any
    probe: Any
    law: Callable[[Array], PValues]
    draws_follow_answers: bool = False


def check_whole_run(case: WholeRun, *, runs: int, confidence: float, seed: int) -> Iterator[Finding]:
    """Certificate, replay, the law of the released noise, and an empirical bound."""
    yield judge_certificate(case.spends, case.promise)
    yield _replay(case, seed)
    randomness = SeededRandomness(seed + 1)
    probed, one, other = (
        np.array([case.run(data, randomness) for _ in range(runs)])
        for data in (case.probe, case.one, case.other)
    )
    yield judge_p_values("released noise", "a probe", case.law(probed), LEVEL)
    bound = epsilon_bound(one, other, delta=case.promise.delta, confidence=confidence)
    yield judge_bound(bound, case.promise.epsilon, "moved as far as one person may")


def judge_certificate(spent: Guarantee, promise: Guarantee) -> Finding:
    """What the constants amount to, against what was promised."""
    return judged(
        "certificate",
        "guarantee recomputed from the constants",
        spent.epsilon <= promise.epsilon and spent.delta <= promise.delta,
        "the noise is too small for the promise",
        {"epsilon": spent.epsilon, "delta": spent.delta},
    )


def _replay(case: WholeRun, seed: int) -> Finding:
    one, other = RecordingRandomness(seed), RecordingRandomness(seed)
    shapes = {case.run(case.one, one).shape, case.run(case.other, other).shape}
    return judged(
        "replay",
        "random draws and shape of what leaves, same seed on neighbours",
        len(shapes) == 1 and (case.draws_follow_answers or one.draws == other.draws),
        "they depend on the data",
        {"draws": len(one.draws)},
    )


def _histogram(guarantee: Guarantee) -> Iterator[WholeRun]:
    """Two values that occur about as often as the threshold asks; a person leaves one of them for the other."""
    plan = Discovery.calibrate(guarantee, records=10_000, rows_per_person=1, bounds=0, anchors=0, lists=1)
    counts = np.full(2, round(plan.threshold))
    left, joined = np.array([1, 0]), np.array([0, 1] if guarantee.relation.replaces else [0, 0])

    def listed(data: NDArray[np.int64], randomness: Randomness) -> Array:
        return frequent(data, plan.noise_scale, plan.threshold, randomness).astype(float)

    rare = counts - math.ceil(plan.noise_scale)
    shown = float(stats.norm.sf(plan.threshold - rare[0], scale=plan.noise_scale))

    def law(flags: Array) -> PValues:
        return _occurs("first value", flags[:, 0], shown) | _occurs("both", flags.prod(axis=1), shown**2)

    neighbours = counts + left, counts + joined
    yield WholeRun("a list of values", guarantee, plan.spends(), listed, *neighbours, rare, law)


def _noise_share(guarantee: Guarantee) -> Iterator[WholeRun]:
    """A sum in the plane, as it looks to a coordinator and a party that helps it: only the others' noise is left."""
    cohort, dimension = Cohort(4, dropouts=1, colluding=1), 2
    step = np.array([0.6, 0.8])
    other = -step if guarantee.relation.replaces else 0.0 * step
    sensitivity = float(np.linalg.norm(step - other))
    rho = zcdp_budget(guarantee.epsilon, guarantee.delta) * (1.0 - 1e-9)
    share = NoiseShare.calibrated(rho, sensitivity, cohort, dimension)
    encoding = share.encoding(bound=1.0)

    def opened(vector: Array, randomness: Randomness) -> Array:
        held = [vector, *(np.zeros(dimension) for _ in range(cohort.honest - 1))]
        words = [encoding.encode(each) + share.draw(dimension, randomness) for each in held]
        return encoding.decode(np.sum(words, axis=0, dtype=np.uint64))

    spent = zcdp_delta(share.zcdp(sensitivity, dimension), guarantee.epsilon)
    promise = Guarantee(guarantee.epsilon, spent, guarantee.neighbours)

    def law(sums: Array) -> PValues:
        return noise_p_values("gaussian", sums, share.scale) | _unrelated(sums)

    neighbours = step, other
    yield WholeRun(
        "a sum with shares of noise", guarantee, promise, opened, *neighbours, np.zeros(dimension), law
    )


def _function_release(guarantee: Guarantee) -> Iterator[WholeRun]:
    """A function moved along k(z, .): its values at z, near z and far from it."""
    mechanism = FunctionRelease.calibrate(_facts(guarantee), guarantee)
    points = np.array([0.0, 0.3, 2.0])
    kernel = np.exp(-(np.subtract.outer(points, points) ** 2))

    def answered(values: Array, randomness: Randomness) -> Array:
        steps = GaussianPaths().draw(np.zeros((len(points), 0)), kernel, randomness)
        return np.array(
            [mechanism.answer(value, step.noises[0]) for value, step in zip(values, steps, strict=True)]
        )

    covariance = kernel + (FACTOR_JITTER + VALUE_JITTER) * np.eye(len(points))

    def law(answers: Array) -> PValues:
        white: Array = np.linalg.solve(np.linalg.cholesky(covariance), answers.T).T.astype(float)
        return noise_p_values("gaussian", white, mechanism.noise_scale) | _unrelated(white)

    moved = mechanism.facts.task.minimiser_sensitivity * kernel[0]
    still = np.zeros(len(points))
    yield WholeRun("three answers", guarantee, mechanism.spends(), answered, still, moved, still, law)


def _pinp(guarantee: Guarantee) -> Iterator[WholeRun]:
    """Three values near the threshold, up to the first that is answered; one person moves each as far as may be."""
    for kind in (TightPINP, PaperPINP):
        mechanism: Any = kind.calibrate(_facts(guarantee), guarantee)

        def asked(values: Array, randomness: Randomness, mechanism: Any = mechanism) -> Array:
            threshold, answers = mechanism.draw_threshold(randomness), np.zeros((len(values), 2))
            for place, value in enumerate(values):
                verdict = mechanism.ask(value, 0.0, threshold, randomness)
                if verdict.score is not None:
                    answers[place] = 1.0, verdict.score
                    break
            return answers.ravel()

        values = np.full(QUESTIONS, mechanism.threshold)
        moved = values + mechanism.facts.task.minimiser_sensitivity
        yield WholeRun(
            f"up to an update, {kind.mode}",
            guarantee,
            mechanism.spends(),
            asked,
            values,
            moved,
            *_pinp_law(mechanism),
            draws_follow_answers=True,
        )


def _pinp_law(mechanism: TightPINP | PaperPINP) -> tuple[Array, Callable[[Array], PValues]]:
    """One value below the threshold by the tests' larger noise scale; how often it is answered, and the noise then."""
    if isinstance(mechanism, PaperPINP):  # one Laplace noise for both
        below, shown = mechanism.answer_scale, math.exp(-1.0) / 2.0
    else:  # scales 2 and 4 S / e: P(A - B >= 2 b) of Laplace laws with scales a = 2 b and b
        below = 4.0 * mechanism.facts.answer_sensitivity / mechanism.test_epsilon
        shown = (4.0 * math.exp(-1.0) - math.exp(-2.0)) / 6.0
    value = mechanism.threshold - below

    def law(answers: Array) -> PValues:
        found = _occurs("answered", answers[:, 0], shown)
        noise = answers[answers[:, 0] > 0, 1:2] - value
        if isinstance(
            mechanism, PaperPINP
        ):  # an answered one lies above the threshold: what is beyond has no memory
            beyond = noise.ravel() - below
            return found | {"noise": float(stats.kstest(beyond, stats.expon(scale=below).cdf).pvalue)}
        return found | noise_p_values("gaussian", noise, mechanism.answer_scale)

    return np.array([value]), law


def _occurs(what: str, flags: Array, probability: float) -> PValues:
    return {what: float(stats.binomtest(int(flags.sum()), len(flags), probability).pvalue)}


def _unrelated(columns: Array) -> PValues:
    """Each column beside the one before."""
    return {
        f"number {k} beside the one before": float(stats.spearmanr(columns[:, k], columns[:, k - 1]).pvalue)
        for k in range(1, columns.shape[1])
    }


def _facts(guarantee: Guarantee) -> KernelTask:
    return KernelTask(Task(HuberHinge(), 4, 1, 1, 1.0, 1e-10, guarantee.neighbours), solver_distance=0.0)


WHOLE_RUNS: dict[str, Callable[[Guarantee], Iterator[WholeRun]]] = {
    "histogram": _histogram,
    "noise_share": _noise_share,
    "function_release": _function_release,
    "pinp": _pinp,
}
"""By the name that `audit_mechanism` takes."""
