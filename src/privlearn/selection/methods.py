"""The ways to choose: what is planned before a record is used, and what is then done with the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from privlearn.accounting import STOPPED_PURE, stopping_plan, zcdp_budget
from privlearn.arrays import Array
from privlearn.errors import DataError
from privlearn.estimators.fitting import Fitting
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.mechanisms.search.every_candidate import EveryCandidate
from privlearn.mechanisms.search.partition import Partition, scatter_places, split_places
from privlearn.mechanisms.search.public_tuning import PublicTuning
from privlearn.mechanisms.search.random_stopping import RandomStopping
from privlearn.mechanisms.search.search import Candidate, Plan, Search
from privlearn.randomness import Randomness
from privlearn.selection.candidates import Candidates

FOLDS = 5
TRIALS_PER_CANDIDATE = 6
"""Each candidate is then tried at all with a probability of about 0.87, and the choice costs little more."""

_NEARLY = 2.0 / 3.0


@dataclass(frozen=True, eq=False)
class Outcome:
    """What may leave: the chosen candidate, its coefficients, and its share of mistakes where it is revealed."""

    chosen: int
    coefficients: Array
    error: float | None


@dataclass(frozen=True, eq=False)
class Method:
    """A planned search, and how to carry it out."""

    search: Search
    run: Callable[[], Outcome]


def scored_on_all(
    shop: Candidates, guarantee: Guarantee, randomness: Randomness, method: str, expected_trials: int | None
) -> Method:
    """Each trial is fitted and scored on all records: every candidate once, or random ones until a coin says stop."""
    if shop.work(0).rows.total < len(shop):
        raise DataError("param_grid has more candidates than there are records: give fewer")
    trials = TRIALS_PER_CANDIDATE * len(shop) if expected_trials is None else expected_trials
    search: EveryCandidate | RandomStopping
    if method == "every_candidate" or (method == "auto" and _every_will_do(guarantee, len(shop), trials)):
        search = EveryCandidate.calibrate(guarantee, shop.plans())
    else:
        search = RandomStopping.calibrate(guarantee, shop.plans(), trials)

    def run() -> Outcome:
        def trial(place: int) -> tuple[Array, float]:
            work = shop.work(place)
            return _trained_and_scored(work, work, search.candidates[place], randomness)

        best = search.run(trial, randomness)
        return Outcome(best.candidate, best.output, best.mistakes / search.candidates[0].task.total)

    return Method(search, run)


def _every_will_do(guarantee: Guarantee, candidates: int, trials: int) -> bool:
    """Whether a trial gets nearly as much of the promise if each candidate is tried once, which needs no luck."""
    if guarantee.delta == 0:
        return STOPPED_PURE / candidates >= _NEARLY
    rho, *_ = stopping_plan(guarantee.epsilon, guarantee.delta, trials)
    return zcdp_budget(guarantee.epsilon, guarantee.delta) / candidates >= _NEARLY * rho


def partition(shop: Candidates, guarantee: Guarantee, randomness: Randomness) -> Method:
    """Candidate i is fitted on part i, and all are scored on the last part, which no candidate is fitted on."""
    rows, count = shop.work(0).rows, len(shop) + 1
    expected: int | None = None
    split = split_places
    if not guarantee.relation.count_is_public:
        split, expected = scatter_places, max(1, rows.total // count)
    *parts, last = split(rows.features.shape[0], count, randomness)

    def plan(place: int) -> Plan:
        return lambda promise: shop.work(place).take(parts[place], expected).plan(promise)

    plans = [plan(place) for place in range(len(shop))]
    search = Partition.calibrate(guarantee, plans, len(last) if expected is None else expected)

    def run() -> Outcome:
        def trial(place: int) -> tuple[Array, float]:
            work = shop.work(place)
            train, score = work.take(parts[place], expected), work.take(last, expected)
            return _trained_and_scored(train, score, search.candidates[place], randomness)

        chosen, coefficients = search.run(trial, randomness)
        return Outcome(chosen, coefficients, None)

    return Method(search, run)


def public_tuning(
    shop: Candidates, guarantee: Guarantee, randomness: Randomness, public: Candidates
) -> Method:
    """Candidates are compared on public rows; only the best is fitted on the records.

    On the public rows each candidate is fitted with the very mechanism that it would have on the records: the same
    noise, the same regularization, for the number of the records. Public rows stand in for the records' mean loss only.
    """
    count = public.work(0).rows.features.shape[0]
    if count < 2 * FOLDS:
        raise DataError(f"public_validation needs at least {2 * FOLDS} rows")
    search = PublicTuning.calibrate(guarantee, shop.plans(), count)
    folds = split_places(count, FOLDS, randomness)
    mechanisms = cast(tuple[ReleaseMechanism, ...], search.candidates)
    errors = [
        _expected_error(public.work(place), folds, mechanism, randomness)
        for place, mechanism in enumerate(mechanisms)
    ]
    chosen = int(np.argmin(errors))

    def run() -> Outcome:
        coefficients = shop.work(chosen).run(mechanisms[chosen], randomness)
        return Outcome(chosen, coefficients, errors[chosen])

    return Method(search, run)


def _expected_error(
    work: Fitting, folds: list[NDArray[np.int64]], mechanism: ReleaseMechanism, randomness: Randomness
) -> float:
    """What public rows tell of the error after training on as many rows as the mechanism was planned for.

    Fitted on k rows, a model errs by c/k less on them than one fitted on endless rows would, and by c/k more on others.
    Of n rows c/n remains: the mean of both errors, plus k/n of half their difference (docs/theory/selection.md).
    """
    count = sum(map(len, folds))
    inside = outside = 0.0
    for fold in folds:
        train, others = work.take(np.setdiff1d(np.arange(count), fold)), work.take(fold)
        coefficients = train.run(mechanism, randomness)
        inside += train.mistakes(coefficients) / (count * (len(folds) - 1))
        outside += others.mistakes(coefficients) / count
    trained_on = count * (1.0 - 1.0 / len(folds))
    left: float = min(trained_on / mechanism.task.total, 1.0)
    return (inside + outside) / 2.0 + left * (outside - inside) / 2.0


def _trained_and_scored(
    train: Fitting, score: Fitting, mechanism: Candidate, randomness: Randomness
) -> tuple[Array, float]:
    coefficients = train.run(cast(ReleaseMechanism, mechanism), randomness)
    return coefficients, score.mistakes(coefficients)
