"""Private support vector machines: linear, or with any kernel through public features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privlearn.data.schema.schema import Schema
from privlearn.erm.losses import LossFacts
from privlearn.estimators.goal import Progress
from privlearn.estimators.kernel_choice import KernelChoice
from privlearn.estimators.linear import PrivateLinearClassifier
from privlearn.features.kernel import Kernel
from privlearn.ledger.charge import Budget


class PrivateSVC(KernelChoice, PrivateLinearClassifier):
    """Private support vector machine.

    Without ``public_points``: linear, or random Fourier features of the RBF, Laplacian or Cauchy kernel (the
    non-interactive way: the release works everywhere). With them: landmark features on those points, for any kernel
    (the semi-interactive way: the release works on points like them). The other parameters and the attributes are
    those of `PrivateLinearClassifier`; ``loss`` is ``"huber_hinge"`` (default for two classes), ``"smoothed_hinge"``,
    ``"hinge"`` (output perturbation only), a `Loss` with another width, or ``"multinomial"`` (default for more).

    Parameters
    ----------
    kernel : str, Kernel or callable, default="linear"
        ``"linear"``, ``"polynomial"``, ``"rbf"``, ``"laplacian"``, ``"cauchy"``, ``"precomputed"``, or a function
        ``k(X, Z)`` that returns the matrix of kernel values. Without schema and norm_bound the function gets the
        objects of X as they are (texts, graphs); otherwise encoded rows of norm at most 1.
    gamma, degree, coef0
        As in scikit-learn, but always numbers: ``gamma="scale"`` would read the data's variance.
    kernel_bound : float, optional
        Public bound of k(x, x), for functions and precomputed kernels.
    public_points : table, array or sequence, optional
        Points that are public, unlabelled, and like those that will be asked about. They become part of the release.
    fourier_pairs : int, default=500
        Number of random frequencies; Gaussian noise in a prediction does not grow with it.
    fourier_seed : int, default=0
        Public seed of the frequencies, recorded in the release.
    mechanism : {"auto", "objective", "output", "function_release", "tddl", "tddl_norm", "tdil", "tdil_jt13"}, \
            default="auto"
        ``"function_release"`` (with public points) adds the Gaussian process of Hall, Rinaldo and Wasserman to the
        learnt function; on landmark features it is output perturbation with Gaussian noise, and is certified as such.
        ``"tddl"`` (with public points) and ``"tdil"`` (linear kernel, or a net as public points) are JT13's learners,
        which ask the model questions; they have a calibration and a noise of their own. ``"tddl_norm"`` also buys the
        norm that bounds TDDL's model; ``"tdil_jt13"`` is TDIL with the paper's constants.

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
        gamma: float = 1.0,
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
        schema: Schema | None = None,
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
