"""One holder's side: its rows stay here; it answers the coordinator's questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.erm import Loss, Problem, minimise
from privlearn.erm.rows import Rows
from privlearn.errors import DataError, InvalidParameter
from privlearn.estimators.inputs import read_table
from privlearn.estimators.training import class_signs, row_weights
from privlearn.mechanisms import Task
from privlearn.mechanisms.summed import Question, packed
from privlearn.multiparty.plan import MultipartyPlan

Array = NDArray[np.float64]


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
        Number of records, or of persons.
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
        if training.total != plan.parties[name]:
            raise DataError(
                f"the plan declares {plan.parties[name]} records of {name!r}, and the table has another number: "
                "agree on a new plan, or bring the declared records"
            )
        return cls(
            plan.mechanism.task,
            plan.features.transform(training.features),
            class_signs(training),
            total=training.total,
            weight=plan.weight(name),
            row_weights=row_weights(training, None),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(total={self.total})"

    def answer(self, question: Question) -> Array:
        """This party's exact part of the sum; no warning on the way, since a warning would depend on the rows."""
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
        return minimise(problem, tolerance=self._task.tolerance, gap=self._task.gap).coefficients
