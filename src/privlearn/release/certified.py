"""What all certificates share: claims that are recomputed from constants, receipts, words that version 0.1 used."""

from __future__ import annotations

import math
import platform
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, ClassVar, Self

from privlearn._version import __version__
from privlearn.data.schema.purchases import JointPurchase, Purchase, bought_beside, read_purchase
from privlearn.erm.losses import loss_from_dict
from privlearn.errors import VerificationError
from privlearn.extensions import listed
from privlearn.guarantee import Guarantee, weakness
from privlearn.mechanisms.mechanism import Mechanism, ReleaseMechanism
from privlearn.mechanisms.statistics.discovery import Discovery
from privlearn.mechanisms.summed.summed import SummedMechanism
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness, SecureRandomness
from privlearn.relation import RELATIONS
from privlearn.release.meaning import Meaning, meaning_of
from privlearn.release.notebook import as_html

FIRST_VERSION = "0.1.0"

_FLOATING_POINT = {
    "norm_gamma": "no exact sampler is known: combined from exact draws in floating point, result rounded to a public "
    "grid of 2^-40 of the noise scale; the guarantee holds for the ideal law",
    "psgd": "no exact sampler is known for the noise drawn anew: combined from exact draws in floating point, rounded "
    "to a public grid of 2^-40 of its scale; the guarantee holds for the ideal law",
    "tdil": "answers and draws from a net: exact discrete samplers; rounding is inside the guarantee. Draws from the "
    "unit ball: no exact sampler is known: combined from exact draws in floating point, rounded to a public grid of "
    "2^-40; there the guarantee holds for the ideal law",
}


def first_floating_point(mechanism: Mechanism) -> str | None:
    """Of a mechanism, or a noise, whose real numbers it drew in floating point."""
    by_noise = _FLOATING_POINT.get(mechanism.noise) if isinstance(mechanism, ReleaseMechanism) else None
    return _FLOATING_POINT.get(mechanism.name, by_noise)


def first_covers(mechanism: Mechanism) -> str | None:
    """Of several holders: it did not say what a lying coordinator learns."""
    if not isinstance(mechanism, SummedMechanism):
        return None
    return (
        f"Everything the coordinator sees: {mechanism.transcript}, and so this file. It holds if {mechanism.shares} of "
        f"the {mechanism.parties} parties each add their share of the noise, whoever else colludes with the "
        "coordinator or drops out, and if only sums over all parties are opened (secure sum). Each person's records "
        "lie with one party. Number of parties and records, plan and schema are public and enter as such."
    )


def read_receipts(subject: Mapping[str, Any]) -> tuple[Purchase, ...]:
    """What the description of an encoding, or of a learner that has one, says was bought."""
    encoding = subject.get("encoding", subject)
    return tuple(read_purchase(record) for record in encoding.get("bought", ()))


def check_receipt(receipt: Purchase) -> None:
    """Refuse a receipt whose constants do not support its price."""
    spent = _spent(receipt)
    if not spent <= receipt.guarantee:
        raise VerificationError(f"what was bought of the schema cost more than its receipt says: {spent}")
    if receipt.secure is not (receipt.randomness == SecureRandomness.description):
        raise VerificationError("the schema's receipt says of its source of randomness what it is not")


def _spent(receipt: Purchase) -> Guarantee:
    """What a purchase cost, recomputed from its constants alone."""
    facts: dict[str, Any] = {
        "guarantee": receipt.guarantee,
        "records": receipt.records,
        "rows_per_person": receipt.rows_per_person,
    }
    if isinstance(receipt, JointPurchase):
        return SummedCounts(
            **facts,
            cells=(receipt.cells,),
            shares=(1.0,),
            noise="gaussian",
            noise_scale=receipt.noise_scale,
            parties=receipt.parties,
            noise_shares=receipt.noise_shares,
            parties_per_person=receipt.parties_per_person,
        ).spends()
    return Discovery(
        **facts,
        bounds=len(receipt.bounds),
        anchors=receipt.anchors,
        lists=len(receipt.lists),
        quantile_epsilon=receipt.quantile_epsilon or 0.0,
        noise_scale=receipt.noise_scale or 0.0,
        threshold=receipt.threshold or 0.0,
    ).spends()


_BOUGHT = (
    " Of the schema, what was bought from the records is not public: it cost its own price, stated beside it."
)
_DEPENDED_ON = ("numpy", "scipy", "opendp", "dp-accounting", "python-flint")


@dataclass(frozen=True)
class Certified(ABC):
    """A mechanism's plan with its constants, where its random bits come from, and what it is run on.

    Nothing here depends on a record: it could have been written before the data was read.
    """

    mechanism: Any
    randomness: str
    secure: bool
    subject: Mapping[str, Any]
    versions: Mapping[str, str]

    _covers: ClassVar[str]
    _subject: ClassVar[str]
    """What the subject is called in the record."""
    _task_fields: ClassVar[tuple[str, ...]]

    @classmethod
    def issue(cls, mechanism: Any, randomness: Randomness, subject: Mapping[str, Any]) -> Self:
        return cls(mechanism, randomness.description, randomness.secure, subject, installed_versions())

    @property
    @abstractmethod
    def task(self) -> Task:
        """The public facts that the mechanism was calibrated by."""

    @property
    def is_first(self) -> bool:
        """Whether version 0.1 wrote it, whose words were a little different."""
        return self.versions.get("privlearn") == FIRST_VERSION

    @property
    def guarantee(self) -> Guarantee:
        guarantee: Guarantee = self.mechanism.guarantee
        return guarantee

    @property
    def is_private(self) -> bool:
        """True if there is a promise and the random bits behind it, and behind a bought schema, were secret."""
        return self.guarantee.is_private and self.secure and all(part.secure for part in self.bought)

    @property
    def bought(self) -> tuple[Purchase, ...]:
        """What parts of the schema cost, if they were bought from the same records."""
        return read_receipts(self.subject)

    @property
    def adds_up(self) -> bool:
        """True if parts of the schema were bought, for the same neighbours: `together` then says what all costs."""
        return {part.neighbours for part in self.bought} == {self.guarantee.neighbours}

    @property
    def together(self) -> Guarantee:
        """The promise of this release and of the schema that was bought for it, by basic composition.

        Raises InvalidParameter if they count different neighbours.
        """
        return sum((part.guarantee for part in self.bought), start=self.guarantee)

    @property
    def with_alike(self) -> Guarantee:
        """The same, of the purchases that count the same neighbours: files of version 0.1 may have others."""
        beside = bought_beside(self.guarantee, self.bought)
        return self.guarantee if beside is None else self.guarantee + beside

    @property
    def records(self) -> int:
        """How many records, or persons, the promise is about, or is expected to be about; public."""
        return self.task.total

    @property
    def weakness(self) -> str | None:
        """Why the promise, with what was bought of the schema, is hardly private; ``None`` if it is not so."""
        return weakness(self.with_alike, self.records)

    @property
    def meaning(self) -> Meaning | None:
        """What the promise, with what was bought of the schema, means to an attacker; ``None`` if there is none."""
        if not self.is_private:
            return None
        return meaning_of(
            self.guarantee,
            self.mechanism.curve(),
            beside=bought_beside(self.guarantee, self.bought),
            rows_per_person=None if self._counts_persons else self._rows_per_person,
        )

    @property
    def _rows_per_person(self) -> int:
        """How many records of a person the promise covers, where they are not averaged."""
        return math.prod(self._rows_and_parties)

    @property
    def _rows_and_parties(self) -> tuple[int, int]:
        """How many records of a person one party may have, and how many parties have some."""
        return self.task.rows_per_person, self.task.parties_per_person

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, from which `from_dict` recomputes the guarantee."""
        return {
            **self._heading(),
            "claim": self.guarantee.to_dict() | {"epsilon": _write_number(self.guarantee.epsilon)},
            **({"weakness": self.weakness} if self.weakness and not self.is_first else {}),
            "covers": self._covered(),
            "theorem": self._theorem(),
            **self._stated_task(),
            "constants": self.mechanism.constants(),
            **self._solver(),
            "floating_point": self._floating_point(),
            "randomness": {"source": self.randomness, "secure": self.secure},
            self._subject: dict(self.subject),
            "versions": dict(self.versions),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Read a certificate and refuse one whose constants do not support its claim."""
        try:
            certificate = cls(
                cls._read_mechanism(record),
                record["randomness"]["source"],
                record["randomness"]["secure"],
                record[cls._subject],
                record["versions"],
            )
            certificate._check(record)
        except (KeyError, TypeError, AttributeError) as error:
            raise VerificationError(f"the certificate is incomplete or malformed ({error!r})") from None
        except (ArithmeticError, ValueError) as error:
            raise VerificationError(f"the certificate's constants cannot be used: {error}") from None
        return certificate

    def _check(self, record: Mapping[str, Any]) -> None:
        mechanism = self.mechanism
        if not _same(mechanism.constants(), record["constants"]):
            raise VerificationError("the certificate's constants do not follow from its task and noise")
        if not _same(self.to_dict(), record):
            raise VerificationError("the certificate says something that its constants do not")
        if self.secure is not (self.randomness == SecureRandomness.description):
            raise VerificationError("the certificate's source of randomness is not what it says of it")
        if mechanism.guarantee.is_private and not mechanism.spends() <= mechanism.guarantee:
            raise VerificationError(
                f"the noise supports {mechanism.spends()}, less than the claim {mechanism.guarantee}"
            )
        for receipt in self.bought:
            check_receipt(receipt)
            receipt.check_covers(*self._rows_and_parties, self._counts_persons)

    @classmethod
    @abstractmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> Any:
        """The plan that the record describes; refuses what no theorem covers."""

    @abstractmethod
    def _theorem(self) -> dict[str, Any]:
        """Which mechanism, which noise, which proof."""

    @abstractmethod
    def _floating_point(self) -> str:
        """What of the sampler is exact."""

    @abstractmethod
    def _title(self) -> str:
        """The mechanism in words."""

    @abstractmethod
    def _described(self) -> dict[str, str]:
        """The subject in words, one line per fact."""

    def _covered(self) -> str:
        return self._covers + (_BOUGHT if self.bought else "")

    def _heading(self) -> dict[str, Any]:
        return {}

    def _stated_task(self) -> dict[str, Any]:
        """The public facts of what was learnt; nothing for what only counts."""
        task = self.task
        stated = {"loss": task.loss.to_dict()} | {name: getattr(task, name) for name in self._task_fields}
        beside = {"centring": task.centring, "score_counts": task.score_counts}
        return {"task": stated} | {name: part.to_dict() for name, part in beside.items() if part is not None}

    def _solver(self) -> dict[str, Any]:
        return {}

    @property
    def _counts_persons(self) -> bool:
        return self.task.averaged

    def _counted(self) -> dict[str, str]:
        whom = "persons" if self._counts_persons else "records"
        if self.guarantee.relation.count_is_public:
            return {whom: f"{self.records} (public)"}
        return {f"expected {whom}": f"{self.records} (public; how many there are is not)"}

    @property
    def facts(self) -> dict[str, str]:
        """Everything it states but the promise itself, in words."""
        meaning = self.meaning
        loss, rest = self._task_in_words()
        return {
            **({} if meaning is None else meaning.facts),
            **({"strength": self.weakness} if self.weakness else {}),
            "mechanism": self._title(),
            **loss,
            **self._counted(),
            **self._described(),
            **rest,
            **{
                _spaced(name): in_words(value)
                for name, value in self.mechanism.constants().items()
                if name != "records"  # counted above, with what is public about it
            },
            **{name: in_words(value) for name, value in self._solver().items()},
            "randomness": self.randomness,
            "floating point": self._floating_point(),
            "covers": self._covered(),
            **({"with the bought schema": str(self.together)} if self.adds_up else {}),
        }

    def _task_in_words(self) -> tuple[dict[str, str], dict[str, str]]:
        """The loss, and what else was learnt with; nothing for what only counts."""
        task = self.task
        loss = ", ".join(str(value) for value in task.loss.to_dict().values() if value is not None)
        beside = {"centring": task.centring, "score counts": task.score_counts}
        parts = {name: in_words(part.to_dict()) for name, part in beside.items() if part is not None}
        return {"loss": loss}, {"regularization": in_words(task.regularization)} | parts

    @property
    def headline(self) -> str:
        """The promise, or that there is none."""
        if self.guarantee.is_private and not self.is_private:
            return f"NOT PRIVATE (seeded generator); with secret noise it would be {self.guarantee}"
        return str(self.guarantee)

    def __str__(self) -> str:
        return "\n".join([self.headline, *(f"  {name:<26}{fact}" for name, fact in self.facts.items())])

    def _repr_html_(self) -> str:
        return as_html(self.headline, self.facts)


@cache
def installed_versions() -> Mapping[str, str]:
    """Of what a result depends on."""
    others = {name: version(name) for name in _DEPENDED_ON}
    return {"privlearn": __version__} | others | {"python": platform.python_version()}


def in_words(value: Any) -> str:
    """A fact for people: numbers to six digits, yes and no, lists and mappings without brackets."""
    if isinstance(value, Mapping):
        return ", ".join(_entry(name, fact) for name, fact in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def read_guarantee(claim: Mapping[str, Any]) -> Guarantee:
    """The promise that a record claims."""
    neighbours = listed(RELATIONS, claim["neighbours"], "relation").name
    return Guarantee(float(claim["epsilon"]), claim["delta"], neighbours)


def read_task(record: Mapping[str, Any], guarantee: Guarantee, **fixed: Any) -> Task:
    """The public facts of a record; ``fixed`` are those that it does not hold."""
    facts = dict(record["task"])
    loss = loss_from_dict(facts.pop("loss"))
    task = Task(loss=loss, neighbours=guarantee.neighbours, **fixed, **facts)
    if not task.tolerance:
        raise VerificationError("no solver reaches a tolerance of 0")
    return task


def read_chosen(
    constants: Mapping[str, Any], names: tuple[str, ...], guarantee: Guarantee
) -> dict[str, float]:
    """The constants that a calibration chose; the others follow from them."""
    chosen = {name: float(constants[name]) for name in names}
    if guarantee.is_private and not all(0 < value < math.inf for value in chosen.values()):
        raise VerificationError("every noise scale of a private release must be finite and above 0")
    return chosen


def _entry(name: str, fact: Any) -> str:
    """`certified` instead of `certified yes`."""
    if fact is True:
        return _spaced(name)
    return (
        f"{_spaced(name)} ({in_words(fact)})"
        if isinstance(fact, Mapping)
        else f"{_spaced(name)} {in_words(fact)}"
    )


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _same(stated: Any, recomputed: Any) -> bool:
    """Equal, floats to nine digits: another machine's libraries may round the last ones differently."""
    if isinstance(stated, Mapping) and isinstance(recomputed, Mapping):
        return stated.keys() == recomputed.keys() and all(_same(stated[k], recomputed[k]) for k in stated)
    if isinstance(stated, list) and isinstance(recomputed, list):
        return len(stated) == len(recomputed) and all(map(_same, stated, recomputed))
    if isinstance(stated, float) and isinstance(recomputed, float | int):
        return math.isclose(stated, recomputed, rel_tol=1e-9)
    return bool(stated == recomputed)


def _write_number(value: float) -> float | str:
    """JSON has no infinity."""
    return value if math.isfinite(value) else "inf"
