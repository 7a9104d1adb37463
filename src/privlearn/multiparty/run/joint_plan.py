"""What every plan of several holders says and can do: parties, promise, cohort, digest; all of it is public."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr

from privlearn.data.schema.public import PublicModel
from privlearn.data.schema.purchases import with_purchases
from privlearn.data.schema.schema import Schema
from privlearn.discovery.summed import DiscoveredSchema
from privlearn.errors import DataError, InvalidParameter, SchemaError
from privlearn.guarantee import Guarantee, check_strength, weakness
from privlearn.mechanisms.summed.summed import NoisySums, Questionnaire
from privlearn.multiparty.run.fingerprint import in_words
from privlearn.multiparty.run.identity import check_keys
from privlearn.multiparty.secure_sum.session import Cohort
from privlearn.randomness import Randomness
from privlearn.release.outcome import Outcome

Name = Annotated[StrictStr, Field(min_length=1)]


class JointPlan(PublicModel):
    """What every plan of several holders says; subclasses say what is asked, and what becomes of the sums.

    Parameters
    ----------
    schema : Schema
        Of everybody's table; in Python the attribute is ``table_schema``.
    parties : dict of str to int
        Each party's name and its number of records (of persons, if the schema has a person column), declared
        beforehand: public, like N in every guarantee here. With ``neighbours="add_remove"`` the number is private, and
        this is how many are expected of each.
    epsilon, delta, neighbours
        The promise, for everything the coordinator sees.
    parties_per_person : int, default=1
        The most parties that have records of one person, as all declare it: the noise grows with it
        (docs/theory/several-parties.md).
    dropouts, colluding, accept_weak_privacy, keys
        As in `MultipartyPlan`.
    """

    table_schema: Schema = Field(alias="schema")
    parties: Annotated[dict[Name, Annotated[StrictInt, Field(ge=1)]], Field(min_length=2)]
    epsilon: Annotated[float, Field(gt=0)]
    delta: Annotated[float, Field(ge=0, lt=1)]
    neighbours: str = "replace_one"
    parties_per_person: Annotated[StrictInt, Field(ge=1)] = 1
    dropouts: Annotated[StrictInt, Field(ge=0)] = 0
    colluding: Annotated[StrictInt, Field(ge=0)] = 1
    accept_weak_privacy: StrictBool = False
    keys: dict[Name, StrictStr] | None = None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a plan from .toml or .json; ``schema`` may name its file, relative to the plan's.

        That may also be the file that the parties bought it with (`DiscoveredSchema`).
        """
        return cls.from_dict(cls.resolved(read_plan_file(path), Path(path).parent))

    @classmethod
    def resolved(cls, content: dict[str, Any], folder: Path) -> dict[str, Any]:
        """A plan file's content, with files in the place of their names."""
        if isinstance(named := content.get("schema"), str):
            bought = named.endswith(".privlearn")
            file = folder / named
            content["schema"] = DiscoveredSchema.load(file).schema if bought else Schema.load(file)
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        if not isinstance(content, Mapping) or not all(isinstance(key, str) for key in content):
            raise SchemaError("a plan is a mapping with the keys schema, parties, epsilon and delta")
        return cls(**content)

    def with_keys(self, keys: dict[str, str]) -> Self:
        """The same plan with these public identities."""
        return self.model_copy(update={"keys": keys})

    def to_dict(self) -> dict[str, Any]:
        """Every setting, defaults included, as plain JSON values."""
        return self.model_dump(mode="json", by_alias=True)

    def canonical(self) -> bytes:
        """The bytes that parties sign: the order of columns and of parties counts."""
        return json.dumps(self.to_dict(), ensure_ascii=True, separators=(",", ":")).encode("ascii")

    @property
    def digest(self) -> str:
        """SHA-256 of `canonical`."""
        return hashlib.sha256(self.canonical()).hexdigest()

    @property
    def fingerprint(self) -> str:
        """Half of the digest, 128 bits, as words that people can read to each other."""
        return in_words(self.digest)

    @property
    def total(self) -> int:
        """N, the records of all parties, declared or expected."""
        return sum(self.parties.values())

    @property
    @abstractmethod
    def mechanism(self) -> Questionnaire:
        """What is asked, calibrated; it has not seen a row."""

    @abstractmethod
    def outcome(self, sums: NoisySums, randomness: Randomness) -> Outcome:
        """The coordinator's side: ask the plan's questions, and make the file that leaves from noisy sums alone.

        ``randomness`` is what the parties draw their noise from, for the certificate; nothing is drawn here.
        """

    @property
    def constants_digest(self) -> bytes:
        """SHA-256 of what calibration computed here, to the last bit; elsewhere other libraries may round otherwise."""
        computed = dataclasses.asdict(self.mechanism)  # type: ignore[call-overload]
        written = json.dumps(computed, default=lambda part: part.to_dict())
        return hashlib.sha256(written.encode()).digest()

    @property
    def guarantee(self) -> Guarantee:
        """What the whole run costs each person: the promise, or for PSGD what composition gives."""
        return self.mechanism.guarantee

    @property
    def weakness(self) -> str | None:
        """Why the promise is hardly private; ``None`` if it is not so."""
        return weakness(self._with_schema, self.total)

    @cached_property
    def cohort(self) -> Cohort:
        return Cohort(len(self.parties), self.dropouts, self.colluding)

    def check_promise(self) -> None:
        """Refuse keys that do not fit, and a promise too weak; for pydantic, which wants a ValueError."""
        if self.parties_per_person > len(self.parties):
            raise ValueError("parties_per_person: a person's records lie with at most all of the parties")
        schema = self.table_schema
        for receipt in schema.bought:
            receipt.check_covers(schema.rows_per_person, self.parties_per_person, schema.person or False)
        try:
            if self.keys is not None:
                check_keys(self.keys, self.parties)
            check_strength(self._with_schema, self.total, self.accept_weak_privacy)
        except InvalidParameter as error:
            raise ValueError(str(error)) from None

    def check_tables(self, tables: Iterable[str]) -> None:
        """Refuse a rehearsal to which not every party brings a table, or somebody else does."""
        if sorted(tables) != sorted(self.parties):
            raise InvalidParameter(f"bring a table of each party of the plan: {', '.join(self.parties)}")

    def check_declared(self, name: str, records: int) -> None:
        """Refuse a party that the plan does not have, and one that brings other records than it declared."""
        if name not in self.parties:
            raise InvalidParameter(f"the plan has no party {name!r}: it lists {', '.join(self.parties)}")
        if self.guarantee.relation.count_is_public and records != self.parties[name]:
            raise DataError(
                f"the plan declares {self.parties[name]} records of {name!r}, and the table has another number: "
                "agree on a new plan, or bring the declared records"
            )

    @property
    def _with_schema(self) -> Guarantee:
        """The promise and the price of what was bought of the schema, as the certificate will state it."""
        return with_purchases(self.guarantee, self.table_schema.bought)

    @property
    def members(self) -> dict[str, int]:
        """How many there are, and how many honest, present ones are enough for the promised noise."""
        return {"parties": self.cohort.parties, "shares": self.cohort.honest}


def read_plan_file(path: str | Path) -> dict[str, Any]:
    """What a plan's .toml or .json file says."""
    path = Path(path)
    if path.suffix not in (".toml", ".json"):
        raise SchemaError(f"{path}: the name of a plan must end in .toml or .json")
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise SchemaError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SchemaError(f"{path} is not valid {path.suffix[1:].upper()}: {error}") from None
    if not isinstance(content, dict):
        raise SchemaError("a plan is a mapping with the keys schema, parties, epsilon and delta")
    return content
