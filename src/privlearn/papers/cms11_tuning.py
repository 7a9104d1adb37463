"""CMS11 Figures 4 and 5: error against the number of training rows, Lambda chosen by Algorithm 4, on KDDCup99.

The paper has 60,000 to 120,000 rows for each of five Lambdas, out of five million; the ten per cent file at hand allows
at most 88,000. It does not name its Lambdas, only that none is raised: `EXPONENTS` keeps to that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.search.partition import Partition
from privlearn.papers.cms11_study import KDDCUP, LOOKS, LOSSES, PLAIN, quick_warning
from privlearn.papers.learners import DEFAULT, Learner, Split
from privlearn.papers.reporting import Panel, Result, Row, Track, draw_panels, mean_error, tally
from privlearn.randomness import SeededRandomness
from privlearn.solvers.losses import Loss

EPSILONS = (0.01, 0.05)
EXPONENTS = (-2.25, -2.0, -1.75, -1.5, -1.25)
"""The smallest exponents that neither loss's slack raises at epsilon 0.01 and 40,000 rows."""


@dataclass(frozen=True)
class Effort:
    """Size of the experiment: rows for each Lambda, rows of each held-out part, orders of the data, draws per order."""

    sizes: tuple[int, ...]
    held_out: int
    orders: int
    runs: int


QUICK = Effort((1500, 3000), 1000, 1, 1)
FULL = Effort((40_000, 60_000, 80_000), 25_000, 3, 8)
PAPERS_ROWS = 60_000
"""Minimum number of rows for each Lambda in the paper's figures."""


class Portions:
    """One order of the data: a part of equal size for each Lambda, then a validation and a test part.

    ``parts``: the rows of each Lambda, tested on the validation part. ``pooled``: the rows of all Lambdas, tested on
    the validation part. ``untuned``: all rows but the test part, on which it is tested; without a choice no
    validation part is needed.
    """

    def __init__(self, rows: Any, signs: Array, size: int, held_out: int) -> None:
        trained = len(EXPONENTS) * size
        tested = trained + held_out

        def split(start: int, stop: int, test_start: int) -> Split:
            test = slice(test_start, test_start + held_out)
            return Split(rows[start:stop], signs[start:stop], rows[test], signs[test])

        self.parts = [split(start, start + size, trained) for start in range(0, trained, size)]
        self.pooled = split(0, trained, trained)
        self.untuned = split(0, tested, tested)


def cms11_figure4(quick: bool, seed: int, track: Track = iter) -> Result:
    """Reproduce the figure for logistic regression."""
    return _learning_curves("CMS11 Figure 4", "logistic", QUICK if quick else FULL, seed, track)


def cms11_figure5(quick: bool, seed: int, track: Track = iter) -> Result:
    """Reproduce the figure for the support vector machine (Huber)."""
    return _learning_curves("CMS11 Figure 5", "huber", QUICK if quick else FULL, seed, track)


def _learning_curves(name: str, loss: str, effort: Effort, seed: int, track: Track) -> Result:
    table = tuple(_measure(LOSSES[loss], effort, seed, track))
    title = f"{name}: KDDCup99, {loss}, Lambda chosen by Algorithm 4"
    warning = quick_warning(effort.sizes[0], PAPERS_ROWS) if effort is QUICK else ""
    agreement = warning + _agreement(table)
    return Result(title, table, lambda matplotlib: _draw(matplotlib, title, table), agreement)


def _measure(loss: Loss, effort: Effort, seed: int, track: Track) -> Iterator[Row]:
    rows, signs = KDDCUP.load()
    errors: dict[tuple[int, str, float], list[float]] = defaultdict(list)
    for size, order in track([(size, order) for size in effort.sizes for order in range(effort.orders)]):
        needed = len(EXPONENTS) * size + 2 * effort.held_out
        indices = np.random.default_rng([seed, order]).permutation(len(signs))[:needed]
        portions = Portions(rows[indices], signs[indices], size, effort.held_out)
        for algorithm, epsilon, error in _errors(portions, loss, effort.runs, [seed, order, size]):
            errors[size, algorithm, epsilon].append(error)
    for (size, algorithm, epsilon), values in errors.items():
        yield {"epsilon": epsilon, "algorithm": algorithm, "rows": size} | mean_error(values)


def _errors(portions: Portions, loss: Loss, runs: int, seed: list[int]) -> Iterator[tuple[str, float, float]]:
    """Yield (algorithm, epsilon, test error) of every run on one order of the data."""
    learners = [Learner(part, loss) for part in portions.parts]
    untuned = Learner(portions.untuned, loss)
    error = portions.untuned.error
    plain = error(_tune_plain(portions.pooled, loss))
    for epsilon in EPSILONS:
        yield PLAIN, epsilon, plain
        for run in range(runs):
            for method in ("output", "objective"):
                yield method, epsilon, error(_tune(learners, method, epsilon, [*seed, run]))
        for value in untuned.errors(untuned.calibrate(DEFAULT, epsilon), runs, seed):
            yield DEFAULT, epsilon, value


def _tune(learners: list[Learner], method: str, epsilon: float, seed: list[int]) -> Array:
    """Return the coefficients that CMS11 Algorithm 4 chooses."""
    validation = int(learners[0].split.test_rows.shape[0])
    candidates = [
        partial(_candidate, learner, method, 10.0**exponent)
        for learner, exponent in zip(learners, EXPONENTS, strict=True)
    ]
    search = Partition.calibrate(Guarantee(epsilon), candidates, validation)

    def trial(index: int) -> tuple[Array, float]:
        coefficients = learners[index].run(search.candidates[index], [*seed, index])
        return coefficients, learners[index].split.error(coefficients) * validation

    return search.run(trial, SeededRandomness(np.random.default_rng([*seed, len(EXPONENTS)])))[1]


def _candidate(learner: Learner, method: str, regularization: float, guarantee: Guarantee) -> Any:
    return learner.calibrate(method, guarantee.epsilon, regularization)


def _tune_plain(pooled: Split, loss: Loss) -> Array:
    """Return the best coefficients without privacy, where every Lambda gets all rows."""
    learner = Learner(pooled, loss)
    return min((learner.plain(10.0**exponent) for exponent in EXPONENTS), key=pooled.error)


def _draw(matplotlib: Any, title: str, table: tuple[Row, ...]) -> Any:
    def panel(epsilon: float) -> Panel:
        rows = [row for row in table if row["epsilon"] == epsilon]
        return Panel(f"epsilon = {epsilon:g}", "training rows for each Lambda", rows, "rows")

    return draw_panels(matplotlib, title, [[panel(epsilon) for epsilon in EPSILONS]], LOOKS)


def _agreement(table: tuple[Row, ...]) -> str:
    means = {(row["epsilon"], row["algorithm"], row["rows"]): row["error"] for row in table}
    sizes = sorted({row["rows"] for row in table})
    below = [means[e, "objective", size] < means[e, "output", size] for e in EPSILONS for size in sizes]
    falls = [
        means[e, method, sizes[-1]] < means[e, method, sizes[0]]
        for e in EPSILONS
        for method in ("output", "objective")
    ]
    plain = [means[EPSILONS[0], PLAIN, size] for size in sizes]
    ours = [means[e, DEFAULT, size] < means[e, "objective", size] for e in EPSILONS for size in sizes]
    return (
        f"The paper's claims: objective perturbation below output perturbation, at {tally(below)} points; a private "
        f"method's error is smaller with the most rows than with the fewest, {tally(falls)} curves; without privacy it "
        f"hardly moves: {min(plain):.4f} to {max(plain):.4f}. The default, which needs no choice and so trains on all "
        f"{len(EXPONENTS)} parts and the validation rows, lies below objective perturbation at {tally(ours)} points. "
        f"The paper has 60,000 to 120,000 rows a Lambda, here {sizes[0]:,} to {sizes[-1]:,}; its five Lambdas are not "
        f"named, here 10^{EXPONENTS[0]:g} to 10^{EXPONENTS[-1]:g}."
    )
