"""A party's rows, the questions it answers, and training over the sum of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.erm import Loss, Problem
from privlearn.erm.problem import Rows
from privlearn.errors import DataError, InvalidParameter
from privlearn.estimators.fitting import class_signs, minimiser, row_weights
from privlearn.estimators.inputs import read_table
from privlearn.mechanisms import Task
from privlearn.mechanisms.noise import ADD_NOISE
from privlearn.mechanisms.summed.summed import Ask, Noise, NoisySum, Question, SummedMechanism, packed
from privlearn.multiparty.run.plan import MultipartyPlan
from privlearn.randomness import Randomness, randomness_from
from privlearn.release import Certificate, LinearModel, Release
from privlearn.release.encoders import describe_encoding


class Party:
    """Rows under a task. What `answer` returns has no noise yet and must not leave as it is.

    Parameters
    ----------
    task : Task
        Of all parties together, as the plan's mechanism has it.
    features : array or CSR matrix
        Rows of norm at most 1.
    signs : sequence of arrays
        +1 or -1 for each row, once a problem.
    total : int
        Number of records, or of persons, as the plan declares or expects it.
    weight : float
        What this party's own minimiser counts in an aggregation.
    row_weights : array, optional
        Ones by default.
    """

    def __init__(
        self,
        task: Task,
        features: Any,
        signs: Sequence[Array],
        *,
        total: int,
        weight: float,
        row_weights: Array | None = None,
    ) -> None:
        self.total = total
        self._task = task
        self._loss = cast(Loss, task.loss)
        self._features = features
        self._rows = Rows(features, 1.0)
        self._signs = tuple(signs)
        self._weight = weight
        self._row_weights: Array = np.ones(self._rows.count) if row_weights is None else row_weights

    @classmethod
    def from_table(cls, plan: MultipartyPlan, name: str, table: Any) -> Party:
        """The plan's party of that name with its table, target column included."""
        if name not in plan.parties:
            raise InvalidParameter(f"the plan has no party {name!r}: it lists {', '.join(plan.parties)}")
        training = read_table(plan.table_schema, table, None, fit_intercept=True)
        relation, declared = plan.guarantee.relation, plan.parties[name]
        if relation.count_is_public and training.total != declared:
            raise DataError(
                f"the plan declares {declared} records of {name!r}, and the table has another number: "
                "agree on a new plan, or bring the declared records"
            )
        return cls(
            plan.mechanism.task,
            plan.features.transform(training.features),
            class_signs(training),
            total=declared,
            weight=plan.weight(name),
            row_weights=row_weights(training, None),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(total={self.total})"

    def answer(self, question: Question) -> Array:
        """This party's exact part of the sum; no warning on the way, since a warning would depend on the rows.

        Where the number of records is private, more of them than the bound allows for must not stop the run: their
        sum is cut off, which brings no two sums further apart.
        """
        return np.clip(self._exact(question), -question.bound, question.bound)

    def _exact(self, question: Question) -> Array:
        with np.errstate(all="ignore"):
            match question.kind:
                case "second_moments":
                    return packed(self._rows.gram(self._row_weights))
                case "gradients":
                    return self._gradients(question.coefficients)
                case "minimisers":
                    return self._minimisers()
        raise InvalidParameter(f"no plan's algorithm asks a question {question.kind!r}")

    def _gradients(self, coefficients: Any) -> Array:
        points = np.asarray(coefficients, dtype=np.float64)
        if points.shape != (len(self._signs), self._rows.dimension) or not np.isfinite(points).all():
            raise InvalidParameter("the coefficients asked about are not finite or not of the plan's shape")
        return np.concatenate([self._gradient(*problem) for problem in zip(self._signs, points, strict=True)])

    def _gradient(self, signs: Array, point: Array) -> Array:
        slopes = self._loss.derivative(signs * self._rows.times(point))
        return self._rows.transposed_times(signs * self._row_weights * slopes)

    def _minimisers(self) -> Array:
        return self._weight * np.concatenate([self._minimiser(signs) for signs in self._signs])

    def _minimiser(self, signs: Array) -> Array:
        problem = Problem(
            self._features, signs, self._loss, self._task.regularization, self.total, self._row_weights
        )
        return minimiser(problem, self._task)


class TrustedSum:
    """Adds the parties' answers and as much noise as a secure sum holds when nobody is missing.

    That is K shares where ``mechanism.shares`` of them keep the promise.
    """

    def __init__(self, mechanism: SummedMechanism, parties: Sequence[Party], randomness: Randomness) -> None:
        self._surplus = mechanism.surplus
        self._parties = tuple(parties)
        self._randomness = randomness
        self._kept: dict[Noise, Array] = {}

    def __call__(self, question: Question) -> NoisySum:
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


Progress = Callable[[Question], None]
"""Called before each question is asked."""


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
    if sorted(tables) != sorted(plan.parties):
        raise InvalidParameter(f"bring a table of each party of the plan: {', '.join(plan.parties)}")
    randomness = randomness_from(random_state)
    parties = [Party.from_table(plan, name, table) for name, table in tables.items()]
    return coordinate(plan, TrustedSum(plan.mechanism, parties, randomness), randomness, progress)


def coordinate(
    plan: MultipartyPlan, ask: Ask, randomness: Randomness, progress: Progress | None = None
) -> Release:
    """The coordinator's side: ask the plan's questions through ``ask``, and make the release from noisy sums alone.

    ``randomness`` is what the parties draw their noise from, for the certificate; nothing is drawn here.
    """
    mechanism, features = plan.mechanism, plan.features
    coefficients = features.released(mechanism.run(ask if progress is None else _shown(ask, progress)))
    target: Any = plan.table_schema.target
    link = plan.mechanism.task.loss.link
    model = LinearModel(features.encoder, coefficients, np.array(target.classes), link)
    certificate = Certificate.issue(mechanism, randomness, describe_encoding(features.encoder))
    return Release(model, certificate)


def _shown(ask: Ask, progress: Progress) -> Ask:
    def shown(question: Question) -> NoisySum:
        progress(question)
        return ask(question)

    return shown
