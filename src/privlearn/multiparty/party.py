"""One holder's side: its rows stay here; it answers the coordinator's questions about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.erm import Problem, minimise
from privlearn.erm.rows import Rows
from privlearn.errors import DataError, InvalidParameter
from privlearn.estimators.inputs import read_table
from privlearn.estimators.training import class_signs, row_weights
from privlearn.mechanisms.summed import Question, packed
from privlearn.multiparty.plan import MultipartyPlan

Array = NDArray[np.float64]


class Party:
    """A table under a plan. What `answer` returns has no noise yet and must not leave as it is.

    Parameters
    ----------
    plan : MultipartyPlan
    name : str
        This party's name in the plan.
    table : pandas, polars or pyarrow table
        Its rows, target column included; as many as the plan declares.
    """

    def __init__(self, plan: MultipartyPlan, name: str, table: Any) -> None:
        if name not in plan.parties:
            raise InvalidParameter(f"the plan has no party {name!r}: it lists {', '.join(plan.parties)}")
        training = read_table(plan.table_schema, table, None, fit_intercept=True)
        if training.total != plan.parties[name]:
            raise DataError(
                f"the plan declares {plan.parties[name]} records of {name!r}, and the table has another number: "
                "agree on a new plan, or bring the declared records"
            )
        self.plan = plan
        self.name = name
        self.total = training.total
        self._features = plan.features.transform(training.features)
        self._rows = Rows(self._features, 1.0)
        self._signs = class_signs(training)
        given = row_weights(training, None)
        self._weights: Array = np.ones(self._rows.count) if given is None else given

    def __repr__(self) -> str:
        return f"Party({self.name!r})"

    def answer(self, question: Question) -> Array:
        """This party's exact part of the sum."""
        match question.kind:
            case "second_moments":
                return packed(self._rows.gram(self._weights))
            case "gradients":
                return self._gradients(question.coefficients)
            case "minimisers":
                return self._minimisers()
        raise InvalidParameter(f"no plan's algorithm asks a question {question.kind!r}")

    def _gradients(self, coefficients: Any) -> Array:
        task = self.plan.mechanism.task
        points = np.asarray(coefficients, dtype=np.float64)
        if points.shape != (task.problems, task.dimension) or not np.isfinite(points).all():
            raise InvalidParameter("the coefficients asked about are not finite or not of the plan's shape")
        slope = self.plan.smooth_loss.derivative
        parts = [
            self._rows.transposed_times(signs * self._weights * slope(signs * self._rows.times(point)))
            for signs, point in zip(self._signs, points, strict=True)
        ]
        return np.concatenate(parts)

    def _minimisers(self) -> Array:
        task, loss = self.plan.mechanism.task, self.plan.smooth_loss
        problems = (
            Problem(self._features, signs, loss, task.regularization, self.total, self._weights)
            for signs in self._signs
        )
        found = [minimise(problem, tolerance=task.tolerance).coefficients for problem in problems]
        return self.plan.weight(self.name) * np.concatenate(found)
