"""A party's rows, the questions it answers, and training over the sum of answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.data.sources.row_source import EncodedRows
from privlearn.errors import InvalidParameter
from privlearn.estimators.goal import ClassGoal
from privlearn.estimators.inputs import read_number_table, read_table
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.mechanisms.noise import ADD_NOISE
from privlearn.mechanisms.oracle import DataOracle
from privlearn.mechanisms.summed.summed import (
    Noise,
    NoisySum,
    NoisySums,
    Question,
    SummedMechanism,
    packed,
)
from privlearn.mechanisms.task import Task
from privlearn.multiparty.run.plan import MultipartyPlan
from privlearn.randomness import Randomness, randomness_from
from privlearn.release.artifact import Release


class Answers(Protocol):
    """One party's rows, as its run asks them."""

    def answer(self, question: Question) -> Array:
        """PRIVATE: the exact part of the sum, which gets noise and masks before it leaves."""


class Party(Answers):
    """Rows under a task. What `answer` returns has no noise yet and must not leave as it is.

    Parameters
    ----------
    task : Task
        Of all parties together, as the plan's mechanism has it.
    oracle : DataOracle
        This party's rows under that task.
    weight : float
        Its part of all records, or what its own minimiser counts in an aggregation; those of all parties add up to 1.
    """

    def __init__(self, task: Task, oracle: DataOracle, weight: float) -> None:
        self._task = task
        self._oracle = oracle
        self._weight = weight

    @classmethod
    def from_table(cls, plan: MultipartyPlan, name: str, table: Any) -> Party:
        """The plan's party of that name with its table, target column included."""
        read = read_table if isinstance(plan.goal, ClassGoal) else read_number_table
        rows = read(plan.table_schema, table, None, fit_intercept=True)
        plan.check_declared(name, rows.total)
        task, transform = plan.mechanism.task, plan.features.transform
        if isinstance(rows.features, EncodedRows):
            features: Any = rows.features.lifted(transform, task.dimension)
        else:
            features = transform(rows.features)
        lifted = dataclasses.replace(rows, features=features, total=plan.parties[name])
        return cls(task, MemoryOracle(lifted, task), plan.weight(name))

    @property
    def total(self) -> int:
        """Public: number of records, or of persons, as the plan declares or expects it."""
        return self._oracle.total

    def __repr__(self) -> str:
        return f"{type(self).__name__}(total={self.total})"

    def answer(self, question: Question) -> Array:
        """This party's exact part of the sum; no warning on the way, since a warning would depend on the rows.

        It is bounded by the party's part of the question's bound, so that the sum of all keeps to that bound.

        Where the number of records is private, more of them than the bound allows for must not stop the run: their
        sum is cut off, which brings no two sums further apart.
        """
        bound = question.bound * self._weight
        return np.clip(self._exact(question), -bound, bound)

    def _exact(self, question: Question) -> Array:
        with np.errstate(all="ignore"):
            match question.kind:
                case "second_moments":
                    return packed(self._oracle.second_moments())
                case "gradients":
                    return self._gradients(question.coefficients)
                case "minimisers":
                    return self._weight * self._oracle.minimise(None, self._task.regularization).ravel()
        raise InvalidParameter(f"no plan's algorithm asks a question {question.kind!r}")

    def _gradients(self, coefficients: Array | None) -> Array:
        points = np.asarray(coefficients, dtype=np.float64)
        if points.shape != (self._task.problems, self._task.dimension) or not np.isfinite(points).all():
            raise InvalidParameter("the coefficients asked about are not finite or not of the plan's shape")
        return self._oracle.gradients(points).ravel()


class CountedParty(Answers):
    """PRIVATE: one party's tables, counted once. What `answer` returns has no noise yet.

    Parameters
    ----------
    vector : array
        The exact part of the sum.
    share : float
        The party's part of all records.
    """

    def __init__(self, vector: Array, share: float) -> None:
        self._vector = vector
        self._share = share

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def answer(self, question: Question) -> Array:
        """Cut off at the party's part of the bound, where the number of records is private: that moves none apart."""
        bound = question.bound * self._share
        return np.clip(self._vector, -bound, bound)


Progress = Callable[[Question], None]
"""Called with each question before it is asked."""


class TrustedSum(NoisySums):
    """Adds the parties' answers and as much noise as a secure sum holds when nobody is missing.

    That is K shares where ``mechanism.shares`` of them keep the promise. ``progress`` is called with each question
    before it is asked.
    """

    def __init__(
        self,
        mechanism: SummedMechanism,
        parties: Sequence[Party],
        randomness: Randomness,
        progress: Progress | None = None,
    ) -> None:
        self._surplus = mechanism.surplus
        self._parties = tuple(parties)
        self._randomness = randomness
        self._progress = progress
        self._kept: dict[Noise, Array] = {}

    def ask(self, question: Question) -> NoisySum:
        if self._progress is not None:
            self._progress(question)
        vector = np.sum([party.answer(question) for party in self._parties], axis=0)
        for noise in question.noise:
            vector = self._with_noise(vector, noise)
        return NoisySum(vector, sum(party.total for party in self._parties), len(self._parties))

    def _with_noise(self, vector: Array, noise: Noise) -> Array:
        if noise.kept:
            if noise not in self._kept:
                self._kept[noise] = self._drawn(np.zeros_like(vector), noise)
            return np.asarray(vector + self._kept[noise])
        for _ in range(len(self._parties) if noise.by_each else 1):
            vector = self._drawn(vector, noise)
        return vector

    def _drawn(self, vector: Array, noise: Noise) -> Array:
        scale = noise.scale * (self._surplus if noise.law == "gaussian" else 1.0)
        return ADD_NOISE[noise.law](vector, scale, self._randomness)


def train_together(
    plan: MultipartyPlan,
    tables: Mapping[str, Any],
    *,
    progress: Progress | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Release:
    """Simulate the plan in this process, which sees every party's rows; the release is that of a real run.

    Parameters
    ----------
    plan : MultipartyPlan
    tables : dict of str to table
        Each party's rows by its name in the plan, target column included.
    progress : callable, optional
        Called with each question before it is asked.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits; with anything else the release says "not private".

    Examples
    --------
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> plan = MultipartyPlan(
    ...     schema=census_schema(), parties={"north": 500, "south": 2500}, epsilon=2.0, delta=1e-5
    ... )
    >>> release = train_together(
    ...     plan, {"north": simulated_census(500, seed=1), "south": simulated_census(2500, seed=2)}
    ... )
    >>> print(release.certificate.guarantee)
    (epsilon = 2, delta = 1e-05)-differential privacy, neighbours: replace_one
    """
    plan.check_tables(tables)
    randomness = randomness_from(random_state)
    parties = [Party.from_table(plan, name, table) for name, table in tables.items()]
    return coordinate(plan, TrustedSum(plan.mechanism, parties, randomness, progress), randomness)


def coordinate(plan: MultipartyPlan, sums: NoisySums, randomness: Randomness) -> Release:
    """The coordinator's side: ask the plan's questions, and make the release from noisy sums alone.

    ``randomness`` is what the parties draw their noise from, for the certificate; nothing is drawn here.
    """
    return plan.outcome(sums, randomness)
