"""`KernelLearner`: an exact kernel machine on the trusted side, which interactive sessions answer from.

It adds no noise: everything fitted is private.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

from privlearn.arrays import Array
from privlearn.data.parts import part_of, require_public, without_part
from privlearn.data.schema.schema import SchemaLike
from privlearn.data.sources.row_source import in_memory
from privlearn.errors import InvalidParameter, SessionError
from privlearn.estimators.kernel_fit import session_task
from privlearn.estimators.kernel_machine import KernelMachine, PointReader, SessionLandmarks, read_objects
from privlearn.estimators.learner import Learner
from privlearn.estimators.reading import first_rows_of_persons
from privlearn.estimators.scikit_learn import check_callers, check_is_fitted
from privlearn.estimators.target_readers import ClassReader, NumberReader, TargetBounds
from privlearn.estimators.training_rows import ClassTargets, Targets, TrainingRows
from privlearn.features.kernel import Kernel, as_matrix
from privlearn.features.kernels import LinearKernel, VectorKernel
from privlearn.guarantee import Guarantee, Relation, get_relation
from privlearn.mechanisms.session.task import refuse_private_count
from privlearn.release.encoders import Encoder, RawEncoder
from privlearn.release.model import probabilities_of
from privlearn.solvers.losses import Loss, LossProperties, Multinomial, choose_loss

MAX_EXACT_ROWS = 2**15
"""Rows that an exact kernel machine takes: it holds their square in memory. Of N persons it takes the first
MAX_EXACT_ROWS / N rows of each, since the total number of their rows is private. Landmarks have no such limit."""


class KernelLearner(Learner):
    """Kernel machine for classes or numbers, fitted exactly and without noise; `InteractivePredictor` adds the noise.

    Two classes take one function, and so does a number; K classes take K, learnt together by the softmax loss with
    sqrt(2) times the noise, or each one against the rest with sqrt(K) times. Everything fitted is private. The object
    cannot be pickled, and prints its parameters only.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        ``"linear"``, ``"polynomial"``, ``"rbf"``, ``"laplacian"``, ``"cauchy"``, or a function of encoded rows. Without
        ``schema``, ``norm_bound`` and ``column_bounds``, a function of two lists of objects: texts, graphs, or
        anything that `privlearn.features.objects` can serialize.
    gamma : float or "auto", default=1.0
        As in scikit-learn. ``"auto"`` takes it for "rbf" from how rows are encoded, as `PrivateSVC` does, and never
        from the rows. A session that was opened with another gamma is reopened with that one.
    degree, coef0
        As in scikit-learn.
    kernel_bound : float, optional
        Public bound of k(x, x), for functions.
    key : callable, optional
        For objects of other types: ``key(x)`` is a form that can be serialized, by which a session recognizes x,
        and which the kernel reads instead of x.
    public_points : table, array, or list of objects, optional
        Landmarks, for more than 32,768 records: functions then lie in the span of these points, and the kernel is
        replaced by its projection on it, which costs accuracy and no privacy. No private record may be among them, nor
        anything computed from private records; they should look like the points of later queries.
    loss : str or Loss, optional
        For two classes ``"huber_hinge"`` (default), ``"smoothed_hinge"``, ``"logistic"`` or ``"hinge"``; for more
        ``"multinomial"`` (default), or one of those for each class against the rest; for a number
        ``"huber"`` (default) or ``"clipped_square"``, as in `PrivateRegressor`.
    regularization : float or "auto", default="auto"
        Lambda of (1/N) sum loss + (Lambda/2) |f|^2, f in the space of the kernel divided by its bound. ``"auto"`` takes
        it from N and ``guarantee``.
    C : float, optional
        Instead of ``regularization``, as scikit-learn has it: Lambda = 1 / (N C).
    epsilon, delta, neighbours : optional, or ``guarantee``
        The session's guarantee: for ``regularization="auto"``, and with ``expected_records``.
    expected_records : int, optional
        With ``add_remove``, where the number of records is private: about how many there are
        (persons, if the schema has a person column), from public knowledge. It needs ``public_points``.
    schema : Schema, path or dict, optional
        Its target has classes, or the bounds of a number.
    norm_bound : float, optional
        Without a schema: public bound of the rows' norms.
    column_bounds : sequence of (lower, upper), optional
        Instead of ``norm_bound``: public bounds of each column of an array. Its columns are then encoded by splines
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
        Kernel of the encoded points; linear on landmarks.
    """

    classes: Sequence[Any] | None
    target_bounds: TargetBounds | None
    class_weight: Mapping[Any, float] | None
    public_points: Any
    key: Callable[[Any], Any] | None
    epsilon: float | None
    delta: float
    neighbours: str
    guarantee: Guarantee | None
    expected_records: int | None
    encoder_: Encoder | None
    kernel_: Kernel
    _declared = ("norm_bound", "column_bounds", "classes", "target_bounds")
    _machine: KernelMachine

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
        C: float | None = None,
        epsilon: float | None = None,
        delta: float = 0.0,
        neighbours: str = "replace_one",
        guarantee: Guarantee | None = None,
        expected_records: int | None = None,
        schema: SchemaLike | None = None,
        norm_bound: float | None = None,
        column_bounds: Sequence[tuple[float, float]] | None = None,
        classes: Sequence[Any] | None = None,
        target_bounds: TargetBounds | None = None,
        class_weight: Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any = None) -> KernelLearner:
        """Solve, to a certified gap. Nothing leaves.

        Parameters
        ----------
        X : table, array of shape (n, features), or list of objects that the kernel reads
        y : array of shape (n,), optional
            With a schema it may be left out: the schema's target column is taken.
        """
        return self._hold(self._read_machine(X, y).solve())

    def read(self, X: Any, y: Any = None) -> KernelLearner:
        """Take the records and solve nothing, as `fit` would take them.

        Enough for `InteractivePredictor`, which solves once the ledger is charged, and for its `reopen`, which brings
        the function.
        """
        return self._hold(self._read_machine(X, y))

    def freeze(self) -> KernelMachine:
        """Return the records as they were read, with what was read about them: later changes do not reach it."""
        check_is_fitted(self, "_machine")
        return self._machine

    def _hold(self, machine: KernelMachine) -> KernelLearner:
        """Take records, their part and everything else at once: a failure before leaves the learner as it was."""
        self._machine, self.encoder_, self.kernel_ = machine, machine.reader.encoder, machine.kernel
        return self

    def _read_machine(self, X: Any, y: Any) -> KernelMachine:
        check_callers(seedable=False)
        if self.select_kernel().name == "precomputed":
            raise InvalidParameter(
                "a session computes kernels itself. Pass kernel=k, a function, not 'precomputed'"
            )
        relation = self._relation
        if self.public_points is None:
            refuse_private_count(relation)
        relation.check_expected(self.expected_records)
        self.select_loss()  # cheap checks first: reading may take long
        if self._takes_objects:
            X = read_objects(X, self.key)
        elif self.key is not None:
            raise InvalidParameter("key= is for objects that a kernel function reads. Leave it out")
        rows, landmarks = self._read_features(without_part(X, y), y)
        rows = dataclasses.replace(rows, total=relation.total(rows.total, self.expected_records))
        kernel = self._kernel_on(rows.encoder) if landmarks is None else LinearKernel()
        return KernelMachine(
            rows=rows,
            records_schema=self.schema,
            records_part=part_of(X),
            relation=relation,
            task=session_task(self, rows, self._session_guarantee, kernel),
            kernel=kernel,
            reader=self._reader(rows.encoder),
            landmarks=landmarks,
        )

    @property
    def _relation(self) -> Relation:
        """Public: return the relation of the guarantee, or the papers' replace_one."""
        guarantee = self._session_guarantee
        return guarantee.relation if isinstance(guarantee, Guarantee) else get_relation("replace_one")

    @property
    def _session_guarantee(self) -> Guarantee | None:
        """Public: return the session's guarantee as either way of stating it has it."""
        if self.epsilon is None:
            return self.guarantee
        if self.guarantee is not None:
            raise InvalidParameter("pass epsilon=... and delta=..., or a Guarantee, and not both")
        return Guarantee(self.epsilon, self.delta, self.neighbours)

    def _read_features(self, X: Any, y: Any) -> tuple[TrainingRows, SessionLandmarks | None]:
        """Return rows in memory, as the kernel takes them, and the landmarks if there are public points."""
        if self.public_points is None:
            rows = self.read_rows(*first_rows_of_persons(self.schema, X, y, MAX_EXACT_ROWS), private=True)
            _check_count(rows.total)
            if isinstance(rows.features, list):
                return rows, None
            return dataclasses.replace(rows, features=as_matrix(in_memory(rows.features))), None
        rows = self.read_rows(X, y, private=True)
        landmarks = self.landmarks(rows.encoder)
        features = landmarks.of_records(in_memory(rows.features))
        return dataclasses.replace(rows, features=features), landmarks

    def landmarks(self, encoder: Encoder | None) -> SessionLandmarks:
        """Public: return landmark features on the public points, for rows of this encoder."""
        return SessionLandmarks(
            self._kernel_on(encoder),
            self._reader(encoder).read(require_public(self.public_points, "public_points")),
        )

    def _kernel_on(self, encoder: Encoder | None) -> Kernel:
        return self.select_kernel(cast(RawEncoder | None, encoder))

    def _reader(self, encoder: Encoder | None) -> PointReader:
        return PointReader(
            encoder, self.key, from_arrays=self.schema is None, fit_intercept=self.fit_intercept
        )

    def select_loss(self) -> LossProperties:
        numbers = self._predicts_numbers
        takes, default = (("residual",), "huber") if numbers else (("margin", "classes"), "huber_hinge")
        loss: LossProperties = choose_loss(self.loss, lambda kind: kind.argument in takes, default)
        return loss

    def loss_for(self, targets: Targets) -> LossProperties:
        """Public: return softmax for three classes and more, unless a loss is requested."""
        several = isinstance(targets, ClassTargets) and len(targets.classes) > 2
        return Multinomial() if several and self.loss is None else self.select_loss()

    def decision_function(self, X: Any) -> Array:
        """PRIVATE: return the fitted functions without noise, a column each; they must not leave the trusted side."""
        machine = self.freeze()
        return machine.values(machine.encode(X))

    def predict_proba(self, X: Any) -> Array:
        """PRIVATE: return probabilities of the classes without noise; needs ``loss="logistic"``."""
        link = self.freeze().task.loss.link
        if link == "none":
            raise InvalidParameter(
                f"this loss has no probabilities: {type(self).__name__}(loss='logistic') has them"
            )
        return probabilities_of(self.decision_function(X), link)

    @property
    def _takes_objects(self) -> bool:
        described = (self.schema, self.norm_bound, self.column_bounds)
        kernel = self.select_kernel()
        return all(parameter is None for parameter in described) and not isinstance(kernel, VectorKernel)

    def __getstate__(self) -> NoReturn:
        raise SessionError(
            "a fitted learner holds private rows and cannot be pickled or copied. Fit it again"
        )

    @property
    def _predicts_numbers(self) -> bool:
        if self.schema is None:
            return self.target_bounds is not None
        return self.schema.target is not None and self.schema.target.bounds is not None

    def target_reader(self) -> ClassReader | NumberReader:
        if self.classes is not None and self.target_bounds is not None:
            raise InvalidParameter(
                "classes are for labels, target_bounds for a number. Leave one of them out"
            )
        if self.schema is None and self.classes is None and self.target_bounds is None:
            raise InvalidParameter(
                "say what may be predicted, from public knowledge: KernelLearner(classes=[0, 1]), or "
                "target_bounds=(0, 100) for a number. Reading it off the data would publish the data"
            )
        if not self._predicts_numbers:
            return ClassReader(type(self).__name__, self.classes, self.class_weight)
        if self.class_weight is not None:
            raise InvalidParameter("a number has no classes. Leave class_weight out")
        return NumberReader(type(self).__name__, self.target_bounds)


def _check_count(rows: int) -> None:
    if rows > MAX_EXACT_ROWS:
        raise InvalidParameter(
            f"an exact kernel machine takes at most {MAX_EXACT_ROWS} records. Fit on fewer, or pass "
            "public_points=..., in whose span the functions then lie"
        )
