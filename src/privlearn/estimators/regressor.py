"""`PrivateRegressor`: private regression, linear or with any kernel through public features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.budget.charge import Budget
from privlearn.data.encoding.arrays import ArrayEncoder, CentredEncoder
from privlearn.data.schema.schema import SchemaLike
from privlearn.estimators.classifiers import PrivateLinearClassifier
from privlearn.estimators.docstrings import list_parameters
from privlearn.estimators.estimator import PrivateEstimator
from privlearn.estimators.scikit_learn import RegressorMixin
from privlearn.estimators.target_readers import NumberReader, TargetBounds
from privlearn.estimators.training_rows import Progress
from privlearn.features.kernel import Kernel
from privlearn.features.public_map import PublicMap
from privlearn.release.artifact import Release
from privlearn.release.encoders import base_of
from privlearn.release.model import RegressionModel
from privlearn.solvers.losses import LossProperties


@list_parameters(PrivateLinearClassifier, without=["classes_"])
class PrivateRegressor(RegressorMixin, PrivateEstimator):
    """Private regression of a number between public bounds.

    The objective is J(w) = (1/n) sum loss(<w, x> - t) + (regularization/2) |w|^2 over features encoded to norm at most
    1 and targets t scaled from their bounds to [-1, 1]; predictions are scaled back and clamped to the bounds.
    `PrivateLinearClassifier` describes the other parameters, and ``help(PrivateRegressor)`` lists all.

    Parameters
    ----------
    target_bounds : tuple of two floats, or sequence of such tuples, optional
        Public bounds of the target, for plain arrays; targets outside are clamped to them. A schema has them in its
        target: ``{"name": "price", "lower": 0, "upper": 500000}``. Several pairs are for several numbers, the columns
        of y: one problem each, under one guarantee, with a little over sqrt(k) times the noise
        (docs/theory/objective.md, "Several numbers").
    loss : {"huber", "clipped_square"} or Loss, optional
        By default Huber's loss; where targets are in units of their spread, its width follows from n, epsilon and delta
        (docs/theory/offsets.md). ``"huber"``: width 0.2, robust and the least noise. ``"clipped_square"``: half the
        square, its derivative clipped at 0.5. In units of the scaled target; a `Loss` brings another width.
    mechanism : {"auto", "objective", "output", "function_release", "tddl", "tddl_norm", "tdil", "tdil_jt13"}, \
            default="auto"
        ``"auto"``: objective perturbation. A residual's sign is
        open, so Gaussian ``"objective"`` perturbation needs a little more noise than for a classifier
        (docs/theory/objective.md, "What follows from it"). ``"output"``: noise on the coefficients.
        ``"function_release"`` (with public points): the same, as Gaussian process noise on the learnt function.
        ``"tddl"`` (with public points) and ``"tdil"`` (linear kernel, or a net as public points): JT13's learners, for
        comparison; far less accurate. ``"tddl_norm"`` also estimates the norm that bounds TDDL's model privately;
        ``"tdil_jt13"`` is TDIL with the paper's constants.

    Examples
    --------
    >>> import numpy as np
    >>> from privlearn import PrivateRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5000, 2))
    >>> y = 20 + 5 * X[:, 0] - 3 * X[:, 1] + rng.normal(size=5000)
    >>> model = PrivateRegressor(epsilon=2.0, delta=1e-6, norm_bound=1.5, target_bounds=(10, 30))
    >>> bool(model.fit(X, y).score(X, y) > 0.8)
    True
    """

    # For targets in [-1, 1]. The noise reaches the coefficients divided by the data's curvature. For Huber's loss
    # that is P(|residual| < width) / width, within a sixth of its best as soon as the width is at most the residuals'
    # deviation; a width far below it only costs slack. Useful models leave a deviation of 0.1 to 0.4. Calibration
    # widens it where the unit is a spread and the noise allows: a wide loss learns means, a narrow one medians.
    _default_loss = "huber"
    target_bounds: TargetBounds | None
    _declared: ClassVar[tuple[str, ...]] = ("norm_bound", "column_bounds", "features", "target_bounds")

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
        target_bounds: TargetBounds | None = None,
        max_weight: float | None = None,
        loss: str | LossProperties | None = None,
        mechanism: str = "auto",
        noise: str = "auto",
        calibration: str = "tight",
        regularization: str | float = "auto",
        C: float | None = None,
        regularize_towards: Release | Array | None = None,
        regularization_weights: Sequence[float] | None = None,
        fit_intercept: bool = True,
        centre: str | bool = "auto",
        tolerance: str | float = "auto",
        ledger: Budget | None = None,
        accept_weak_privacy: bool = False,
        progress: Progress | bool | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self._store(locals())

    def predict(self, X: Any) -> Array:
        """Return a number for each row, within the target's bounds."""
        return self._model(X).predict(self._rows(X))

    @classmethod
    def _takes(cls, loss: type[LossProperties]) -> bool:
        return loss.argument == "residual"

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, R^2; with a schema ``y`` may be left out, as in `fit`.

        On private rows it reveals something about them that no ledger counts: do not publish it, or use public rows.
        """
        return float(super().score(X, self._truth(X, y), sample_weight))

    def target_reader(self) -> NumberReader:
        return NumberReader(type(self).__name__, self.target_bounds)

    def publish(self, release: Release) -> None:
        super().publish(release)
        model = cast(RegressionModel, release.model)
        encoder = model.encoder
        if isinstance(encoder, ArrayEncoder | CentredEncoder) and isinstance(base_of(encoder), ArrayEncoder):
            lower, upper = np.array(model.target_bounds).T
            slopes, intercept = encoder.unscale(model.coefficients if lower.ndim else model.coefficients[0])
            half, stretch, constants = (upper - lower) / 2.0, model.stretches, model.constants
            if not lower.ndim:
                stretch, constants = stretch[0], constants[0]
            self.coef_ = (half * stretch * slopes.T).T
            self.intercept_ = lower + half * (1.0 + constants + stretch * intercept)
