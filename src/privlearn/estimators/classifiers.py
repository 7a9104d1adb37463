"""Private logistic regression, and what it shares with `PrivateSVC`: parameters, prediction, score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.budget.charge import Budget
from privlearn.data.encoding.arrays import ArrayEncoder, CentredEncoder
from privlearn.data.schema.schema import SchemaLike
from privlearn.estimators.docstrings import list_parameters
from privlearn.estimators.estimator import PrivateEstimator
from privlearn.estimators.scikit_learn import ClassifierMixin
from privlearn.estimators.target_readers import ClassReader
from privlearn.estimators.training_rows import ClassTargets, Progress, Targets
from privlearn.features.kernel import Kernel
from privlearn.features.public_map import PublicMap
from privlearn.release.artifact import Release
from privlearn.release.encoders import base_of
from privlearn.release.model import LinearModel
from privlearn.solvers.losses import LossProperties, Multinomial, loss_from_name


class PrivateLinearClassifier(ClassifierMixin, PrivateEstimator):
    """Base of the private classifiers: linear, or with any kernel through public features.

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
    features : PublicMap or str, optional
        Public map from raw rows to features of norm at most 1, recorded in the release; it replaces ``schema``,
        ``norm_bound`` and ``column_bounds``. ``"scattering"`` reads images of shape (n, height, width), ``"text"`` a
        list of texts, and the name of an ``.npz`` or ``.onnx`` file vectors. `ScatteringFeatures`, `TextFeatures` and
        `WeightsFeatures` have more settings.
    public_points : table, array, sequence or "schema", optional
        Public, unlabelled points like those that will be predicted. They become part of the release. ``"schema"``
        simulates 125 to 1000 points, uniformly within the schema's ranges and lists (``column_bounds``, or the ball
        of ``norm_bound``).
    fourier_pairs : int, default=500
        Number of random frequencies; Gaussian noise in a prediction does not grow with it.
    fourier_seed : int, default=0
        Public seed of the frequencies, or of simulated points, recorded in the release.
    epsilon : float
        Privacy loss; `fit` refuses while it is not stated. ``math.inf`` gives the plain minimiser without a guarantee.
    delta : float, default=0.0
        Above 0 (say 1e-6, well below 1/n) it allows Gaussian noise, which does not grow with the number of features.
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
        Which two data sets are indistinguishable; see `Guarantee`.
    expected_records : int, optional
        With ``add_remove``, where the number of records is private: about how many there are (persons, if the schema
        has a person column), from public knowledge. It replaces n everywhere.
    schema : Schema, path or dict, optional
        Public description of a table; ``fit`` then takes raw tables. Or declare the next two, for plain arrays.
    norm_bound : float, optional
        Public bound on the Euclidean norm of a row; longer rows are shortened to it.
    column_bounds : sequence of (lower, upper), optional
        Instead of ``norm_bound``: public bounds of each column of an array. Its columns are then encoded by splines,
        bins and pairs like a schema's numbers.
    classes : sequence, optional
        Public list of the labels; of two, the second is the positive one.
    max_weight : float, optional
        Public cap of ``sample_weight``, for arrays whose weights have a mean of about 1; it multiplies the noise.
    loss : str or Loss, optional
        The classifier's first loss by default, ``"multinomial"`` (softmax) for three classes and more. A margin loss
        that is named, or a paper's calibration, learns each class against the rest, with independent noise.
        ``"auto"`` chooses by public numbers (docs/how-to/which-form-of-release.md).
    mechanism : {"auto", "objective", "output", "function_release", "tddl", "tddl_norm", "tdil", "tdil_jt13"}, \
            default="auto"
        Where the noise goes; ``"auto"`` is objective perturbation wherever its theorem holds.
        ``"function_release"`` (with public points) adds the Gaussian process of Hall, Rinaldo and Wasserman to the
        learnt function; on landmark features it is output perturbation with Gaussian noise, and certified as such.
        ``"tddl"`` (with public points) and ``"tdil"`` (linear kernel, or a net as public points) are JT13's learners,
        which ask the model questions; each has one calibration and one noise. ``"tddl_norm"`` also estimates the
        norm that bounds TDDL's model privately; ``"tdil_jt13"`` is TDIL with the paper's constants.
    noise : {"auto", "gaussian", "norm_gamma", "laplace"}, default="auto"
        ``"auto"`` is Gaussian if delta > 0, norm-Gamma (CMS11) otherwise.
    calibration : {"tight", "cms11", "rbht", "ra12"}, default="tight"
        The papers' own constants, or the tight ones.
    regularization : "auto" or float, default="auto"
        Lambda; ``"auto"`` is a rule of public numbers only.
    C : float, optional
        Instead of ``regularization``, as scikit-learn has it: C times the sum of the losses plus |w|^2 / 2, so that
        Lambda = 1 / (n C). Rows are encoded to norm at most 1 first. (RBHT's C is different: Lambda = 1 / C.)
    regularize_towards : Release or array of shape (problems, dimension), optional
        A public model w0 of the same features: the regularizer becomes (regularization/2) |w - w0|^2. A release of
        rows that this fit reads too costs their people both budgets. The release file holds w0. For margin
        losses but the hinge, and for regression; no centring, no public points (docs/theory/regularization.md, "Other
        regularizers").
    regularization_weights : sequence of floats, optional
        Public weights g_j of at least 1, one per column of an array under ``norm_bound``: the regularizer becomes
        (regularization/2) sum_j g_j w_j^2, with weight 1 for the intercept. No centring, linear kernel.
    class_weight : dict, optional
        Public weight of each class, by label; the largest multiplies the noise.
    fit_intercept : bool, default=True
    centre : {"auto", True, False}, default="auto"
        Whether to release a noisy mean and radius of the rows first and to learn from centred rows, under the same
        guarantee. ``"auto"``: for dense rows and Gaussian noise, where by public numbers the error gets smaller.
    tolerance : "auto" or float, default="auto"
        Gradient norm the solver must certify. The guarantee includes it, at the cost of a little noise. ``"auto"``
        keeps that below a few per cent of the mechanism's own; a number that needs much more is refused. If some
        table could not reach it, the smallest that every table can reach is used and written into the certificate.
    ledger : Ledger, optional
        Budget to charge before the data is used. Without one nothing is recorded, and the first `fit` warns.
    accept_weak_privacy : bool, default=False
        Allows an epsilon above 20 or a delta of at least 1/n; the release then states that it is hardly private.
    progress : bool or callable, optional
        True shows the iterations on standard error, the default in a shell on a terminal after two seconds.
        A function is called with (problem, number of problems, iteration). All of it depends on the records.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests and experiments, and the release is marked "not private".

    Attributes
    ----------
    certificate_ : Certificate
        Theorem, constants, and what epsilon covers. ``guarantee_`` is its guarantee.
    release_ : Release
        The file that may leave: ``release_.save(path)``.
    classes_ : array
    coefficients_ : array of shape (problems, dimension)
        Over the encoded features.
    coef_, intercept_ : array
        In the units of X, for plain arrays under a ``norm_bound``. Shortened rows have smaller scores
        than these give. Other models have none: see ``coefficients_`` and `get_feature_names_out`.
    feature_names_in_, n_features_in_
        With a schema: its columns.
    """

    classes: Sequence[Any] | None
    class_weight: Mapping[Any, float] | None
    _declared: ClassVar[tuple[str, ...]] = ("norm_bound", "column_bounds", "features", "classes")

    def __init__(
        self,
        *,
        kernel: str | Kernel | Callable[..., Any] = "linear",
        gamma: str | float = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        kernel_bound: float | None = None,
        features: str | PublicMap | None = None,
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
        max_weight: float | None = None,
        loss: str | LossProperties | None = None,
        mechanism: str = "auto",
        noise: str = "auto",
        calibration: str = "tight",
        regularization: str | float = "auto",
        C: float | None = None,
        regularize_towards: Release | Array | None = None,
        regularization_weights: Sequence[float] | None = None,
        class_weight: Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
        centre: str | bool = "auto",
        tolerance: str | float = "auto",
        ledger: Budget | None = None,
        accept_weak_privacy: bool = False,
        progress: Progress | bool | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self._store(locals())

    def decision_function(self, X: Any) -> Array:
        """Return scores of shape (n,) for two classes (positive: the second class), else (n, classes)."""
        return cast(LinearModel, self._model(X)).decision_function(self._rows(X))

    def _probabilities(self, X: Any) -> Array:
        return cast(LinearModel, self._model(X)).predict_proba(self._rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        return self._model(X).predict(self._rows(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy; with a schema ``y`` may be left out, as in `fit`.

        On private rows it reveals something about them that no ledger counts: do not publish it, or use public rows.
        """
        return float(super().score(X, self._truth(X, y), sample_weight))

    def target_reader(self) -> ClassReader:
        return ClassReader(type(self).__name__, self.classes, self.class_weight)

    def loss_for(self, targets: Targets) -> LossProperties:
        """Public: return softmax for three classes and more, unless a loss or a paper's mechanism is requested."""
        several = isinstance(targets, ClassTargets) and len(targets.classes) > 2
        is_covered = self.calibration == "tight" and self.mechanism in ("auto", "objective", "output")
        is_default = self.loss is None or self._is_automatic
        return Multinomial() if several and is_covered and is_default else self.select_loss()

    def select_loss(self) -> LossProperties:
        return self._automatic_loss() if self._is_automatic else super().select_loss()

    @property
    def _is_automatic(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "auto"

    def _automatic_loss(self) -> LossProperties:
        """Public: return what ``loss="auto"`` stands for with two classes."""
        loss: LossProperties = loss_from_name(self._default_loss)
        return loss

    def publish(self, release: Release) -> None:
        super().publish(release)
        model = cast(LinearModel, release.model)
        self.classes_ = model.classes
        encoder = model.encoder
        if isinstance(encoder, ArrayEncoder | CentredEncoder) and isinstance(base_of(encoder), ArrayEncoder):
            self.coef_, intercept = encoder.unscale(model.coefficients)
            self.intercept_ = intercept + model.constants


@list_parameters(PrivateLinearClassifier)
class PrivateLogisticRegression(PrivateLinearClassifier):
    """Private logistic regression, linear or with a kernel, of several classes in one problem.

    `PrivateLinearClassifier` describes the other parameters, and ``help(PrivateLogisticRegression)`` lists all.

    Parameters
    ----------
    loss : str or Loss, optional
        ``"logistic"`` (default for two classes; of more, each against the rest) or ``"multinomial"`` (softmax, default
        for more than two).

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
    def _takes(cls, loss: type[LossProperties]) -> bool:
        return loss.link != "none"

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, in the order of ``classes_``."""
        return self._probabilities(X)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))
