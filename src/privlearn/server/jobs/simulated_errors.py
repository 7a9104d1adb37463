"""Error against epsilon, simulated on synthetic rows: the figure costs nothing, because nothing in it is private.

A few thousand synthetic rows represent all records of the data set. The mechanism is calibrated for the real number of
records, so its noise is that of the real training; each row weighs as many records as it represents. For example, with
100,000 records a model is trained on 8,000 rows of weight 12.5, and tested on 2,000 other rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privlearn.errors import InvalidParameter
from privlearn.estimators.forecast.session_forecast import calibrate_session
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.pinp import TightPINP
from privlearn.randomness import SeededRandomness
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.holder.recipes import Recipe, estimator, kernel_learner
from privlearn.sessions.machines import PinpSession

EPSILONS: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
DRAWS = 3
"""Draws of the noise at each epsilon, whose errors are averaged."""
_WIDE = 300
"""Number of features above which half of the epsilons and one draw of each are simulated, to save time."""
_LARGE_EPSILON = 100.0
"""Calibrates the regularization of a session that is simulated without noise."""


@lru_cache(maxsize=256)
def simulate_errors(
    offered: OfferedDataSet, recipe: Recipe, delta: float, mechanism: str = "model"
) -> dict[str, Any]:
    """Return errors on synthetic test rows, as JSON values. The first call takes a second, or a few with many features.

    Returns
    -------
    dict
        ``measure`` ("error rate", or "root mean squared error" for a number), ``points`` (a list of epsilon and error),
        ``plain`` (the error without privacy), ``guess`` (the error of the best constant answer), ``records``.
    """
    simulation: Simulation
    if mechanism == "model":
        simulation = ModelSimulation(offered, recipe, delta)
    else:
        simulation = SessionSimulation(offered, recipe, delta, mechanism)
    truth = simulation.truth

    def mean_error(epsilon: float) -> float:
        return float(np.mean([_error(truth, answers) for answers in simulation.predictions(epsilon)]))

    return {
        "measure": "root mean squared error" if _is_number(truth) else "error rate",
        "points": [{"epsilon": epsilon, "error": mean_error(epsilon)} for epsilon in simulation.epsilons],
        "plain": mean_error(math.inf),
        "guess": _guessing_error(truth),
        "records": offered.records,
    }


class Simulation(Protocol):
    """A training on synthetic rows, repeated with different noise.

    Attributes
    ----------
    truth : array of shape (t,)
        The targets of the t test rows.
    epsilons : tuple of float
    """

    truth: NDArray[Any]
    epsilons: tuple[float, ...]

    def predictions(self, epsilon: float) -> Iterator[NDArray[Any]]:
        """Yield predictions of shape (t,), one array for each draw of the noise; one array if epsilon is infinite."""


class ModelSimulation:
    """Simulate a release, or a session that answers from a private model."""

    def __init__(self, offered: OfferedDataSet, recipe: Recipe, delta: float) -> None:
        self._neighbours, self._delta = offered.settings.neighbours, delta
        train, self._test, self.truth = _synthetic_rows(offered, max_train=8000, test=2000)
        learner = estimator(
            recipe, offered.schema, self._guarantee(1.0), expected_records=offered.settings.expected_records
        )
        work = learner.prepare(train, None, private=True)
        self._calibrated_for = work.on(dataclasses.replace(work.rows, total=offered.records))
        weights = np.full(train.num_rows, offered.records / train.num_rows)
        rows = dataclasses.replace(self._calibrated_for.rows, person_weights=weights)
        self._weighted = self._calibrated_for.on(rows)
        is_wide = work.rows.features.shape[1] > _WIDE
        self.epsilons = EPSILONS[::2] if is_wide else EPSILONS
        self._draws = 1 if is_wide else DRAWS

    def predictions(self, epsilon: float) -> Iterator[NDArray[Any]]:
        mechanism = self._calibrated_for.calibrate(self._guarantee(epsilon))
        for draw in range(1 if math.isinf(epsilon) else self._draws):
            randomness = SeededRandomness(draw)
            work = self._weighted.centre_rows(mechanism, randomness)
            yield work.model(work.run(mechanism, randomness), mechanism).predict(self._test)

    def _guarantee(self, epsilon: float) -> Guarantee:
        return Guarantee(epsilon, self._delta, self._neighbours)


class SessionSimulation:
    """Simulate a session that answers from an exact kernel machine."""

    epsilons = EPSILONS

    def __init__(self, offered: OfferedDataSet, recipe: Recipe, delta: float, mechanism: str) -> None:
        self._offered, self._recipe, self._delta, self._mechanism = offered, recipe, delta, mechanism
        self._train, self._test, self.truth = _synthetic_rows(offered, max_train=1000, test=500)

    def predictions(self, epsilon: float) -> Iterator[NDArray[Any]]:
        offered = self._offered
        guarantee = Guarantee(min(epsilon, _LARGE_EPSILON), self._delta, offered.settings.neighbours)
        learner = kernel_learner(self._recipe, offered.schema, guarantee)
        mechanism: Any = calibrate_session(learner, offered.records, guarantee, self._mechanism)
        learner.set_params(regularization=mechanism.task.regularization)
        machine = learner.fit(self._train).freeze()
        points = machine.encode(self._test)
        if math.isinf(epsilon):
            yield machine.predict(machine.values(points))
            return
        for draw in range(DRAWS):
            yield machine.predict(_noisy_scores(mechanism, machine, points, draw))


def _noisy_scores(mechanism: Any, machine: Any, points: NDArray[Any], draw: int) -> NDArray[np.float64]:
    """Return scores as a session gives them. The points are answered one at a time, so their noise is independent."""
    if not isinstance(mechanism, TightPINP):
        scores = machine.values(points)
        return np.asarray(
            scores + mechanism.noise_scale * np.random.default_rng(draw).standard_normal(scores.shape)
        )
    randomness = SeededRandomness(draw)
    session = PinpSession(mechanism, machine, randomness, mechanism.draw_threshold(randomness))
    answers = []
    for point in points:
        for record in session.answer(point[np.newaxis]):
            session.recall(record)
            answers.append(record.scores)
    return np.array(answers)


def _synthetic_rows(
    offered: OfferedDataSet, max_train: int, test: int
) -> tuple[pa.Table, pa.Table, NDArray[Any]]:
    """Return rows to train on, at most as many as there are records, rows to test on, and the targets of those."""
    target = offered.schema.target
    if target is None:
        raise InvalidParameter("the schema has no target to learn. Add one to the schema.")
    train, test_rows = (
        offered.synthetic(min(offered.records, max_train), seed=0),
        offered.synthetic(test, seed=1),
    )
    return train, test_rows, test_rows.column(target.name).to_numpy()


def _is_number(truth: NDArray[Any]) -> bool:
    return np.issubdtype(truth.dtype, np.floating)


def _guessing_error(truth: NDArray[Any]) -> float:
    if _is_number(truth):
        return float(truth.std())
    counts = np.unique(truth.astype(str), return_counts=True)[1]
    return float(1.0 - counts.max() / len(truth))


def _error(truth: NDArray[Any], answers: NDArray[Any]) -> float:
    if _is_number(truth):
        return float(np.sqrt(np.mean((truth - answers) ** 2)))
    return float(np.mean(truth != answers))
