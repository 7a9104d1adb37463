"""Split a table once into a training and a test part, so that each person is in one of them, whatever their record.

Releases on the two parts then compose in parallel: together they cost a person the maximum, not the sum. The relation
decides for which method of splitting this is proven (docs/theory/split.md).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.encoding.column_cells import people
from privlearn.data.schema.public import PARTS
from privlearn.data.schema.schema import Schema, SchemaLike, as_schema, content_digest
from privlearn.data.sources import row_source
from privlearn.data.sources.schema_columns import refuse_unclear_persons
from privlearn.data.sources.table import as_table
from privlearn.errors import DataError, InvalidParameter, SchemaError, preview
from privlearn.guarantee import Relation, get_relation
from privlearn.imports import pa
from privlearn.randomness import SecureRandomness

FORMAT = "privlearn split 1"
METHODS = ("position", "person")
_MAX_SEED = 64
_HASHES = 2.0**64


@dataclass(frozen=True, kw_only=True)
class Split:
    """The description of a split: public, and the same for every release about the table.

    Parameters
    ----------
    dataset, schema_digest : str
        Name and digest of the schema.
    by : {"position", "person"}
        By the position of a record, or of a person, in the table; or by a hash of the person's identifier only.
    person : str or None
        The column that identifies persons.
    seed : str
        Public: the guarantee holds for every seed. By position, if the caller stated no seed, this is only a name, and
        the parts were drawn in secret, because the order of a table may depend on its records.
    test : float
        Share of the test part.
    neighbours : str
        The relation for which the parts compose in parallel.
    counts : mapping or None
        Number of records, or persons, of each part; None if it is private.
    draw : str, default=""
        By position, an identifier of this call of `split`: with rows in another order the same seed gives different
        parts, and a ledger must distinguish them.
    """

    dataset: str
    schema_digest: str
    by: str
    person: str | None
    seed: str
    test: float
    neighbours: str
    counts: Mapping[str, int] | None
    draw: str = ""

    def __post_init__(self) -> None:
        relation = get_relation(self.neighbours)
        if self.by not in METHODS:
            raise InvalidParameter(
                f"by must be one of {', '.join(map(repr, METHODS))}, not {preview(self.by)}"
            )
        if refusal := explain_refusal(self.by, relation, self.person):
            raise InvalidParameter(refusal)
        if isinstance(self.test, bool) or not isinstance(self.test, float | int) or not 0 < self.test < 1:
            raise InvalidParameter(
                f"test must be a share between 0 and 1, such as 0.2, not {preview(self.test)}"
            )
        if not (isinstance(self.seed, str) and 1 <= len(self.seed) <= _MAX_SEED and self.seed.isprintable()):
            raise InvalidParameter(
                f"the seed of a split must be a text of 1 to {_MAX_SEED} printable characters"
            )

    @property
    def digest(self) -> str:
        """Return the digest by which a ledger distinguishes splits."""
        return content_digest(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        counts = None if self.counts is None else dict(self.counts)
        return {"format": FORMAT} | asdict(self) | {"counts": counts}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Split:
        fields = dict(record)
        if fields.pop("format", None) != FORMAT:
            raise InvalidParameter(
                f"the description of a split must have the format {FORMAT!r}. Split again."
            )
        try:
            return cls(**fields)
        except TypeError:
            raise InvalidParameter(
                "the description of the split is incomplete or malformed. Split again."
            ) from None

    def part(self, name: str) -> Part:
        """Return one of the two parts, for example to see its budget: ``ledger.of_part(split.part("train"))``."""
        return Part(self, name)

    def _hash(self, key: bytes) -> int:
        """Return a hash that is uniform on 64 bits, and depends on the key and the seed only."""
        seed = hashlib.sha256(self.seed.encode()).digest()
        return int.from_bytes(hashlib.blake2b(key, digest_size=8, key=seed).digest())

    def test_positions(self, count: int) -> NDArray[np.bool_]:
        """Public: return which of `count` positions are in the test part, a function of `count` and the seed."""
        size = round(self.test * count)
        if not 0 < size < count:
            raise DataError(
                f"{count} records cannot be split at {self.test:g}. Each part needs at least one."
            )
        hashes = np.fromiter((self._hash(index.to_bytes(8)) for index in range(count)), np.uint64, count)
        in_test = np.zeros(count, dtype=bool)
        in_test[np.argsort(hashes, kind="stable")[:size]] = True
        return in_test

    def is_in_test(self, person: str) -> bool:
        """Public: return whether a person with this identifier belongs to the test part."""
        return self._hash(person.encode()) < self.test * _HASHES


@dataclass(frozen=True)
class Part:
    """One part of a split table."""

    split: Split
    name: str

    def __post_init__(self) -> None:
        if self.name not in PARTS:
            raise InvalidParameter(
                f"a part must be {' or '.join(map(repr, PARTS))}, not {preview(self.name)}"
            )

    def save(self, table: str | Path) -> None:
        """Write a public note next to a part's file: which part of which split it is."""
        content = self.split.to_dict() | {"part": self.name}
        _note_path(table).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def of_table(cls, table: str | Path, name: str) -> Part:
        """Return the part of a file, from the note next to it; refuse a part with another name."""
        note = _note_path(table)
        try:
            record = json.loads(note.read_text(encoding="utf-8"))
            stated = record.pop("part")
        except OSError:
            raise InvalidParameter(
                f"{table} is not a part of a split: {note.name} is missing. Run `privlearn split`, which writes both."
            ) from None
        except (ValueError, KeyError, AttributeError, TypeError):
            raise InvalidParameter(f"{note} is damaged. Run `privlearn split` again.") from None
        part = cls(Split.from_dict(record), stated)
        if part.name != name:
            raise InvalidParameter(f"{table} is the part {part.name!r}, not {name!r}. Name the other part.")
        return part

    def check(self, schema: Schema) -> None:
        """Refuse a schema by which the rows would belong to other persons."""
        if schema.person != self.split.person or schema.rows_per_person > 1:
            raise SchemaError(
                "the table was split with a different `person`. State `person` as in the schema of the split; or "
                "charge the whole data set. Pass table() of the part; in the shell, omit --part"
            )


class PartRows(row_source.RowSource["pa.Table"]):
    """PRIVATE: the rows of one part. A ledger charges only the people of that part.

    Tables that you compute from it (`table`, `frame`, a column) have no part: they are charged as the whole
    data set, which is always safe.

    Parameters
    ----------
    rows : RowSource
    part : Part
    select : callable, optional
        Returns the rows of the data frame that was split.
    """

    def __init__(
        self, rows: row_source.RowSource[pa.Table], part: Part, select: Callable[[], Any] | None = None
    ) -> None:
        self.rows = rows
        self.part = part
        self._select = select

    def __len__(self) -> int:
        return len(self.rows)

    def blocks(self) -> Iterator[pa.Table]:
        return self.rows.blocks()

    def take(self, indices: row_source.RowIndices) -> row_source.RowSource[pa.Table]:
        return self.rows.take(indices)

    def table(self) -> pa.Table:
        """PRIVATE: return all rows as a plain table."""
        return row_source.concatenate_tables(self.blocks())

    def frame(self) -> Any:
        """PRIVATE: return all rows as the kind of data frame that was split (pandas, polars), else as a plain table."""
        return self.table() if self._select is None else self._select()

    def __getitem__(self, column: str) -> Any:
        return self.frame()[column]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<PartRows {self.part.name!r} of a split>"


def part_of(rows: Any) -> Part | None:
    """Return the part that rows belong to, or None for the whole data set."""
    part = getattr(rows, "part", None)
    return part if isinstance(part, Part) else None


def without_part(rows: Any, y: Any = None) -> Any:
    """PRIVATE: return rows as they were split: a table if they are in memory, a source otherwise.

    Refuses separate labels: nothing shows that they belong to the people of that part.
    """
    if not isinstance(rows, PartRows):
        return rows
    if y is not None:
        raise InvalidParameter(
            "y cannot be passed with a part of a split. State the target in the schema, as a column of the part."
        )
    return rows.rows.table if isinstance(rows.rows, row_source.TableRows) else rows.rows


def require_public(rows: Any, name: str) -> Any:
    """Return rows that a user declares public; refuse parts of a private table."""
    if any(part_of(part) is not None for part in (rows if isinstance(rows, tuple) else (rows,))):
        raise InvalidParameter(
            f"{name} must be public, and a part of a private table is not. Pass public rows."
        )
    return rows


def _note_path(table: str | Path) -> Path:
    return Path(f"{table}.split.json")


def explain_refusal(by: str, relation: Relation, person: str | None) -> str | None:
    """Return why parts would not compose in parallel; None if they do."""
    if by == "person" and person is None:
        return "by='person' needs a column that identifies persons. State `person` in the schema."
    if by == "position" and not relation.count_is_public:
        return (
            f"under {relation.name!r} one more record moves all later positions, and other people to the other part. "
            "Use by='person'."
        )
    if by == "person" and relation.replaces:
        return (
            f"under {relation.name!r} a person may be replaced by one with another identifier, who belongs to the "
            "other part: both parts would change, and their sizes. Use by='position'."
        )
    return None


@dataclass(frozen=True, eq=False)
class SplitTable:
    """PRIVATE: the rows of both parts, in the order of the table, and the public description of the split."""

    train: PartRows
    test: PartRows
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
    table : DataFrame, pyarrow.Table, mapping or RowSource
        All its columns are retained. A source is read once now, and once more for each pass over one of its parts.
    schema : Schema
        States what a person is.
    test : float, default=0.2
        Share of the test part.
    by : {"position", "person"}, optional
        By default the method that is proven for the relation: ``position`` if the number of records is public.
    seed : str, optional
        Public. By person, the same seed gives the same parts again; by default a new one is drawn and recorded. By
        position, the parts are drawn in secret and cannot be reproduced: keep the files. State a seed only if the order
        of the rows does not depend on their content, unlike that of a sorted table or a log of visits.
        A ledger treats the parts of a second call as another split, because the order of the rows may differ.
    neighbours : str, default="replace_one"
        The relation of the ledger.

    Returns
    -------
    SplitTable
        Pass ``train`` and ``test`` on as they are, so that a ledger charges only the people of that part.

    Examples
    --------
    >>> schema = Schema.from_dict({"name": "clinic", "columns": {"age": {"type": "number", "lower": 0, "upper": 120}}})
    >>> parts = split({"age": list(range(100))}, schema, test=0.2, seed="autumn")
    >>> len(parts.train), len(parts.test), dict(parts.split.counts)
    (80, 20, {'train': 80, 'test': 20})
    """
    schema = as_schema(schema)
    rows = table if isinstance(table, row_source.RowSource) else row_source.TableRows(as_table(table))
    refuse_unclear_persons(schema, next(rows.blocks()).column_names)
    relation = get_relation(neighbours)
    if schema.rows_per_person > 1:
        raise SchemaError(
            "the rows of a person could be in both parts. State the column that identifies persons as `person`."
        )
    fields: dict[str, Any] = {
        "dataset": schema.name,
        "schema_digest": schema.digest,
        "by": by or ("position" if relation.count_is_public else "person"),
        "person": schema.person,
        "seed": seed or _random_name(),
        "test": test,
        "neighbours": neighbours,
    }
    fields["draw"] = _random_name() if fields["by"] == "position" else ""
    description = Split(**fields, counts=None)
    owner, names = (None, range(len(rows))) if schema.person is None else _people(rows, schema.person)
    if description.by == "position":
        secret = description if seed else dataclasses.replace(description, seed=_random_name())
        person_in_test = secret.test_positions(len(names))
    else:
        person_in_test = np.fromiter((description.is_in_test(str(name)) for name in names), bool, len(names))
    counts = None
    if relation.count_is_public:
        size = int(np.count_nonzero(person_in_test))
        counts = {"train": len(names) - size, "test": size}
    in_test = person_in_test if owner is None else person_in_test[owner]
    description = Split(**fields, counts=counts)
    parts = {}
    for name, selected in (("train", ~in_test), ("test", in_test)):
        own: row_source.RowSource[pa.Table] = row_source.SelectedRows(rows, selected)
        if not isinstance(table, row_source.RowSource):
            own = row_source.TableRows(row_source.concatenate_tables(own.blocks()))
        parts[name] = PartRows(own, description.part(name), _selection(table, selected))
    return SplitTable(**parts, split=description)


def _selection(table: Any, selected: NDArray[np.bool_]) -> Callable[[], Any] | None:
    """PRIVATE: return a function that returns rows of a data frame of pandas or polars; None for other tables."""
    library = type(table).__module__.partition(".")[0]
    if library == "pandas":
        return lambda: table.loc[selected]
    return (lambda: table.filter(selected)) if library == "polars" and hasattr(table, "filter") else None


def _random_name() -> str:
    return f"{SecureRandomness().bits(128):032x}"


def _people(rows: row_source.RowSource[Any], person: str) -> tuple[NDArray[np.int64], list[str]]:
    """PRIVATE: return the number of each row's person, in the order of their first rows, and their identifiers."""
    column = row_source.concatenate_tables(
        row_source.read_each(rows, lambda block: as_table(block, [person]))
    ).column(0)
    return people(column, f"column {person!r}")
