"""Split a table once into a training and a test part, so that a person is in one of them whatever their record says.

Then releases on the two parts compose in parallel: together they cost a person the larger price, not the sum. Which
way of splitting that is proven for depends on the relation (docs/theory/split.md).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.encode.column_cells import people
from privlearn.data.schema.schema import Schema, SchemaLike, as_schema, content_digest
from privlearn.data.sources.files import refuse_unclear_persons
from privlearn.data.sources.table import as_table
from privlearn.errors import DataError, InvalidParameter, SchemaError, shown
from privlearn.heavy import pa
from privlearn.randomness import SecureRandomness
from privlearn.relation import Relation, relation_named

FORMAT = "privlearn split 1"
PARTS = ("train", "test")
METHODS = ("position", "person")
_LONGEST_SEED = 64
_HASHES = 2.0**64


@dataclass(frozen=True, kw_only=True)
class Split:
    """How a table was split; public, and the same for every release about its records.

    Parameters
    ----------
    dataset, schema_digest : str
        Of the schema.
    by : {"position", "person"}
        By the place of a record, or of a person, in the table; or by a hash of the person's identifier alone.
    person : str or None
        The column that tells people apart.
    seed : str
        Public: the promise holds for every seed, so that nothing rests on its secrecy. By position, unless it was
        stated, it is a name only: who is where was drawn in secret, since the order of a table may tell.
    test : float
        Share of the test part.
    neighbours : str
        The relation for which the parts compose in parallel.
    counts : mapping or None
        How many records, or persons, each part has; None where that is private.
    """

    dataset: str
    schema_digest: str
    by: str
    person: str | None
    seed: str
    test: float
    neighbours: str
    counts: Mapping[str, int] | None

    def __post_init__(self) -> None:
        relation = relation_named(self.neighbours)
        if self.by not in METHODS:
            raise InvalidParameter(f"by must be one of {', '.join(map(repr, METHODS))}, not {shown(self.by)}")
        if refusal := explain_refusal(self.by, relation, self.person):
            raise InvalidParameter(refusal)
        if isinstance(self.test, bool) or not isinstance(self.test, float | int) or not 0 < self.test < 1:
            raise InvalidParameter(
                f"test must be a share between 0 and 1, such as 0.2, not {shown(self.test)}"
            )
        if not (
            isinstance(self.seed, str) and 1 <= len(self.seed) <= _LONGEST_SEED and self.seed.isprintable()
        ):
            raise InvalidParameter(f"a split's seed is a text of 1 to {_LONGEST_SEED} printable characters")

    @property
    def digest(self) -> str:
        """By which a ledger tells one split from another."""
        return content_digest(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        counts = None if self.counts is None else dict(self.counts)
        return {"format": FORMAT} | asdict(self) | {"counts": counts}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Split:
        facts = dict(record)
        if facts.pop("format", None) != FORMAT:
            raise InvalidParameter(f"this is no description of a split that this privlearn reads: {FORMAT!r}")
        try:
            return cls(**facts)
        except TypeError:
            raise InvalidParameter("the description of the split is incomplete or malformed") from None

    def part(self, name: str) -> Part:
        """One of the two, for a ledger: ``ledger.of_part(split.part("train"))``."""
        return Part(self, name)

    def _hash(self, key: bytes) -> int:
        """Uniform on 64 bits, for each key by itself: no other row has a say."""
        seed = hashlib.sha256(self.seed.encode()).digest()
        return int.from_bytes(hashlib.blake2b(key, digest_size=8, key=seed).digest())

    def tested_places(self, count: int) -> NDArray[np.bool_]:
        """Public: which of so many places belong to the test part; a function of their number and the seed."""
        tested = round(self.test * count)
        if not 0 < tested < count:
            raise DataError(f"{count} records cannot be split at {self.test:g}: each part needs at least one")
        hashes = np.array([self._hash(place.to_bytes(8)) for place in range(count)], dtype=np.uint64)
        found = np.zeros(count, dtype=bool)
        found[np.argsort(hashes, kind="stable")[:tested]] = True
        return found

    def is_tested(self, person: str) -> bool:
        """Public: whether whoever has this identifier belongs to the test part, if they are in the table at all."""
        return self._hash(person.encode()) < self.test * _HASHES


@dataclass(frozen=True)
class Part:
    """One part of a split table."""

    split: Split
    name: str

    def __post_init__(self) -> None:
        if self.name not in PARTS:
            raise InvalidParameter(f"a part is {' or '.join(map(repr, PARTS))}, not {shown(self.name)}")

    def save(self, table: str | Path) -> None:
        """Write beside a part's file which part of which split it is: public, and it travels with the file."""
        content = self.split.to_dict() | {"part": self.name}
        _note_beside(table).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def of_table(cls, table: str | Path, name: str) -> Part:
        """The part that a file is, by the note beside it; refuses another than the one that is asked for."""
        note = _note_beside(table)
        try:
            record = json.loads(note.read_text(encoding="utf-8"))
            stated = record.pop("part")
        except OSError:
            raise InvalidParameter(
                f"{table} is no part of a split: {note.name} is missing beside it. `privlearn split` makes both"
            ) from None
        except (ValueError, KeyError, AttributeError, TypeError):
            raise InvalidParameter(f"{note} is not what `privlearn split` wrote") from None
        part = cls(Split.from_dict(record), stated)
        if part.name != name:
            raise InvalidParameter(f"{table} is the part {part.name!r}, not {name!r}: nobody is in both")
        return part

    def check(self, schema: Schema) -> None:
        """Refuse a schema for which another person would own the rows."""
        if schema.person != self.split.person or schema.rows_per_person > 1:
            raise SchemaError(
                "the table was split by another idea of a person: state `person` as in the schema of the split"
            )


def _note_beside(table: str | Path) -> Path:
    return Path(f"{table}.split.json")


def explain_refusal(by: str, relation: Relation, person: str | None) -> str | None:
    """Why parts would not compose in parallel; ``None`` if they do."""
    if by == "person" and person is None:
        return "by='person' needs the schema's `person`, the column that tells people apart"
    if by == "position" and not relation.count_is_public:
        return (
            f"under {relation.name!r} a record more moves all later places, and with them other people to the other "
            "part: split by='person'"
        )
    if by == "person" and relation.replaces:
        return (
            f"under {relation.name!r} somebody may be replaced by a person of another identifier, who belongs to the "
            "other part: both would change, and their sizes too. Split by='position'"
        )
    return None


@dataclass(frozen=True, eq=False)
class SplitTable:
    """PRIVATE: the rows of both parts, in their old order; and, public, how they were split."""

    train: pa.Table
    test: pa.Table
    split: Split


def split(
    table: Any,
    schema: SchemaLike,
    *,
    test: float = 0.2,
    by: str | None = None,
    seed: str | None = None,
    neighbours: str = "replace_one",
) -> SplitTable:
    """Split a table into a training and a test part that compose in parallel.

    Parameters
    ----------
    table : DataFrame, pyarrow.Table or mapping
        All its columns are kept.
    schema : Schema
        Says what a person is.
    test : float, default=0.2
        Share of the test part.
    by : {"position", "person"}, optional
        By default the one that is proven for the relation: ``position`` where the number of records is public.
    seed : str, optional
        Public. The same seed gives the same parts again. By person a new one is drawn and recorded by default. By
        position the parts are drawn in secret and cannot be made again: keep the files. Stating a seed there says that
        the order of the rows does not depend on what they say, as that of a sorted table or of a log of visits does.
    neighbours : str, default="replace_one"
        The relation of the ledger.

    Examples
    --------
    >>> schema = Schema.from_dict({"name": "clinic", "columns": {"age": {"type": "number", "lower": 0, "upper": 120}}})
    >>> parts = split({"age": list(range(100))}, schema, test=0.2, seed="autumn")
    >>> len(parts.train), len(parts.test), dict(parts.split.counts)
    (80, 20, {'train': 80, 'test': 20})
    """
    rows, schema = as_table(table), as_schema(schema)
    refuse_unclear_persons(schema, rows.column_names)
    relation = relation_named(neighbours)
    if schema.rows_per_person > 1:
        raise SchemaError(
            "somebody's rows could fall into both parts: state in the schema which column tells people apart, `person`"
        )
    facts: dict[str, Any] = {
        "dataset": schema.name,
        "schema_digest": schema.digest,
        "by": by or ("position" if relation.count_is_public else "person"),
        "person": schema.person,
        "seed": seed or _drawn(),
        "test": test,
        "neighbours": neighbours,
    }
    plan = Split(**facts, counts=None)
    owner, names = _people(rows, schema)
    if plan.by == "position":
        drawn = plan if seed else dataclasses.replace(plan, seed=_drawn())
        of_person = drawn.tested_places(len(names))
    else:
        of_person = np.array([plan.is_tested(name) for name in names], dtype=bool)
    counts = None
    if relation.count_is_public:
        tested = int(np.count_nonzero(of_person))
        counts = {"train": len(names) - tested, "test": tested}
    in_test = of_person[owner]
    return SplitTable(
        rows.filter(pa.array(~in_test)), rows.filter(pa.array(in_test)), Split(**facts, counts=counts)
    )


def _drawn() -> str:
    return f"{SecureRandomness().bits(128):032x}"


def _people(rows: pa.Table, schema: Schema) -> tuple[NDArray[np.int64], list[Any]]:
    """PRIVATE: each row's person, numbered by their first row, and each person's identifier, or place."""
    if schema.person is None:
        return np.arange(rows.num_rows), list(range(rows.num_rows))
    return people(as_table(rows, [schema.person]).column(0), f"column {schema.person!r}")
