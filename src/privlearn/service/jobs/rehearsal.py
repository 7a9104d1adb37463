"""Error against epsilon, rehearsed on made-up rows: a figure that costs nothing, for there is nothing private in it.

A few thousand made-up rows stand for as many people as the data set has records: each weighs as much as the people it
stands for, and the noise is that of the real number of records.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.pinp import TightPINP
from privlearn.planning.session_plan import plan_session
from privlearn.randomness import SeededRandomness
from privlearn.service.holder.datasets import OfferedDataSet
from privlearn.service.jobs.recipes import Recipe, estimator, kernel_learner
from privlearn.sessions.machines import PinpSession

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_DRAWS = 3
_WIDE = 300  # with more features than that, half of the epsilons and one draw of each are enough
_MODEL_ROWS, _MODEL_POINTS = 8000, 2000
_SESSION_ROWS, _SESSION_POINTS = 1000, 500

Epsilons = tuple[float, ...]
Predict = Callable[[float], Iterator[NDArray[Any]]]
"""From an epsilon to predictions at the test rows, once for each draw of the noise."""


@lru_cache(maxsize=256)
def rehearsed_errors(
    offered: OfferedDataSet, recipe: Recipe, delta: float, mechanism: str = "model"
) -> dict[str, Any]:
    """Errors on fresh made-up rows, as plain JSON values; the first call takes a second, or a few with many features.

    Returns
    -------
    dict
        ``measure`` ("error rate", or "root mean squared error" for a number), ``points`` (a list of epsilon and error),
        ``plain`` (the error without privacy), ``guess`` (of the best constant answer), ``records``.
    """
    rehearse = _of_model if mechanism == "model" else _of_session
    truth, epsilons, predict = rehearse(offered, recipe, delta, mechanism)
    points = [
        {"epsilon": epsilon, "error": float(np.mean([_error(truth, found) for found in predict(epsilon)]))}
        for epsilon in epsilons
    ]
    numbers = np.issubdtype(truth.dtype, np.floating)
    return {
        "measure": "root mean squared error" if numbers else "error rate",
        "points": points,
        "plain": _error(truth, next(predict(math.inf))),
        "guess": _guessing_error(truth),
        "records": offered.records,
    }


def _of_model(
    offered: OfferedDataSet, recipe: Recipe, delta: float, _: str
) -> tuple[NDArray[Any], Epsilons, Predict]:
    train, test, truth = _rows(offered, _MODEL_ROWS, _MODEL_POINTS)
    promise, expected = Guarantee(1.0, delta, offered.settings.neighbours), offered.settings.expected_records
    learner = estimator(recipe, offered.schema, promise, expected_records=expected)
    work = learner.prepare(train, None, private=True)
    planned = work.on(dataclasses.replace(work.rows, total=offered.records))
    people = np.full(train.num_rows, offered.records / train.num_rows)
    weighted = planned.on(dataclasses.replace(planned.rows, person_weights=people))

    wide = work.rows.features.shape[1] > _WIDE

    def predict(epsilon: float) -> Iterator[NDArray[Any]]:
        mechanism = planned.plan(Guarantee(epsilon, delta, offered.settings.neighbours))
        for draw in range(1 if wide else _DRAWS):
            randomness = SeededRandomness(draw)
            centred = weighted.centred(mechanism, randomness)
            yield centred.model(centred.run(mechanism, randomness)).predict(test)

    return truth, EPSILONS[::2] if wide else EPSILONS, predict


def _of_session(
    offered: OfferedDataSet, recipe: Recipe, delta: float, name: str
) -> tuple[NDArray[Any], Epsilons, Predict]:
    train, test, truth = _rows(offered, _SESSION_ROWS, _SESSION_POINTS)
    promise = Guarantee(1.0, delta, offered.settings.neighbours)
    foretold = plan_session(kernel_learner(recipe, offered.schema, promise), offered.records, promise, name)

    def predict(epsilon: float) -> Iterator[NDArray[Any]]:
        plan = foretold.at(epsilon=min(epsilon, 100.0))
        learner = kernel_learner(recipe, offered.schema, promise)
        learner.set_params(regularization=plan.regularization).fit(train)
        if math.isinf(epsilon):
            yield learner.predicted(learner.decision_function(test))
            return
        for draw in range(_DRAWS):
            yield learner.predicted(_answers(plan.mechanism, learner, learner.encode(test), draw))

    return truth, EPSILONS, predict


def _answers(mechanism: Any, learner: Any, points: NDArray[Any], draw: int) -> NDArray[np.float64]:
    """Scores as a session would give them; at different points, not together: their noises are drawn one by one."""
    if not isinstance(mechanism, TightPINP):
        values = learner.values(points)
        noise = np.random.default_rng(draw).standard_normal(values.shape)
        return np.asarray(values + mechanism.noise_scale * noise)
    randomness = SeededRandomness(draw)
    session = PinpSession(mechanism, learner, randomness, mechanism.draw_threshold(randomness))
    scores = []
    for point in points:
        for record in session.answer(point[np.newaxis]):
            session.recall(record)
            scores.append(record.scores)
    return np.array(scores)


def _rows(offered: OfferedDataSet, most: int, tested: int) -> tuple[pa.Table, pa.Table, NDArray[Any]]:
    """Rows to learn from, and others with their answers."""
    train, test = offered.synthetic(min(offered.records, most), seed=0), offered.synthetic(tested, seed=1)
    return train, test, test.column(_target(offered.schema)).to_numpy()


def _target(schema: Schema) -> str:
    if schema.target is None:
        raise InvalidParameter("the schema has no target: there is nothing to learn")
    return schema.target.name


def _guessing_error(truth: NDArray[Any]) -> float:
    if np.issubdtype(truth.dtype, np.floating):
        return float(truth.std())
    counts = np.unique(truth.astype(str), return_counts=True)[1]
    return float(1.0 - counts.max() / len(truth))


def _error(truth: NDArray[Any], found: NDArray[Any]) -> float:
    if np.issubdtype(truth.dtype, np.floating):
        return float(np.sqrt(np.mean((truth - found) ** 2)))
    return float(np.mean(truth != found))
