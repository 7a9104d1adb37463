"""What the private linear models share: the path from the caller's data to a release, in one order."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from privlearn.arrays import Array
from privlearn.data import ArrayEncoder, Schema
from privlearn.erm import LossFacts
from privlearn.erm.losses import choose_loss
from privlearn.errors import InvalidParameter, shown
from privlearn.estimators.callers import check_callers
from privlearn.estimators.fitting import Fitting, charge_of
from privlearn.estimators.inputs import EncodedRows, check_array_shape, target_column
from privlearn.guarantee import Guarantee
from privlearn.ledger import Charge
from privlearn.mechanisms import Task
from privlearn.mechanisms.mechanism import Minimise
from privlearn.randomness import randomness_from
from privlearn.relation import relation_named
from privlearn.release import Model, Release
from privlearn.release.encoders import Encoder, base_of


class PrivateLinearModel(BaseEstimator, ABC):  # type: ignore[misc]
    """Read, plan, charge, solve with noise, publish. A subclass says what it reads, solves and releases.

    It stores the parameters that are read here: those of `PrivateLinearClassifier` except ``classes`` and
    ``class_weight``.
    """

    _default_loss: ClassVar[str]
    _declared: ClassVar[tuple[str, ...]] = ("norm_bound",)
    """Parameters that describe plain arrays; a schema takes their place."""
    _instead_of_weights: ClassVar[str] = ""

    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> Any:
        """Train, charge the ledger, and prepare the release.

        Parameters
        ----------
        X : table or array of shape (n, features)
            With a schema: pandas, polars or pyarrow table. Without: numpy array or scipy sparse matrix.
        y : array of shape (n,), optional
            What to predict. With a schema it may be left out: the schema's target column is taken.
        """
        self._refuse(unsupported)
        charge, release = self._planned(X, y)
        self.publish(charge.pay_for(release))
        return self

    def rehearse(self, X: Any, y: Any = None) -> None:
        """All that `fit` does before it charges the ledger: whatever would stop it, stops it here."""
        self._planned(X, y)[0].check()

    def _planned(self, X: Any, y: Any) -> tuple[Charge, Callable[[], Release]]:
        """What `fit` costs, and what touches the data once that is paid."""
        guarantee = Guarantee(self.epsilon, self.delta, self.neighbours)
        randomness = randomness_from(self.random_state)
        if guarantee.is_private and randomness.secure:
            check_callers()
        work = self.prepare(X, y, guarantee.is_private)
        mechanism = work.plan(guarantee)
        charge = charge_of(self, mechanism, work.rows.total, randomness)
        return charge, lambda: work.release(mechanism, randomness)

    def set_params(self, **params: Any) -> Any:
        """As scikit-learn has it; but a tool of scikit-learn that seeds its members may not make the noise known."""
        seeded = self.random_state is None and params.get("random_state") is not None
        if seeded and self.epsilon != math.inf:
            check_callers()
        return super().set_params(**params)

    def prepare(self, X: Any, y: Any, private: bool) -> Fitting:
        """Check the parameters, read the rows and lift them: all that `fit` does before it plans.

        ``private=False`` allows what is read from the rows where nothing is promised.
        """
        if not isinstance(self.schema, Schema | None):
            raise InvalidParameter(
                f"schema must be a Schema, not {shown(self.schema)}: Schema.load('census.yaml')"
            )
        if isinstance(self.ledger, str | Path):
            raise InvalidParameter("ledger must be a Ledger, not a path: Ledger.open('budgets.db', 'census')")
        loss = self._chosen_loss()
        relation = relation_named(self.neighbours)
        relation.check_expected(self.expected_records)
        rows = self._read(X, y, private)
        public = dataclasses.replace(rows, total=relation.total(rows.total, self.expected_records))
        return Fitting(self, loss, *self._lift(public))

    def publish(self, release: Release) -> None:
        """Become the fitted estimator of a model that may leave."""
        self.coefficients_ = release.model.coefficients
        self.certificate_ = release.certificate
        self.release_ = release

    def _truth(self, X: Any, y: Any) -> Any:
        """What to score against: with a schema, its target column unless ``y`` is given."""
        if y is not None or self.schema is None:
            return y
        return np.array(target_column(self.schema, X, None)[1].to_pylist())

    @classmethod
    @abstractmethod
    def _takes(cls, loss: type[LossFacts]) -> bool:
        """Whether such a loss makes a model of this kind."""

    @abstractmethod
    def _read_table(self, schema: Schema, X: Any, y: Any) -> Any:
        """Rows of a table under the schema."""

    @abstractmethod
    def _read_arrays(self, X: Any, y: Any, private: bool) -> Any:
        """Rows of plain arrays."""

    @abstractmethod
    def _task(self, loss: LossFacts, rows: Any) -> Task:
        """Public facts; see `_task_of`."""

    @abstractmethod
    def _solver(self, loss: LossFacts, rows: Any, task: Task) -> Minimise:
        """What the mechanism calls to touch the data; the task states what the solver has to certify."""

    @abstractmethod
    def _model_of(self, loss: LossFacts, rows: Any, encoder: Encoder, coefficients: Array) -> Model:
        """What is released."""

    def _chosen_loss(self) -> LossFacts:
        """The loss asked for, one of the listed."""
        chosen: LossFacts = choose_loss(self.loss, self._takes, self._default_loss)
        return chosen

    def _chosen_mechanism(self) -> tuple[str, str]:
        return self.mechanism, self.noise

    def _read(self, X: Any, y: Any, private: bool) -> Any:
        if self.schema is None:
            return self._read_arrays(X, y, private)
        if any(getattr(self, name) is not None for name in self._declared):
            raise InvalidParameter(
                f"the schema says it all: leave out {' and '.join(self._declared)}, or leave out schema"
            )
        return self._read_table(self.schema, X, y)

    def _lift(self, rows: Any) -> tuple[Any, Callable[[Array], Array]]:
        """Rows in the space where the model is linear, and how its coefficients are written down there."""
        return rows, lambda coefficients: coefficients

    def _task_of(self, loss: LossFacts, rows: EncodedRows, **facts: Any) -> Task:
        """Public facts; the regularization is still a placeholder."""
        common = {"dimension": rows.features.shape[1], "problems": 1}
        return Task(
            loss=loss,
            total=rows.total,
            regularization=1.0,
            tolerance=self.tolerance,
            neighbours=self.neighbours,
            rows_per_person=rows.rows_per_person,
            averaged=rows.person_weights is not None,
            **common | facts,
        )

    def _model(self, X: Any) -> Any:
        """The released model, once X has the shape it was trained on."""
        check_is_fitted(self)
        if isinstance(base_of(self.release_.model.encoder), ArrayEncoder):
            check_array_shape(X)
            validate_data(self, X, reset=False, skip_check_array=True)
        return self.release_.model

    def _refuse(self, unsupported: Mapping[str, Any]) -> None:
        given = [name for name, value in unsupported.items() if value is not None]
        if given:
            raise InvalidParameter(
                f"fit does not take {', '.join(given)}: weights of single records would raise what one person can "
                f"change, and are private themselves{self._instead_of_weights}"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
