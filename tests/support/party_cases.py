"""Small tasks, parties and sums for the tests of the multiparty algorithms."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from privlearn.arrays import Array
from privlearn.estimators import ClassTargets, MemoryOracle, TrainingRows
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import LocalAggregation, NoisyDescent, PrivateSGD, SummedMechanism, Task
from privlearn.mechanisms.summed import NoisySum, Question
from privlearn.parties import Party
from privlearn.solvers import HuberHinge, Problem, minimise
from tests.support.oracles import Sums

EPSILON, DELTA = 1.3, 1e-4
NOWHERE = Guarantee(math.inf)


def task_of(**facts: Any) -> Task:
    common: dict[str, Any] = {
        "loss": HuberHinge(),
        "total": 1000,
        "dimension": 3,
        "problems": 1,
        "regularization": 0.05,
        "tolerance": 1e-10,
        "neighbours": "replace_one",
    }
    return Task(**common | facts)


def descent(
    task: Task, promise: Guarantee | None = None, calibration: str = "plain", **settings: Any
) -> NoisyDescent:
    promise = Guarantee(EPSILON, DELTA, task.neighbours) if promise is None else promise
    settings = {"parties": 3, "shares": 3} | settings
    return NoisyDescent.calibrate(task, promise, "gaussian", calibration, **settings)


def aggregation(
    task: Task, calibration: str, smallest: int, promise: Guarantee | None = None, **settings: Any
) -> LocalAggregation:
    promise = Guarantee(EPSILON, DELTA, task.neighbours) if promise is None else promise
    noise = "gaussian" if promise.delta else "norm_gamma"
    settings = {"parties": 3, "shares": 3, "min_party_records": smallest} | settings
    return LocalAggregation.calibrate(task, promise, noise, calibration, **settings)


def psgd(task: Task, **settings: Any) -> PrivateSGD:
    settings = {"parties": 3, "shares": 3} | settings
    promise = Guarantee(EPSILON, DELTA, task.neighbours)
    return PrivateSGD.calibrate(task, promise, "norm_gamma", "ra12", **settings)


def random_rows(count: int, dimension: int, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, dimension))
    rows *= 0.999 * random.random((count, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    signs = np.where(rows @ np.ones(dimension) + 0.3 * random.normal(size=count) > 0, 1.0, -1.0)
    return rows, signs


def parties_of(
    mechanism: SummedMechanism, rows: Array, signs: Array, sizes: Sequence[int], missing: int | None = None
) -> list[Party]:
    """Consecutive rows to each party, weighted as the mechanism wants it; one that is missing is still expected."""
    uniform, task, total = mechanism.calibration == "uniform", mechanism.task, sum(sizes)
    parties = []
    for places in np.split(np.arange(total), np.cumsum(sizes)[:-1]):
        here = places[places != missing]
        held = dataclasses.replace(training_rows(rows[here], signs[here]), total=len(places))
        weight = 1.0 / len(sizes) if uniform else len(places) / total
        parties.append(Party(task, MemoryOracle(held, task), weight))
    return parties


def training_rows(rows: Array, signs: Array) -> TrainingRows:
    """Two classes, -1 and +1."""
    targets = ClassTargets((signs > 0).astype(np.int64), np.array([-1, 1]))
    return TrainingRows(rows, None, targets, len(rows))


def exact_sum(parties: Sequence[Party]) -> Sums:
    """Return the sum without any noise."""

    def ask(question: Question) -> NoisySum:
        vector = np.sum([party.answer(question) for party in parties], axis=0)
        return NoisySum(vector, sum(party.total for party in parties), len(parties))

    return Sums(ask)


def pooled_minimiser(task: Task, rows: Array, signs: Array, linear: Array | None = None) -> Array:
    problem = Problem(rows, signs, task.loss, task.regularization, len(rows), linear=linear)  # type: ignore[arg-type]
    return minimise(problem, tolerance=1e-11).coefficients


def hockey_stick(epsilon: float, ratio: float) -> float:
    """Return the divergence of two normals at this distance, independent of the package's formula."""
    return float(
        norm.cdf(ratio / 2 - epsilon / ratio) - math.exp(epsilon) * norm.cdf(-ratio / 2 - epsilon / ratio)
    )


def max_ratio(epsilon: float = EPSILON, delta: float = DELTA) -> float:
    return float(brentq(lambda ratio: hockey_stick(epsilon, ratio) - delta, 1e-3, 50.0, xtol=1e-13))
