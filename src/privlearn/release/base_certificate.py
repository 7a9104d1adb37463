"""What all certificates share: a claim that is recomputed from the constants, and the receipts of private bounds.

A certificate states a mechanism with its constants. Nothing in it is taken on trust: reading one rebuilds the
mechanism, recomputes every number and text of the record, and refuses a record that differs.
"""

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
from privlearn.data.schema.private_bounds import (
    JointPrivateBounds,
    PrivateBounds,
    add_private_bounds,
    private_bounds_cost,
    read_private_bounds,
)
from privlearn.errors import VerificationError
from privlearn.guarantee import RELATIONS, Guarantee, weakness
from privlearn.imports import look_up
from privlearn.mechanisms.statistics.discovery import Discovery
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.mechanisms.task import Task
from privlearn.randomness import SECURE_DESCRIPTIONS, Randomness
from privlearn.release.html import notebook_view
from privlearn.release.meaning import Meaning, meaning_of
from privlearn.solvers.losses import loss_from_dict


def read_receipts(subject: Mapping[str, Any]) -> tuple[PrivateBounds, ...]:
    """Return the receipts of private bounds in the description of an encoding, or of a learner that has one."""
    encoding = subject.get("encoding", subject)
    return tuple(read_private_bounds(record) for record in encoding.get("private_bounds", ()))


def check_receipt(receipt: PrivateBounds) -> None:
    """Raise VerificationError if the constants of a receipt do not support its price."""
    spent = _recompute_cost(receipt)
    if not spent <= receipt.guarantee:
        raise VerificationError(f"the receipt of private bounds states less than they cost: {spent}")
    if receipt.secure is not (receipt.randomness in SECURE_DESCRIPTIONS):
        raise VerificationError("the receipt of private bounds misstates its source of randomness")


def _recompute_cost(receipt: PrivateBounds) -> Guarantee:
    """Return what the private bounds cost, recomputed from the constants of their receipt."""
    shared: dict[str, Any] = {
        "guarantee": receipt.guarantee,
        "records": receipt.records,
        "rows_per_person": receipt.rows_per_person,
    }
    if isinstance(receipt, JointPrivateBounds):
        return SummedCounts(
            **shared,
            cells=(receipt.cells,),
            shares=(1.0,),
            noise="gaussian",
            noise_scale=receipt.noise_scale,
            parties=receipt.parties,
            noise_shares=receipt.noise_shares,
            parties_per_person=receipt.parties_per_person,
        ).spends()
    return Discovery(
        **shared,
        bounds=len(receipt.bounds),
        anchors=receipt.anchors,
        lists=len(receipt.lists),
        quantile_epsilon=receipt.quantile_epsilon or 0.0,
        noise_scale=receipt.noise_scale or 0.0,
        threshold=receipt.threshold or 0.0,
    ).spends()


_ESTIMATED = (
    " What was estimated of the schema from the records is not public: its own cost is stated next to it."
)
_PERSONS = (
    " A record is a person here, whose rows are averaged. How many rows a person has is covered, and so is the "
    "number of rows."
)
_DEPENDED_ON = ("numpy", "scipy", "dp-accounting", "python-flint")


@dataclass(frozen=True)
class BaseCertificate(ABC):
    """A mechanism with its constants, the source of its random bits, and the subject that it is run on.

    Nothing here depends on a record: it could have been written before the data was read.
    """

    mechanism: Any
    randomness: str
    secure: bool
    subject: Mapping[str, Any]
    versions: Mapping[str, str]

    _subject: ClassVar[str]
    """Name of the subject in the record."""
    _task_fields: ClassVar[tuple[str, ...]]

    @classmethod
    def issue(cls, mechanism: Any, randomness: Randomness, subject: Mapping[str, Any]) -> Self:
        """Return the certificate of a mechanism that runs on this subject with this source of randomness."""
        return cls(mechanism, randomness.description, randomness.secure, subject, library_versions())

    @property
    def task(self) -> Task:
        """Return the public parameters that the mechanism was calibrated for."""
        task: Task = self.mechanism.task
        return task

    @property
    def _covers(self) -> str:
        """Return what the guarantee covers, and what it does not."""
        return str(self.mechanism.covers)

    @property
    def guarantee(self) -> Guarantee:
        guarantee: Guarantee = self.mechanism.guarantee
        return guarantee

    @property
    def is_private(self) -> bool:
        """Return whether there is a guarantee, and the random bits behind it and behind private bounds were secret."""
        return self.guarantee.is_private and self.secure and all(part.secure for part in self.private_bounds)

    @property
    def private_bounds(self) -> tuple[PrivateBounds, ...]:
        """Return the receipts of the parts of the schema that were estimated privately from the same records."""
        return read_receipts(self.subject)

    @property
    def together(self) -> Guarantee:
        """Return the guarantee of this release and of the schema's private parts, by basic composition."""
        return add_private_bounds(self.guarantee, self.private_bounds)

    @property
    def records(self) -> int:
        """Return the public number of records, or persons, that the guarantee covers or is expected to cover."""
        return self.task.total

    @property
    def weakness(self) -> str | None:
        """Return why the guarantee, with the private bounds, is hardly private; None if it is strong enough."""
        return weakness(self.together, self.records)

    @property
    def meaning(self) -> Meaning | None:
        """Return what the guarantee, with the private bounds, means to an attacker; None if nothing is guaranteed."""
        if not self.is_private:
            return None
        return meaning_of(
            self.guarantee,
            self.mechanism.curve(),
            additional=private_bounds_cost(self.private_bounds),
            rows_per_person=None if self._counts_persons else self.rows_of_a_person,
        )

    @property
    def rows_of_a_person(self) -> int:
        """Return how many records of a person the guarantee covers, where they are not averaged."""
        return math.prod(self._rows_and_parties)

    @property
    def _rows_and_parties(self) -> tuple[int, int]:
        """Return how many records of a person one party may have, and how many parties have some."""
        return self.task.rows_per_person, self.task.parties_per_person

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, from which `from_dict` recomputes the guarantee."""
        return {
            **self._heading(),
            "claim": self.guarantee.to_dict() | {"epsilon": _write_number(self.guarantee.epsilon)},
            **({"weakness": self.weakness} if self.weakness else {}),
            "covers": self._coverage(),
            "theorem": self._theorem(),
            **self._task_record(),
            "constants": self.mechanism.constants(),
            **self._solver(),
            "floating_point": self._floating_point(),
            "randomness": {"source": self.randomness, "secure": self.secure},
            self._subject: dict(self.subject),
            "versions": dict(self.versions),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Read a certificate; raise VerificationError if its constants do not support its claim."""
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
            raise VerificationError(
                "the certificate states something that does not follow from its constants"
            )
        if self.secure is not (self.randomness in SECURE_DESCRIPTIONS):
            raise VerificationError("the certificate misstates its source of randomness")
        if mechanism.guarantee.is_private and not mechanism.spends() <= mechanism.guarantee:
            raise VerificationError(
                f"the noise supports {mechanism.spends()}, less than the claim {mechanism.guarantee}"
            )
        for receipt in self.private_bounds:
            check_receipt(receipt)
            receipt.check_covers(*self._rows_and_parties, self._counts_persons)

    @classmethod
    @abstractmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> Any:
        """Return the mechanism that the record describes; refuse what no theorem covers."""

    def _theorem(self) -> dict[str, Any]:
        """Return the names of the mechanism, the noise and the page with the proof."""
        return theorem_of(self.mechanism)

    def _floating_point(self) -> str:
        """Return which parts of the sampler are exact."""
        return str(self.mechanism.floating_point)

    @abstractmethod
    def _title(self) -> str:
        """Return the mechanism's title."""

    @abstractmethod
    def _describe_subject(self) -> dict[str, str]:
        """Return the subject as text, one line per property."""

    def _coverage(self) -> str:
        persons = _PERSONS if self._counts_persons else ""
        return self._covers + persons + (_ESTIMATED if self.private_bounds else "")

    def _heading(self) -> dict[str, Any]:
        return {}

    def _task_record(self) -> dict[str, Any]:
        """Return the public parameters of what was learnt; empty for certificates of counts."""
        task = self.task
        stated = {"loss": task.loss.to_dict()} | {name: getattr(task, name) for name in self._task_fields}
        return {"task": stated} | {name: part.to_dict() for name, part in task.statistics.items()}

    def _solver(self) -> dict[str, Any]:
        return {}

    @property
    def _counts_persons(self) -> bool:
        return self.task.averaged

    @property
    def count_noun(self) -> str:
        """Return what the public number counts."""
        return "persons" if self._counts_persons else "records"

    def _describe_count(self) -> dict[str, str]:
        unit = self.count_noun
        rows = {} if self._counts_persons or self.rows_of_a_person == 1 else self._describe_rows()
        if self.guarantee.relation.count_is_public:
            return {unit: f"{self.records} (public)"} | rows
        return {f"expected {unit}": f"{self.records} (public; how many there are is not)"} | rows

    def _describe_rows(self) -> dict[str, str]:
        return {
            "rows per person": f"at most {self.rows_of_a_person}, as the schema states; all of them are covered"
        }

    @property
    def properties(self) -> dict[str, str]:
        """Return everything that the certificate states except the guarantee itself, as text by name."""
        meaning = self.meaning
        loss, rest = self._describe_task()
        return {
            **({} if meaning is None else meaning.properties),
            **({"strength": self.weakness} if self.weakness else {}),
            "mechanism": self._title(),
            **loss,
            **self._describe_count(),
            **self._describe_subject(),
            **rest,
            **{
                _label(name): format_value(value)
                for name, value in self.mechanism.constants().items()
                if name not in ("records", "rows_per_person")  # stated above
            },
            **{name: format_value(value) for name, value in self._solver().items()},
            "randomness": self.randomness,
            "floating point": self._floating_point(),
            "covers": self._coverage(),
            **({"with the estimated schema": str(self.together)} if self.private_bounds else {}),
        }

    def _describe_task(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the loss, and the other parameters of what was learnt; both empty for certificates of counts."""
        task = self.task
        loss = ", ".join(str(value) for value in task.loss.to_dict().values() if value is not None)
        parts = {_label(name): format_value(part.to_dict()) for name, part in task.statistics.items()}
        return {"loss": loss}, {"regularization": format_value(task.regularization)} | parts

    @property
    def headline(self) -> str:
        """Return the guarantee, or that there is none."""
        if self.guarantee.is_private and not self.is_private:
            return f"NOT PRIVATE (seeded generator); with secret noise it would be {self.guarantee}"
        return str(self.guarantee)

    def __str__(self) -> str:
        return "\n".join([self.headline, *(f"  {name:<26}{fact}" for name, fact in self.properties.items())])

    def _repr_html_(self) -> str:
        return notebook_view(self.headline, self.properties)


@cache
def library_versions() -> Mapping[str, str]:
    """Return the versions of the libraries that a result depends on."""
    others = {name: version(name) for name in _DEPENDED_ON}
    return {"privlearn": __version__} | others | {"python": platform.python_version()}


def format_value(value: Any) -> str:
    """Return a value as text: numbers to six digits, yes and no, lists and mappings without brackets."""
    if isinstance(value, Mapping):
        return ", ".join(_entry(name, fact) for name, fact in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(format_value, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def theorem_of(mechanism: Any, **details: str) -> dict[str, Any]:
    """Return the names of a mechanism, its noise and the page with the proof, with details between them."""
    page = f"docs/theory/{mechanism.page}.md"
    return {"mechanism": mechanism.name, "noise": mechanism.noise, **details, "page": page}


def read_guarantee(claim: Mapping[str, Any]) -> Guarantee:
    """Return the guarantee that a record claims."""
    neighbours = look_up(RELATIONS, claim["neighbours"], "relation").name
    return Guarantee(float(claim["epsilon"]), claim["delta"], neighbours)


def read_task(record: Mapping[str, Any], guarantee: Guarantee, **fixed: Any) -> Task:
    """Return the public parameters of a record; ``fixed`` are those that it does not hold."""
    parameters = dict(record["task"])
    loss = loss_from_dict(parameters.pop("loss"))
    task = Task(loss=loss, neighbours=guarantee.neighbours, **fixed, **parameters)
    if not task.tolerance:
        raise VerificationError("the certificate's tolerance must be above 0")
    return task


def read_calibration(
    constants: Mapping[str, Any], names: tuple[str, ...], guarantee: Guarantee
) -> dict[str, float]:
    """Return the constants that a calibration chose; all others follow from them."""
    chosen = {name: float(constants[name]) for name in names}
    if guarantee.is_private and not all(0 < value < math.inf for value in chosen.values()):
        raise VerificationError("every noise scale of a private release must be finite and above 0")
    return chosen


def _entry(name: str, fact: Any) -> str:
    """Return a name and its value: `certified` rather than `certified yes`."""
    if fact is True:
        return _label(name)
    return (
        f"{_label(name)} ({format_value(fact)})"
        if isinstance(fact, Mapping)
        else f"{_label(name)} {format_value(fact)}"
    )


def _label(name: str) -> str:
    return name.replace("_", " ")


def _same(stated: Any, recomputed: Any) -> bool:
    """Return whether two records are equal, floats to nine digits: another machine's libraries may round
    differently."""
    if isinstance(stated, Mapping) and isinstance(recomputed, Mapping):
        return stated.keys() == recomputed.keys() and all(_same(stated[k], recomputed[k]) for k in stated)
    if isinstance(stated, list) and isinstance(recomputed, list):
        return len(stated) == len(recomputed) and all(map(_same, stated, recomputed))
    if isinstance(stated, float) and isinstance(recomputed, float | int):
        return math.isclose(stated, recomputed, rel_tol=1e-9)
    return bool(stated == recomputed)


def _write_number(value: float) -> float | str:
    """Return a number as JSON has it, which lacks infinity."""
    return value if math.isfinite(value) else "inf"
