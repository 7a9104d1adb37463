"""`PrivateEstimator`: the path from the caller's data to a release, in one order, with scikit-learn's protocol."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.accounting import gaussian_ratio
from privlearn.arrays import Array
from privlearn.budget.charge import Budget, Charge
from privlearn.data.encoding.arrays import ArrayEncoder, bounded_array
from privlearn.data.encoding.column_cells import UNKNOWN
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.resolution import Resolution, choose_resolution
from privlearn.data.parts import part_of, without_part
from privlearn.data.schema.schema import Schema, as_schema
from privlearn.data.schema.target import Target
from privlearn.errors import InvalidParameter, preview
from privlearn.estimators.fit import Fit, charge_of
from privlearn.estimators.kernel_features import check_mechanism, lift
from privlearn.estimators.learner import Learner
from privlearn.estimators.reading import check_array_shape, is_on_cluster, refuse_weights, target_column
from privlearn.estimators.regularizer import divide_by_weights, public_coefficients
from privlearn.estimators.scikit_learn import check_callers, check_columns, check_is_fitted
from privlearn.estimators.training_rows import Progress, TrainingRows
from privlearn.features.kernels import LinearKernel
from privlearn.features.public_map import PublicMap
from privlearn.guarantee import Guarantee, get_relation
from privlearn.randomness import randomness_from
from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.encoders import base_of, feature_names
from privlearn.release.model import Model
from privlearn.solvers.losses import LossProperties, choose_loss

_NO_SLOPES = (
    "has one number per column of X only for arrays under norm_bound with the linear kernel. Read a model of other "
    "columns by release_.effects(), or its coefficients_ with get_feature_names_out()"
)
_NO_RECORDS = "is made of private records, which do not leave. predict and release_ need none of them"
_ABSENT = {
    "n_iter_": "n_iter_ depends on the private records. progress=True shows the iterations to the holder",
    "coef_": f"coef_ {_NO_SLOPES}",
    "intercept_": f"intercept_ {_NO_SLOPES}",
    "dual_coef_": f"dual_coef_ {_NO_RECORDS}",
    "support_vectors_": f"support_vectors_ {_NO_RECORDS}",
}
"""Attributes of scikit-learn's estimators that a fitted one may lack, with the reason."""


class PrivateEstimator(Learner):
    """Read, calibrate, charge, solve with noise, publish; `PrivateLinearClassifier` explains the parameters.

    A subclass states its constructor, its losses, what reads its target, and how it predicts.
    """

    epsilon: float | None
    delta: float
    neighbours: str
    expected_records: int | None
    features: str | PublicMap | None
    public_points: Any
    fourier_pairs: int
    fourier_seed: int
    mechanism: str
    noise: str
    calibration: str
    centre: str | bool
    probability: bool = False
    regularize_towards: Any
    regularization_weights: Sequence[float] | None
    tolerance: str | float
    ledger: Budget | None
    accept_weak_privacy: bool
    progress: Progress | bool | None
    random_state: int | np.random.Generator | None

    _default_loss: ClassVar[str]
    stands_for: int | None = None
    """Public: how many records the rows stand for, if they are a public sample of other records."""
    releases_statistics: bool = True
    """Public: whether the shares of classes, or centre and spread of numbers, may be released with the model."""
    before_charge: Callable[[int], None] | None = None
    """Called with the public number of records before the ledger is charged; it may raise to stop `fit`."""

    coefficients_: Array
    coef_: Array
    intercept_: Array
    certificate_: Certificate
    guarantee_: Guarantee
    release_: Release
    n_features_in_: int

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train, charge the ledger, and prepare the release.

        Parameters
        ----------
        X : table or array of shape (n, features)
            With a schema: pandas, polars or pyarrow table, a pyarrow RecordBatchReader, or the result of
            `privlearn.data.open_records` on a file or directory of any size. Without: numpy array or scipy sparse
            matrix.
        y : array of shape (n,), optional
            What to predict. With a schema it may be left out: the schema's target column is taken.
        sample_weight : array of shape (n,), optional
            Weight of each row of an array, clipped to [0, ``max_weight``]. A table's weights are in its schema.
        """
        charge, release = self._prepare_charge(X, y, sample_weight)
        self.publish(charge.pay_for(release))
        return self

    def rehearse(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Do everything that `fit` does before it charges the ledger, and raise what would stop it."""
        self._prepare_charge(X, y, sample_weight)[0].check()

    def _prepare_charge(self, X: Any, y: Any, sample_weight: Any) -> tuple[Charge, Callable[[], Release]]:
        """Return what `fit` costs, and the function that touches the data once the ledger is charged."""
        guarantee = self.make_guarantee()
        randomness = randomness_from(self.random_state)
        if guarantee.is_private and randomness.secure:
            check_callers(charging=self.ledger is not None)
        work = self.prepare(without_part(X, y), y, guarantee.is_private, sample_weight)
        mechanism = work.calibrate(guarantee)
        if self.before_charge is not None:
            self.before_charge(work.rows.total)
        charge = charge_of(self, mechanism, work.rows.total, randomness, part_of(X))
        return charge, lambda: work.release(mechanism, randomness)

    def make_guarantee(self) -> Guarantee:
        """Public: return the requested guarantee; refuse while epsilon is not stated."""
        return Guarantee(cast(float, self.epsilon), self.delta, self.neighbours)

    def select_mechanism(self) -> tuple[str, str]:
        """Public: return the requested mechanism and noise, which may be ``"auto"``."""
        check_mechanism(self)
        return (
            ("output", "gaussian") if self.mechanism == "function_release" else (self.mechanism, self.noise)
        )

    def set_params(self, **params: Any) -> Self:
        """Set parameters as in scikit-learn; refuse tools that seed their members, or that would be refused in `fit`.

        A search of scikit-learn shows this refusal alone. It repeats one of `fit` in the traceback of every fold.
        """
        if self.random_state is None and params.get("epsilon", self.epsilon) != math.inf:
            check_callers()
        return super().set_params(**params)

    def prepare(self, X: Any, y: Any, private: bool, sample_weight: Any = None) -> Fit:
        """Check the parameters, read the rows and lift them: the steps of `fit` before calibration.

        ``private=False``, for epsilon = inf, lets bounds and classes be read from the rows.
        """
        self.select_mechanism()  # cheap checks first: reading may take long
        is_precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        if is_precomputed and not self._is_undescribed:
            raise InvalidParameter(
                "kernel='precomputed' takes kernel values as they are. Leave out schema, norm_bound and column_bounds"
            )
        if self.schema is not None:
            as_schema(self.schema)  # refuses what the constructor stored unread
        if not (self.progress is None or isinstance(self.progress, bool) or callable(self.progress)):
            raise InvalidParameter(
                "progress must be True, or a function of (problem, problems, iteration), not "
                f"{preview(self.progress)}"
            )
        self.select_loss()
        relation = get_relation(self.neighbours)
        relation.check_expected(self.expected_records)
        rows = self.read_rows(X, y, private, sample_weight)
        public = dataclasses.replace(rows, total=relation.total(rows.total, self.expected_records))
        lifted = lift(self, public)
        prior = public_coefficients(self.regularize_towards, lifted, self.loss_for(lifted.targets))
        lifted = dataclasses.replace(lifted, prior=prior)
        return Fit(self, divide_by_weights(lifted, self.regularization_weights)).with_public_offsets()

    def read_rows(self, X: Any, y: Any, private: bool, sample_weight: Any = None) -> TrainingRows:
        if not is_on_cluster(X):
            return super().read_rows(X, y, private, sample_weight)
        from privlearn.estimators.cluster.rows import check_loss, rows_on_cluster  # late: few fits need it

        remote = rows_on_cluster(X)
        self._refuse_declarations()
        refuse_weights(sample_weight, self.max_weight)
        if self.schema is None or y is not None:
            raise InvalidParameter(
                "rows on a cluster are read by a schema, target included. Pass schema=... and leave out y"
            )
        check_loss(self.select_loss().smoothness)
        return self.apply_weights(remote.training_rows(self.schema, self.fit_intercept, self.resolution))

    @property
    def _takes_objects(self) -> bool:
        return self._is_undescribed and (not isinstance(self.kernel, str) or self.kernel == "precomputed")

    @property
    def _is_undescribed(self) -> bool:
        declared = (self.schema, self.norm_bound, self.column_bounds, self.features)
        return all(each is None for each in declared)

    def resolution(self, schema: Schema, records: int, guarantee: Guarantee | None = None) -> Resolution:
        """Public: return the finest resolution that this many records and the guarantee's noise afford.

        Kernels keep the default: they see rows by their distances, which fine bins would make almost equal. So does a
        regression: with pairs, the default regularization was measured to be far too weak. So do the papers' methods.
        """
        if self.public_points is not None or not isinstance(self.select_kernel(), LinearKernel):
            return Resolution()
        if self.select_loss().argument == "residual" or self.calibration != "tight":
            return Resolution()
        expected = records
        if guarantee is None:
            guarantee = self.make_guarantee()
            count = records if self.stands_for is None else self.stands_for
            expected = guarantee.relation.total(count, self.expected_records)
        noise, is_gaussian = 0.0, self._is_gaussian(guarantee)
        if guarantee.is_private:
            sensitivity = guarantee.relation.gradients * schema.rows_per_person * schema.row_weight_bound
            ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta) if is_gaussian else guarantee.epsilon
            noise = sensitivity / ratio
        # Without privacy too: epsilon = inf is the limit of the private model, which depends on delta.
        return choose_resolution(schema, expected, noise, grows=not is_gaussian)

    def _is_gaussian(self, guarantee: Guarantee) -> bool:
        """Public: return whether the noise is Gaussian with tight calibration."""
        return guarantee.delta > 0 and self.noise in ("auto", "gaussian") and self.calibration == "tight"

    def publish(self, release: Release) -> None:
        """Set the fitted attributes from a release."""
        self.coefficients_ = release.model.coefficients
        self.certificate_ = release.certificate
        self.guarantee_ = release.certificate.guarantee
        self.release_ = release
        if self.schema is not None:
            self.feature_names_in_ = np.array(list(self.schema.columns), dtype=object)
            self.n_features_in_ = len(self.schema.columns)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the name of the encoded feature that each coefficient belongs to, the constant term included."""
        check_is_fitted(self)
        return np.array(feature_names(self.release_.model.encoder), dtype=object)

    def _truth(self, X: Any, y: Any) -> Any:
        """Return what to score against: ``y``, or else the schema's target column; merged labels as their class."""
        if self.schema is None:
            return y
        target, answers = target_column(self.schema, X, y)
        if target.merge:
            return _merge_labels(self.schema, target, answers)
        return np.array(answers.to_pylist()) if y is None else y

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Explain why an attribute of scikit-learn's estimators is absent."""
            reason = _ABSENT.get(name) if "release_" in vars(self) else None
            if reason is None:  # Python's own error, or that of the property that refused
                return super().__getattribute__(name)
            raise AttributeError(reason, name=name, obj=self)

    @classmethod
    @abstractmethod
    def _takes(cls, loss: type[LossProperties]) -> bool:
        """Return whether this kind of model can be learnt with such a loss."""

    def select_loss(self) -> LossProperties:
        loss: LossProperties = choose_loss(self.loss, self._takes, self._default_loss)
        return loss

    def _model(self, X: Any) -> Model:
        """Return the released model; refuse an X of another shape than it was trained on."""
        check_is_fitted(self)
        if self.column_bounds is not None or isinstance(base_of(self.release_.model.encoder), ArrayEncoder):
            check_array_shape(X)
            check_columns(self, X, reset=False)
        return self.release_.model

    def _rows(self, X: Any) -> Any:
        """Return X as the released model reads it: an array under ``column_bounds`` as a table by position."""
        base = base_of(self.release_.model.encoder)
        if self.column_bounds is None or not isinstance(base, SchemaEncoder):
            return X
        return bounded_array(X, base.schema)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _merge_labels(schema: Schema, target: Target, answers: Any) -> NDArray[Any]:
    """Return each label's class; an undeclared label (``unknown: zero``) is kept, so that no prediction equals it."""
    indices = SchemaEncoder(schema).encode_labels(answers)
    merged = np.array(target.classes)[indices]
    return np.where(indices == UNKNOWN, np.array(answers), merged) if np.any(indices == UNKNOWN) else merged
