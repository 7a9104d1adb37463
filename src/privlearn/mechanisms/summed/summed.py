"""Sums over the records of many holders: what a coordinator may ask, and the noise it gets with every answer.

The coordinator never adds noise and never sees a vector of one holder. It asks; each holder answers with a vector of
its own records plus its share of the noise; only the sum of the answers is opened. So what `run` of the mechanisms
built on this returns is a function of noisy sums alone (docs/theory/multiparty.md).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import CoefficientMechanism
from privlearn.mechanisms.task import Task

SHARE_GRID_BITS = 32
"""Holders round to a grid of at most 2^-32 of the noise scale and then add their share; the guarantee pays for it."""

SUM_ROUNDING = 2.0**-36
"""Rounding of a floating-point sum over n records of norm at most 1, relative to n: chains of at most 2^17 additions
(`erm.rows` sums in blocks) lose less, for all n up to 2^26."""

MOST_RECORDS = 2**26

LARGEST_COEFFICIENT = 2.0**256
"""Coefficients asked about are cut off here. Margins of rows of norm at most 1 then stay below 2^256 sqrt(dimension),
far from overflow: every finite question has a finite answer, whatever the rows. Minimisers, of norm at most L / Lambda,
do not come near it."""


@dataclass(frozen=True)
class Noise:
    """One part of the noise in a sum.

    Attributes
    ----------
    law : {"gaussian", "norm_gamma"}
    scale : float
        Of the whole part in the sum; with ``by_each``, of what each holder adds.
    kept : bool
        Drawn once, and added to every answer of the run.
    by_each : bool
        Every holder adds a whole draw, not a share of one.
    """

    law: str
    scale: float
    kept: bool = False
    by_each: bool = False


@dataclass(frozen=True, eq=False)
class Question:
    """What every holder is asked in one round.

    A holder takes all but ``coefficients`` from the plan's mechanism (`SummedMechanism.question`), never from the
    coordinator: least of all the noise.

    Attributes
    ----------
    number : int
        From 0.
    kind : {"second_moments", "gradients", "minimisers"}
        Sum of x x' over the records (`packed`); sum of the losses' gradients at ``coefficients``; the holder's own
        minimiser, times its weight in the plan.
    length : int
        Numbers in the answer.
    bound : float
        None of them is larger in modulus, in the answer of any holder: a theorem, for fixed-point sums.
    noise : tuple of Noise
    coefficients : array of shape (problems, dimension), optional
        Cut off at `LARGEST_COEFFICIENT`, a rule that depends on nothing.
    """

    number: int
    kind: str
    length: int
    bound: float
    noise: tuple[Noise, ...]
    coefficients: Array | None = None

    def __post_init__(self) -> None:
        if self.coefficients is not None:
            cut = np.clip(self.coefficients, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
            object.__setattr__(self, "coefficients", cut)


@dataclass(frozen=True, eq=False)
class NoisySum:
    """The opened sum, and how many records, as the plan says, and holders are in it: a holder may drop out."""

    vector: Array
    total: int
    parties: int


class NoisySums(Protocol):
    """The data of many holders, as a coordinator may see them: one process, or the holders behind a secure sum."""

    def ask(self, question: Question) -> NoisySum:
        """Let every holder answer with its share of the noise, and open the sum."""


class Questionnaire(Protocol):
    """What a run of several holders needs to know of its mechanism, whatever becomes of the sums."""

    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def covers(self) -> str: ...
    @property
    def records(self) -> int:
        """Public: of all holders together, as the plan declares or expects them."""

    @property
    def holders(self) -> tuple[int, int, int]:
        """How many there are, how many honest, present ones are enough for the noise, how many have one person."""

    @property
    def kinds(self) -> tuple[str, ...]: ...
    def question(self, number: int, coefficients: Array | None = None) -> Question: ...
    def renyi(self, order: float) -> float: ...
    def renyi_of(self, kinds: tuple[str, ...], order: float) -> float: ...
    def epsilon_of(self, kinds: tuple[str, ...]) -> float: ...
    def epsilon_after(self, questions: int) -> float: ...


@dataclass(frozen=True)
class SummedMechanism(CoefficientMechanism):
    """A mechanism over a secure sum of several holders' answers.

    Parameters
    ----------
    task : Task
        ``total`` counts the records of all holders; how many of these have records of one person, it says too.
    guarantee : Guarantee
        For everything the coordinator sees.
    parties : int
        Number of holders.
    shares : int
        How many honest, present holders are enough for the promised noise: the others may collude or drop out.
    rounds : int
        Number of questions asked with fresh noise, curvature not counted.
    """

    parties: int
    shares: int
    rounds: int

    combinations: ClassVar[dict[str, tuple[str, ...]]]
    page: ClassVar[str] = "multiparty"
    uses_solver: ClassVar[bool] = False
    floating_point: ClassVar[str] = (
        "exact discrete samplers on a grid of at most 2^-32 of the noise scale; rounding, of the sums too, is inside "
        "the guarantee"
    )

    def __post_init__(self) -> None:
        for name in ("parties", "shares", "rounds"):
            object.__setattr__(self, name, whole_number(getattr(self, name), name))
        if self.shares > self.parties:
            raise InvalidParameter(
                f"shares must be at most the number of parties, {self.parties}, not {self.shares}"
            )
        largest = MOST_RECORDS // self.task.relation.largest_table
        if self.task.total > largest:
            raise InvalidParameter(f"rounding is proven for at most {largest} records: train on fewer")

    @property
    def covers(self) -> str:
        """What the guarantee is about, and whom it trusts for what."""
        return (
            f"Everything the coordinator sees: {self.transcript}, and so this file. It holds if {self.shares} of the "
            f"{self.parties} parties each add their share of the noise, whoever else colludes with the coordinator or "
            "drops out, and if only sums over all parties but the missing ones are opened (secure sum). A coordinator "
            "that lies may choose what each party is asked, who counts as missing, and when to stop; it learns one sum "
            "per question, with that noise in it, and nothing else. "
            f"{whose_records(self.task.parties_per_person)} "
            f"{self._public} are public and enter as such.{self.guarantee.relation.on_count}"
        )

    @property
    def _public(self) -> str:
        if self.guarantee.relation.count_is_public:
            return "Number of parties and records, plan and schema"
        return "Number of parties, expected number of records of each, plan and schema"

    @property
    @abstractmethod
    def transcript(self) -> str:
        """What the coordinator sees, in words."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[str, ...]:
        """What is asked, in this order and no more."""

    @abstractmethod
    def _asked(self, kind: str) -> tuple[int, float, tuple[Noise, ...]]:
        """Length, bound and noise of such a question's answers."""

    def question(self, number: int, coefficients: Array | None = None) -> Question:
        """The plan's question of that number."""
        if not 0 <= number < len(self.kinds):
            raise InvalidParameter(
                f"the plan has {len(self.kinds)} questions, numbered from 0: none is {number}"
            )
        kind = self.kinds[number]
        return Question(number, kind, *self._asked(kind), coefficients)

    @abstractmethod
    def renyi_of(self, kinds: tuple[str, ...], order: float) -> float:
        """Renyi divergence of the given order that answers to such questions may cost; each adds its own."""

    @abstractmethod
    def epsilon_of(self, kinds: tuple[str, ...]) -> float:
        """What answers to such questions cost, at the guarantee's delta."""

    def renyi(self, order: float) -> float:
        """Renyi divergence of the given order that the whole run may cost."""
        return self.renyi_of(self.kinds, order)

    def epsilon_after(self, questions: int) -> float:
        """What has been spent once so many were answered, at the guarantee's delta."""
        return self.epsilon_of(self.kinds[:questions])

    @abstractmethod
    def run(self, sums: NoisySums) -> Array:
        """From noisy sums to coefficients, one row per problem; sees no record. What is returned may leave."""

    @property
    def records(self) -> int:
        return self.task.total

    @property
    def holders(self) -> tuple[int, int, int]:
        return self.parties, self.shares, self.task.parties_per_person

    @property
    def rounded_sensitivity(self) -> float:
        """How far one person moves the computed sum of all gradients of all problems."""
        return math.sqrt(self.task.problems) * (
            self.task.gradient_sensitivity + summation_error(self.task, self.task.loss.lipschitz)
        )

    @property
    def surplus(self) -> float:
        """Noise in a sum that nobody is missing from, for each promised one: all add a share."""
        return surplus(self.parties, self.shares)

    @property
    def _length(self) -> int:
        """Coefficients of all problems together."""
        return self.task.problems * self.task.dimension

    @property
    def _gradient_bound(self) -> float:
        """No coordinate of a sum of gradients is larger, whoever sums over how many of the records."""
        return self.task.total * self.task.mass_bound * self.task.loss.lipschitz * (1.0 + 2.0**-20)

    def _common_constants(self) -> dict[str, Any]:
        return {"parties": self.parties, "shares": self.shares, "rounds": self.rounds}


def whose_records(parties: int) -> str:
    """With how many parties the records of one person lie."""
    if parties == 1:
        return "Each person's records lie with one party."
    return f"Each person's records lie with at most {parties} parties."


def summation_error(task: Task, bound: float) -> float:
    """By how much rounding can drive two computed sums of ``total`` vectors of norm at most ``bound`` apart."""
    return 2.0 * SUM_ROUNDING * task.total * task.mass_bound * bound


def surplus(parties: int, shares: int) -> float:
    """Scale of the noise of all parties' shares over that of the promised ``shares``."""
    return math.sqrt(parties / shares)


def grid_ratio(length: int) -> float:
    """What rounding a holder's vector to its grid adds to sensitivity / noise scale."""
    return math.sqrt(length) * 2.0**-SHARE_GRID_BITS


def packed(matrix: Array) -> Array:
    """A symmetric matrix as a vector with the same Euclidean norm: upper triangle, off-diagonal times sqrt(2)."""
    rows, columns = np.triu_indices(len(matrix))
    return np.asarray(matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0)))


def unpacked(vector: Array, dimension: int) -> Array:
    """Inverse of `packed`."""
    rows, columns = np.triu_indices(dimension)
    matrix = np.empty((dimension, dimension))
    matrix[rows, columns] = matrix[columns, rows] = vector / np.where(rows == columns, 1.0, math.sqrt(2.0))
    return matrix
