"""Agreement: the base of all contracts between parties. Everything in it is public, and every party signs its digest.

In files and commands an agreement is called a plan (`plan.toml`, `privlearn plan check`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr

from privlearn.data.schema.documents import read_document, read_toml
from privlearn.data.schema.private_bounds import add_private_bounds
from privlearn.data.schema.public import PublicModel
from privlearn.data.schema.schema import Schema
from privlearn.errors import DataError, InvalidParameter, SchemaError
from privlearn.guarantee import Guarantee, check_strength, weakness
from privlearn.mechanisms.summed import summed
from privlearn.parties.run.answers import Answers
from privlearn.parties.run.identity import check_keys
from privlearn.parties.secure_sum.noise_share import FixedPoint, PartyNoise
from privlearn.parties.secure_sum.session import Cohort
from privlearn.randomness import Randomness
from privlearn.release.artifact import Outcome
from privlearn.release.signatures import in_words
from privlearn.statistics.discovery.summed import DiscoveredSchema

Name = Annotated[StrictStr, Field(min_length=1)]
_NOT_AN_AGREEMENT = "an agreement must be a mapping. Give it the keys schema, parties, epsilon and delta"


class Agreement(PublicModel):
    """Public parameters of a joint run. Subclasses define the questions and what is computed from their sums.

    Parameters
    ----------
    schema : Schema
        Schema of every party's table; in Python the attribute is ``table_schema``.
    parties : dict of str to int
        Each party's name and its number of records (of persons, if the schema has a person column), declared
        beforehand: public, like N in every guarantee here. With ``neighbours="add_remove"`` the number is private, and
        this is the expected number.
    epsilon, delta, neighbours
        The guarantee for everything the coordinator sees.
    parties_per_person : int, default=1
        Maximum number of parties that have records of one person, as all declare it. The noise grows with it
        (docs/theory/several-parties.md).
    dropouts : int, default=0
        How many parties may be missing from a round. ``dropouts * (dropouts + 1)`` must be less than the number of
        parties that do not collude; otherwise a lying coordinator could open too much (`Cohort`).
    colluding : int, default=1
        How many parties may pool what they know with the coordinator; see `Cohort`.
    accept_curious_parties : bool, default=False
        Required for ``colluding = 0``: a party that subtracts its own share of the noise from a sum then sees the
        others' records under a weaker guarantee, `towards_a_party`. Every party signs it.
    accept_weak_privacy : bool, default=False
        Required for a cost of more than epsilon 20 or a delta of at least 1/n. Every party signs it.
    keys : dict of str to str, optional
        The public identities of every party and of ``coordinator``, as `privlearn identity` prints them. A real run
        needs them; a simulation creates its own.
    """

    table_schema: Schema = Field(alias="schema")
    parties: Annotated[dict[Name, Annotated[StrictInt, Field(ge=1)]], Field(min_length=2)]
    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0, lt=1)]
    neighbours: str = "replace_one"
    parties_per_person: Annotated[StrictInt, Field(ge=1)] = 1
    dropouts: Annotated[StrictInt, Field(ge=0)] = 0
    colluding: Annotated[StrictInt, Field(ge=0)] = 1
    accept_curious_parties: StrictBool = False
    accept_weak_privacy: StrictBool = False
    keys: dict[Name, StrictStr] | None = None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an agreement from .toml or .json.

        ``schema`` may be the name of a file, relative to the agreement's: a schema, or the release file in which the
        parties estimated it privately (`DiscoveredSchema`).
        """
        return cls.from_dict(cls.resolve_files(read_agreement_file(path), Path(path).parent))

    @classmethod
    def resolve_files(cls, content: dict[str, Any], directory: Path) -> dict[str, Any]:
        """Return the content of an agreement's file with file names replaced by what the files contain."""
        if isinstance(name := content.get("schema"), str):
            file, is_release = directory / name, name.endswith(".privlearn")
            content["schema"] = DiscoveredSchema.load(file).schema if is_release else Schema.load(file)
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the agreement with these settings; refuse what is not a mapping with text as keys."""
        if not isinstance(content, Mapping) or not all(isinstance(key, str) for key in content):
            raise SchemaError(_NOT_AN_AGREEMENT)
        return cls(**content)

    def with_keys(self, keys: dict[str, str]) -> Self:
        """Return a copy with these public identities."""
        return self.model_copy(update={"keys": keys})

    def to_dict(self) -> dict[str, Any]:
        """Return every setting, defaults included, as plain JSON values."""
        return self.model_dump(mode="json", by_alias=True)

    def canonical(self) -> bytes:
        """Return the bytes that parties sign. The order of columns and of parties matters."""
        return json.dumps(self.to_dict(), ensure_ascii=True, separators=(",", ":")).encode("ascii")

    @property
    def digest(self) -> str:
        """SHA-256 of `canonical`."""
        return hashlib.sha256(self.canonical()).hexdigest()

    @property
    def fingerprint(self) -> str:
        """Three quarters of the digest, 192 bits, as 12 words that people can read to each other."""
        return in_words(self.digest)

    @property
    def total(self) -> int:
        """N, the records of all parties, declared or expected."""
        return sum(self.parties.values())

    @property
    @abstractmethod
    def mechanism(self) -> summed.Questionnaire:
        """The calibrated questions; no row was read for them."""

    @abstractmethod
    def outcome(self, sums: summed.NoisySums, randomness: Randomness) -> Outcome:
        """Ask all questions and return the release, computed from noisy sums alone.

        ``randomness`` is what the parties draw their noise from, for the certificate; nothing is drawn here.
        """

    @abstractmethod
    def read_party(self, name: str, table: Any) -> Answers:
        """PRIVATE: return the exact answers of one party from its table; refuse a table that does not fit.

        Errors may depend on the rows, so they are for the party's own screen only.
        """

    def party_noise(self, question: summed.Question) -> PartyNoise:
        """Return the noise that each party adds to its answer."""
        return PartyNoise.of(question, self.cohort, self.parties_per_person)

    def encoding(self, question: summed.Question) -> FixedPoint:
        """Return the encoding of answers as integers; refuse one in which their sum could overflow.

        Each party cuts its answer off at its part of the bound (`Party.answer`), so the bound holds for the sum too.
        """
        return self.party_noise(question).encoding(question.bound, question.length)

    @property
    def constants_digest(self) -> bytes:
        """SHA-256 of the calibrated constants, to the last bit; other versions of libraries may round differently."""
        constants = dataclasses.asdict(self.mechanism)  # type: ignore[call-overload]
        return hashlib.sha256(json.dumps(constants, default=lambda part: part.to_dict()).encode()).digest()

    @property
    def guarantee(self) -> Guarantee:
        """Cost of the whole run for each person: the requested guarantee, or for PSGD what composition gives."""
        return self.mechanism.guarantee

    @property
    def towards_a_party(self) -> Guarantee | None:
        """The guarantee towards another party, which knows its own noise; None if there is none.

        It equals `guarantee` if the agreement allows for a colluding party.
        """
        if self.colluding:
            return self.guarantee
        return summed.towards_a_party(self.mechanism, self.cohort.honest)

    @property
    def weakness(self) -> str | None:
        """Why the guarantee is hardly private; ``None`` if it is strong enough."""
        return weakness(self._with_schema, self.total)

    @cached_property
    def cohort(self) -> Cohort:
        """Number of parties, of dropouts and of colluding parties."""
        return Cohort(len(self.parties), self.dropouts, self.colluding)

    @property
    def members(self) -> dict[str, int]:
        """Number of parties, and of honest, present parties whose noise suffices for the guarantee."""
        return {"parties": self.cohort.parties, "shares": self.cohort.honest}

    @property
    def _with_schema(self) -> Guarantee:
        """The guarantee including the cost of the schema's private bounds, as the certificate will state it."""
        return add_private_bounds(self.guarantee, self.table_schema.private_bounds)

    def check_feasible(self) -> None:
        """Refuse now what a run would refuse later: wrong keys, a weak guarantee, sums that overflow.

        Raises ValueError, as pydantic expects.
        """
        if self.parties_per_person > len(self.parties):
            raise ValueError("parties_per_person: must be at most the number of parties")
        if self.towards_a_party != self.guarantee and not self.accept_curious_parties:
            weaker = "none at all" if self.towards_a_party is None else str(self.towards_a_party)
            raise ValueError(
                "colluding: with 0 a party that subtracts its own share of the noise sees the others' records under a "
                f"weaker guarantee ({weaker}). Set colluding = 1, or accept_curious_parties = true"
            )
        schema = self.table_schema
        for receipt in schema.private_bounds:
            receipt.check_covers(schema.rows_per_person, self.parties_per_person, schema.person or False)
        try:
            if self.keys is not None:
                check_keys(self.keys, self.parties)
            check_strength(self._with_schema, self.total, self.accept_weak_privacy)
            for number in {kind: number for number, kind in enumerate(self.mechanism.kinds)}.values():
                self.encoding(self.mechanism.question(number))
        except InvalidParameter as error:
            raise ValueError(str(error)) from None

    def check_tables(self, tables: Iterable[str]) -> None:
        """Refuse a rehearsal unless there is one table for each party."""
        if sorted(tables) != sorted(self.parties):
            raise InvalidParameter(
                f"the tables are not those of the parties. Pass one for each of: {', '.join(self.parties)}"
            )

    def check_declared(self, name: str, records: int) -> None:
        """Refuse an unknown party, and a table with a different number of records than the party declared."""
        if name not in self.parties:
            raise InvalidParameter(f"the agreement has no party {name!r}, only {', '.join(self.parties)}")
        if self.guarantee.relation.count_is_public and records != self.parties[name]:
            raise DataError(
                f"the agreement declares {self.parties[name]} records of {name!r}, and the table has another number. "
                "Sign a new agreement, or bring the declared records"
            )

    def summary(self) -> dict[str, str]:
        """Return what a holder checks before signing, by name and in reading order."""
        mechanism, cohort = self.mechanism, self.cohort
        questions = Counter(kind.replace("_", " ") for kind in mechanism.kinds)
        parties = ", ".join(f"{name} {records:,}" for name, records in self.parties.items())
        items = {
            "parties": f"{parties}; {self.total:,} records together",
            "cost": str(self.guarantee),
            "meaning": self.guarantee.in_words(),
            "weak": f"this guarantee is {self.weakness}" if self.weakness else "",
            "questions": ", ".join(f"{count} of {kind}" for kind, count in questions.items())
            + ", all of them noisy sums",
            "noise": self._noise_summary(),
            "missing": f"up to {cohort.dropouts} from a round; up to {cohort.colluding} may pool what they know",
            "towards a party": self._party_summary(),
            "covers": mechanism.covers,
            "keys": "none yet: the fingerprint will change when they are added"
            if self.keys is None
            else "complete. Read the fingerprint to each other over a channel that the coordinator does not control",
            "fingerprint": self.fingerprint,
        }
        return {name: text for name, text in items.items() if text}

    def _noise_summary(self) -> str:
        if summed.adds_whole_noise(self.mechanism):
            return "all of it by every party, which protects its own records regardless of the others"
        return f"at least {self.cohort.honest} parties' shares in every sum"

    def _party_summary(self) -> str:
        towards = self.towards_a_party
        if towards is None:
            return "NO guarantee: a party that subtracts its own noise may see the others' sums without any"
        if towards == self.guarantee:
            return str(towards)
        return f"{towards}: weaker than the cost above, and what ledgers are charged"


def read_agreement_file(path: str | Path) -> dict[str, Any]:
    """Return the content of a .toml or .json file."""
    path = Path(path)
    if path.suffix not in (".toml", ".json"):
        raise SchemaError(f"{path} is not an agreement. Give it a name that ends in .toml or .json")
    content = read_toml(path) if path.suffix == ".toml" else read_document(path)
    if not isinstance(content, dict):
        raise SchemaError(_NOT_AN_AGREEMENT)
    return content
