"""A kernel machine on the trusted side: what interactive sessions answer from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privlearn.arrays import Array
from privlearn.data.encode.arrays import blocks
from privlearn.data.encode.bounded_arrays import bounded_array
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.schema.schema import Schema
from privlearn.erm.kernel.dual import minimise_kernel
from privlearn.erm.kernel.problem import KernelProblem
from privlearn.erm.losses import Loss, choose_loss
from privlearn.errors import InvalidParameter, SessionError, SolverError
from privlearn.estimators.goal import TrainingRows
from privlearn.estimators.inputs import ClassLearner, NumberLearner, TargetBounds, first_rows_of_persons
from privlearn.estimators.learner import KernelParameters, check_array_shape
from privlearn.estimators.session_task import session_facts, session_gap, session_task
from privlearn.features.kernel import Kernel, as_matrix
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.task import KernelTask, kernel_rounding, refuse_private_count
from privlearn.mechanisms.task import Task
from privlearn.release.model import Encoder, describe_encoding, probabilities_of

LARGEST = 2**15
"""Most rows an exact kernel machine takes: it holds their square in memory. Of N persons it takes the first LARGEST / N
rows of each, since how many they have together is private."""


class KernelLearner(KernelParameters, ClassLearner, NumberLearner):
    """Classes or a number, any kernel, fitted exactly and without noise: for `InteractivePredictor`, which adds it.

    Two classes take one function, and so does a number; K classes take K, each one against the rest, and sqrt(K) times
    the noise. Everything fitted is private. The object cannot be pickled, and prints its parameters only.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        ``"linear"``, ``"polynomial"``, ``"rbf"``, ``"laplacian"``, ``"cauchy"``, or a function of encoded rows.
    gamma, degree, coef0
        As in scikit-learn, but always numbers.
    kernel_bound : float, optional
        Public bound of k(x, x), for functions.
    loss : str or Loss, optional
        For classes ``"huber_hinge"`` (default), ``"smoothed_hinge"``, ``"logistic"`` or ``"hinge"``; for a number
        ``"huber"`` (default) or ``"clipped_square"``, as in `PrivateRegressor`.
    regularization : float or "auto", default="auto"
        Lambda of (1/N) sum loss + (Lambda/2) |f|^2, f in the space of the kernel divided by its bound. ``"auto"`` takes
        it from N and ``guarantee``.
    guarantee : Guarantee, optional
        What the session will promise, for ``regularization="auto"``.
    schema : Schema, optional
        Its target has classes, or the bounds of a number.
    norm_bound : float, optional
        Without a schema: public bound of the rows' norms.
    column_bounds : sequence of (lower, upper), optional
        Instead of ``norm_bound``: public bounds of each column of an array. Its columns are then spread over splines
        like a schema's numbers.
    classes : sequence of labels, optional
    target_bounds : tuple of two floats, or sequence of such tuples, optional
        Without a schema, one of the two: the labels that may occur, or the public bounds of a number, or of several.
    class_weight : dict, optional
        Public weight of each class; the largest multiplies the noise.
    fit_intercept : bool, default=True
        Whether encoded rows have a constant feature.

    Attributes
    ----------
    encoder_ : SchemaEncoder or ArrayEncoder
    kernel_ : Kernel
    """

    guarantee: Guarantee | None
    encoder_: Encoder
    kernel_: Kernel
    _declared = ("norm_bound", "column_bounds", "classes", "target_bounds")
    _rows: TrainingRows
    _features: Array
    _task: Task
    _dual: Array | None

    def __init__(
        self,
        *,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 1.0,
        kernel_bound: float | None = None,
        loss: str | Loss | None = None,
        regularization: str | float = "auto",
        guarantee: Guarantee | None = None,
        schema: Schema | None = None,
        norm_bound: float | None = None,
        column_bounds: Sequence[tuple[float, float]] | None = None,
        classes: Sequence[Any] | None = None,
        target_bounds: TargetBounds | None = None,
        class_weight: Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None) -> KernelLearner:
        """Solve, to a certified gap. Nothing leaves.

        Parameters
        ----------
        X : table or array of shape (n, features)
        y : array of shape (n,), optional
            With a schema it may be left out: the schema's target column is taken.
        """
        self.read(X, y)
        self.solve()
        return self

    def read(self, X: Any, y: Any = None) -> KernelLearner:
        """Take the records and solve nothing, as `fit` would take them.

        Enough for `InteractivePredictor`, which solves once the ledger is charged, and for its `reopen`, which brings
        the function: `restore_function`.
        """
        kernel = self.chosen_kernel()
        if kernel.name == "precomputed":
            raise InvalidParameter(
                "a session computes kernels itself: pass kernel=k, a function, not 'precomputed'"
            )
        if isinstance(self.guarantee, Guarantee):
            refuse_private_count(self.guarantee.relation)
        self.chosen_loss()  # refuse what cannot be before reading what may be long
        rows = self.read_rows(*first_rows_of_persons(self.schema, X, y, LARGEST), private=True)
        _check_count(rows.total)
        self.kernel_, self.encoder_ = kernel, cast(Encoder, rows.encoder)
        self._rows, self._features = rows, as_matrix(rows.features)
        self._task = session_task(self, rows, self.guarantee, kernel)
        self._dual = None
        return self

    def chosen_loss(self) -> Loss:
        sees, default = ("residual", "huber") if self._predicts_numbers else ("margin", "huber_hinge")
        chosen: Loss = choose_loss(self.loss, lambda kind: kind.sees == sees, default)
        return chosen

    def decision_function(self, X: Any) -> Array:
        """PRIVATE: the fitted functions without noise, a column each. Their values must not leave the trusted side."""
        return self.values(self.encode(X))

    def predict_proba(self, X: Any) -> Array:
        """PRIVATE: probabilities of the classes without noise, of a learner with ``loss="logistic"``."""
        link = self.chosen_loss().link
        if link == "none":
            raise InvalidParameter(
                f"this loss has no probabilities: {type(self).__name__}(loss='logistic') has them"
            )
        return probabilities_of(self.decision_function(X), link)

    def facts(self, neighbours: str) -> KernelTask:
        """Public: number of records, regularization, loss and the solver's certified distance."""
        check_is_fitted(self, "kernel_")
        task = dataclasses.replace(self._task, neighbours=neighbours)
        return session_facts(task, self.kernel_, self._features.shape[1])

    def describe(self) -> dict[str, Any]:
        """Public: encoding, kernel, and labels or bounds of what is predicted."""
        encoding = describe_encoding(self.encoder_) | {"fit_intercept": self.fit_intercept}
        return {"encoding": encoding, "kernel": self.kernel_.to_dict()} | self._rows.goal.describe()

    def encode(self, data: Any) -> Array:
        """Public: points as rows of norm at most 1; refuses points beyond the kernel's bound."""
        if self.schema is None:
            check_array_shape(data)
        if isinstance(self.encoder_, SchemaEncoder) and self.column_bounds is not None:
            data = bounded_array(data, self.encoder_.schema)
        points = as_matrix(self.encoder_.encode(data))
        self.kernel_.check(points)
        return points

    def similarity(self, points: Any, others: Any) -> Array:
        """Public: the kernel divided by its bound."""
        return self.kernel_(points, others) / self.kernel_.bound

    def predicted(self, scores: Array) -> NDArray[Any]:
        """Public: the labels or numbers that scores stand for."""
        return self._rows.goal.predicted(scores)

    def values(self, points: Array) -> Array:
        """PRIVATE: the functions at encoded points; one row per point, one column per function."""
        check_is_fitted(self, "kernel_")
        return np.asarray(self.similarity(points, self._features) @ self._function().T)

    def solve(self) -> None:
        """PRIVATE: find the functions of the records that were read, unless they are known."""
        if self._dual is None:
            self._dual = self._minimisers()

    def function_bytes(self) -> bytes:
        """PRIVATE: the coefficients of the functions."""
        return self._function().astype("<f8").tobytes()

    def restore_function(self, content: bytes) -> None:
        """Take the coefficients of an earlier fit on the same rows."""
        coefficients = np.frombuffer(content, dtype="<f8").astype(np.float64)
        shape = (self._task.problems, len(self._features))
        if coefficients.size != shape[0] * shape[1]:
            raise SessionError("these coefficients belong to other rows: fit the learner on the session's")
        self._dual = coefficients.reshape(shape)

    def training_digest(self) -> str:
        """PRIVATE: a digest of the encoded rows, their labels or numbers and weights."""
        weights = self._rows.weights
        digest = sha256(self._rows.goal.answers.tobytes())
        digest.update(b"" if weights is None else weights.tobytes())
        for part in blocks(len(self._features)):
            digest.update(self._features[part].tobytes())
        return digest.hexdigest()

    def __getstate__(self) -> NoReturn:
        raise SessionError(
            "a fitted learner holds private rows and cannot be pickled or copied: fit it again"
        )

    @property
    def _predicts_numbers(self) -> bool:
        if self.schema is None:
            return self.target_bounds is not None
        return self.schema.target is not None and self.schema.target.bounds is not None

    def _read(self, X: Any, y: Any, private: bool) -> TrainingRows:
        if self.classes is not None and self.target_bounds is not None:
            raise InvalidParameter(
                "classes are for labels, target_bounds for a number: leave one of them out"
            )
        if self.schema is None and self.classes is None and self.target_bounds is None:
            raise InvalidParameter(
                "say what may be predicted, from public knowledge: KernelLearner(classes=[0, 1]), or "
                "target_bounds=(0, 100) for a number. Reading it off the data would publish the data"
            )
        if not self._predicts_numbers:
            return self._read_classes(X, y, private)
        if self.class_weight is not None:
            raise InvalidParameter("a number has no classes: leave class_weight out")
        return self._read_numbers(X, y, private)

    def _function(self) -> Array:
        if self._dual is None:
            raise SessionError(
                "this learner has read its records but not been fitted: fit it, or reopen a session"
            )
        return self._dual

    def _minimisers(self) -> Array:
        """The dual coefficients, within the public bounds that the session's noise is calibrated by."""
        facts, features, goal = self.facts("replace_one"), self._features, self._rows.goal
        gap = session_gap(facts.task, self.kernel_, features.shape[1])
        self.kernel_.check(features)
        gram = self.similarity(features, features)
        gram = (gram + gram.T) / 2.0
        problems = (
            KernelProblem(
                gram,
                signs,
                cast(Loss, facts.task.loss),
                facts.task.regularization,
                facts.task.total,
                row_weights=self._rows.weights,
                offsets=offsets,
                gram_error=kernel_rounding(self.kernel_, features.shape[1]),
            )
            for signs, offsets in zip(goal.signs, goal.offsets, strict=True)
        )
        dual = np.array([minimise_kernel(problem, gap=gap).dual for problem in problems])
        if float(np.max(np.sum(np.abs(dual), axis=1))) > facts.slope_total * (1.0 + 1e-6):
            raise SolverError("the solver's coefficients exceed their bound: take a stronger regularization")
        return dual


def _check_count(rows: int) -> None:
    if rows > LARGEST:
        raise InvalidParameter(
            f"an exact kernel machine takes at most {LARGEST} records: fit on fewer, or release a model with "
            "PrivateSVC(kernel=..., public_points=...) or PrivateRegressor"
        )
