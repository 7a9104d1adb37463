"""JT13 Figure 2 a: TDDL's accuracy against epsilon on CoverType, kernel (<x, y> + 1)^3, 500,000 training rows.

The paper states the kernel, the number of rows, LibSVM's C = 0.001, five runs, and 72.3 % for its non-private learner.
It does not state delta, the number of public points, nor the encoding; `DELTA`, `POINTS` and `covertype` have what is
used here. LibSVM's exact machine on 500,000 rows is replaced by the one over landmark features of the public points,
and its hinge by the Huber hinge (h = 0.5) for every curve: noise in the objective needs a loss with bounded curvature.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from privlearn.data.datasets import load_covertype
from privlearn.estimators.svc import PrivateSVC
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.oracle import PrecomputedMinimisers
from privlearn.mechanisms.release.tddl import TestDataDependentLearner
from privlearn.mechanisms.task import Task
from privlearn.papers import reporting
from privlearn.papers.reporting import tally
from privlearn.randomness import SeededRandomness
from privlearn.release import html
from privlearn.solvers.losses import loss_from_name

EPSILONS = (0.01, 0.05, 0.1, 0.5, 1.0)
DELTA = 1e-6
POINTS = 300
DRAWS = 5
PAPERS_PLAIN = 0.277
TRAIN = 500_000
# Public ranges of the ten measurements, from the data's documentation (metres, degrees, 0 to 255 shade).
LOWER = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0])
UPPER = np.array([3858, 360, 66, 1397, 601, 7117, 255, 255, 255, 7173])

PLAIN, TDDL, FUNCTION, DEFAULT = "non-private", "TDDL", "function release", "default"
_LOOKS = {
    "non-private, printed": reporting.Look(reporting.BLACK, "", ":"),
    PLAIN: reporting.Look(reporting.BLACK, "", "--"),
    TDDL: reporting.Look(html.ORANGE, "s"),
    FUNCTION: reporting.Look(html.SKY, "D"),
    DEFAULT: reporting.Look(html.GREEN, "P", wide=True),
}


Split = tuple[Any, Any, Any, Any, Any]


def covertype(seed: int, train: int = TRAIN, points: int = POINTS) -> Split:
    """Return training rows and labels (class 2 or not), public points, test rows and labels."""
    features, cover = load_covertype()
    features[:, :10] = 2 * (features[:, :10] - LOWER) / (UPPER - LOWER) - 1
    labels = (cover == 2).astype(int)
    order = np.random.default_rng(seed).permutation(len(labels))
    first, public, rest = np.split(order, [train, train + points])
    return features[first], labels[first], features[public], features[rest], labels[rest]


def jt13_figure2a(quick: bool, seed: int, track: reporting.Track = iter) -> reporting.Result:
    """Reproduce the figure: three splits, with five noise draws each where a draw needs no new solution."""
    train, points, splits = (10_000, 50, 1) if quick else (TRAIN, POINTS, 3)
    errors: dict[tuple[str, float | None], list[float]] = defaultdict(list)
    for split in range(splits):
        for name, epsilon, error in _errors(seed + split, train, points, track):
            errors[name, epsilon].append(error)
    table = tuple(_row(name, epsilon, values) for (name, epsilon), values in errors.items())
    title = f"JT13 Figure 2 a: CoverType, cubic kernel, Huber hinge, {train:,} rows, {points} public points"
    return reporting.Result(
        title, table, lambda matplotlib: _draw(matplotlib, title, table), _agreement(table, train, points)
    )


def paper_regularization(rows: int) -> float:
    """Return Lambda = 1/(n C) for LibSVM's C = 0.001, divided by 8 since the kernel is scaled from at most 8 to 1."""
    return 1.0 / (rows * 0.001) / 8.0


def _errors(
    seed: int, train: int, points: int, track: reporting.Track
) -> Iterator[tuple[str, float | None, float]]:
    """Yield (algorithm, epsilon, test error)."""
    data = covertype(seed, train, points)
    yield from _kernel_errors(data, seed, track)
    yield from _default_errors(data, seed, track)


def _kernel_errors(
    data: Split, seed: int, track: reporting.Track
) -> Iterator[tuple[str, float | None, float]]:
    """Yield errors of mechanisms in the kernel's own space, where one solution serves every draw."""
    settings = {"regularization": paper_regularization(len(data[1]))}
    work, error = _prepare(data, "tddl", **settings)
    minimiser = work.run(work.calibrate(Guarantee(math.inf)), SeededRandomness(np.random.default_rng(seed)))
    yield PLAIN, None, error(minimiser)
    release = work.of(_estimator(data, "function_release", **settings))
    with_points = PrecomputedMinimisers(minimiser, work.rows.points)
    without_points = PrecomputedMinimisers(minimiser)
    for epsilon in track(EPSILONS):
        guarantee = Guarantee(epsilon, DELTA)
        tddl: Any = work.calibrate(guarantee)
        for draw in range(DRAWS):
            randomness = SeededRandomness(np.random.default_rng([seed, draw]))
            yield TDDL, epsilon, error(tddl.run(with_points, randomness))
            yield FUNCTION, epsilon, error(release.calibrate(guarantee).run(without_points, randomness))


def _default_errors(data: Split, seed: int, track: reporting.Track) -> Iterator[tuple[str, float, float]]:
    """Yield errors of the default, whose rows use their norm."""
    work, error = _prepare(data, "auto")
    for epsilon in track(EPSILONS):
        randomness = SeededRandomness(np.random.default_rng([seed, DRAWS]))
        yield DEFAULT, epsilon, error(work.run(work.calibrate(Guarantee(epsilon, DELTA)), randomness))


def _prepare(data: Split, mechanism: str, **settings: Any) -> tuple[Any, Callable[[Any], float]]:
    """Return the prepared training rows, and a function from coefficients to their test error."""
    rows, labels, _, test, truth = data
    estimator = _estimator(data, mechanism, **settings)
    lifted = estimator.prepare(test, truth, private=True).rows.features

    def error(coefficients: Any) -> float:
        return float(np.mean((lifted @ coefficients[0] > 0) != (truth == 1)))

    return estimator.prepare(rows, labels, private=True), error


def _estimator(data: Split, mechanism: str, **settings: Any) -> PrivateSVC:
    return PrivateSVC(
        kernel="polynomial",
        public_points=data[2],
        norm_bound=1.0,
        classes=[0, 1],
        fit_intercept=False,
        delta=DELTA,
        mechanism=mechanism,
        **settings,
    )


def _row(name: str, epsilon: float | None, errors: list[float]) -> reporting.Row:
    means = reporting.mean_error(errors)
    return {"algorithm": name, "epsilon": epsilon, "accuracy": 1.0 - means["error"], **means}


def _draw(matplotlib: Any, title: str, table: tuple[reporting.Row, ...]) -> Any:
    printed = {"algorithm": "non-private, printed", "epsilon": None, "accuracy": 1.0 - PAPERS_PLAIN}
    limits: dict[str, Any] = {"log_x": True, "bottom": 0.4, "top": 0.85}
    panel = reporting.Panel(
        "", "epsilon", [*table, printed], "epsilon", up="accuracy", value="accuracy", **limits
    )
    return reporting.draw_panels(matplotlib, title, [[panel]], _LOOKS)


def tddl_noise(train: int, points: int, epsilon: float) -> float:
    """Return the scale of the Laplace noise in each of TDDL's answers."""
    task = Task(
        loss_from_name("huber_hinge"), train, points, 1, paper_regularization(train), 1e-10, "replace_one"
    )
    guarantee = Guarantee(epsilon, DELTA)
    learner = TestDataDependentLearner.calibrate(task, guarantee, "laplace", "jt13", points=points)
    return learner.noise_scale


def _agreement(table: tuple[reporting.Row, ...], train: int, points: int) -> str:
    means = {(row["algorithm"], row["epsilon"]): row["error"] for row in table}
    plain = means[PLAIN, None]
    near = [means[TDDL, epsilon] < plain + 0.02 for epsilon in EPSILONS if epsilon >= 0.1]
    ours = [means[DEFAULT, epsilon] < plain + 0.02 for epsilon in EPSILONS if epsilon >= 0.1]
    ahead = [means[DEFAULT, epsilon] < means[TDDL, epsilon] for epsilon in EPSILONS]
    quick = "" if train == TRAIN else f"QUICK RUN: {train:,} rows instead of {TRAIN:,}. "
    return (
        f"{quick}Without privacy {plain:.3f}, the paper {PAPERS_PLAIN:g}. The paper's claim that TDDL is similar to "
        f"that from epsilon 0.1 on (here: within 0.02) was seen at {tally(near)} epsilons; TDDL has "
        f"{means[TDDL, 0.1]:.3f} at 0.1 and {means[TDDL, 1.0]:.3f} at 1: the least noise that its theorem allows, at "
        f"the Lambda of C = 0.001, has scale {tddl_noise(train, points, 0.1):.2g} in an answer at 0.1 and "
        f"{tddl_noise(train, points, 1.0):.2g} at 1, where a sure answer is 1. The default is within 0.02 at "
        f"{tally(ours)}, and ahead of TDDL at {tally(ahead)}: {means[DEFAULT, 0.1]:.3f} at 0.1. Delta ({DELTA:g} here) "
        "and the number of public points are not stated in the paper."
    )
