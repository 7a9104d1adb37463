"""Private classifiers with scikit-learn's protocol: linear, or with any kernel through public features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.arrays import ArrayEncoder
from privlearn.data.encode.centred import CentredEncoder
from privlearn.data.schema.schema import SchemaLike
from privlearn.erm.losses import LossFacts, Multinomial, loss_from_name
from privlearn.estimators.goal import ClassGoal, Goal, Progress, TrainingRows
from privlearn.estimators.inputs import ClassLearner
from privlearn.estimators.kernel_choice import KernelChoice
from privlearn.estimators.scikit_learn import ClassifierMixin
from privlearn.features.kernel import Kernel
from privlearn.ledger.charge import Budget
from privlearn.release.artifact import Release
from privlearn.release.encoders import base_of
from privlearn.release.model import LinearModel


class PrivateLinearClassifier(ClassifierMixin, ClassLearner, KernelChoice):
    """A linear classifier of which only a differentially private result is kept.

    The objective is J(w) = (1/n) sum loss(y <w, x>) + (regularization/2) |w|^2 over features encoded to norm at most 1;
    the intercept is one of them. More than two classes are learnt together, by the softmax loss.

    A kernel without ``public_points`` becomes random Fourier features of the RBF, Laplacian or Cauchy kernel (the
    non-interactive way: the release works everywhere). With them it becomes landmark features on those points, for any
    kernel (the semi-interactive way: the release works on points like them).

    Parameters
    ----------
    kernel : str, Kernel or callable, default="linear"
        ``"linear"``, ``"polynomial"``, ``"rbf"``, ``"laplacian"``, ``"cauchy"``, ``"precomputed"``, or a function
        ``k(X, Z)`` that returns the matrix of kernel values. Without schema and norm_bound the function gets the
        objects of X as they are (texts, graphs); otherwise encoded rows of norm at most 1.
    gamma : float or "auto", default="auto"
        As in scikit-learn. ``"auto"`` reads no row, as ``"scale"`` would: 1, but for the RBF kernel 0.5 under a schema
        or ``column_bounds``, and 1 + 24 / columns under a ``norm_bound``.
    degree, coef0
        As in scikit-learn.
    kernel_bound : float, optional
        Public bound of k(x, x), for functions and precomputed kernels.
    public_points : table, array, sequence or "schema", optional
        Points that are public, unlabelled, and like those that will be asked about. They become part of the release.
        ``"schema"``: none are at hand, and 125 to 1000 are made up, uniformly within the schema's ranges and lists
        (``column_bounds``, or the ball of ``norm_bound``).
    fourier_pairs : int, default=500
        Number of random frequencies; Gaussian noise in a prediction does not grow with it.
    fourier_seed : int, default=0
        Public seed of the frequencies, or of points that are made up, recorded in the release.
    epsilon : float
        Privacy loss; `fit` refuses while it is not stated. ``math.inf`` gives the plain minimiser and promises nothing.
    delta : float, default=0.0
        Above 0 (say 1e-6, well below 1/n) it buys Gaussian noise, which does not grow with the number of features.
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
        Which two data sets are indistinguishable; see `Guarantee`.
    expected_records : int, optional
        With ``add_remove``, where the number of records is private: how many there are about (persons, if the schema
        has a person column), from public knowledge. It takes the place of n everywhere.
    schema : Schema, path or dict, optional
        Public description of a table; ``fit`` then takes raw tables. Or declare the next two, for plain arrays.
    norm_bound : float, optional
        Public bound on the Euclidean norm of a row; longer rows are shortened to it.
    column_bounds : sequence of (lower, upper), optional
        Instead of ``norm_bound``: public bounds of each column of an array. Its columns are then spread over splines,
        bins and pairs like a schema's numbers.
    classes : sequence, optional
        Public list of the labels; of two, the second is the positive one.
    loss : str or Loss, optional
        The classifier's first loss by default, ``"multinomial"`` (softmax) for three classes and more. A margin loss
        that is named, or a paper's calibration, learns those one against the rest, with independent noise. ``"auto"``
        is the loss that public numbers speak for (docs/theory/choice-of-loss.md).
    mechanism : {"auto", "objective", "output", "function_release", "tddl", "tddl_norm", "tdil", "tdil_jt13"}, \
            default="auto"
        Where the noise goes; ``"auto"`` is objective perturbation wherever its theorem holds.
        ``"function_release"`` (with public points) adds the Gaussian process of Hall, Rinaldo and Wasserman to the
        learnt function; on landmark features it is output perturbation with Gaussian noise, and is certified as such.
        ``"tddl"`` (with public points) and ``"tdil"`` (linear kernel, or a net as public points) are JT13's learners,
        which ask the model questions; they have a calibration and a noise of their own. ``"tddl_norm"`` also buys the
        norm that bounds TDDL's model; ``"tdil_jt13"`` is TDIL with the paper's constants.
    noise : {"auto", "gaussian", "norm_gamma", "laplace"}, default="auto"
        ``"auto"`` is Gaussian if delta > 0, norm-Gamma (CMS11) otherwise.
    calibration : {"tight", "cms11", "rbht", "ra12"}, default="tight"
        The papers' own constants, or the tight ones.
    regularization : "auto" or float, default="auto"
        Lambda; ``"auto"`` is a rule of public numbers only.
    class_weight : dict, optional
        Public weight of each class, by label; the largest multiplies the noise.
    fit_intercept : bool, default=True
    centre : {"auto", True, False}, default="auto"
        Whether to release a noisy mean and radius of the rows first and to learn from what varies around it: part of
        the same promise. ``"auto"`` is yes for dense rows and Gaussian noise wherever public numbers say that it pays.
    tolerance : "auto" or float, default="auto"
        Gradient norm the solver must certify; it is inside the guarantee, and a little noise pays for it. ``"auto"``
        keeps that below a few per cent of the mechanism's own; a number at which it would be felt is refused. Where
        some table could not reach it, the least that every table can is taken instead, and the certificate says so.
    ledger : Ledger, optional
        Budget to charge before the data is used. Without one nothing is recorded, and the first `fit` says so.
    accept_weak_privacy : bool, default=False
        The word that an epsilon above 20 or a delta of at least 1/n needs; the release says that it is hardly private.
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
        In the units of X, for plain arrays under a ``norm_bound``. Rows that are shortened have smaller scores
        than these give. With a schema ``coef_`` has a number for each of `get_feature_names_out`, the constant too.
    feature_names_in_, n_features_in_
        With a schema: its columns.
    """

    _declared: ClassVar[tuple[str, ...]] = ("norm_bound", "column_bounds", "classes")
    _instead_of_weights = "; use class_weight={label: weight} for classes"

    def __init__(
        self,
        *,
        kernel: str | Kernel | Callable[..., Any] = "linear",
        gamma: str | float = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        kernel_bound: float | None = None,
        public_points: Any = None,
        fourier_pairs: int = 500,
        fourier_seed: int = 0,
        epsilon: float | None = None,
        delta: float = 0.0,
        neighbours: str = "replace_one",
        expected_records: int | None = None,
        schema: SchemaLike | None = None,
        norm_bound: float | None = None,
        column_bounds: Sequence[tuple[float, float]] | None = None,
        classes: Sequence[Any] | None = None,
        loss: str | LossFacts | None = None,
        mechanism: str = "auto",
        noise: str = "auto",
        calibration: str = "tight",
        regularization: str | float = "auto",
        class_weight: Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
        centre: str | bool = "auto",
        tolerance: str | float = "auto",
        ledger: Budget | None = None,
        accept_weak_privacy: bool = False,
        progress: Progress | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self._keep(locals())

    def decision_function(self, X: Any) -> Array:
        """Scores: of shape (n,) for two classes (positive: the second one), (n, classes) otherwise."""
        return cast(LinearModel, self._model(X)).decision_function(self._rows(X))

    def _probabilities(self, X: Any) -> Array:
        return cast(LinearModel, self._model(X)).predict_proba(self._rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        return self._model(X).predict(self._rows(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy; with a schema ``y`` may be left out, as in `fit`.

        On private rows it is a fact about them that no ledger has seen: keep it to yourself, or score on public rows.
        """
        return float(super().score(X, self._truth(X, y), sample_weight))

    def _read(self, X: Any, y: Any, private: bool) -> TrainingRows:
        return self._read_classes(X, y, private)

    def loss_for(self, goal: Goal) -> LossFacts:
        """Public: softmax for three classes and more, unless a loss, or a paper's mechanism, was asked for."""
        several = isinstance(goal, ClassGoal) and len(goal.classes) > 2
        ours = self.calibration == "tight" and self.mechanism in ("auto", "objective", "output")
        left_open = self.loss is None or self._is_automatic
        return Multinomial() if several and ours and left_open else self.chosen_loss()

    def chosen_loss(self) -> LossFacts:
        return self._automatic_loss() if self._is_automatic else super().chosen_loss()

    @property
    def _is_automatic(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "auto"

    def _automatic_loss(self) -> LossFacts:
        """Public: what ``loss="auto"`` means for two classes."""
        found: LossFacts = loss_from_name(self._default_loss)
        return found

    def publish(self, release: Release) -> None:
        super().publish(release)
        model = cast(LinearModel, release.model)
        self.classes_ = model.classes
        encoder = model.encoder
        if isinstance(encoder, ArrayEncoder | CentredEncoder) and isinstance(base_of(encoder), ArrayEncoder):
            self.coef_, self.intercept_ = encoder.unscale(model.coefficients)
        elif self.schema is not None:
            self.coef_ = model.coefficients


class PrivateLogisticRegression(PrivateLinearClassifier):
    """Private logistic regression, linear or with a kernel, of several classes in one problem.

    All parameters and attributes are those of `PrivateLinearClassifier`; ``loss`` is ``"logistic"`` (default for two
    classes; of more, each against the rest) or ``"multinomial"`` (default for more than two).

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

    _default_loss = "logistic"

    @classmethod
    def _takes(cls, loss: type[LossFacts]) -> bool:
        return loss.link != "none"

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, in the order of ``classes_``."""
        return self._probabilities(X)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))
