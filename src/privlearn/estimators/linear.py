"""Private linear classifiers with scikit-learn's protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from privlearn.data import BoundedRows, Schema
from privlearn.erm import LOSSES, LossFacts, Multinomial, loss_from_name
from privlearn.errors import InvalidParameter
from privlearn.estimators.inputs import (
    TrainingSet,
    check_array_shape,
    check_class_weight,
    read_arrays,
    read_table,
)
from privlearn.estimators.plan import plan_mechanism
from privlearn.estimators.training import Progress, solver
from privlearn.guarantee import Guarantee, Neighbours
from privlearn.ledger import Cost, Ledger
from privlearn.mechanisms import Mechanism, Task
from privlearn.randomness import randomness_from
from privlearn.release import Certificate, LinearModel, Release
from privlearn.release.encoders import Encoder, base_of, describe_encoding
from privlearn.release.model import LINK_OF_LOSS

Array = NDArray[np.float64]


class PrivateLinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier of which only a differentially private result is kept.

    The objective is J(w) = (1/n) sum loss(y <w, x>) + (regularization/2) |w|^2 over features encoded to norm at most 1;
    the intercept is one of them. More than two classes are learnt one against the rest, with independent noise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss; ``math.inf`` gives the plain minimiser and promises nothing.
    delta : float, default=0.0
        Above 0 (say 1e-6, well below 1/n) it buys Gaussian noise, which does not grow with the number of features.
    neighbours : {"replace_one", "zero_out"}, default="replace_one"
        Which two data sets are indistinguishable; see `Guarantee`.
    schema : Schema, optional
        Public description of a table; ``fit`` then takes raw tables. Or declare the next two, for plain arrays.
    norm_bound : float, optional
        Public bound on the Euclidean norm of a row; longer rows are shortened to it.
    classes : sequence, optional
        Public list of the labels; of two, the second is the positive one.
    loss : str or Loss, optional
        The classifier's first loss by default.
    mechanism : {"auto", "objective", "output"}, default="auto"
        Where the noise goes; ``"auto"`` is objective perturbation wherever its theorem holds.
    noise : {"auto", "gaussian", "norm_gamma", "laplace"}, default="auto"
        ``"auto"`` is Gaussian if delta > 0, norm-Gamma (CMS11) otherwise.
    calibration : {"tight", "cms11", "rbht", "ra12"}, default="tight"
        The papers' own constants, or the tight ones.
    regularization : "auto" or float, default="auto"
        Lambda; ``"auto"`` is a rule of public numbers only.
    class_weight : dict, optional
        Public weight of each class, by label; the largest multiplies the noise.
    fit_intercept : bool, default=True
    tolerance : float, default=1e-10
        Gradient norm the solver must certify; it is inside the guarantee.
    ledger : Ledger, optional
        Budget to charge before the data is used.
    progress : callable, optional
        Called with (problem, number of problems, iteration) while training.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests and experiments, and the release says "not private".

    Attributes
    ----------
    certificate_ : Certificate
        Theorem, constants, and what epsilon covers.
    release_ : Release
        The file that may leave: ``release_.save(path)``.
    classes_ : array
    coefficients_ : array of shape (problems, dimension)
        Over the encoded features.
    coef_, intercept_ : array
        In the units of X; for plain arrays only.
    """

    _losses: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        neighbours: Neighbours = "replace_one",
        schema: Schema | None = None,
        norm_bound: float | None = None,
        classes: Sequence[Any] | None = None,
        loss: str | LossFacts | None = None,
        mechanism: str = "auto",
        noise: str = "auto",
        calibration: str = "tight",
        regularization: str | float = "auto",
        class_weight: Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
        tolerance: float = 1e-10,
        ledger: Ledger | None = None,
        progress: Progress | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.schema = schema
        self.norm_bound = norm_bound
        self.classes = classes
        self.loss = loss
        self.mechanism = mechanism
        self.noise = noise
        self.calibration = calibration
        self.regularization = regularization
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tolerance = tolerance
        self.ledger = ledger
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> PrivateLinearClassifier:
        """Train, charge the ledger, and prepare the release.

        Parameters
        ----------
        X : table or array of shape (n, features)
            With a schema: pandas, polars or pyarrow table. Without: numpy array or scipy sparse matrix.
        y : array of shape (n,), optional
            Labels. With a schema it may be left out: the schema's target column is taken.
        """
        _refuse(unsupported)
        guarantee = Guarantee(self.epsilon, self.delta, self.neighbours)
        loss = self._chosen_loss()
        randomness = randomness_from(self.random_state)
        rows, released_form = self._lift(self._read(X, y, guarantee))
        class_weights = check_class_weight(self.class_weight, rows.classes)
        kind, noise = self._chosen_mechanism()
        mechanism = plan_mechanism(
            self._task(loss, rows, class_weights),
            guarantee,
            mechanism=kind,
            noise=noise,
            calibration=self.calibration,
            regularization=self.regularization,
        )
        solve = solver(rows, loss, class_weights, self.tolerance, self.progress)
        coefficients = released_form(self._charged(mechanism, lambda: mechanism.run(solve, randomness)))
        link = LINK_OF_LOSS.get(loss.name, "none")
        model = LinearModel(cast(Encoder, rows.encoder), coefficients, rows.classes, link)
        self._publish(model, Certificate.issue(mechanism, randomness, describe_encoding(model.encoder)))
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores: of shape (n,) for two classes (positive: the second one), (n, classes) otherwise."""
        return self._model(X).decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        return self._model(X).predict(X)

    def _chosen_loss(self) -> LossFacts:
        asked = self._losses[0] if self.loss is None else self.loss
        name = asked if isinstance(asked, str) else getattr(asked, "name", None)
        # A foreign class could bear a listed name and have steeper slopes than its constants say.
        ours = isinstance(asked, str) or type(asked) in (*LOSSES.values(), Multinomial)
        if name not in self._losses or not ours:
            raise InvalidParameter(
                f"loss must be one of {', '.join(self._losses)} (or such a Loss), not {self.loss!r}"
            )
        if not isinstance(asked, str):
            return asked
        return Multinomial() if asked == Multinomial.name else loss_from_name(asked)

    def _chosen_mechanism(self) -> tuple[str, str]:
        return self.mechanism, self.noise

    def _read(self, X: Any, y: Any, guarantee: Guarantee) -> TrainingSet:
        if self.schema is None:
            return read_arrays(self, X, y, private=guarantee.is_private)
        if self.norm_bound is not None or self.classes is not None:
            raise InvalidParameter(
                "the schema says it all: leave out norm_bound and classes, or leave out schema"
            )
        return read_table(self.schema, X, y, self.fit_intercept)

    def _lift(self, rows: TrainingSet) -> tuple[TrainingSet, Callable[[Array], Array]]:
        """Rows in the space where the model is linear, and how its coefficients are written down there."""
        return rows, lambda coefficients: coefficients

    def _task(self, loss: LossFacts, rows: TrainingSet, class_weights: Array | None) -> Task:
        """Public facts; the regularization is still a placeholder."""
        one_problem = len(rows.classes) == 2 or loss.name == "multinomial"
        dimension = rows.features.shape[1]
        return Task(
            loss=loss,
            total=rows.total,
            dimension=dimension * len(rows.classes) if loss.name == "multinomial" else dimension,
            problems=1 if one_problem else len(rows.classes),
            regularization=1.0,
            tolerance=self.tolerance,
            neighbours=self.neighbours,
            weight_bound=1.0 if class_weights is None else float(class_weights.max()),
            rows_per_person=rows.rows_per_person,
            averaged=rows.person_weights is not None,
        )

    def _charged(self, mechanism: Mechanism, compute: Callable[[], Array]) -> Array:
        """Reserve, compute, commit: nothing is kept before its cost is durable."""
        if self.ledger is None:
            return compute()
        digest = self.schema.digest if self.schema is not None else ""
        cost = Cost(mechanism.guarantee, mechanism.renyi)
        with self.ledger.reserve(cost, f"{type(self).__name__}.fit", digest) as reservation:
            result = compute()
            reservation.commit()
        return result

    def _publish(self, model: LinearModel, certificate: Certificate) -> None:
        self.classes_ = model.classes
        self.coefficients_ = model.coefficients
        self.certificate_ = certificate
        self.release_ = Release(model, certificate)
        if isinstance(model.encoder, BoundedRows):
            self.coef_, self.intercept_ = model.encoder.unscale(model.coefficients)

    def _model(self, X: Any) -> LinearModel:
        check_is_fitted(self)
        if isinstance(base_of(self.release_.model.encoder), BoundedRows):
            check_array_shape(X)
            validate_data(self, X, reset=False, skip_check_array=True)
        return self.release_.model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class PrivateLogisticRegression(PrivateLinearClassifier):
    """Private logistic regression; ``loss="multinomial"`` learns all classes in one problem.

    All parameters and attributes are those of `PrivateLinearClassifier`; ``loss`` is ``"logistic"`` (default, one
    against the rest) or ``"multinomial"`` (output perturbation; its noise does not grow with the number of classes).

    Examples
    --------
    >>> import numpy as np
    >>> from privlearn import PrivateLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, norm_bound=3.0, classes=[0, 1]).fit(X, y)
    >>> print(model.certificate_.guarantee)
    (epsilon = 1, delta = 1e-06)-differential privacy, neighbours: replace_one
    """

    _losses = ("logistic", "multinomial")

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, in the order of ``classes_``."""
        return self._model(X).predict_proba(X)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))


def _refuse(unsupported: Mapping[str, Any]) -> None:
    given = [name for name, value in unsupported.items() if value is not None]
    if given:
        raise InvalidParameter(
            f"fit does not take {', '.join(given)}: weights of single records would raise what one person can "
            "change, and are private themselves; use class_weight={label: weight} for classes"
        )
