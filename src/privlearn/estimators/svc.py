"""Private support vector machines: linear, or with any kernel through public features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.schema.schema import SchemaLike
from privlearn.erm.losses import HuberHinge, Logistic, LossFacts
from privlearn.estimators.goal import Progress
from privlearn.estimators.linear import PrivateLinearClassifier
from privlearn.features.kernel import Kernel
from privlearn.ledger.charge import Budget


class PrivateSVC(PrivateLinearClassifier):
    """Private support vector machine.

    All parameters and attributes are those of `PrivateLinearClassifier`, and one more. ``loss`` is ``"huber_hinge"``
    (default for two classes), ``"smoothed_hinge"``, ``"hinge"`` (output perturbation only), a `Loss` with another
    width, ``"multinomial"`` (default for more), or ``"auto"``, which is logistic if probabilities are wanted that
    cannot be bought.

    Parameters
    ----------
    probability : bool, default=False
        Whether to learn probabilities of two classes as well, from counts of the scores: part of the same promise, for
        about 2.5 % more noise. Needs delta above 0. `predict` goes by the sign of the score still.

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
    def _takes(cls, loss: type[LossFacts]) -> bool:
        return loss.sees == "classes" or (loss.sees == "margin" and loss.link == "none")

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
        probability: bool = False,
    ) -> None:
        self._keep(locals())

    @property
    def predict_proba(self) -> Callable[[Any], Array]:
        """Probability of each class, in the order of ``classes_``; absent without ``probability=True``."""
        if not self.probability:
            raise AttributeError(
                "predict_proba: a score has no probability unless one is bought with it, "
                "PrivateSVC(probability=True); or take PrivateLogisticRegression"
            )
        return self._probabilities

    @property
    def predict_log_proba(self) -> Callable[[Any], Array]:
        """Logarithm of `predict_proba`."""
        probabilities = self.predict_proba
        return lambda X: np.log(probabilities(X))

    def _automatic_loss(self) -> LossFacts:
        """Public: Huber's hinge, unless probabilities are wanted and counts of scores cannot be bought.

        No public number tells where the other loss has less error (docs/theory/choice-of-loss.md).
        """
        return Logistic() if self.probability and not self._may_count_scores() else HuberHinge()

    def _may_count_scores(self) -> bool:
        promise, schema = self.promise(), self.schema
        several_rows = schema is not None and (schema.person is not None or schema.rows_per_person > 1)
        covered = self._is_gaussian(promise) and self.mechanism in ("auto", "objective", "output")
        return not promise.is_private or (covered and not several_rows)
