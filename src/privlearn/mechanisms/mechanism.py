"""Base classes of mechanisms: values that are calibrated from public parameters and touch the data last.

    calibrate (public parameters) -> spends, renyi, constants (the cost) -> run (touches the data)

`MECHANISMS` lists them all. Certificates, verification, audits, forecasts and pages use the properties of a mechanism,
never its name.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from privlearn.accounting import Curve, EpsilonDeltaCurve
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, preview
from privlearn.guarantee import Guarantee
from privlearn.imports import register
from privlearn.mechanisms.noise import FLOATING_POINT, check_gaussian_numbers
from privlearn.mechanisms.oracle import MinimiserOracle
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness


class Mechanism(ABC):
    """Base of all mechanisms. Subclasses are frozen dataclasses whose docstring states the theorem.

    Attributes
    ----------
    guarantee : Guarantee
        The guarantee it was calibrated to.
    name : str
        Name in certificates and parameters.
    mode : str
        ``paper`` for a second mechanism of the same name, with a paper's constants.
    title : str
        Name in reports and messages.
    page : str
        Name of its page in docs/theory, which has the argument.
    calibrated_constants : tuple of str
        Names of the constants that calibration chooses; all others follow from them.
    combinations : dict
        For each calibration, the distributions of noise that it offers.
    uses_solver : bool
        Whether the guarantee relies on a solver's certificate.
    """

    guarantee: Guarantee
    name: ClassVar[str]
    mode: ClassVar[str] = "tight"
    title: ClassVar[str]
    page: ClassVar[str]
    calibrated_constants: ClassVar[tuple[str, ...]]
    combinations: ClassVar[dict[str, tuple[str, ...]]]
    uses_solver: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse constants that no theorem covers, when a mechanism is calibrated and when a certificate is read."""
        check_gaussian_numbers(self.gaussian_numbers, self.guarantee)

    @property
    def gaussian_numbers(self) -> int:
        """Number of values with Gaussian noise that the theorem treats as continuous."""
        return 0

    @property
    def covers(self) -> str:
        """Statement of certificates on what the guarantee covers."""
        return (
            f"Everything in this file that depends on the records: {self._depending}. "
            f"{self.guarantee.relation.count_label}, schema, class labels, parameters and the solver's tolerance are "
            f"public and enter as such.{self.guarantee.relation.count_coverage}"
        )

    @property
    def _depending(self) -> str:
        """The released values, as certificates name them."""
        return "the coefficients"

    @property
    @abstractmethod
    def floating_point(self) -> str:
        """Statement of certificates on rounding and exactness of the sampler."""

    @abstractmethod
    def spends(self) -> Guarantee:
        """Return the guarantee, recomputed from the constants alone."""

    def curve(self) -> Curve:
        """Return delta as a function of epsilon, from the constants alone; by default what (epsilon, delta) implies."""
        spent = self.spends()
        return EpsilonDeltaCurve(spent.epsilon, spent.delta)

    @abstractmethod
    def constants(self) -> dict[str, Any]:
        """Return every number in the theorem, for the certificate."""

    @classmethod
    def check_combination(cls, noise: str, calibration: str) -> None:
        """Raise InvalidParameter for a calibration or a noise that the mechanism does not offer."""
        allowed = cls.combinations
        if calibration not in allowed:
            raise InvalidParameter(
                f"calibration of {cls.title} must be {' or '.join(map(repr, allowed))}, not {preview(calibration)}"
            )
        if noise not in allowed[calibration]:
            raise InvalidParameter(
                f"calibration={calibration!r} of {cls.title} needs noise = "
                f"{' or '.join(map(repr, allowed[calibration]))}, not {preview(noise)}"
            )


@dataclass(frozen=True)
class CoefficientMechanism(Mechanism):
    """A mechanism that releases coefficients, from the rows of one holder or of several.

    Attributes
    ----------
    task : Task
    noise : str
        The distribution of its noise.
    calibration : str
        ``tight``, or the name of the paper whose constants are used.
    """

    task: Task
    guarantee: Guarantee
    noise: str
    calibration: str

    @property
    def coefficient_step(self) -> float | None:
        """Step of the grid that released coefficients lie on; ``None`` if they are computed from noisy numbers."""
        return None


class ReleaseMechanism(CoefficientMechanism):
    """A mechanism of one holder: from rows to coefficients that may be released.

    Attributes
    ----------
    is_default : bool
        Whether ``mechanism="auto"`` may choose it; the first in the list whose theorem holds is chosen.
    answers_questions : bool
        Whether it evaluates the minimiser at points and releases noisy answers.
    takes_statistics : bool
        Whether, calibrated tightly, it composes with the statistics of `Task`.
    perturbs : {"objective", "minimiser", "answers", "choices"}
        Where the noise enters; an audit derives the distribution of the output from it.
    """

    noise_scale: float
    effective_regularization: Any  # a field where calibration may raise it
    is_default: ClassVar[bool] = False
    answers_questions: ClassVar[bool] = False
    takes_statistics: ClassVar[bool] = False
    perturbs: ClassVar[Literal["objective", "minimiser", "answers", "choices"]]

    @classmethod
    @abstractmethod
    def calibrate(
        cls, task: Task, guarantee: Guarantee, noise: str, calibration: str, *, points: int | None = None
    ) -> Any:
        """Return the mechanism with the least noise for a guarantee, from public parameters only.

        ``points`` is the number of public points, for mechanisms that answer at them.
        """

    @classmethod
    @abstractmethod
    def explain_refusal(cls, task: Task, noise: str) -> str | None:
        """Return why the theorem does not cover this task; ``None`` if it does."""

    @property
    def _depending(self) -> str:
        return ", and ".join([super()._depending, *(part.released for part in self.task.statistics.values())])

    @property
    def floating_point(self) -> str:
        """Statement of certificates on rounding and exactness of the sampler."""
        return FLOATING_POINT[self.noise]

    @property
    def solver_distance(self) -> float:
        """Maximal distance of the solver's point from the exact minimiser of the theorem."""
        return self.task.solver_distance

    @property
    def tolerance_share(self) -> float:
        """Cost of the solver's distance relative to the mechanism's own noise; here it adds to the sensitivity."""
        smooth = math.isfinite(self.task.loss.smoothness)  # the hinge's gap cannot be chosen
        return 2.0 * self.solver_distance / self.task.minimiser_sensitivity if smooth else 0.0

    @property
    def ratio(self) -> float:
        """Sensitivity of the sum of gradients over the deviation of its Gaussian noise."""
        return self.task.gradient_sensitivity / self.noise_scale

    @property
    def noise_scales(self) -> tuple[float, ...]:
        """Scales of all noise vectors, in the order they are drawn."""
        return (self.noise_scale,)

    @property
    def noisy_numbers(self) -> int:
        """Number of values of one problem that each noise vector is added to."""
        return self.task.dimension

    @property
    def gaussian_numbers(self) -> int:
        if self.noise != "gaussian":
            return 0
        # twice: objective perturbation has a second draw
        own = 2 * self.task.problems * self.task.dimension
        return own + sum(part.numbers for part in self.task.statistics.values())

    @abstractmethod
    def renyi(self, order: float) -> float:
        """Return the Renyi divergence of the given order."""

    @abstractmethod
    def run(self, oracle: MinimiserOracle, randomness: Randomness) -> Array:
        """Touch the data: return the coefficients that may be released."""


def takes_statistics(kind: type[Mechanism], calibration: str) -> bool:
    """Return whether a theorem covers the mechanism together with statistics of the same family of noise."""
    return issubclass(kind, ReleaseMechanism) and kind.takes_statistics and calibration == "tight"


def covers_statistics(task: Task, kind: type[Mechanism], noise: str, calibration: str) -> bool:
    """Return whether a theorem covers the mechanism together with the task's statistics."""
    cost_of_other_family = task.other_epsilon if noise == "gaussian" else task.other_ratio
    return takes_statistics(kind, calibration) and not cost_of_other_family


MECHANISMS: dict[str, type[Mechanism]] = {}

Kind = TypeVar("Kind", bound=type[Mechanism])


def register_mechanism(kind: Kind) -> Kind:
    """Add a mechanism to `MECHANISMS`, by its name and mode; usable as a decorator."""
    key = kind.name if kind.mode == "tight" else f"{kind.name}, {kind.mode} mode"
    required = ["title", "page"]
    if issubclass(kind, ReleaseMechanism):
        required += ["calibrated_constants", "combinations", "perturbs"]
    register(MECHANISMS, key, kind, "mechanism", required)
    return kind


def mechanisms_of(family: Any) -> dict[str, Any]:
    """Return the registered mechanisms of a family by name, in order."""
    return {name: kind for name, kind in MECHANISMS.items() if issubclass(kind, family)}
