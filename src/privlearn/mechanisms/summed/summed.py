"""Base classes of mechanisms over secure sums: the questions of a coordinator, and the noise in every answer.

The coordinator never adds noise and never sees the vector of one holder. It asks a question; each holder answers with a
vector of its own records plus its share of the noise; only the sum of the answers is opened. So the result of `run` is
a function of noisy sums alone (docs/theory/multiparty.md).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from privlearn.accounting import gaussian_epsilon
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import CoefficientMechanism
from privlearn.mechanisms.task import Task

SHARE_GRID_BITS = 32
"""Holders round to a grid of at most 2^-32 of the noise scale and then add their share; the guarantee includes it."""

SUM_ROUNDING = 2.0**-36
"""Rounding of a floating-point sum over n records of norm at most 1, relative to n: chains of at most 2^17 additions
(`solvers.problem` sums in blocks) lose less, for all n up to 2^26."""

MAX_RECORDS = 2**26  # for which the rounding of sums is proven

FLOATING_POINT = {
    "gaussian": "exact discrete samplers on a grid of at most 2^-32 of the noise scale; rounding, of the sums too, is "
    "inside the guarantee",
    "norm_gamma": "every party draws its noise exactly from the continuous distribution and rounds its noisy answer "
    "last, to a public grid, which costs nothing; rounding of what it computes before is inside the guarantee",
}
"""Statements of certificates on the parties' samplers."""

MAX_COEFFICIENT = 2.0**256
"""Coefficients in questions are clipped here. Margins of rows of norm at most 1 then stay below 2^256 sqrt(dimension),
far from overflow: every finite question has a finite answer, for any rows. Minimisers, of norm at most L / Lambda, are
far smaller."""


@dataclass(frozen=True)
class Noise:
    """One part of the noise in a sum.

    Attributes
    ----------
    distribution : {"gaussian", "norm_gamma"}
        Gaussian noise is dealt out: every holder adds a share. Norm-Gamma noise has no exact shares: every holder adds
        a whole draw, which protects its own records without the help of others.
    scale : float
        Gaussian: scale of the sum of the honest holders' shares. Norm-Gamma: scale of each holder's draw.
    once_per_run : bool
        True if it is drawn once and added to every answer of the run; else each answer gets a fresh draw.
    """

    distribution: str
    scale: float
    once_per_run: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether every holder adds a draw of this scale, not a share of one."""
        return self.distribution == "norm_gamma"


@dataclass(frozen=True, eq=False)
class Question:
    """The question to every holder in one round.

    A holder takes everything but ``coefficients`` from the agreed mechanism (`SummedMechanism.question`), never from
    the coordinator; above all the noise.

    Attributes
    ----------
    number : int
        From 0.
    kind : {"second_moments", "gradients", "minimisers"}
        Sum of x x' over the records (`pack`); sum of the losses' gradients at ``coefficients``; the holder's own
        minimiser, times its agreed weight.
    length : int
        Number of values in the answer.
    bound : float
        Proven bound on the modulus of each value in the answer of any holder, for fixed-point sums.
    noise : tuple of Noise
    coefficients : array of shape (problems, dimension), optional
        Clipped at `MAX_COEFFICIENT`, which is a constant.
    """

    number: int
    kind: str
    length: int
    bound: float
    noise: tuple[Noise, ...]
    coefficients: Array | None = None

    def __post_init__(self) -> None:
        if self.coefficients is not None:
            cut = np.clip(self.coefficients, -MAX_COEFFICIENT, MAX_COEFFICIENT)
            object.__setattr__(self, "coefficients", cut)


@dataclass(frozen=True, eq=False)
class NoisySum:
    """An opened sum, with its agreed number of records and its number of holders; a holder may drop out."""

    vector: Array
    total: int
    parties: int


class NoisySums(Protocol):
    """The data of many holders as seen by a coordinator: in one process, or behind a secure sum."""

    def ask(self, question: Question) -> NoisySum:
        """Let every holder answer with its share of the noise, and return the opened sum."""


class Questionnaire(Protocol):
    """The part of a mechanism that a run of several holders uses, for any use of the sums."""

    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def covers(self) -> str: ...
    @property
    def records(self) -> int:
        """Public: declared or expected number of records of all holders together."""

    @property
    def holders(self) -> tuple[int, int, int]:
        """Numbers of holders: all; those that must add their noise; those that may have records of one person."""

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
        Task of all holders' records; ``parties_per_person`` of them may have records of one person.
    guarantee : Guarantee
        For everything the coordinator sees.
    parties : int
        Number of holders.
    shares : int
        Number of honest, present holders needed for the guaranteed noise; the others may collude or drop out.
    rounds : int
        Number of questions with fresh noise, second moments not counted.
    """

    parties: int
    shares: int
    rounds: int

    combinations: ClassVar[dict[str, tuple[str, ...]]]
    page = "multiparty"
    uses_solver = False

    def __post_init__(self) -> None:
        for name in ("parties", "shares", "rounds"):
            object.__setattr__(self, name, whole_number(getattr(self, name), name))
        if self.shares > self.parties:
            raise InvalidParameter(
                f"shares must be at most the number of parties, {self.parties}, not {self.shares}"
            )
        limit = MAX_RECORDS // self.task.relation.max_table_ratio
        if self.task.total > limit:
            raise InvalidParameter(f"rounding is proven for at most {limit} records. Train on fewer.")

    @property
    def covers(self) -> str:
        return (
            f"Everything the coordinator sees: {self.transcript}, and so this file. {self._needs} "
            f"{whose_records(self.task.parties_per_person)} "
            f"{self._public} are public and enter as such.{self.guarantee.relation.count_coverage}"
        )

    @property
    def _needs(self) -> str:
        """Statement on who must add noise for the guarantee to hold, and what the others may do."""
        if self.noise == "norm_gamma":
            return (
                "Every party adds the whole noise to each of its answers. So it holds for each person if the party "
                "that has the person's records does, whatever the coordinator and all other parties do, and for every "
                "single answer as for the sums. A coordinator that lies may choose who counts as missing and when to "
                f"stop. {ONLY_NOISE}"
            )
        return (
            f"It holds if {self.shares} of the {self.parties} parties each add their share of the noise, whoever else "
            "colludes with the coordinator or drops out, and if only sums over all parties but the missing ones are "
            "opened (secure sum). A coordinator that lies may choose who counts as missing and when to stop; it learns "
            f"one sum per question, with that noise in it, and nothing else. {ONLY_NOISE} "
            f"{other_parties(self, self.shares)}"
        )

    @property
    def floating_point(self) -> str:
        return FLOATING_POINT[self.noise]

    @property
    def _public(self) -> str:
        if self.guarantee.relation.count_is_public:
            return "Number of parties and records, plan and schema"
        return "Number of parties, expected number of records of each, plan and schema"

    @property
    @abstractmethod
    def transcript(self) -> str:
        """Description of what the coordinator sees."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[str, ...]:
        """Kinds of all questions, in order."""

    @abstractmethod
    def _describe_question(self, kind: str) -> tuple[int, float, tuple[Noise, ...]]:
        """Return length, bound and noise of the answers to a kind of question."""

    def question(self, number: int, coefficients: Array | None = None) -> Question:
        """Return the agreed question of that number."""
        if not 0 <= number < len(self.kinds):
            raise InvalidParameter(
                f"there are {len(self.kinds)} questions, numbered from 0: none is {number}"
            )
        kind = self.kinds[number]
        return Question(number, kind, *self._describe_question(kind), coefficients)

    @abstractmethod
    def renyi_of(self, kinds: tuple[str, ...], order: float) -> float:
        """Return the Renyi divergence of the given order of answers to such questions."""

    @abstractmethod
    def epsilon_of(self, kinds: tuple[str, ...]) -> float:
        """Return the epsilon of answers to such questions, at the guarantee's delta."""

    def renyi(self, order: float) -> float:
        """Return the Renyi divergence of the given order of the whole run."""
        return self.renyi_of(self.kinds, order)

    def epsilon_after(self, questions: int) -> float:
        """Return the epsilon spent after a number of questions, at the guarantee's delta."""
        return self.epsilon_of(self.kinds[:questions])

    @abstractmethod
    def run(self, sums: NoisySums) -> Array:
        """Return coefficients computed from noisy sums, one row per problem; they may be released."""

    @property
    def records(self) -> int:
        return self.task.total

    @property
    def holders(self) -> tuple[int, int, int]:
        return self.parties, self.shares, self.task.parties_per_person

    @property
    def sum_sensitivity(self) -> float:
        """Sensitivity of the computed sum of all gradients of all problems, rounding included."""
        return math.sqrt(self.task.problems) * (
            self.task.gradient_sensitivity + summation_error(self.task, self.task.loss.lipschitz)
        )

    @property
    def surplus(self) -> float:
        """Gaussian noise in a sum of all holders, relative to its guaranteed scale."""
        return surplus(self.parties, self.shares)

    @property
    def _length(self) -> int:
        """Number of coefficients of all problems together."""
        return self.task.problems * self.task.dimension

    @property
    def _gradient_bound(self) -> float:
        """Bound on the coordinates of a sum of gradients over any of the records."""
        return self.task.total * self.task.mass_bound * self.task.loss.lipschitz * (1.0 + 2.0**-20)

    def _common_constants(self) -> dict[str, Any]:
        return {"parties": self.parties, "shares": self.shares, "rounds": self.rounds}


def adds_whole_noise(mechanism: Any) -> bool:
    """Return whether every party adds the whole noise, which protects its records from all others together."""
    return any(noise.is_whole for noise in mechanism.question(0).noise)


def towards_a_party(mechanism: Any, shares: int) -> Guarantee | None:
    """Return the guarantee towards a party that subtracts its own share of Gaussian noise; None if there is none.

    One of ``shares`` shares is then known, so the noise is sqrt((shares - 1) / shares) of what it was. Where every
    party adds the whole noise, a person's own party protects them from any knowledge of the others.
    """
    if adds_whole_noise(mechanism) or not mechanism.guarantee.is_private:
        return cast(Guarantee, mechanism.guarantee)
    if shares < 2 or mechanism.noise != "gaussian":
        return None
    ratio = math.sqrt(mechanism.renyi(2.0))  # of Gaussian noise, all answers together cost order ratio^2 / 2
    guarantee = mechanism.guarantee
    weaker = gaussian_epsilon(ratio / math.sqrt(1.0 - 1.0 / shares), guarantee.delta)
    return Guarantee(weaker, guarantee.delta, guarantee.neighbours)


ONLY_NOISE = (
    "If the plan allows dropouts, a coordinator that leaves a party out of some sums can estimate that party's own "
    "sums by differences: only the noise protects them."
)


def other_parties(mechanism: Any, shares: int) -> str:
    """State what another party can learn, for certificates."""
    towards = towards_a_party(mechanism, shares)
    subtracts = "Another party can subtract its own share of the noise:"
    if towards is None:  # one share is enough: every such agreement allows for a colluding party
        return f"{subtracts} it is one of those that may collude."
    left = f"epsilon = {towards.epsilon:.6g} at the same delta is left towards it"
    if shares == mechanism.parties:
        return f"{subtracts} {left}."
    return f"{subtracts} it is one of those that may collude, if the plan says that one may (`colluding`); else {left}."


def whose_records(parties: int) -> str:
    """State, for certificates, how many parties have records of one person."""
    if parties == 1:
        return "Each person's records lie with one party."
    return f"Each person's records lie with at most {parties} parties."


def summation_error(task: Task, bound: float) -> float:
    """Return how far rounding can move two computed sums of ``total`` vectors of norm at most ``bound`` apart."""
    return 2.0 * SUM_ROUNDING * task.total * task.mass_bound * bound


def surplus(parties: int, shares: int) -> float:
    """Return the scale of all parties' noise relative to that of the guaranteed ``shares``."""
    return math.sqrt(parties / shares)


def grid_ratio(length: int) -> float:
    """Return what rounding a holder's vector to its grid adds to sensitivity / noise scale."""
    return math.sqrt(length) * 2.0**-SHARE_GRID_BITS


def pack(matrix: Array) -> Array:
    """Return a symmetric matrix as a vector of the same norm: upper triangle, off-diagonal times sqrt(2)."""
    rows, columns = np.triu_indices(len(matrix))
    return np.asarray(matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0)))


def unpack(vector: Array, dimension: int) -> Array:
    """Inverse of `pack`."""
    rows, columns = np.triu_indices(dimension)
    matrix = np.empty((dimension, dimension))
    matrix[rows, columns] = matrix[columns, rows] = vector / np.where(rows == columns, 1.0, math.sqrt(2.0))
    return matrix
