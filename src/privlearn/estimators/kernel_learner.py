"""A kernel machine on the trusted side: what interactive sessions answer from."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from privlearn.accounting import gaussian_ratio
from privlearn.data import Schema
from privlearn.data.blocks import blocks
from privlearn.erm import Loss, loss_from_name
from privlearn.erm.dual import certified_kernel_distance, default_gap, minimise_kernel
from privlearn.erm.kernel_problem import KernelProblem
from privlearn.errors import InvalidParameter, SessionError, SolverError
from privlearn.estimators.inputs import (
    TrainingSet,
    check_array_shape,
    check_class_weight,
    read_arrays,
    read_table,
)
from privlearn.estimators.training import row_weights
from privlearn.features import Kernel, kernel_from_name
from privlearn.features.points import as_matrix
from privlearn.guarantee import Guarantee, Neighbours
from privlearn.mechanisms.kernel_rounding import kernel_rounding
from privlearn.mechanisms.kernel_task import KernelTask
from privlearn.mechanisms.task import Task
from privlearn.release.encoders import describe_encoding

Array = NDArray[np.float64]

LARGEST = 2**15
"""Most rows an exact kernel machine takes: it holds their square in memory."""

LOSSES = ("huber_hinge", "smoothed_hinge", "logistic", "hinge")
_PLAIN = 0.25  # N Lambda without noise, as for linear models
_NOISE = 2.5  # N Lambda a unit of noise in the sum of gradients; best of 1 to 5 on Adult, epsilon 0.1 to 4


class KernelLearner(BaseEstimator):  # type: ignore[misc]
    """Two classes, any kernel, fitted exactly and without noise: for `InteractivePredictor`, which adds it.

    Everything fitted is private. The object cannot be pickled, and prints its parameters only.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        ``"linear"``, ``"polynomial"``, ``"rbf"``, ``"laplacian"``, ``"cauchy"``, or a function of encoded rows.
    gamma, degree, coef0
        As in scikit-learn, but always numbers.
    kernel_bound : float, optional
        Public bound of k(x, x), for functions.
    loss : {"huber_hinge", "smoothed_hinge", "logistic", "hinge"} or Loss, default="huber_hinge"
    regularization : float or "auto", default="auto"
        Lambda of (1/N) sum loss + (Lambda/2) |f|^2, f in the space of the kernel divided by its bound. ``"auto"`` takes
        it from N and ``guarantee``.
    guarantee : Guarantee, optional
        What the session will promise, for ``regularization="auto"``.
    schema : Schema, optional
    norm_bound : float, optional
    classes : sequence of two labels, optional
        Without a schema: public bound of the rows' norms, and the labels that may occur.
    class_weight : dict, optional
        Public weight of each class; the largest multiplies the noise.
    fit_intercept : bool, default=True
        Whether encoded rows have a constant feature.

    Attributes
    ----------
    classes_ : array
    encoder_ : SchemaEncoder or BoundedRows
    kernel_ : Kernel
    """

    def __init__(
        self,
        *,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 1.0,
        kernel_bound: float | None = None,
        loss: str | Loss = "huber_hinge",
        regularization: str | float = "auto",
        guarantee: Guarantee | None = None,
        schema: Schema | None = None,
        norm_bound: float | None = None,
        classes: Sequence[Any] | None = None,
        class_weight: Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_bound = kernel_bound
        self.loss = loss
        self.regularization = regularization
        self.guarantee = guarantee
        self.schema = schema
        self.norm_bound = norm_bound
        self.classes = classes
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any = None) -> KernelLearner:
        """Solve, to a certified gap. Nothing leaves.

        Parameters
        ----------
        X : table or array of shape (n, features)
        y : array of shape (n,), optional
            With a schema it may be left out: the schema's target column is taken.
        """
        kernel = kernel_from_name(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, bound=self.kernel_bound
        )
        if kernel.name == "precomputed":
            raise InvalidParameter(
                "a session computes kernels itself: pass kernel=k, a function, not 'precomputed'"
            )
        loss = self._chosen_loss()
        rows = read_arrays(self, X, y, private=True) if self.schema is None else self._read_table(X, y)
        weights = check_class_weight(self.class_weight, rows.classes)
        _check_rows(rows)
        self.kernel_, self.classes_ = kernel, rows.classes
        self.encoder_: Any = rows.encoder
        self._features, self._labels = as_matrix(rows.features), rows.labels
        self._weights = row_weights(rows, weights)
        self._facts = self._public_facts(rows, loss, 1.0 if weights is None else float(weights.max()))
        self._dual = self._solve()
        return self

    def decision_function(self, X: Any) -> Array:
        """PRIVATE: the fitted function without noise. Its values must not leave the trusted side."""
        return self.values(self.encode(X))

    def facts(self, neighbours: Neighbours) -> KernelTask:
        """Public: number of records, regularization, loss and the solver's certified distance."""
        check_is_fitted(self, "kernel_")
        task = Task(neighbours=neighbours, **self._facts)
        return KernelTask(task, certified_kernel_distance(task.regularization))

    def describe(self) -> dict[str, Any]:
        """Public: encoding, kernel and labels."""
        encoding = describe_encoding(self.encoder_) | {"fit_intercept": self.fit_intercept}
        return {"encoding": encoding, "kernel": self.kernel_.to_dict(), "classes": self.classes_.tolist()}

    def encode(self, data: Any) -> Array:
        """Public: points as rows of norm at most 1; refuses points beyond the kernel's bound."""
        if self.schema is None:
            check_array_shape(data)
        points = as_matrix(self.encoder_.encode(data))
        self.kernel_.check(points)
        return points

    def similarity(self, points: Any, others: Any) -> Array:
        """Public: the kernel divided by its bound."""
        return self.kernel_(points, others) / self.kernel_.bound

    def values(self, points: Array) -> Array:
        """PRIVATE: the function at encoded points."""
        check_is_fitted(self, "kernel_")
        return np.asarray(self.similarity(points, self._features) @ self._dual)

    def function_bytes(self) -> bytes:
        """PRIVATE: the coefficients of the function."""
        return self._dual.astype("<f8").tobytes()

    def restore_function(self, content: bytes) -> None:
        """Take the coefficients of an earlier fit on the same rows."""
        coefficients = np.frombuffer(content, dtype="<f8").astype(np.float64)
        if len(coefficients) != len(self._dual):
            raise SessionError("these coefficients belong to other rows: fit the learner on the session's")
        self._dual = coefficients

    def training_digest(self) -> str:
        """PRIVATE: a digest of the encoded rows, their labels and weights."""
        digest = sha256(self._labels.astype("<i8").tobytes())
        digest.update(b"" if self._weights is None else self._weights.tobytes())
        for part in blocks(len(self._labels)):
            digest.update(self._features[part].tobytes())
        return digest.hexdigest()

    def __getstate__(self) -> NoReturn:
        raise SessionError(
            "a fitted learner holds private rows and cannot be pickled or copied: fit it again"
        )

    def _chosen_loss(self) -> Loss:
        loss = loss_from_name(self.loss) if isinstance(self.loss, str) and self.loss in LOSSES else self.loss
        if isinstance(loss, str) or loss.name not in LOSSES:
            raise InvalidParameter(f"loss must be one of {', '.join(LOSSES)}, not {self.loss!r}")
        return loss

    def _read_table(self, X: Any, y: Any) -> TrainingSet:
        if self.schema is None or self.norm_bound is not None or self.classes is not None:
            raise InvalidParameter(
                "the schema says it all: leave out norm_bound and classes, or leave out schema"
            )
        return read_table(self.schema, X, y, self.fit_intercept)

    def _public_facts(self, rows: TrainingSet, loss: Loss, weight_bound: float) -> dict[str, Any]:
        chosen = self._chosen_regularization(rows.total, weight_bound * rows.rows_per_person)
        return {
            "loss": loss,
            "total": rows.total,
            "dimension": 1,
            "problems": 1,
            "regularization": chosen,
            "tolerance": default_gap(chosen),
            "weight_bound": weight_bound,
            "rows_per_person": rows.rows_per_person,
            "averaged": rows.person_weights is not None,
        }

    def _chosen_regularization(self, total: int, weight: float) -> float:
        """N Lambda in proportion to the noise in the sum of gradients, so that noise and shrinkage balance."""
        asked = self.regularization
        if isinstance(asked, str) and asked == "auto":
            if self.guarantee is None:
                raise InvalidParameter(
                    "regularization='auto' depends on the promise: pass guarantee=Guarantee(epsilon, delta), the same "
                    "as for the session, or a number"
                )
            if not self.guarantee.is_private:
                return _PLAIN / total
            gradients = 2.0 if self.guarantee.neighbours == "replace_one" else 1.0
            noise = gradients * weight / gaussian_ratio(self.guarantee.epsilon, self.guarantee.delta)
            return max(_NOISE * noise, _PLAIN) / total
        if (
            not isinstance(asked, numbers.Real)
            or isinstance(asked, bool)
            or not 0 < float(asked) < float("inf")
        ):
            raise InvalidParameter(f"regularization must be 'auto' or a number above 0, not {asked!r}")
        return float(asked)

    def _solve(self) -> Array:
        """The dual coefficients, within the public bounds that the session's noise is calibrated by."""
        facts, features = self.facts("replace_one"), self._features
        gram = self.similarity(features, features)
        problem = KernelProblem(
            (gram + gram.T) / 2.0,
            np.where(self._labels == 1, 1.0, -1.0),
            facts.task.loss,  # type: ignore[arg-type]
            facts.task.regularization,
            facts.task.total,
            row_weights=self._weights,
            gram_error=kernel_rounding(self.kernel_, features.shape[1]),
        )
        self.kernel_.check(features)
        dual = minimise_kernel(problem).dual
        if float(np.sum(np.abs(dual))) > facts.slope_total * (1.0 + 1e-6):
            raise SolverError("the solver's coefficients exceed their bound: take a stronger regularization")
        return dual


def _check_rows(rows: TrainingSet) -> None:
    if len(rows.classes) != 2:
        raise InvalidParameter("interactive sessions have two classes: make one learner for each class")
    if len(rows.labels) > LARGEST:
        raise InvalidParameter(
            f"an exact kernel machine takes at most {LARGEST} rows: fit on fewer, or release a model with "
            "PrivateSVC(kernel=..., public_points=...)"
        )
