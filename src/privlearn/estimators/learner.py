"""What every learner is: parameters that say what is public, rows read by them, and facts that plans are made from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from privlearn.data.encode.arrays import ArrayEncoder
from privlearn.data.encode.bounded_arrays import bounded_array, schema_of_bounds
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.encode.resolution import Resolution
from privlearn.data.schema.schema import Schema, as_schema
from privlearn.data.sources.table import safely
from privlearn.erm.losses import LossFacts
from privlearn.errors import ON_DROPPING, DataError, InvalidParameter, SchemaError, shown
from privlearn.estimators.goal import Goal, Progress, TrainingRows
from privlearn.estimators.public_gamma import public_gamma
from privlearn.estimators.scikit_learn import BaseEstimator
from privlearn.features.kernel import Kernel
from privlearn.features.kernels import kernel_from_name
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Budget
from privlearn.mechanisms.task import Task


class Learner(BaseEstimator, ABC):
    """Reads rows by what its parameters declare public, and states the facts that a mechanism is planned from.

    Estimators release what they learn, a `KernelLearner` answers questions about it; both are read, planned and solved
    alike. scikit-learn reads a constructor's signature, so each class spells its own; parameters that are read here are
    declared here.
    """

    schema: Schema | None
    norm_bound: float | None
    column_bounds: Sequence[tuple[float, float]] | None
    loss: str | LossFacts | None
    regularization: str | float
    fit_intercept: bool

    _declared: ClassVar[tuple[str, ...]]
    """Parameters that describe plain arrays; a schema takes their place."""

    def _keep(self, arguments: Mapping[str, Any]) -> None:
        """Store a constructor's ``locals()`` under their own names: all that scikit-learn lets a constructor do."""
        for name, value in arguments.items():
            if name != "self":
                setattr(self, name, _read_schema(name, value))

    def set_params(self, **params: Any) -> Self:
        return super().set_params(**{name: _read_schema(name, value) for name, value in params.items()})

    @abstractmethod
    def chosen_loss(self) -> LossFacts:
        """Public: the loss asked for, one of the listed."""

    def loss_for(self, goal: Goal) -> LossFacts:
        """Public: the same, once it is known what is to be learnt."""
        return self.chosen_loss()

    def read_rows(self, X: Any, y: Any, private: bool) -> TrainingRows:
        """Touch the data: rows encoded by what is declared public, each with its weight.

        ``private=False`` allows what is read from the rows where nothing is promised.
        """
        self._refuse_declarations()
        return self.weighted(self._read(X, y, private))

    @abstractmethod
    def _read(self, X: Any, y: Any, private: bool) -> TrainingRows:
        """The rows of a table or of arrays, with their classes or numbers."""

    @property
    def _takes_objects(self) -> bool:
        """Whether rows may be objects that only the user's kernel can read."""
        return False

    def resolution(self, schema: Schema, records: int, promise: Guarantee | None = None) -> Resolution | None:
        """Public: how finely the columns of so many records are spread; ``None``: as in version 0.1, for kernels."""
        return None

    def _refuse_declarations(self) -> None:
        """What a schema says need not be declared again."""
        if self.schema is not None and any(getattr(self, name) is not None for name in self._declared):
            *others, last = self._declared
            raise InvalidParameter(
                f"the schema says it all: leave out {', '.join(others)} and {last}, or leave out schema"
            )

    def _encode_arrays(self, X: Any, goal: Goal, rows: int) -> TrainingRows:
        """Plain arrays under the declared bound; or objects, which the kernel's own bound is about."""
        if self._takes_objects:
            return TrainingRows(X, None, goal, rows)
        columns = check_array_shape(X, may_be_empty=True)
        encoder: SchemaEncoder | ArrayEncoder
        if self.column_bounds is not None:
            schema = schema_of_bounds(self.column_bounds)
            X = bounded_array(X, schema)
            encoder = SchemaEncoder(
                schema, fit_intercept=self.fit_intercept, resolution=self.resolution(schema, rows)
            )
        else:
            norm_bound = _largest_norm(X) if self.norm_bound is None else self.norm_bound
            encoder = ArrayEncoder(norm_bound, columns, fit_intercept=self.fit_intercept)
        features = encoder.encode(X, may_be_empty=True)
        validate_data(self, X, reset=True, skip_check_array=True)
        return TrainingRows(features, encoder, goal, features.shape[0])

    def _check_arrays(self, X: Any, y: Any, private: bool) -> None:
        """What must hold before any cell is looked at."""
        if y is None:
            raise InvalidParameter(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if self._takes_objects:
            return
        check_array_shape(X, may_be_empty=True)
        if self.column_bounds is not None and self.norm_bound is not None:
            raise InvalidParameter(
                "column_bounds say how long a row may be: leave out norm_bound, or leave out column_bounds"
            )
        if private and self.norm_bound is None and self.column_bounds is None:
            raise InvalidParameter(
                "say how long a row may be, from public knowledge: "
                f"{type(self).__name__}(norm_bound=...); longer rows are shortened. Or between which numbers each "
                "column lies: column_bounds=[(0, 120), ...]. Or describe the table: schema=Schema.load(...). Reading "
                "it off the data would publish the data"
            )

    def weighted(self, rows: TrainingRows) -> TrainingRows:
        """The rows, each counting what this learner's parameters say."""
        return rows

    def task_of(self, rows: TrainingRows, features: int, tolerance: float, neighbours: str) -> Task:
        """Public facts; the regularization is still a placeholder."""
        loss = self.loss_for(rows.goal)
        problems, dimension = rows.goal.shape(features, loss)
        return Task(
            loss=loss,
            total=rows.total,
            dimension=dimension,
            problems=problems,
            regularization=1.0,
            tolerance=tolerance,
            neighbours=neighbours,
            weight_bound=rows.goal.weight_bound,
            rows_per_person=rows.rows_per_person,
            averaged=rows.person_weights is not None,
            classes=dimension // features if loss.sees == "classes" else 0,
        )


def _read_schema(name: str, value: Any) -> Any:
    """A schema may be given as the path of its file or as a dict.

    What cannot be read is kept as it is, and `fit` refuses it: scikit-learn lets no constructor do so.
    """
    if name != "schema" or value is None:
        return value
    try:
        return as_schema(value)
    except SchemaError:
        return value


class ReleasingLearner(Learner):
    """A learner of which a private result leaves; `PrivateLinearClassifier` explains the parameters."""

    epsilon: float | None
    delta: float
    neighbours: str
    expected_records: int | None
    mechanism: str
    noise: str
    calibration: str
    centre: str | bool = False
    probability: bool = False
    tolerance: str | float
    ledger: Budget | None
    accept_weak_privacy: bool
    progress: Progress | None
    random_state: int | np.random.Generator | None

    def chosen_mechanism(self) -> tuple[str, str]:
        """Public: the mechanism and the noise asked for, either of them perhaps ``"auto"``."""
        return self.mechanism, self.noise

    def promise(self) -> Guarantee:
        """Public: what is asked for; refused while epsilon is not stated."""
        return Guarantee(cast(float, self.epsilon), self.delta, self.neighbours)


class KernelParameters:
    """The parameters that name a kernel, as `kernel_from_name` takes them."""

    kernel: str | Kernel | Callable[..., Any]
    gamma: str | float
    degree: int
    coef0: float
    kernel_bound: float | None

    def chosen_kernel(self, rows: SchemaEncoder | ArrayEncoder | None = None) -> Kernel:
        """Public: the kernel asked for, on rows that are encoded so."""
        return kernel_from_name(
            self.kernel,
            gamma=self.chosen_gamma(rows),
            degree=self.degree,
            coef0=self.coef0,
            bound=self.kernel_bound,
        )

    def chosen_gamma(self, rows: SchemaEncoder | ArrayEncoder | None) -> float:
        """Public: a number; what is none is refused by the kernel."""
        if not isinstance(self.gamma, str):
            return self.gamma
        if self.gamma != "auto":
            raise InvalidParameter(
                f"gamma must be 'auto', which reads public bounds, or a number, not {shown(self.gamma)}: reading it "
                "off the data would publish the data"
            )
        return public_gamma(rows) if isinstance(self.kernel, str) and self.kernel == "rbf" else 1.0


def check_array_shape(X: Any, *, may_be_empty: bool = False) -> int:
    """Number of columns of what must be a matrix, with the messages that scikit-learn's users know."""
    matrix: Any = X if sparse.issparse(X) else np.asarray(X)
    shape = matrix.shape
    if len(shape) < 2 and matrix.dtype.kind in "OSU":
        raise DataError(
            "these are texts or other objects, not rows of numbers: take a kernel that reads them, kernel=k with a "
            "public kernel_bound=..., and leave out norm_bound and column_bounds; or pass schema=... for a table"
        )
    if len(shape) != 2:
        raise DataError(
            f"Expected 2D array, got {len(shape)}D array instead. Reshape your data either using "
            "X.reshape(-1, 1) for a single feature or X.reshape(1, -1) for a single sample."
        )
    if matrix.dtype.kind == "c":  # their imaginary part would be dropped without a word
        raise DataError("Complex data not supported: give real numbers.")
    if shape[1] == 0:
        raise DataError(f"0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[0] == 0 and not may_be_empty:
        raise DataError(f"0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    return int(shape[1])


def _largest_norm(X: Any) -> float:
    """For epsilon = inf only, where nothing is promised: the bound that clips no row."""
    rows = safely(
        lambda: sparse.csr_array(X, dtype=float),
        "X cannot be read as numbers: give a 2-D array of numbers, or a schema for a table",
    )
    if not np.isfinite(rows.data).all():
        raise DataError(f"X has NaN or infinite entries: fill them in, or drop those rows ({ON_DROPPING})")
    return float(np.sqrt(np.max(rows.multiply(rows).sum(axis=1), initial=0.0))) or 1.0
