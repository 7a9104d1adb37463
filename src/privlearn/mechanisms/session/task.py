"""Public parameters of a session with a kernel machine, its sensitivity, and the base of its mechanisms."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.errors import InvalidParameter, did_you_mean, preview
from privlearn.features.kernel import KERNEL_ROUNDING, Kernel
from privlearn.guarantee import Guarantee, Relation
from privlearn.mechanisms.mechanism import Mechanism, mechanisms_of
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness

EVALUATION_ROUNDING = 2.0**-34
"""Bound on the error of sum_i a_i k(x_i, z), relative to sum_i |a_i|: up to `MAX_SUM_TERMS` terms added in any order,
with kernel values within `KERNEL_ROUNDING`."""

MAX_SUM_TERMS = 2**18


@dataclass(frozen=True)
class KernelTask:
    """Regularised risk minimisation over the functions of a kernel's space H, with k(z, z) <= 1.

    The minimiser is f = sum_i a_i k(x_i, .) with |a_i| <= L weight_i / (N Lambda). Where the task has several problems,
    one against the rest, everything here holds for each function; where it has the softmax loss of several classes,
    `sensitivity` is that of all functions together.

    Parameters
    ----------
    task : Task
        Loss, number of records, regularization, neighbours. Its dimension and tolerance are not used.
    solver_distance : float
        t: the solver's function lies within t of the exact minimiser, in the norm of H.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> from privlearn.mechanisms.task import Task
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> round(KernelTask(task, solver_distance=1e-9).sensitivity, 6)
    0.02
    """

    task: Task
    solver_distance: float

    def __post_init__(self) -> None:
        if not 0 <= self.solver_distance < math.inf:
            raise InvalidParameter(
                f"solver_distance must be finite and at least 0, not {preview(self.solver_distance)}"
            )

    @property
    def functions(self) -> int:
        """Number of functions: one per problem, or one per class of the softmax loss."""
        return max(self.task.classes, self.task.problems)

    @property
    def sensitivity(self) -> float:
        """D: sensitivity of the solver's function in the norm of H, and so of each of its values."""
        return self.task.minimiser_sensitivity + 2.0 * self.solver_distance

    @property
    def max_dual_sum(self) -> float:
        """Bound on sum_i |a_i|: all derivatives at their maximum, over N Lambda."""
        task = self.task
        return task.loss.lipschitz * task.mass_bound / task.regularization

    @property
    def evaluation_error(self) -> float:
        """Bound on the rounding error of one computed value of the function."""
        return self.max_dual_sum * EVALUATION_ROUNDING

    @property
    def answer_sensitivity(self) -> float:
        """S: sensitivity of one computed value."""
        return self.sensitivity + 2.0 * self.evaluation_error

    @property
    def norm_bound(self) -> float:
        """C: bound on the norm of the solver's function, and so on its values."""
        return self.task.ball_radius + self.solver_distance

    def constants(self) -> dict[str, Any]:
        """Return every number in the theorems, for the certificate."""
        return {
            "minimiser_sensitivity": self.task.minimiser_sensitivity,
            "solver_distance": self.solver_distance,
            "sensitivity": self.sensitivity,
            "evaluation_error": self.evaluation_error,
            "answer_sensitivity": self.answer_sensitivity,
            "norm_bound": self.norm_bound,
        }


def refuse_private_count(relation: Relation) -> None:
    """Raise InvalidParameter for an exact kernel machine where the number of records is private.

    Its limit on the number of records would reveal it (docs/theory/add-remove.md); with public points there is none.
    """
    if not relation.count_is_public:
        raise InvalidParameter(
            "an exact kernel machine has a limit on the number of records, which would reveal that number, and "
            f"neighbours={relation.name!r} keeps it private. Pass public_points=..., in whose span the functions then "
            "lie, or release a model"
        )


@dataclass(frozen=True)
class SessionMechanism(Mechanism):
    """A mechanism that answers an analyst's queries one after another, from functions in a kernel's space.

    Attributes
    ----------
    kernel_task : KernelTask
    renyi : callable or None
        Renyi divergence of an order; None where only the guarantee itself is known.
    """

    kernel_task: KernelTask
    guarantee: Guarantee

    noise: ClassVar[str]
    renyi: ClassVar[Any]

    @property
    def task(self) -> Task:
        return self.kernel_task.task

    @classmethod
    @abstractmethod
    def calibrate(cls, kernel_task: KernelTask, guarantee: Guarantee) -> Any:
        """Return the mechanism with the least noise for a guarantee, from public parameters only."""

    @property
    @abstractmethod
    def answer_deviation(self) -> float:
        """Standard deviation of a noisy answer at a point with k(z, z) = 1."""

    @property
    def answer_error(self) -> float:
        """Typical error of an answer: its noise, unless it may stay uncorrected."""
        return self.answer_deviation

    def draw_threshold(self, randomness: Randomness) -> int:
        """Return the secret drawn once when a session begins; 0 for mechanisms without one."""
        return 0


def session_mechanism(name: str, mode: str = "tight") -> Any:
    """Return the registered mechanism of that name and mode."""
    known = mechanisms_of(SessionMechanism).values()
    named = [kind for kind in known if kind.name == name]
    if not named:
        names = dict.fromkeys(kind.name for kind in known)
        raise InvalidParameter(
            f"a session's mechanism is one of {', '.join(names)}, not {preview(name)}{did_you_mean(name, names)}"
        )
    for kind in named:
        if kind.mode == mode:
            return kind
    modes = ", ".join(kind.mode for kind in named)
    raise InvalidParameter(f"mechanism={name!r} has the modes {modes}, not {preview(mode)}. Leave mode out")


def kernel_rounding(kernel: Kernel, dimension: int) -> float:
    """Return a bound on the error of a computed value over the kernel's bound, at dense points of norm at most 1.

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
            "for the guarantee. Use a smaller gamma or degree"
        )
    return bound
