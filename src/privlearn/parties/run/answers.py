"""Exact answers of one party to the questions of a run. They have no noise yet and must not leave as they are.

Each answer is cut off at the party's part of the question's bound, so that the sum of all parties stays within that
bound. Where the number of records is private, more of them than expected must not stop the run; cutting off brings no
two answers further apart.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.mechanisms.oracle import DataOracle
from privlearn.mechanisms.summed.summed import Question, pack
from privlearn.mechanisms.task import Task


class Answers(Protocol):
    """One party's rows, seen through the questions of a run."""

    def answer(self, question: Question) -> Array:
        """PRIVATE: return the party's exact part of the sum, to which noise and masks are added before it leaves."""


class Party(Answers):
    """Rows under a training task.

    Parameters
    ----------
    task : Task
        The task of all parties together, from the agreement's mechanism.
    oracle : DataOracle
        This party's rows under that task.
    weight : float
        Its part of all records, or the weight of its own minimiser in an aggregation; all parties' weights add up to 1.
    """

    def __init__(self, task: Task, oracle: DataOracle, weight: float) -> None:
        self._task = task
        self._oracle = oracle
        self._weight = weight

    @property
    def total(self) -> int:
        """Public: number of records, or of persons, declared or expected."""
        return self._oracle.total

    def __repr__(self) -> str:
        return f"{type(self).__name__}(total={self.total})"

    def answer(self, question: Question) -> Array:
        """PRIVATE: return the exact part of the sum, without warnings, since a warning would depend on the rows."""
        bound = question.bound * self._weight
        return np.clip(self._exact(question), -bound, bound)

    def _exact(self, question: Question) -> Array:
        with np.errstate(all="ignore"):
            match question.kind:
                case "second_moments":
                    return pack(self._oracle.second_moments())
                case "gradients":
                    return self._gradients(question.coefficients)
                case "minimisers":
                    return self._weight * self._oracle.minimise(None, self._task.regularization).ravel()
        raise InvalidParameter(f"no algorithm asks a question of kind {question.kind!r}")

    def _gradients(self, coefficients: Array | None) -> Array:
        points = np.asarray(coefficients, dtype=np.float64)
        if points.shape != (self._task.problems, self._task.dimension) or not np.isfinite(points).all():
            raise InvalidParameter("the coefficients of the question are not finite, or have the wrong shape")
        return self._oracle.gradients(points).ravel()


class CountedParty(Answers):
    """PRIVATE: a vector that was computed once, such as one party's counts.

    ``vector`` (array of shape (length of the question,)): the exact part of the sum. ``share``: the party's part of
    all records.
    """

    def __init__(self, vector: Array, share: float) -> None:
        self._vector = vector
        self._share = share

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def answer(self, question: Question) -> Array:
        """PRIVATE: return the vector, cut off at the party's part of the bound."""
        bound = question.bound * self._share
        return np.clip(self._vector, -bound, bound)
