"""Public facts of a session with a kernel machine, and what rounding adds to its sensitivity."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.errors import InvalidParameter, did_you_mean, shown
from privlearn.features.kernel import KERNEL_ROUNDING, Kernel
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import Mechanism, mechanisms_of
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness
from privlearn.relation import Relation

EVALUATION_ROUNDING = 2.0**-34
"""Bound on the error of sum_i a_i k(x_i, z), as a part of sum_i |a_i|: up to `LARGEST_SUM` terms added in any order,
with kernel values within `KERNEL_ROUNDING`."""

LARGEST_SUM = 2**18


@dataclass(frozen=True)
class KernelTask:
    """Regularised risk minimisation over the functions of a kernel's space H, with k(z, z) <= 1.

    The minimiser is f = sum_i a_i k(x_i, .) with |a_i| <= L weight_i / (N Lambda). Where the task has several problems,
    one against the rest, everything here is said of each function; where it has the softmax loss of several classes,
    `sensitivity` is that of all functions together.

    Parameters
    ----------
    task : Task
        Loss, number of records, regularization, neighbours. Its dimension and tolerance mean nothing here.
    solver_distance : float
        t: the solver's function lies within t of the exact minimiser, in the norm of H.
    """

    task: Task
    solver_distance: float

    def __post_init__(self) -> None:
        refuse_private_count(self.task.relation)
        if not 0 <= self.solver_distance < math.inf:
            raise InvalidParameter(
                f"solver_distance must be finite and at least 0, not {shown(self.solver_distance)}"
            )

    @property
    def functions(self) -> int:
        """How many functions answer together: one per problem, or one per class of the softmax loss."""
        return max(self.task.classes, self.task.problems)

    @property
    def sensitivity(self) -> float:
        """D: how far one person moves the solver's function in the norm of H, hence also each of its values."""
        return self.task.minimiser_sensitivity + 2.0 * self.solver_distance

    @property
    def slope_total(self) -> float:
        """Bound on sum_i |a_i|: all slopes at their largest, over N Lambda."""
        task = self.task
        return task.loss.lipschitz * task.mass_bound / task.regularization

    @property
    def evaluation_error(self) -> float:
        """Bound on the rounding error of one computed value of the function."""
        return self.slope_total * EVALUATION_ROUNDING

    @property
    def answer_sensitivity(self) -> float:
        """S: how far one person moves one computed value."""
        return self.sensitivity + 2.0 * self.evaluation_error

    @property
    def norm_bound(self) -> float:
        """C: bound on the norm of the solver's function, hence also on its values."""
        return self.task.ball_radius + self.solver_distance

    def constants(self) -> dict[str, Any]:
        """Every number the theorems speak of, for the certificate."""
        return {
            "minimiser_sensitivity": self.task.minimiser_sensitivity,
            "solver_distance": self.solver_distance,
            "sensitivity": self.sensitivity,
            "evaluation_error": self.evaluation_error,
            "answer_sensitivity": self.answer_sensitivity,
            "norm_bound": self.norm_bound,
        }


def refuse_private_count(relation: Relation) -> None:
    """The theorems would hold (docs/theory/add-remove.md), but not for what a limit on the number of records shows."""
    if not relation.count_is_public:
        raise InvalidParameter(
            "a session answers from an exact kernel machine, whose limit on the number of records would tell that "
            f"number, and neighbours={relation.name!r} keeps it private: release a model, or let the session answer "
            "from one"
        )


@dataclass(frozen=True)
class SessionMechanism(Mechanism):
    """What answers an analyst's points, one after another, from functions in a kernel's space.

    Attributes
    ----------
    facts : KernelTask
    renyi : callable or None
        Renyi divergence, by its order; None where only the promise itself is known.
    """

    facts: KernelTask
    guarantee: Guarantee

    noise: ClassVar[str]
    renyi: ClassVar[Any]

    @property
    def task(self) -> Task:
        return self.facts.task

    @classmethod
    @abstractmethod
    def calibrate(cls, facts: KernelTask, guarantee: Guarantee) -> Any:
        """The least noise that keeps the promise; looks at public facts only."""

    @property
    @abstractmethod
    def answer_deviation(self) -> float:
        """Of the noise in a noisy answer, at a point with k(z, z) = 1."""

    @property
    def answer_error(self) -> float:
        """By how much an answer is off, as a rule: its noise, unless it may stay uncorrected."""
        return self.answer_deviation

    def draw_threshold(self, randomness: Randomness) -> int:
        """What is drawn once, when the session begins, and remembered; most have nothing to."""
        return 0


def session_mechanism(name: str, mode: str = "tight") -> Any:
    """The listed one of that name and mode."""
    known = mechanisms_of(SessionMechanism).values()
    named = [kind for kind in known if kind.name == name]
    if not named:
        names = dict.fromkeys(kind.name for kind in known)
        raise InvalidParameter(
            f"a session's mechanism is one of {', '.join(names)}, not {shown(name)}{did_you_mean(name, names)}"
        )
    for kind in named:
        if kind.mode == mode:
            return kind
    modes = ", ".join(kind.mode for kind in named)
    raise InvalidParameter(f"mechanism={name!r} has the modes {modes}, not {shown(mode)}: leave mode out")


def kernel_rounding(kernel: Kernel, dimension: int) -> float:
    """Bound on the error of a computed value, divided by the kernel's bound, at dense points of norm at most 1.

    Raises
    ------
    InvalidParameter
        If it exceeds `KERNEL_ROUNDING`, on which the guarantees rest.
    """
    bound = kernel.rounding(dimension)
    if bound > KERNEL_ROUNDING:
        settings = "".join(f" {name}={getattr(kernel, name):g}" for name in kernel.settings)
        raise InvalidParameter(
            f"the kernel {kernel.name!r} with{settings} on {dimension} features cannot be computed precisely enough "
            "for the guarantee: take a smaller gamma or degree"
        )
    return bound
