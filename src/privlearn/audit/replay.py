"""Replay a mechanism with recorded randomness: does it draw what its theorem requires, independently of the data?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.audit.densities import gradient_sum, log_jacobian, solve
from privlearn.audit.empirical import Finding, judge
from privlearn.audit.neighbours import Records, worst_pairs
from privlearn.mechanisms.noise import FIRST_BITS, grid_step, uniforms_of_norm_gamma
from privlearn.mechanisms.oracle import MinimiserOracle
from privlearn.mechanisms.task import Task
from privlearn.randomness import Integers, SeededRandomness

Draw = tuple[Any, ...]


@dataclass
class RecordingRandomness:
    """A seeded source that records each call with its parameters, not its result, in ``draws``."""

    seed: int
    draws: list[Draw] = field(default_factory=list)

    description = SeededRandomness.description
    secure = False

    def __post_init__(self) -> None:
        self._source = SeededRandomness(self.seed)

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        self.draws.append(("discrete_gaussian", scale, size))
        return self._source.discrete_gaussian(scale, size)

    def discrete_laplace(self, scale: float, size: int) -> Integers:
        self.draws.append(("discrete_laplace", scale, size))
        return self._source.discrete_laplace(scale, size)

    def bits(self, count: int) -> int:
        self.draws.append(("bits", count))
        return self._source.bits(count)


@dataclass
class RecordingOracle:
    """An oracle that records its queries and results. Implements `MinimiserOracle`."""

    oracle: MinimiserOracle
    queries: list[tuple[Any, float]] = field(default_factory=list)
    results: list[Array] = field(default_factory=list)

    @property
    def points(self) -> Array | None:
        """Public points of mechanisms that use them."""
        return self.oracle.points

    def minimise(self, linear: Array | None, regularization: float) -> Array:
        """Record the query and its result."""
        self.queries.append((None if linear is None else np.array(linear), regularization))
        self.results.append(self.oracle.minimise(linear, regularization))
        return self.results[-1]

    def has_same_queries(self, other: RecordingOracle) -> bool:
        """Return whether both oracles were asked the same."""
        return len(self.queries) == len(other.queries) and all(
            mine[1] == theirs[1] and np.array_equal(mine[0], theirs[0])
            for mine, theirs in zip(self.queries, other.queries, strict=True)
        )


CHECK = "replay"
ROUNDING = 1e-9
"""Relative error that floating point may add to a distance that theory bounds."""

NOISE_GRID = 2.0**-36
"""Maximum difference of noise added to two values by the same draws, relative to its scale: grid and rounding."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run: its data, its random draws, its solver's queries and results, and its output."""

    records: Records
    draws: list[Any]
    oracle: RecordingOracle
    released: Array


@dataclass(frozen=True, eq=False)
class RecordsOracle:
    """A few records as a `MinimiserOracle`; all problems but the first see the opposite label.

    ``points`` are the public points of mechanisms that use them.
    """

    task: Task
    records: Records
    points: Array | None = None

    def minimise(self, linear: Array | None, regularization: float) -> Array:
        """Return the minimisers, one row per problem."""
        signs = [1.0] + [-1.0] * (self.task.problems - 1)
        signed = [Records(sign * self.records.rows, self.records.offsets) for sign in signs]
        terms = [None] * len(signed) if linear is None else linear
        return np.array(
            [solve(self.task, data, regularization, term) for data, term in zip(signed, terms, strict=True)]
        )


def run_recorded(mechanism: Any, records: Records, seed: int, points: Array | None) -> Run:
    """Run a mechanism once, with its draws and queries recorded."""
    randomness, oracle = (
        RecordingRandomness(seed),
        RecordingOracle(RecordsOracle(mechanism.task, records, points)),
    )
    return Run(records, randomness.draws, oracle, mechanism.run(oracle, randomness))


def check_replay(mechanism: Any, *, points: Array | None = None, seed: int = 0) -> Iterator[Finding]:
    """Replay the worst neighbours; yield a finding for each thing that must not depend, or only little, on a record."""
    runs = [
        tuple(run_recorded(mechanism, records, seed, points) for records in (pair.one, pair.other))
        for pair in worst_pairs(mechanism.task)
    ]
    yield _same_draws(mechanism, runs)
    yield _enough_draws(mechanism, runs[0][0])
    yield judge(
        CHECK,
        f"queries to the solver, {len(runs)} pairs of neighbours",
        all(one.oracle.has_same_queries(other.oracle) for one, other in runs),
        "perturbation or regularization depend on the data",
    )
    yield judge(
        CHECK,
        "shape and type of the release",
        all(_form(one.released) == _form(other.released) for one, other in runs),
        "the form of the release depends on the data",
    )
    yield from _check_distances(mechanism, runs)


def _same_draws(mechanism: Any, runs: list[Any]) -> Finding:
    what = f"random draws: kinds, scales and order, {len(runs)} pairs of neighbours"
    if all(one.draws == other.draws for one, other in runs):
        return Finding(CHECK, "passed", what, numbers={"draws": len(runs[0][0].draws)})
    if mechanism.perturbs == "choices":
        why = "the number of draws depends on the data: its sampler rejects. Only its running time shows it"
        return Finding(CHECK, "noted", what, why)
    return Finding(CHECK, "failed", what, "scale, number or order of random draws depend on the data")


def _enough_draws(mechanism: Any, run: Run) -> Finding:
    """Check the number of noise draws and their scales; norm-Gamma noise draws uniform reals instead of integers."""
    counts: Counter[tuple[str, float]] = Counter()
    for kind, *parameters in run.draws:
        if kind != "bits":
            counts[kind, parameters[0]] += parameters[1]
        elif mechanism.noise == "norm_gamma":  # in other mechanisms bits make choices and are not noise
            counts[kind, parameters[0]] += 1
    return judge(
        CHECK,
        "number and scales of noise draws against the certificate",
        counts == _expected_draws(mechanism),
        "noise is missing, shared between numbers, or not of the scale that the certificate states",
        {"draws": sum(counts.values())},
    )


def _expected_draws(mechanism: Any) -> Counter[tuple[str, float]]:
    task = mechanism.task
    size = task.problems * mechanism.noisy_numbers
    expected: Counter[tuple[str, float]] = Counter()
    for scale in mechanism.noise_scales:
        if mechanism.noise == "norm_gamma":
            expected["bits", FIRST_BITS] += task.problems * uniforms_of_norm_gamma(task.dimension)
        else:
            expected[f"discrete_{mechanism.noise}", scale / grid_step(scale)] += size
    return expected


def _form(released: Any) -> tuple[Any, ...]:
    return type(released), np.shape(released), np.asarray(released).dtype


def _check_distances(mechanism: Any, runs: list[Any]) -> Iterator[Finding]:
    """Yield findings that compare each intermediate value with what the certificate's constants allow."""
    constants, task = mechanism.constants(), mechanism.task
    results = [(np.array(one.oracle.results), np.array(other.oracle.results)) for one, other in runs]
    distance = max(float(np.max(np.linalg.norm(one - other, axis=-1))) for one, other in results)
    if "sensitivity" in constants:
        yield _check_bound("minimiser", distance, constants["sensitivity"], "how far one person can move it")
    else:
        kappa = task.total * mechanism.effective_regularization
        allowed = constants["gradient_sensitivity"] / kappa + 2.0 * constants["solver_distance"]
        yield _check_bound("perturbed minimiser", distance, allowed, "gradient sensitivity over N Lambda")
        points = _test_points(task.dimension)
        yield _check_bound(
            "sum of gradients",
            max(float(_gradients_apart(task, one, other, points)) for one, other in runs),
            constants["gradient_sensitivity"],
            "how far one person can move it, at any w",
        )
        slack = mechanism.slack
        apart = max(_jacobians_apart(mechanism, one, other, points) for one, other in runs)
        yield _check_bound("log-determinant of the Jacobian", apart, slack, "the slack")
    if not mechanism.answers_questions:
        yield _noise_is_only_added(mechanism, runs)


def _check_bound(what: str, moved: float, allowed: float, meaning: str) -> Finding:
    return judge(
        CHECK,
        what,
        moved <= allowed * (1.0 + ROUNDING),
        f"one person moves it further than the certificate allows ({meaning})",
        {"moved": moved, "allowed": allowed},
    )


def _test_points(dimension: int) -> Array:
    """Return the points at which derivatives are compared: on the first axis and on the diagonal."""
    sizes = np.concatenate([-np.geomspace(30.0, 0.1, 12), [0.0], np.geomspace(0.1, 30.0, 12)])[:, np.newaxis]
    diagonal = np.full(dimension, dimension**-0.5)
    return np.vstack([sizes * np.eye(dimension)[0], sizes * diagonal])


def _gradients_apart(task: Any, one: Run, other: Run, points: Array) -> float:
    apart = gradient_sum(task, one.records, points) - gradient_sum(task, other.records, points)
    return float(np.max(np.linalg.norm(apart, axis=1)))


def _jacobians_apart(mechanism: Any, one: Run, other: Run, points: Array) -> float:
    first, second = (
        log_jacobian(mechanism.task, run.records, points, mechanism.effective_regularization)
        for run in (one, other)
    )
    return float(np.max(np.abs(first - second)))


def _noise_is_only_added(mechanism: Any, runs: list[Any]) -> Finding:
    """Check that release minus minimiser, the last noise, is the same on both sides, up to the grid of rounding."""
    scale = mechanism.noise_scales[-1]
    apart = max(
        float(
            np.max(
                np.abs((one.released - one.oracle.results[-1]) - (other.released - other.oracle.results[-1]))
            )
        )
        for one, other in runs
    )
    size = max(float(np.max(np.abs(run.released))) for pair in runs for run in pair)
    allowed = NOISE_GRID * scale + 2.0**-50 * size
    return judge(
        CHECK,
        "added noise, the same draws on both sides",
        apart <= allowed and math.isfinite(apart),
        "the noise that is added depends on the data",
        {"apart": apart, "allowed": allowed},
    )
