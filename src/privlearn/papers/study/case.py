"""Case: the public numbers of a table of bounds, and RBHT's bounds for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from privlearn.errors import InvalidParameter, did_you_mean, preview
from privlearn.guarantee import Relation, get_relation
from privlearn.mechanisms.session.pinp import QUERIES
from privlearn.papers import bounds
from privlearn.solvers.losses import Hinge, Loss, losses_of

KERNELS = ("linear", "rbf", "cauchy")


@dataclass(frozen=True)
class Case:
    """The options of `privlearn bounds`; k(x, x) <= 1. Under add_remove, ``rows`` is the expected number."""

    rows: int
    regularization: float
    kernel: str
    columns: int
    gamma: float
    epsilon: float
    delta: float
    accuracy: float
    failure: float
    candidates: int = 10
    loss_name: str = Hinge.name
    queries: int = QUERIES
    neighbours: str = "replace_one"

    def __post_init__(self) -> None:
        get_relation(self.neighbours)
        if self.loss_name not in (losses := _losses()):
            raise InvalidParameter(
                f"--loss must be one of {', '.join(losses)}, not {preview(self.loss_name)}"
                f"{did_you_mean(self.loss_name, losses)}"
            )
        if self.kernel not in KERNELS:
            raise InvalidParameter(
                f"--kernel must be one of {', '.join(KERNELS)}, not {preview(self.kernel)}, for RBHT's theorems"
            )
        if not 0 < self.delta < 1:
            raise InvalidParameter("--delta must lie between 0 and 1, for Gaussian noise and PINP. Try 1e-6")

    def at(self, *, regularization: float | None = None, epsilon: float | None = None) -> Case:
        """Return the case with another regularization or epsilon."""
        return replace(
            self, regularization=regularization or self.regularization, epsilon=epsilon or self.epsilon
        )

    @property
    def loss(self) -> Loss:
        """The loss of that name."""
        return _losses()[self.loss_name]()

    @property
    def relation(self) -> Relation:
        """The relation of that name."""
        return get_relation(self.neighbours)

    @property
    def gradient_sensitivity(self) -> float:
        """Return the sensitivity of the sum of gradients to one record: 2 L, or L if no record is replaced."""
        return self.relation.gradients * self.loss.lipschitz

    @property
    def sensitivity(self) -> float:
        """Return the sensitivity of the minimiser to one record."""
        return self._share * bounds.sensitivity(self.rows, self.regularization, lipschitz=self.loss.lipschitz)

    @property
    def _share(self) -> float:
        """Sensitivity under these neighbours over that under replace_one, which RBHT's formulas contain."""
        return self.relation.gradients / 2.0

    @property
    def frequencies(self) -> int:
        """Number of random Fourier frequencies in RBHT Theorem 13."""
        return bounds.fourier_features(
            self.accuracy,
            self.failure,
            self.regularization,
            self.columns,
            self._moment,
            lipschitz=self.loss.lipschitz,
        )

    @property
    def private_noise(self) -> float:
        """Smallest private scale of Laplace noise."""
        finite = self.kernel == "linear"
        noise, features = (
            (bounds.finite_private_noise, self.columns)
            if finite
            else (bounds.fourier_private_noise, self.frequencies)
        )
        lipschitz = self.loss.lipschitz
        return self._share * noise(
            self.epsilon, self.rows, self.regularization, features, lipschitz=lipschitz
        )

    @property
    def useful_noise(self) -> float:
        """Largest useful scale of Laplace noise."""
        if self.kernel == "linear":
            return bounds.finite_useful_noise(self.accuracy, self.failure, self.columns)
        return bounds.fourier_useful_noise(self.accuracy, self.failure, self.frequencies)

    @property
    def upper_bound(self) -> float:
        """An epsilon that some useful mechanism satisfies."""
        arguments = (self.accuracy, self.failure, self.rows, self.regularization, self.columns)
        lipschitz = self.loss.lipschitz
        if self.kernel == "linear":
            return self._share * bounds.finite_upper_bound(*arguments, lipschitz=lipschitz)
        return self._share * bounds.fourier_upper_bound(*arguments, self._moment, lipschitz=lipschitz)

    @property
    def ball_bound(self) -> float | None:
        """`upper_bound` with norm-Gamma noise; None unless the kernel is linear."""
        if self.kernel != "linear":
            return None
        arguments = (self.accuracy, self.failure, self.rows, self.regularization, self.columns)
        return self._share * bounds.ball_upper_bound(*arguments, lipschitz=self.loss.lipschitz)

    @property
    def lower_bound(self) -> float:
        """An epsilon that no useful mechanism goes below; 0 unless RBHT prove one: hinge, linear or RBF kernel.

        Their two data sets differ in one replaced record. Where that takes two steps of the relation, epsilon-private
        means 2 epsilon-private for them, so half of the bound holds.
        """
        arguments = (self.accuracy, self.failure, self.rows, self.regularization)
        bound = 0.0
        if self.has_lower_bound and self.kernel == "linear":
            bound = bounds.linear_lower_bound(*arguments)
        elif self.has_lower_bound:
            bound = bounds.rbf_lower_bound(*arguments, self.gamma)
        return bound / self.relation.replacing

    @property
    def has_lower_bound(self) -> bool:
        """Return whether RBHT prove one for this kernel and this loss."""
        return self.kernel in ("linear", "rbf") and self.loss_name == Hinge.name

    @property
    def accuracy_limit(self) -> float:
        """Accuracy below which the lower bound applies; 0 if there is none."""
        if not self.has_lower_bound:
            return 0.0
        if self.kernel == "linear":
            return bounds.linear_accuracy_limit(self.rows, self.regularization)
        return bounds.rbf_accuracy_limit(self.rows, self.regularization)

    @property
    def _moment(self) -> float:
        return bounds.frequency_moment(self.kernel, self.columns, self.gamma)


def _losses() -> dict[str, type[Loss]]:
    """Return the losses of one score; the multinomial loss would need the number of classes."""
    return losses_of("margin") | losses_of("residual")
