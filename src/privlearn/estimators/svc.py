"""`PrivateSVC`: private support vector machines, linear or with any kernel through public features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.budget.charge import Budget
from privlearn.data.schema.schema import SchemaLike
from privlearn.estimators.classifiers import PrivateLinearClassifier
from privlearn.estimators.docstrings import list_parameters
from privlearn.estimators.training_rows import Progress
from privlearn.features.kernel import Kernel
from privlearn.features.public_map import PublicMap
from privlearn.release.artifact import Release
from privlearn.release.model import LinearModel
from privlearn.solvers.losses import HuberHinge, Logistic, LossProperties


@list_parameters(PrivateLinearClassifier)
class PrivateSVC(PrivateLinearClassifier):
    """Private support vector machine. For more than two classes it learns by softmax, which has `predict_proba`.

    `PrivateLinearClassifier` describes the other parameters, and ``help(PrivateSVC)`` lists all.

    Parameters
    ----------
    loss : str or Loss, optional
        ``"huber_hinge"`` (default for two classes), ``"smoothed_hinge"``, ``"hinge"`` (output perturbation only), a
        `Loss` with another width, ``"multinomial"`` (softmax, default for more than two classes), or ``"auto"``, which
        is logistic if probabilities are requested that cannot be estimated from counts of scores. A margin loss with
        more classes learns each against the rest.
    probability : bool, default=False
        Whether to estimate probabilities of two classes as well, from noisy counts of the scores, under the same
        guarantee and with about 2.5 % more noise. Needs delta above 0. `predict` still uses the score's sign.

    Examples
    --------
    >>> import numpy as np
    >>> from privlearn import PrivateSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(3000, 2))
    >>> y = (np.linalg.norm(X, axis=1) < 0.8).astype(int)
    >>> model = PrivateSVC(kernel="rbf", gamma=4.0, epsilon=2.0, delta=1e-6, norm_bound=1.5, classes=[0, 1])
    >>> bool(model.fit(X, y).score(X, y) > 0.85)
    True
    """

    _default_loss = "huber_hinge"

    @classmethod
    def _takes(cls, loss: type[LossProperties]) -> bool:
        return loss.argument == "classes" or (loss.argument == "margin" and loss.link == "none")

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
        probability: bool = False,
    ) -> None:
        self._store(locals())

    @property
    def predict_proba(self) -> Callable[[Any], Array]:
        """Return the probability of each class, in the order of ``classes_``.

        For two classes it needs ``probability=True``. More classes are learnt by softmax, which has probabilities.
        """
        softmax = hasattr(self, "release_") and cast(LinearModel, self.release_.model).has_probabilities
        if not self.probability and not softmax:
            raise AttributeError(
                "predict_proba needs PrivateSVC(probability=True), which estimates probabilities privately. Or use "
                "PrivateLogisticRegression"
            )
        return self._probabilities

    @property
    def predict_log_proba(self) -> Callable[[Any], Array]:
        """Return the logarithm of `predict_proba`."""
        probabilities = self.predict_proba
        return lambda X: np.log(probabilities(X))

    def _automatic_loss(self) -> LossProperties:
        """Public: return Huber's hinge; the logistic loss if probabilities are requested and scores cannot be counted.

        No public number shows where the other loss has less error (docs/how-to/which-form-of-release.md).
        """
        return Logistic() if self.probability and not self._may_count_scores() else HuberHinge()

    def _may_count_scores(self) -> bool:
        guarantee = self.make_guarantee()
        covered = self._is_gaussian(guarantee) and self.mechanism in ("auto", "objective", "output")
        return not guarantee.is_private or covered
