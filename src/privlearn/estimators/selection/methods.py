"""Methods of a search: each calibrates its mechanism before a record is used, and returns how to run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from privlearn.accounting import STOPPED_PURE, stopping_budget, zcdp_budget
from privlearn.arrays import Array
from privlearn.errors import DataError
from privlearn.estimators.fit import Fit
from privlearn.estimators.selection.candidates import Candidates
from privlearn.estimators.training_rows import TrainingRows
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.mechanisms.search.every_candidate import EveryCandidate
from privlearn.mechanisms.search.partition import Partition, scatter_rows, split_rows
from privlearn.mechanisms.search.public_tuning import PublicTuning
from privlearn.mechanisms.search.random_stopping import RandomStopping
from privlearn.mechanisms.search.search import Candidate, Search
from privlearn.randomness import Randomness

FOLDS = 5
TRIALS_PER_CANDIDATE = 6
"""Each candidate is then tried at least once with a probability of about 0.87; more trials hardly cost more."""

_NEARLY_EQUAL = 2.0 / 3.0


@dataclass(frozen=True, eq=False)
class Outcome:
    """The released result: the chosen candidate, its coefficients, and its error rate where it is revealed."""

    chosen: int
    coefficients: Array
    error: float | None


@dataclass(frozen=True, eq=False)
class Method:
    """A calibrated search, and how to run it."""

    search: Search
    run: Callable[[], Outcome]


def score_on_all(
    candidates: Candidates,
    guarantee: Guarantee,
    randomness: Randomness,
    method: str,
    expected_trials: int | None,
) -> Method:
    """Return a search whose trials fit and score on all records: each candidate once, or random ones until a stop."""
    if candidates.work(0).rows.total < len(candidates):
        raise DataError("param_grid has more candidates than there are records. Give fewer")
    trials = TRIALS_PER_CANDIDATE * len(candidates) if expected_trials is None else expected_trials
    search: EveryCandidate | RandomStopping
    if method == "every_candidate" or (
        method == "auto" and _every_will_do(guarantee, len(candidates), trials)
    ):
        search = EveryCandidate.calibrate(guarantee, candidates.calibrations())
    else:
        search = RandomStopping.calibrate(guarantee, candidates.calibrations(), trials)

    def run() -> Outcome:
        def trial(index: int) -> tuple[Array, float]:
            work = candidates.work(index)
            return _train_and_score(work, work, search.candidates[index], randomness)

        best = search.run(trial, randomness)
        return Outcome(best.candidate, best.output, best.mistakes / search.candidates[0].task.total)

    return Method(search, run)


def _every_will_do(guarantee: Guarantee, count: int, trials: int) -> bool:
    """Return whether trying each candidate once leaves nearly as much of the budget for a trial as stopping does."""
    if guarantee.delta == 0:
        return STOPPED_PURE / count >= _NEARLY_EQUAL
    rho, *_ = stopping_budget(guarantee.epsilon, guarantee.delta, trials)
    return zcdp_budget(guarantee.epsilon, guarantee.delta) / count >= _NEARLY_EQUAL * rho


def partition(candidates: Candidates, guarantee: Guarantee, randomness: Randomness) -> Method:
    """Return a search that fits candidate i on part i and scores all on the last part, which none is fitted on."""
    rows, count = candidates.work(0).rows, len(candidates) + 1
    expected: int | None = None
    split = split_rows
    if not guarantee.relation.count_is_public:
        split, expected = scatter_rows, max(1, rows.total // count)
    *parts, last = split_persons(rows, count, split, randomness)

    def calibrate(index: int, guarantee: Guarantee) -> ReleaseMechanism:
        return candidates.work(index).take(parts[index], expected).calibrate(guarantee)

    calibrations = [partial(calibrate, index) for index in range(len(candidates))]
    members = last if rows.persons is None else np.unique(rows.persons[last])
    search = Partition.calibrate(guarantee, calibrations, len(members) if expected is None else expected)

    def run() -> Outcome:
        def trial(index: int) -> tuple[Array, float]:
            work = candidates.work(index)
            train, score = work.take(parts[index], expected), work.take(last, expected)
            return _train_and_score(train, score, search.candidates[index], randomness)

        chosen, coefficients = search.run(trial, randomness)
        return Outcome(chosen, coefficients, None)

    return Method(search, run)


def split_persons(
    rows: TrainingRows,
    parts: int,
    split: Callable[[int, int, Randomness], list[NDArray[np.int64]]],
    randomness: Randomness,
) -> list[NDArray[np.int64]]:
    """Return the row indices of each part; all rows of one person are in one part."""
    if rows.persons is None:
        return split(rows.features.shape[0], parts, randomness)
    number = np.empty(int(rows.persons.max(initial=-1)) + 1, dtype=np.int64)
    for part, members in enumerate(split(len(number), parts, randomness)):
        number[members] = part
    return [np.flatnonzero(number[rows.persons] == part) for part in range(parts)]


def public_tuning(
    candidates: Candidates, guarantee: Guarantee, randomness: Randomness, public: Candidates
) -> Method:
    """Return a search that compares candidates on public rows, and fits only the best on the records.

    On the public rows each candidate runs the mechanism that it would have on the records, with the same noise and
    regularization. Only the mean loss is that of the public rows.
    """
    count = public.work(0).rows.features.shape[0]
    if count < 2 * FOLDS:
        raise DataError(f"public_validation needs at least {2 * FOLDS} rows")
    search = PublicTuning.calibrate(guarantee, candidates.calibrations(), count)
    folds = split_rows(count, FOLDS, randomness)
    mechanisms = cast(tuple[ReleaseMechanism, ...], search.candidates)
    errors = [
        _expected_error(public.work(index), folds, mechanism, randomness)
        for index, mechanism in enumerate(mechanisms)
    ]
    chosen = int(np.argmin(errors))

    def run() -> Outcome:
        coefficients = candidates.work(chosen).run(mechanisms[chosen], randomness)
        return Outcome(chosen, coefficients, errors[chosen])

    return Method(search, run)


def _expected_error(
    work: Fit, folds: list[NDArray[np.int64]], mechanism: ReleaseMechanism, randomness: Randomness
) -> float:
    """Return the error expected after training on the mechanism's number of rows, estimated by cross-validation.

    A model fitted on k rows errs by c/k less on them, and by c/k more on others, than one fitted on infinitely many.
    With n rows c/n remains: the mean of both errors, plus k/n of half their difference (docs/theory/selection.md).
    """
    count = sum(map(len, folds))
    inside = outside = 0.0
    for fold in folds:
        train, others = work.take(np.setdiff1d(np.arange(count), fold)), work.take(fold)
        coefficients = train.run(mechanism, randomness)
        inside += train.mistakes(coefficients) / (count * (len(folds) - 1))
        outside += others.mistakes(coefficients) / count
    trained_on = count * (1.0 - 1.0 / len(folds))
    ratio: float = min(trained_on / mechanism.task.total, 1.0)
    return (inside + outside) / 2.0 + ratio * (outside - inside) / 2.0


def _train_and_score(
    train: Fit, score: Fit, mechanism: Candidate, randomness: Randomness
) -> tuple[Array, float]:
    coefficients = train.run(cast(ReleaseMechanism, mechanism), randomness)
    return coefficients, score.mistakes(coefficients)
