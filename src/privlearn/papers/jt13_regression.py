"""JT13 Figure 2 b: error of linear regression with very many columns against epsilon.

The paper has 20,000 rows of KDD Cup 2010 (algebra) in two million columns. Of that file only the 3,967 test steps with
answers are at hand, so they are used, and in addition the 20 newsgroups, 11,314 rows of hashed words. The paper does
not state delta, Lambda, the loss's bound or the number of public points: `DELTA`, `STRENGTHS`, `LOSS` and `POINTS` have
what is used here. The papers' methods get the Lambda that is best in hindsight, ours its default.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from privlearn.arrays import Array
from privlearn.data.datasets import load_kdd2010_algebra, load_newsgroups
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.task import Task
from privlearn.papers import reporting
from privlearn.papers.learners import DEFAULT_DELTA, DELTA, INSIDE, Learner, PublicSpan, TargetSplit
from privlearn.papers.reporting import tally
from privlearn.release import html
from privlearn.solvers.losses import Loss, loss_from_name

EPSILONS = (0.1, 0.5, 1.0, 5.0)
STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)
POINTS = 300
LOSS: Loss = loss_from_name("clipped_square", 1.0)
"""Half the square for residuals up to half the targets' range, so that gradients are at most 1."""
_SQUARE: Loss = loss_from_name("clipped_square", 8.0)  # never clipped: least squares
_OUR_LOSS: Loss = loss_from_name("clipped_square")
_COLUMNS = 2**17
_TOLERANCE = 5e-9  # noise in this many columns is too long a vector for rounding to allow less

PLAIN, OBJECTIVE, TDDL, POINTED = "least squares", "objective", "TDDL", f"{DEFAULT_DELTA}, public points"
_LOOKS = {
    PLAIN: reporting.Look(reporting.BLACK, "", "--"),
    OBJECTIVE: reporting.Look(html.BLUE, "D"),
    TDDL: reporting.Look(html.ORANGE, "s"),
    DEFAULT_DELTA: reporting.Look(html.GREEN, "P", wide=True),
    POINTED: reporting.Look(html.SKY, "^", wide=True),
}

Errors = Iterator[tuple[str, float | None, float | None, float]]
"""(algorithm, epsilon, Lambda, error)."""


def jt13_figure2b(quick: bool, seed: int, track: reporting.Track = iter) -> reporting.Result:
    """Reproduce the figure: two data sets, three noise draws; quick: the first only, 1,024 columns, two draws."""
    benches = {"KDD Cup 2010": Bench(*algebra(seed, 2**10 if quick else _COLUMNS))}
    if not quick:
        benches["20 newsgroups"] = Bench(*newsgroups(seed, _COLUMNS))
    errors: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for name, draw in track([(name, draw) for name in benches for draw in range(2 if quick else 3)]):
        for algorithm, epsilon, strength, error in benches[name].errors([seed, draw]):
            errors[name, algorithm, epsilon, strength].append(error)
    table = tuple(best_in_hindsight(errors))
    title = "JT13 Figure 2 b: linear regression, many columns"
    warning = f"QUICK RUN: one of two data sets, in 1,024 columns instead of {_COLUMNS:,}. " if quick else ""
    return reporting.Result(
        title, table, lambda matplotlib: _draw(matplotlib, title, table), warning + _agreement(table)
    )


def algebra(seed: int, columns: int) -> tuple[TargetSplit, Any]:
    """Return whether a step's first attempt was correct, from student, problem, step and skills; a fifth is test."""
    table = load_kdd2010_algebra()
    names = ("Anon Student Id", "Problem Hierarchy", "Problem Name", "Step Name", "KC(Default)")
    values = zip(*(table[name].to_pylist() for name in names), strict=True)
    tokens = [_cross([str(value) for value in row]) for row in values]
    targets = 2.0 * table["Correct First Attempt"].to_numpy() - 1.0
    rows = _hash(tokens, columns)
    order = np.random.default_rng([seed, 3]).permutation(len(targets))
    test, train = np.split(order, [len(order) // 5])
    return _with_points(rows[train], targets[train], rows[test], targets[test])


def newsgroups(seed: int, columns: int) -> tuple[TargetSplit, Any]:
    """Return whether a message is about computers, from its words, with the data's own split."""
    table = load_newsgroups()
    vectorizer = HashingVectorizer(n_features=columns, alternate_sign=False)
    rows = vectorizer.transform(table["text"].to_pylist()) * INSIDE
    targets = np.array([1.0 if group.startswith("comp.") else -1.0 for group in table["group"].to_pylist()])
    train = np.array(table["part"].to_pylist()) == "train"
    test = np.random.default_rng([seed, 4]).permutation(np.flatnonzero(~train))
    return _with_points(rows[np.flatnonzero(train)], targets[train], rows[test], targets[test])


def _cross(values: list[str]) -> list[str]:
    """Return a token for each value, and for each pair of values."""
    named = [f"{index}={value}" for index, value in enumerate(values)]
    pairs = [f"{first}&{second}" for index, first in enumerate(named) for second in named[:index]]
    return ["all", *named, *pairs]


def _hash(tokens: list[list[str]], columns: int) -> Any:
    vectorizer = HashingVectorizer(n_features=columns, alternate_sign=False, analyzer=lambda line: line)
    return vectorizer.transform(tokens) * INSIDE


def _with_points(rows: Any, targets: Array, test: Any, truth: Array) -> tuple[TargetSplit, Any]:
    """Return the split and its public points: the first test rows, without targets and not tested on."""
    return TargetSplit(rows, targets, test[POINTS:], truth[POINTS:]), test[:POINTS]


class Bench:
    """One data set with its public points, and the learners that all noise draws share."""

    def __init__(self, split: TargetSplit, points: Any) -> None:
        self._split, self._points = split, points
        self._span = PublicSpan(points)
        self._learner, self._squares = Learner(split, LOSS, _TOLERANCE), Learner(split, _SQUARE, _TOLERANCE)
        projected = TargetSplit(
            self._span.parts(split.rows), split.offsets, self._span.parts(split.test_rows), split.test_targets
        )
        self._ours = {
            name: Learner(rows, _OUR_LOSS, _TOLERANCE)
            for name, rows in ((DEFAULT_DELTA, split), (POINTED, projected))
        }

    def errors(self, seed: list[int]) -> Errors:
        """Yield the errors of one noise draw each."""
        error, learner = self._split.error, self._learner
        for strength in (1e-4, *STRENGTHS):
            yield PLAIN, None, strength, error(self._squares.plain(strength))
        for epsilon in EPSILONS:
            for strength in STRENGTHS:
                yield TDDL, epsilon, strength, error(self._tddl(strength, epsilon, seed))
                mechanism = learner.calibrate("objective", epsilon, strength)
                yield OBJECTIVE, epsilon, strength, error(learner.run(mechanism, seed))
            for name, ours in self._ours.items():
                mechanism = ours.calibrate(DEFAULT_DELTA, epsilon)
                yield name, epsilon, None, ours.split.error(ours.run(mechanism, seed))

    def _tddl(self, strength: float, epsilon: float, seed: list[int]) -> Array:
        task = Task(
            LOSS, len(self._split.offsets), self._span.dimension, 1, strength, _TOLERANCE, "replace_one"
        )
        return self._span.tddl(self._learner.plain(strength), task, Guarantee(epsilon, DELTA), seed)


def best_in_hindsight(errors: dict[tuple[Any, ...], list[float]]) -> Iterator[reporting.Row]:
    """Yield the row of the Lambda with the smallest mean error, for each algorithm and epsilon."""
    best: dict[tuple[Any, ...], reporting.Row] = {}
    for (data, algorithm, epsilon, strength), values in errors.items():
        key = {"data": data, "algorithm": algorithm, "epsilon": epsilon, "lambda": strength}
        row = key | reporting.mean_error(values)
        previous = best.get((data, algorithm, epsilon))
        if previous is None or row["error"] < previous["error"]:
            best[data, algorithm, epsilon] = row
    yield from best.values()


def _draw(matplotlib: Any, title: str, table: tuple[reporting.Row, ...]) -> Any:
    def panel(data: str) -> reporting.Panel:
        rows = [row for row in table if row["data"] == data]
        return reporting.Panel(
            data, "epsilon", rows, "epsilon", up="norm of the residuals, targets ±1", log_x=True
        )

    names = list(dict.fromkeys(row["data"] for row in table))
    return reporting.draw_panels(matplotlib, title, [[panel(name) for name in names]], _LOOKS, sharey=False)


def _agreement(table: tuple[reporting.Row, ...]) -> str:
    means = {(row["data"], row["algorithm"], row["epsilon"]): row["error"] for row in table}
    names = list(dict.fromkeys(row["data"] for row in table))
    points = [(name, epsilon) for name in names for epsilon in EPSILONS]
    ahead = [means[name, TDDL, epsilon] < means[name, OBJECTIVE, epsilon] for name, epsilon in points]
    near = [
        means[name, TDDL, epsilon] < 1.1 * means[name, PLAIN, None]
        for name, epsilon in points
        if epsilon >= 0.5
    ]
    ours = [means[name, DEFAULT_DELTA, epsilon] < means[name, TDDL, epsilon] for name, epsilon in points]
    pointed = [means[name, POINTED, epsilon] < means[name, TDDL, epsilon] for name, epsilon in points]
    levels = [
        f"{name} at epsilon 1: objective {means[name, OBJECTIVE, 1.0]:.1f}, TDDL {means[name, TDDL, 1.0]:.1f}, default "
        f"{means[name, DEFAULT_DELTA, 1.0]:.1f} and with the same public points {means[name, POINTED, 1.0]:.1f}, least "
        f"squares {means[name, PLAIN, None]:.1f}"
        for name in names
    ]
    return (
        f"The paper's claims: TDDL below objective perturbation, at {tally(ahead)} points; TDDL close to least squares "
        f"from epsilon 0.5 on (here: within a tenth), at {tally(near)}. The default lies below TDDL at {tally(ours)}, "
        f"and with the same public points at {tally(pointed)}. "
        f"{'; '.join(levels)}. Other data than the paper's: 3,967 rows of its file are at hand where it drew 20,000, "
        f"and the 20 newsgroups are added; so the levels cannot be compared."
    )
