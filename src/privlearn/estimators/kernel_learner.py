"""A kernel machine on the trusted side: what interactive sessions answer from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from privlearn.arrays import Array
from privlearn.data.encode.bounded_arrays import bounded_array
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.schema.schema import SchemaLike
from privlearn.data.sources.row_source import in_memory
from privlearn.erm.losses import Loss, LossFacts, Multinomial, choose_loss
from privlearn.errors import InvalidParameter, SessionError
from privlearn.estimators.goal import ClassGoal, Goal, TrainingRows
from privlearn.estimators.inputs import ClassLearner, NumberLearner, TargetBounds, first_rows_of_persons
from privlearn.estimators.kernel_fit import exact_functions
from privlearn.estimators.learner import KernelParameters, check_array_shape
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.estimators.session_points import SessionLandmarks, digest_of, read_objects
from privlearn.estimators.session_task import session_facts, session_task, span_facts, span_task
from privlearn.features.kernel import Kernel, as_matrix
from privlearn.features.kernels import LinearKernel, VectorKernel
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.task import KernelTask, refuse_private_count
from privlearn.mechanisms.task import Task
from privlearn.release.encoders import Encoder, RawEncoder, describe_encoding
from privlearn.release.model import probabilities_of

LARGEST = 2**15
"""Most rows an exact kernel machine takes: it holds their square in memory. Of N persons it takes the first LARGEST / N
rows of each, since how many they have together is private. On landmarks there is no such limit."""


class KernelLearner(KernelParameters, ClassLearner, NumberLearner):
    """Classes or a number, any kernel, fitted exactly and without noise: for `InteractivePredictor`, which adds it.

    Two classes take one function, and so does a number; K classes take K, learnt together by the softmax loss with
    sqrt(2) times the noise, or each one against the rest with sqrt(K) times. Everything fitted is private. The object
    cannot be pickled, and prints its parameters only.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        ``"linear"``, ``"polynomial"``, ``"rbf"``, ``"laplacian"``, ``"cauchy"``, or a function of encoded rows. Without
        ``schema``, ``norm_bound`` and ``column_bounds``, a function of two lists of objects: texts, graphs, whatever
        `privlearn.features.objects` can write down.
    gamma : float or "auto", default=1.0
        As in scikit-learn. ``"auto"`` takes it for "rbf" from how rows are encoded, as `PrivateSVC` does, and never
        from the rows. A session that was opened with another gamma is reopened with that one.
    degree, coef0
        As in scikit-learn.
    kernel_bound : float, optional
        Public bound of k(x, x), for functions.
    key : callable, optional
        For objects of other types: ``key(x)`` is a form that can be written down, by which a session knows x again,
        and which the kernel reads in its place.
    public_points : table, array, or list of objects, optional
        Landmarks, for more than 32,768 records: functions then lie in the span of these points, and the kernel is
        replaced by its projection on it, which costs accuracy and no privacy. No private record may be among them, nor
        anything computed from private records; they should look like the points that will be asked.
    loss : str or Loss, optional
        For two classes ``"huber_hinge"`` (default), ``"smoothed_hinge"``, ``"logistic"`` or ``"hinge"``; for more
        ``"multinomial"`` (default), or one of those for each class against the rest; for a number
        ``"huber"`` (default) or ``"clipped_square"``, as in `PrivateRegressor`.
    regularization : float or "auto", default="auto"
        Lambda of (1/N) sum loss + (Lambda/2) |f|^2, f in the space of the kernel divided by its bound. ``"auto"`` takes
        it from N and ``guarantee``.
    guarantee : Guarantee, optional
        What the session will promise, for ``regularization="auto"``.
    schema : Schema, path or dict, optional
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
        Whether encoded rows have a constant feature; objects have none, so add a constant to their kernel.

    Attributes
    ----------
    encoder_ : SchemaEncoder, ArrayEncoder, or None for objects
    kernel_ : Kernel
        Of the encoded points; linear on landmarks.
    """

    public_points: Any
    key: Callable[[Any], Any] | None
    guarantee: Guarantee | None
    encoder_: Encoder | None
    kernel_: Kernel
    _declared = ("norm_bound", "column_bounds", "classes", "target_bounds")
    _rows: TrainingRows
    _features: Array | list[Any]
    _centres: Array | list[Any]
    _towards_centres: Callable[[Any], Array]
    _landmarks: SessionLandmarks | None
    _task: Task
    _dual: Array | None

    def __init__(
        self,
        *,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        gamma: str | float = 1.0,
        degree: int = 3,
        coef0: float = 1.0,
        kernel_bound: float | None = None,
        key: Callable[[Any], Any] | None = None,
        public_points: Any = None,
        loss: str | Loss | None = None,
        regularization: str | float = "auto",
        guarantee: Guarantee | None = None,
        schema: SchemaLike | None = None,
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
        X : table, array of shape (n, features), or list of objects that the kernel reads
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
        if self.chosen_kernel().name == "precomputed":
            raise InvalidParameter(
                "a session computes kernels itself: pass kernel=k, a function, not 'precomputed'"
            )
        if isinstance(self.guarantee, Guarantee):
            refuse_private_count(self.guarantee.relation)
        self.chosen_loss()  # refuse what cannot be before reading what may be long
        if self.takes_objects:
            X = read_objects(X, self.key)
        elif self.key is not None:
            raise InvalidParameter("key= is for objects that a kernel of your own reads: leave it out")
        rows = self._read_all(X, y) if self.public_points is not None else self._read_few(X, y)
        self.kernel_ = self._kernel_on(rows.encoder) if self._landmarks is None else LinearKernel()
        self._rows, self._dual = rows, None
        self._features = (
            rows.features if isinstance(rows.features, list) else as_matrix(in_memory(rows.features))
        )
        self._centres = self._features if self._landmarks is None else np.eye(self._landmarks.dimension)
        self._towards_centres = self.kernel_.towards(self._centres)
        self._task = session_task(self, rows, self.guarantee, self.kernel_)
        return self

    def _read_few(self, X: Any, y: Any) -> TrainingRows:
        rows = self.read_rows(*first_rows_of_persons(self.schema, X, y, LARGEST), private=True)
        _check_count(rows.total)
        self.encoder_, self._landmarks = rows.encoder, None
        return rows

    def _read_all(self, X: Any, y: Any) -> TrainingRows:
        rows = self.read_rows(X, y, private=True)
        self.encoder_ = rows.encoder
        self._landmarks = landmarks = self.landmarks(rows.encoder)
        return dataclasses.replace(rows, features=landmarks.of_records(in_memory(rows.features)))

    def landmarks(self, encoder: Encoder | None) -> SessionLandmarks:
        """Public: features on the public points, of rows that are encoded so."""
        points = self._base_points(self.public_points, encoder)
        return SessionLandmarks(self._kernel_on(encoder), points)

    def _kernel_on(self, encoder: Encoder | None) -> Kernel:
        return self.chosen_kernel(cast(RawEncoder | None, encoder))

    def chosen_loss(self) -> LossFacts:
        numbers = self._predicts_numbers
        fits, default = (("residual",), "huber") if numbers else (("margin", "classes"), "huber_hinge")
        chosen: LossFacts = choose_loss(self.loss, lambda kind: kind.sees in fits, default)
        return chosen

    def loss_for(self, goal: Goal) -> LossFacts:
        """Public: softmax for three classes and more, unless a loss was asked for."""
        several = isinstance(goal, ClassGoal) and len(goal.classes) > 2
        return Multinomial() if several and self.loss is None else self.chosen_loss()

    def decision_function(self, X: Any) -> Array:
        """PRIVATE: the fitted functions without noise, a column each. Their values must not leave the trusted side."""
        return self.values(self.encode(X))

    def predict_proba(self, X: Any) -> Array:
        """PRIVATE: probabilities of the classes without noise, of a learner with ``loss="logistic"``."""
        link = self.loss_for(self._rows.goal).link
        if link == "none":
            raise InvalidParameter(
                f"this loss has no probabilities: {type(self).__name__}(loss='logistic') has them"
            )
        return probabilities_of(self.decision_function(X), link)

    def facts(self, neighbours: str) -> KernelTask:
        """Public: number of records, regularization, loss and the solver's certified distance."""
        check_is_fitted(self, "kernel_")
        task = dataclasses.replace(self._task, neighbours=neighbours)
        if self._landmarks is not None:
            return span_facts(task, self._landmarks.dimension)
        return session_facts(task, self.kernel_, self._rows.dimension)

    def describe(self) -> dict[str, Any]:
        """Public: encoding, kernel, and labels or bounds of what is predicted."""
        if self.encoder_ is None:
            encoding: dict[str, Any] = {"objects": "as the kernel reads them"}
        else:
            encoding = describe_encoding(self.encoder_) | {"fit_intercept": self.fit_intercept}
        if self._landmarks is not None:
            encoding |= self._landmarks.describe()
        return {"encoding": encoding, "kernel": self.kernel_.to_dict()} | self._rows.goal.describe()

    @property
    def takes_objects(self) -> bool:
        """Public: whether records and points are objects that only the kernel can read."""
        described = (self.schema, self.norm_bound, self.column_bounds)
        kernel = self.chosen_kernel()
        return all(fact is None for fact in described) and not isinstance(kernel, VectorKernel)

    _takes_objects = takes_objects

    @property
    def keeps_objects(self) -> bool:
        """Public: whether encoded points are objects; on landmarks they are features."""
        return isinstance(self._centres, list)

    def encode(self, data: Any) -> Any:
        """Public: points as rows of norm at most 1, or a list of objects; refuses those beyond the kernel's bound."""
        points = self._base_points(data, self.encoder_)
        if self._landmarks is not None:
            return self._landmarks.of_points(points)
        self.kernel_.check(points)
        return points

    def _base_points(self, data: Any, encoder: Encoder | None) -> Any:
        """Before landmarks."""
        if encoder is None:
            return read_objects(data, self.key)
        if self.schema is None:
            check_array_shape(data)
        if isinstance(encoder, SchemaEncoder) and self.column_bounds is not None:
            data = bounded_array(data, encoder.schema)
        return as_matrix(encoder.encode(data))

    def similarity(self, points: Any, others: Any) -> Array:
        """Public: the kernel divided by its bound."""
        return self._scaled(self.kernel_(points, others))

    def _scaled(self, values: Array) -> Array:
        bound = self.kernel_.bound
        return values if bound == 1.0 else values / bound

    def predicted(self, scores: Array) -> NDArray[Any]:
        """Public: the labels or numbers that scores stand for."""
        return self._rows.goal.predicted(scores)

    def values(self, points: Any) -> Array:
        """PRIVATE: the functions at encoded points; one row per point, one column per function."""
        check_is_fitted(self, "kernel_")
        return np.asarray(self._scaled(self._towards_centres(points)) @ self._function().T)

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
        shape = (self.facts("replace_one").functions, len(self._centres))
        if coefficients.size != shape[0] * shape[1]:
            raise SessionError("these coefficients belong to other rows: fit the learner on the session's")
        self._dual = coefficients.reshape(shape)

    def training_digest(self) -> str:
        """PRIVATE: a digest of the encoded rows or the objects, their labels or numbers and weights."""
        return digest_of(self._features, self._rows.goal.answers, self._rows.weights)

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
        """The coefficients at the centres, within the public bounds that the session's noise is calibrated by."""
        if self._landmarks is not None:
            task = span_task(self._task, self._landmarks.dimension)
            return MemoryOracle(self._rows, task).minimise(None, task.regularization)
        return exact_functions(self._rows, self._features, self.kernel_, self.facts("replace_one"))


def _check_count(rows: int) -> None:
    if rows > LARGEST:
        raise InvalidParameter(
            f"an exact kernel machine takes at most {LARGEST} records: pass public_points=..., in whose span the "
            "functions then lie, or fit on fewer"
        )
