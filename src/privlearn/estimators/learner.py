"""`Learner`: the parameters that declare what is public, how rows are read by them, and the task they lead to.

Estimators release what they learn; a `KernelLearner` answers questions about it in a session. Both read rows here.
What differs between classes and numbers is a value, a `ClassReader` or a `NumberReader`.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from privlearn.data.encoding.arrays import ArrayEncoder, bounded_array, schema_of_bounds
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.resolution import Resolution
from privlearn.data.schema.schema import Schema, as_schema
from privlearn.data.sources.table import safely
from privlearn.errors import ON_DROPPING, DataError, InvalidParameter, SchemaError, preview
from privlearn.estimators.reading import check_array_shape, read_bounded, refuse_weights, weigh_rows
from privlearn.estimators.scikit_learn import BaseEstimator, check_columns
from privlearn.estimators.target_readers import ClassReader, NumberReader
from privlearn.estimators.training_rows import Targets, TrainingRows
from privlearn.features.kernel import Kernel
from privlearn.features.kernels import kernel_from_name
from privlearn.features.map_encoder import MapEncoder, choose_map
from privlearn.features.public_map import PublicMap
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.task import Task
from privlearn.release.encoders import RawEncoder
from privlearn.solvers.losses import LossProperties

_MIN_C, _MAX_C = 1e-100, 1e100

_GAMMA_WITHIN_RANGES = 0.5  # about the best of 0.25 to 32 on five tables, epsilon 0.1, 1 and 10
_GAMMA_OVER_COLUMNS = 24.0


class Learner(BaseEstimator, ABC):
    """Reads rows by what its parameters declare public, and states the task that a mechanism is calibrated for.

    scikit-learn reads a constructor's signature, so each class spells out its own; parameters that are read here are
    declared here.
    """

    schema: Schema | None
    norm_bound: float | None
    column_bounds: Sequence[tuple[float, float]] | None
    loss: str | LossProperties | None
    regularization: str | float
    C: float | None
    fit_intercept: bool
    kernel: str | Kernel | Callable[..., Any]
    gamma: str | float
    degree: int
    coef0: float
    kernel_bound: float | None
    features: str | PublicMap | None = None
    max_weight: float | None = None

    _declared: ClassVar[tuple[str, ...]]
    """Parameters that describe plain arrays; a schema replaces them."""

    def _store(self, arguments: Mapping[str, Any]) -> None:
        """Store a constructor's ``locals()`` under their own names: all that scikit-learn lets a constructor do."""
        for name, value in arguments.items():
            if name != "self":
                setattr(self, name, _read_schema(name, value))

    def set_params(self, **params: Any) -> Self:
        return super().set_params(**{name: _read_schema(name, value) for name, value in params.items()})

    @abstractmethod
    def select_loss(self) -> LossProperties:
        """Public: return the requested loss, or the default one."""

    @abstractmethod
    def target_reader(self) -> ClassReader | NumberReader:
        """Public: return what reads the target: as classes or as numbers, by what is declared about them."""

    def loss_for(self, targets: Targets) -> LossProperties:
        """Public: return the loss for these targets, whose number of classes is known."""
        return self.select_loss()

    @property
    def _takes_objects(self) -> bool:
        """Return whether rows may be objects that only the user's kernel can read."""
        return False

    def resolution(self, schema: Schema, records: int, guarantee: Guarantee | None = None) -> Resolution:
        """Public: return how finely the columns of this many records are encoded."""
        return Resolution()

    def read_rows(self, X: Any, y: Any, private: bool, sample_weight: Any = None) -> TrainingRows:
        """Touch the data: return rows encoded by what is declared public, each with its weight.

        ``private=False``, for epsilon = inf, lets bounds and classes be read from the rows.
        """
        self._refuse_declarations()
        reader = self.target_reader()
        if self.schema is not None:
            refuse_weights(sample_weight, self.max_weight)
            rows = reader.read_table(self.schema, X, y, self.fit_intercept, self.resolution)
        else:
            self._check_arrays(X, y, private)
            targets = reader.read_array(X, y, private)
            rows = self._encode_arrays(X, targets, len(targets.answers))
            rows = weigh_rows(rows, sample_weight, self.max_weight, private)
        return self.apply_weights(rows)

    def apply_weights(self, rows: TrainingRows) -> TrainingRows:
        """Return the rows with the class weights of this learner's parameters."""
        return self.target_reader().apply_weights(rows, self.schema)

    def _refuse_declarations(self) -> None:
        """Refuse parameters that repeat what the schema declares."""
        if self.schema is not None and any(getattr(self, name) is not None for name in self._declared):
            *others, last = self._declared
            raise InvalidParameter(
                f"the schema declares columns and target. Leave out {', '.join(others)} and {last}, or leave out schema"
            )

    def _encode_arrays(self, X: Any, targets: Targets, rows: int) -> TrainingRows:
        """Return plain arrays encoded under the declared bound; objects stay as they are, bounded by the kernel."""
        if self._takes_objects:
            return TrainingRows(X, None, targets, rows)
        if self.features is not None:
            return self._map_rows(X, targets)
        columns = check_array_shape(X, may_be_empty=True)
        encoder: SchemaEncoder | ArrayEncoder
        if self.column_bounds is not None:
            schema = schema_of_bounds(self.column_bounds)
            array = bounded_array(X, schema)
            encoder, features = read_bounded(schema, array, self.fit_intercept, self.resolution)
        else:
            norm_bound = _max_norm(X) if self.norm_bound is None else self.norm_bound
            encoder = ArrayEncoder(norm_bound, columns, fit_intercept=self.fit_intercept)
            features = encoder.encode(X, may_be_empty=True)
        check_columns(self, X, reset=True)
        return TrainingRows(features, encoder, targets, features.shape[0])

    def _map_rows(self, X: Any, targets: Targets) -> TrainingRows:
        """Return raw rows as features of the public map."""
        encoder = MapEncoder(choose_map(self.features, X), self.fit_intercept)
        features = encoder.encode(X, may_be_empty=True)
        self.n_features_in_ = encoder.features.n_inputs
        return TrainingRows(features, encoder, targets, len(features))

    def _check_arrays(self, X: Any, y: Any, private: bool) -> None:
        """Refuse missing or contradictory declarations before any cell is read."""
        if y is None:
            raise InvalidParameter(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if self._takes_objects:
            return
        if self.features is not None:
            self._check_map()
            return
        check_array_shape(X, may_be_empty=True)
        if self.column_bounds is not None and self.norm_bound is not None:
            raise InvalidParameter(
                "column_bounds already bound the norm of a row. Leave out norm_bound, or leave out column_bounds"
            )
        if private and self.norm_bound is None and self.column_bounds is None:
            raise InvalidParameter(
                "say how long a row may be, from public knowledge: "
                f"{type(self).__name__}(norm_bound=...); longer rows are shortened. Or between which numbers each "
                "column lies: column_bounds=[(0, 120), ...]. Or describe the table: schema=Schema.load(...). Reading "
                "it off the data would publish the data"
            )

    def _check_map(self) -> None:
        if self.norm_bound is not None or self.column_bounds is not None:
            raise InvalidParameter(
                "features have norm at most 1 by themselves. Leave out norm_bound and column_bounds"
            )

    def regularization_for(self, total: int) -> str | float:
        """Return Lambda as stated, ``"auto"``, or 1 / (N C) for scikit-learn's C; refuse both at once."""
        if self.C is None:
            return self.regularization
        if not isinstance(self.regularization, str) or self.regularization != "auto":
            raise InvalidParameter(
                "C and regularization say the same thing, regularization = 1 / (n C). Leave one of them out"
            )
        is_number = isinstance(self.C, numbers.Real) and not isinstance(self.C, bool)
        if not is_number or not 0 < float(self.C) < math.inf:
            raise InvalidParameter(f"C must be a finite number above 0, not {preview(self.C)}")
        if not _MIN_C <= float(self.C) <= _MAX_C:
            raise InvalidParameter(
                f"C must be a number from {_MIN_C:g} to {_MAX_C:g}, not {preview(self.C)}. Leave it out, and "
                "regularization='auto' is chosen for you"
            )
        weight = getattr(self.schema, "weight", None)
        return 1.0 / (total * float(self.C) * (1.0 if weight is None else weight.mean))

    def task_of(self, rows: TrainingRows, features: int, tolerance: float, neighbours: str) -> Task:
        """Public: return the properties that a mechanism is calibrated by; the regularization is a placeholder."""
        loss = self.loss_for(rows.targets)
        problems, dimension = rows.targets.shape(features, loss)
        return Task(
            loss=loss,
            total=rows.total,
            dimension=dimension,
            problems=problems,
            regularization=1.0,
            tolerance=tolerance,
            neighbours=neighbours,
            weight_bound=rows.targets.weight_bound,
            rows_per_person=rows.rows_per_person,
            averaged=rows.person_weights is not None,
            classes=dimension // features if loss.argument == "classes" else 0,
            prior_norm=rows.prior_norm,
            offset_bound=rows.targets.offset_bound,
            largest_ridge=rows.largest_ridge,
            row_weight_bound=rows.row_weight_bound,
        )

    def select_kernel(self, encoder: RawEncoder | None = None) -> Kernel:
        """Public: return the requested kernel, over rows of this encoder."""
        return kernel_from_name(
            self.kernel,
            gamma=self._select_gamma(encoder),
            degree=self.degree,
            coef0=self.coef0,
            bound=self.kernel_bound,
        )

    def _select_gamma(self, encoder: RawEncoder | None) -> float:
        """Public: return gamma as stated, or what ``"auto"`` stands for; the kernel refuses other values."""
        if not isinstance(self.gamma, str):
            return self.gamma
        if self.gamma != "auto":
            raise InvalidParameter(
                f"gamma must be 'auto', which reads public bounds, or a number, not {preview(self.gamma)}: reading it "
                "off the data would publish the data"
            )
        return public_gamma(encoder) if isinstance(self.kernel, str) and self.kernel == "rbf" else 1.0


def public_gamma(encoder: RawEncoder | None) -> float:
    """Public: return gamma of the RBF kernel from how rows are encoded, never from rows (docs/theory/fourier.md).

    Rows under a schema or column_bounds have norm 1 and differ in most of their columns. Rows under a norm_bound lie
    well within it if they have few columns, and fill it if they have many: 1 + 24 / columns. Objects: 1.
    """
    if isinstance(encoder, ArrayEncoder):
        return 1.0 + _GAMMA_OVER_COLUMNS / encoder.n_features
    return 1.0 if encoder is None else _GAMMA_WITHIN_RANGES


def _read_schema(name: str, value: Any) -> Any:
    """Return a schema given as a path or a dict as `Schema`; other parameters unchanged.

    A schema that cannot be read is stored as it is, and `fit` refuses it: scikit-learn lets no constructor raise.
    """
    if name != "schema" or value is None:
        return value
    try:
        return as_schema(value)
    except SchemaError:
        return value


def _max_norm(X: Any) -> float:
    """Return the bound that clips no row; for epsilon = inf only, where nothing is guaranteed."""
    rows = safely(
        lambda: sparse.csr_array(X, dtype=float),
        "X cannot be read as numbers. Give a 2-D array of numbers, or a schema for a table",
    )
    if not np.isfinite(rows.data).all():
        raise DataError(f"X has NaN or infinite entries. Fill them in, or drop those rows ({ON_DROPPING})")
    return float(np.sqrt(np.max(rows.multiply(rows).sum(axis=1), initial=0.0))) or 1.0
