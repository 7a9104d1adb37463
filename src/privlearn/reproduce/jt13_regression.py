"""JT13 Figure 2 b: error of linear regression with very many columns against epsilon.

The paper has 20,000 rows of KDD Cup 2010 (algebra) in two million columns. Of that file only the 3,967 test steps with
answers are at hand, so they are used, and beside them the 20 newsgroups, 11,314 rows of hashed words. The paper
does not state delta, Lambda, the loss's bound or the number of public points: `DELTA`, `STRENGTHS`, `LOSS` and
`POINTS` say what is taken here. The papers' methods get the Lambda that is best in hindsight, ours its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from privlearn.arrays import Array
from privlearn.data.datasets import load_kdd2010_algebra, load_newsgroups
from privlearn.erm.losses import Loss, loss_from_name
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.task import Task
from privlearn.reproduce import reporting
from privlearn.reproduce.learners import DEFAULT_DELTA, DELTA, INSIDE, Learner, TargetSplit
from privlearn.reproduce.public_span import PublicSpan
from privlearn.reproduce.reporting import held

EPSILONS = (0.1, 0.5, 1.0, 5.0)
STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)
POINTS = 300
LOSS: Loss = loss_from_name("clipped_square", 1.0)
"""Half the square for residuals up to half the targets' range, so that gradients are at most 1."""
_SQUARE: Loss = loss_from_name("clipped_square", 8.0)  # never clipped: least squares
_OUR_LOSS: Loss = loss_from_name("clipped_square")
_COLUMNS = 2**17
_TOLERANCE = 5e-9  # the noise in so many columns is too long a vector for rounding to allow less

PLAIN, OBJECTIVE, TDDL, POINTED = "least squares", "objective", "TDDL", f"{DEFAULT_DELTA}, public points"
_LOOKS = {
    PLAIN: reporting.Look(reporting.BLACK, "", "--"),
    OBJECTIVE: reporting.Look(reporting.BLUE, "D"),
    TDDL: reporting.Look(reporting.ORANGE, "s"),
    DEFAULT_DELTA: reporting.Look(reporting.GREEN, "P", wide=True),
    POINTED: reporting.Look(reporting.SKY, "^", wide=True),
}

Found = Iterator[tuple[str, float | None, float | None, float]]
"""(algorithm, epsilon, Lambda, error)."""


def jt13_figure2b(quick: bool, seed: int, track: reporting.Track = iter) -> reporting.Result:
    """KDD Cup 2010 and 20 newsgroups, three noise draws; quick: the first alone, in 1,024 columns, two."""
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
    """Whether a step's first attempt was correct, from student, problem, step and skills; a fifth is test."""
    table = load_kdd2010_algebra()
    facts = ("Anon Student Id", "Problem Hierarchy", "Problem Name", "Step Name", "KC(Default)")
    values = zip(*(table[name].to_pylist() for name in facts), strict=True)
    tokens = [_crossed([str(value) for value in row]) for row in values]
    targets = 2.0 * table["Correct First Attempt"].to_numpy() - 1.0
    rows = _hashed(tokens, columns)
    order = np.random.default_rng([seed, 3]).permutation(len(targets))
    test, train = np.split(order, [len(order) // 5])
    return _with_points(rows[train], targets[train], rows[test], targets[test])


def newsgroups(seed: int, columns: int) -> tuple[TargetSplit, Any]:
    """Whether a message is about computers, from its words; the data's own split."""
    table = load_newsgroups()
    vectorizer = HashingVectorizer(n_features=columns, alternate_sign=False)
    rows = vectorizer.transform(table["text"].to_pylist()) * INSIDE
    targets = np.array([1.0 if group.startswith("comp.") else -1.0 for group in table["group"].to_pylist()])
    train = np.array(table["part"].to_pylist()) == "train"
    test = np.random.default_rng([seed, 4]).permutation(np.flatnonzero(~train))
    return _with_points(rows[np.flatnonzero(train)], targets[train], rows[test], targets[test])


def _crossed(values: list[str]) -> list[str]:
    """Each fact, and each pair of facts."""
    named = [f"{place}={value}" for place, value in enumerate(values)]
    pairs = [f"{first}&{second}" for place, first in enumerate(named) for second in named[:place]]
    return ["all", *named, *pairs]


def _hashed(tokens: list[list[str]], columns: int) -> Any:
    vectorizer = HashingVectorizer(n_features=columns, alternate_sign=False, analyzer=lambda line: line)
    return vectorizer.transform(tokens) * INSIDE


def _with_points(rows: Any, targets: Array, test: Any, truth: Array) -> tuple[TargetSplit, Any]:
    """The first test rows are the public points, without their targets; errors are measured on the others."""
    return TargetSplit(rows, targets, test[POINTS:], truth[POINTS:]), test[:POINTS]


class Bench:
    """One data set with its public points, and what every noise draw shares."""

    def __init__(self, split: TargetSplit, points: Any) -> None:
        self._split, self._points = split, points
        self._span = PublicSpan(points)
        self._learner, self._squares = Learner(split, LOSS, _TOLERANCE), Learner(split, _SQUARE, _TOLERANCE)
        seen = TargetSplit(
            self._span.parts(split.rows), split.offsets, self._span.parts(split.test_rows), split.test_targets
        )
        self._ours = {
            name: Learner(rows, _OUR_LOSS, _TOLERANCE)
            for name, rows in ((DEFAULT_DELTA, split), (POINTED, seen))
        }

    def errors(self, seed: list[int]) -> Found:
        """Of one noise draw each."""
        error, learner = self._split.error, self._learner
        for strength in (1e-4, *STRENGTHS):
            yield PLAIN, None, strength, error(self._squares.plain(strength))
        for epsilon in EPSILONS:
            for strength in STRENGTHS:
                yield TDDL, epsilon, strength, error(self._tddl(strength, epsilon, seed))
                plan = learner.plan("objective", epsilon, strength)
                yield OBJECTIVE, epsilon, strength, error(learner.run(plan, seed))
            for name, ours in self._ours.items():
                plan = ours.plan(DEFAULT_DELTA, epsilon)
                yield name, epsilon, None, ours.split.error(ours.run(plan, seed))

    def _tddl(self, strength: float, epsilon: float, seed: list[int]) -> Array:
        task = Task(
            LOSS, len(self._split.offsets), self._span.dimension, 1, strength, _TOLERANCE, "replace_one"
        )
        return self._span.tddl(self._learner.plain(strength), task, Guarantee(epsilon, DELTA), seed)


def best_in_hindsight(errors: dict[tuple[Any, ...], list[float]]) -> Iterator[reporting.Row]:
    """The Lambda with the least mean error, for each algorithm and epsilon."""
    best: dict[tuple[Any, ...], reporting.Row] = {}
    for (data, algorithm, epsilon, strength), found in errors.items():
        row = {
            "data": data,
            "algorithm": algorithm,
            "epsilon": epsilon,
            "lambda": strength,
        } | reporting.averaged(found)
        kept = best.get((data, algorithm, epsilon))
        if kept is None or row["error"] < kept["error"]:
            best[data, algorithm, epsilon] = row
    yield from best.values()


def _draw(matplotlib: Any, title: str, table: tuple[reporting.Row, ...]) -> Any:
    def panel(data: str) -> reporting.Panel:
        chosen = [row for row in table if row["data"] == data]
        return reporting.Panel(
            data, "epsilon", chosen, "epsilon", up="norm of the residuals, targets ±1", log_x=True
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
    told = [
        f"{name} at epsilon 1: objective {means[name, OBJECTIVE, 1.0]:.1f}, TDDL {means[name, TDDL, 1.0]:.1f}, default "
        f"{means[name, DEFAULT_DELTA, 1.0]:.1f} and with the same public points {means[name, POINTED, 1.0]:.1f}, least "
        f"squares {means[name, PLAIN, None]:.1f}"
        for name in names
    ]
    return (
        f"The paper's claims: TDDL below objective perturbation, at {held(ahead)} points; TDDL close to least squares "
        f"from epsilon 0.5 on (here: within a tenth), at {held(near)}. The default lies below TDDL at {held(ours)}, "
        f"and with the same public points at {held(pointed)}. "
        f"{'; '.join(told)}. Other data than the paper's: 3,967 rows of its file are at hand where it drew 20,000, and "
        "the 20 newsgroups stand beside them; so the levels cannot be compared."
    )
