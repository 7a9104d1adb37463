"""What a mechanism is: a value that is calibrated from public facts, states all its constants, and touches data last.

    calibrate (public facts) -> spends, renyi, constants (what it costs) -> run (touches the data)

There is one list of them, `MECHANISMS`. Certificates, verification, audits, plans and pages read from a mechanism what
they say about it; none of them asks for its name.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from privlearn.accounting.curves import Curve
from privlearn.accounting.release_curves import StatedCurve
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, shown
from privlearn.extensions import enlist
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.noise import FLOATING_POINT
from privlearn.mechanisms.oracle import Minimises
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness


class Mechanism(ABC):
    """What every mechanism says of itself. Subclasses are frozen dataclasses; their docstring states the theorem.

    Attributes
    ----------
    guarantee : Guarantee
        What it was calibrated to keep.
    name : str
        As certificates and parameters write it.
    mode : str
        ``paper`` where a paper's constants make it another mechanism of the same name.
    title : str
        In words.
    page : str
        Its page in docs/theory, where the argument is.
    chosen_constants : tuple of str
        The constants that calibration chose, from which all others follow.
    combinations : dict
        The noises that each calibration speaks of.
    uses_solver : bool
        Whether a solver's certificate is part of the argument.
    """

    guarantee: Guarantee
    name: ClassVar[str]
    mode: ClassVar[str] = "tight"
    title: ClassVar[str]
    page: ClassVar[str]
    chosen_constants: ClassVar[tuple[str, ...]]
    combinations: ClassVar[dict[str, tuple[str, ...]]]
    uses_solver: ClassVar[bool] = True

    @property
    def covers(self) -> str:
        """What the guarantee is about."""
        return (
            f"Everything in this file that depends on the records: {self._depending}. "
            f"{self.guarantee.relation.counted}, schema, class labels, parameters and the solver's tolerance are "
            f"public and enter as such.{self.guarantee.relation.on_count}"
        )

    @property
    def _depending(self) -> str:
        """What is released."""
        return "the coefficients"

    @property
    @abstractmethod
    def floating_point(self) -> str:
        """What is exact in its sampler."""

    @abstractmethod
    def spends(self) -> Guarantee:
        """The guarantee recomputed from the constants alone."""

    def curve(self) -> Curve:
        """delta as a function of epsilon, from the constants alone; what (epsilon, delta) says if no more is known."""
        spent = self.spends()
        return StatedCurve(spent.epsilon, spent.delta)

    @abstractmethod
    def constants(self) -> dict[str, Any]:
        """Every number the theorem speaks of, for the certificate."""

    @classmethod
    def check_combination(cls, noise: str, calibration: str) -> None:
        """Refuse a calibration that the mechanism does not have, or a noise that the calibration does not speak of."""
        allowed = cls.combinations
        if calibration not in allowed:
            raise InvalidParameter(
                f"{cls.title} knows calibration = {', '.join(map(repr, allowed))}, not {shown(calibration)}"
            )
        if noise not in allowed[calibration]:
            raise InvalidParameter(
                f"calibration={calibration!r} of {cls.title} needs noise = "
                f"{' or '.join(map(repr, allowed[calibration]))}, not {shown(noise)}"
            )


@dataclass(frozen=True)
class CoefficientMechanism(Mechanism):
    """One that releases coefficients: of one holder's rows, or of several holders'.

    Attributes
    ----------
    task : Task
    noise : str
        The law of its noise.
    calibration : str
        Whose constants: ``tight``, or a paper's.
    """

    task: Task
    guarantee: Guarantee
    noise: str
    calibration: str


class ReleaseMechanism(CoefficientMechanism):
    """One holder's: from rows to coefficients that may leave.

    Attributes
    ----------
    is_default : bool
        Whether ``mechanism="auto"`` may take it; the first in the list whose theorem holds is taken.
    answers_questions : bool
        Whether it asks the minimiser about points, public ones or its own choice, and releases noisy answers.
    takes_centring : bool
        Whether its Gaussian noise, calibrated tightly, composes with a centring before it and counts of scores after.
    perturbs : {"objective", "minimiser", "answers", "choices"}
        Where the noise enters: an audit knows the law of what leaves by it.
    """

    noise_scale: float
    effective_regularization: Any  # a field where calibration may raise it
    is_default: ClassVar[bool] = False
    answers_questions: ClassVar[bool] = False
    takes_centring: ClassVar[bool] = False
    perturbs: ClassVar[Literal["objective", "minimiser", "answers", "choices"]]

    @classmethod
    @abstractmethod
    def calibrate(
        cls, task: Task, guarantee: Guarantee, noise: str, calibration: str, *, points: int | None = None
    ) -> Any:
        """The least noise that keeps the promise; looks at public facts only, how many public points there are too."""

    @classmethod
    @abstractmethod
    def explain_refusal(cls, task: Task, noise: str) -> str | None:
        """Why the theorem does not cover this task; ``None`` if it does."""

    @property
    def _depending(self) -> str:
        parts = [super()._depending]
        if self.task.centring is not None:
            parts.append("the mean and the radius of the rows")
        if self.task.score_counts is not None:
            parts.append("the probabilities of its scores")
        return ", and ".join(parts)

    @property
    def floating_point(self) -> str:
        """What is exact in its noise's sampler."""
        return FLOATING_POINT[self.noise]

    @property
    def solver_distance(self) -> float:
        """How far the solver's point may lie from the exact minimiser that the theorem speaks of."""
        return self.task.solver_distance

    @property
    def tolerance_share(self) -> float:
        """What the solver's distance costs beside the mechanism's own noise; here it adds to what a person moves."""
        smooth = math.isfinite(self.task.loss.smoothness)  # the hinge's gap is not for anybody to choose
        return 2.0 * self.solver_distance / self.task.minimiser_sensitivity if smooth else 0.0

    @property
    def ratio(self) -> float:
        """How far one person moves the sum of gradients, over the deviation of the Gaussian noise that it gets."""
        return self.task.gradient_sensitivity / self.noise_scale

    @property
    def noise_scales(self) -> tuple[float, ...]:
        """Of every draw of noise, in the order they are made."""
        return (self.noise_scale,)

    @property
    def noisy_numbers(self) -> int:
        """How many numbers of one problem each draw protects."""
        return self.task.dimension

    @abstractmethod
    def renyi(self, order: float) -> float:
        """Renyi divergence of the given order that this release may cost."""

    @abstractmethod
    def run(self, oracle: Minimises, randomness: Randomness) -> Array:
        """Touch the data. What is returned may leave."""


def may_follow_centring(task: Task, kind: type[Mechanism], noise: str, calibration: str) -> bool:
    """Whether a theorem covers such a mechanism on rows that were centred before, or with its scores counted after."""
    if not (issubclass(kind, ReleaseMechanism) and kind.takes_centring):
        return False
    proven = task.free_directions is not None and task.problems == 1
    return proven and (noise, calibration) == ("gaussian", "tight")


MECHANISMS: dict[str, type[Mechanism]] = {}

Kind = TypeVar("Kind", bound=type[Mechanism])


def register_mechanism(kind: Kind) -> Kind:
    """Make a mechanism known by its name, everywhere at once."""
    key = kind.name if kind.mode == "tight" else f"{kind.name}, {kind.mode} mode"
    facts = ["title", "page"]
    if issubclass(kind, ReleaseMechanism):
        facts += ["chosen_constants", "combinations", "perturbs"]
    enlist(MECHANISMS, key, kind, "mechanism", facts)
    return kind


def mechanisms_of(family: Any) -> dict[str, Any]:
    """The listed mechanisms of a family, by name, in their order."""
    return {name: kind for name, kind in MECHANISMS.items() if issubclass(kind, family)}
