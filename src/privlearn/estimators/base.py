"""What the private linear models share: the path from the caller's data to a release, in one order."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from privlearn.accounting import gaussian_ratio
from privlearn.arrays import Array
from privlearn.data.encode.arrays import ArrayEncoder
from privlearn.data.encode.bounded_arrays import bounded_array
from privlearn.data.encode.column_cells import UNKNOWN
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.encode.resolution import Resolution, choose_resolution
from privlearn.data.schema.columns import Target
from privlearn.data.schema.schema import Schema, as_schema
from privlearn.erm.losses import LossFacts, choose_loss
from privlearn.errors import InvalidParameter
from privlearn.estimators.callers import check_callers
from privlearn.estimators.cluster.rows import check_loss, rows_on_cluster
from privlearn.estimators.fitting import Fitting, charge_of
from privlearn.estimators.goal import TrainingRows
from privlearn.estimators.inputs import target_column
from privlearn.estimators.learner import ReleasingLearner, check_array_shape
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Charge
from privlearn.randomness import randomness_from
from privlearn.relation import relation_named
from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.encoders import base_of, feature_names
from privlearn.release.model import Model


class PrivateLinearModel(ReleasingLearner):
    """Read, plan, charge, solve with noise, publish. A subclass says which losses it takes and how it reads."""

    _default_loss: ClassVar[str]
    _instead_of_weights: ClassVar[str] = ""
    stands_for: int | None = None
    """Public: how many records the rows that are read stand for, if they are a public sample of others."""

    coefficients_: Array
    certificate_: Certificate
    release_: Release
    n_features_in_: int

    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> Self:
        """Train, charge the ledger, and prepare the release.

        Parameters
        ----------
        X : table or array of shape (n, features)
            With a schema: pandas, polars or pyarrow table, a pyarrow RecordBatchReader, or what
            `privlearn.data.open_records` makes of a file or folder, however large. Without: numpy array or scipy
            sparse matrix.
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
        guarantee = self.promise()
        randomness = randomness_from(self.random_state)
        if guarantee.is_private and randomness.secure:
            check_callers()
        work = self.prepare(X, y, guarantee.is_private)
        mechanism = work.plan(guarantee)
        charge = charge_of(self, mechanism, work.rows.total, randomness)
        return charge, lambda: work.release(mechanism, randomness)

    def set_params(self, **params: Any) -> Self:
        """As scikit-learn has it; but a tool of scikit-learn that seeds its members may not make the noise known."""
        seeded = self.random_state is None and params.get("random_state") is not None
        if seeded and self.epsilon != math.inf:
            check_callers()
        return super().set_params(**params)

    def prepare(self, X: Any, y: Any, private: bool) -> Fitting:
        """Check the parameters, read the rows and lift them: all that `fit` does before it plans.

        ``private=False`` allows what is read from the rows where nothing is promised.
        """
        if self.schema is not None:
            as_schema(self.schema)  # the constructor keeps what it cannot read: refused here
        if isinstance(self.ledger, str | Path):
            raise InvalidParameter("ledger must be a Ledger, not a path: Ledger.open('budgets.db', 'census')")
        self.chosen_loss()  # refuse what cannot be before reading what may be long
        relation = relation_named(self.neighbours)
        relation.check_expected(self.expected_records)
        rows = self.read_rows(X, y, private)
        public = dataclasses.replace(rows, total=relation.total(rows.total, self.expected_records))
        return Fitting(self, self._lift(public))

    def read_rows(self, X: Any, y: Any, private: bool) -> TrainingRows:
        remote = rows_on_cluster(X)
        if remote is None:
            return super().read_rows(X, y, private)
        self._refuse_declarations()
        if self.schema is None or y is not None:
            raise InvalidParameter(
                "rows on a cluster are read by a schema, target included: pass schema=... and leave out y"
            )
        check_loss(self.chosen_loss().smoothness)
        return self.weighted(remote.training_rows(self.schema, self.fit_intercept, self.resolution))

    def resolution(self, schema: Schema, records: int, promise: Guarantee | None = None) -> Resolution | None:
        """Public: as fine as so many records, and the noise that the promise asks for, afford."""
        guarantee, expected = promise, records
        if guarantee is None:
            guarantee = self.promise()
            counted = records if self.stands_for is None else self.stands_for
            expected = guarantee.relation.total(counted, self.expected_records)
        return choose_resolution(schema, expected, self._noise(guarantee, schema.rows_per_person))

    def _noise(self, guarantee: Guarantee, rows: int) -> float:
        """Public: the noise that `choose_resolution` reckons with; without bound where it grows with the features.

        A regression keeps its columns whole: with pairs, the default regularization was measured to be far too weak.
        """
        if self.chosen_loss().sees == "residual":
            return math.inf
        if not guarantee.is_private:
            return 0.0
        if not self._is_gaussian(guarantee):
            return math.inf
        return guarantee.relation.gradients * rows / gaussian_ratio(guarantee.epsilon, guarantee.delta)

    def _is_gaussian(self, guarantee: Guarantee) -> bool:
        """Public: whether noise is Gaussian and as small as it can be."""
        return guarantee.delta > 0 and self.noise in ("auto", "gaussian") and self.calibration == "tight"

    def publish(self, release: Release) -> None:
        """Become the fitted estimator of a model that may leave."""
        self.coefficients_ = release.model.coefficients
        self.certificate_ = release.certificate
        self.release_ = release
        if self.schema is not None:
            self.feature_names_in_ = np.array(list(self.schema.columns), dtype=object)
            self.n_features_in_ = len(self.schema.columns)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The name of each coefficient: of the features that columns are encoded as, the constant term included."""
        check_is_fitted(self)
        return np.array(feature_names(self.release_.model.encoder), dtype=object)

    def _truth(self, X: Any, y: Any) -> Any:
        """What to score against: ``y``, or else the schema's target column; merged labels as their class."""
        if self.schema is None:
            return y
        target, answers = target_column(self.schema, X, y)
        if target.merge:
            return _merged(self.schema, target, answers)
        return np.array(answers.to_pylist()) if y is None else y

    @classmethod
    @abstractmethod
    def _takes(cls, loss: type[LossFacts]) -> bool:
        """Whether such a loss makes a model of this kind."""

    def chosen_loss(self) -> LossFacts:
        chosen: LossFacts = choose_loss(self.loss, self._takes, self._default_loss)
        return chosen

    def _lift(self, rows: TrainingRows) -> TrainingRows:
        """Rows in the space where the model is linear."""
        return rows

    def _model(self, X: Any) -> Model:
        """The released model, once X has the shape it was trained on."""
        check_is_fitted(self)
        if self.column_bounds is not None or isinstance(base_of(self.release_.model.encoder), ArrayEncoder):
            check_array_shape(X)
            validate_data(self, X, reset=False, skip_check_array=True)
        return self.release_.model

    def _rows(self, X: Any) -> Any:
        """What the released model reads: columns of arrays under ``column_bounds`` go by their place."""
        base = base_of(self.release_.model.encoder)
        if self.column_bounds is None or not isinstance(base, SchemaEncoder):
            return X
        return bounded_array(X, base.schema)

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


def _merged(schema: Schema, target: Target, answers: Any) -> NDArray[Any]:
    """Each label's class; a label of none (``unknown: zero``) stays what it is, so that no prediction meets it."""
    places = SchemaEncoder(schema).encode_labels(answers)
    merged = np.array(target.classes)[places]
    return np.where(places == UNKNOWN, np.array(answers), merged) if np.any(places == UNKNOWN) else merged
