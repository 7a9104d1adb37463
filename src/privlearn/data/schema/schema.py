"""The schema of a table: what is public about it, in a YAML or JSON file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from privlearn.data.schema.cell_grammar import BLANKS, is_code
from privlearn.data.schema.columns import Column
from privlearn.data.schema.documents import read_document, write_document
from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.schema.name_ranges import expand_ranges
from privlearn.data.schema.private_bounds import JointPrivateBounds, PrivateBounds
from privlearn.data.schema.public import CompactModel
from privlearn.data.schema.target import Target, Weight
from privlearn.errors import SchemaError

Name = Annotated[StrictStr, Field(min_length=1)]


class Schema(CompactModel):
    """Public bounds, categories and classes of a table, and how its rows relate to persons.

    Parameters
    ----------
    name : str
        Name of the data set; with the digest it identifies the data set in a ledger.
    columns : dict of str to NumberColumn, CategoryColumn, OrdinalColumn, DateColumn or TextColumn
        The feature columns, in the order of the encoded features. Columns of the table that are not
        listed are not read. ``BILL_AMT{1..6}`` describes six columns at once.
    target : Target or None, default=None
        The column to predict and its classes, or its bounds if it is a number.
    person : str or None, default=None
        Column that identifies a person who has several rows. The rows of a person are averaged, so that a
        person weighs as much as one record, however many rows they have.
    rows_per_person : int, default=1
        Maximum number of rows of a person if no column identifies persons: the guarantee for a person then follows
        by group privacy.
    one_row_per_person : bool, default=False
        True states that every row is a different person. It changes no computation, but training refuses a table with
        a column that is named like an identifier unless this, ``person`` or ``rows_per_person`` is stated.
    weight : Weight, optional
        Column of non-negative row weights, with their public cap: ``{column: w, upper: 8}``.
    private_bounds : tuple of PrivateBounds, default=()
        Receipts for parts of this schema that were estimated privately; `privlearn.discover` writes them.
    pairs : "auto", "none" or tuple of pairs of columns, default="auto"
        Pairs of columns that may interact, each over a coarse grid. ``auto`` chooses them from the number of records
        and epsilon (docs/explanation/resolution.md).
    file : FileFormat, optional
        The format of the file: delimiter, decimal comma, encoding, codes for gaps, names of columns.

    Examples
    --------
    >>> schema = Schema.from_dict({
    ...     "name": "clinic",
    ...     "columns": {"age": {"type": "number", "lower": 0, "upper": 120},
    ...                 "sex": {"type": "category", "values": ["female", "male"]}},
    ...     "target": {"name": "outcome", "classes": ["healthy", "ill"]},
    ... })
    >>> schema.columns["age"].upper
    120.0
    """

    name: Name
    columns: Annotated[dict[Name, Column], Field(min_length=1)]
    target: Target | None = None
    person: Name | None = None
    rows_per_person: Annotated[StrictInt, Field(ge=1)] = 1
    one_row_per_person: StrictBool = False
    weight: Weight | None = None
    private_bounds: tuple[JointPrivateBounds | PrivateBounds, ...] = ()
    pairs: Literal["auto", "none"] | tuple[tuple[Name, Name], ...] = "auto"
    file: FileFormat = PLAIN

    _omitted: ClassVar[tuple[str, ...]] = ("one_row_per_person", "weight", "private_bounds", "pairs", "file")

    @model_validator(mode="before")
    @classmethod
    def _ranges_are_columns(cls, content: Any) -> Any:
        if not isinstance(content, Mapping) or "columns" not in content:
            return content
        return {**content, "columns": expand_ranges(content["columns"])}

    @model_validator(mode="after")
    def _roles_do_not_overlap(self) -> Schema:
        if self.target is not None and self.target.name in self.columns:
            raise ValueError(f"columns.{self.target.name}: is the target. Remove it from columns")
        if self.person is not None and self.person in self.columns:
            raise ValueError(f"columns.{self.person}: identifies a person. Remove it from columns")
        if self.person is not None and self.target is not None and self.person == self.target.name:
            raise ValueError("person: is the target. Name the column that identifies a person")
        if self.person is not None and self.rows_per_person > 1:
            raise ValueError(
                "rows_per_person: remove it. The rows of a person are found by the person column and averaged"
            )
        if self.one_row_per_person and (self.person is not None or self.rows_per_person > 1):
            raise ValueError(
                "one_row_per_person: remove it, or person and rows_per_person, which state several rows per person"
            )
        return self

    @model_validator(mode="after")
    def _weight_is_another_column(self) -> Schema:
        if self.weight is None:
            return self
        name, target = self.weight.column, None if self.target is None else self.target.name
        if name in self.columns:
            raise ValueError(f"columns.{name}: holds the weights. Remove it from columns")
        if name in (target, self.person):
            raise ValueError("weight.column: has another role already. Name the column of weights")
        if self.weight.upper is None and self.person is None:
            raise ValueError(
                "weight.upper: missing. State a public cap of the weights, e.g. weight: {column: "
                f"{name}, upper: 8}}; larger weights count as the cap"
            )
        return self

    @model_validator(mode="after")
    def _lists_have_no_gaps(self) -> Schema:
        lists = {name: getattr(column, "values", ()) for name, column in self.columns.items()}
        if self.target is not None:
            lists[self.target.name] = self.target.labels
        for name, values in lists.items():
            codes = self.file.codes_of(name)
            for value in values:
                if is_code(value, codes, self.file.trim):
                    raise ValueError(
                        f"{name}: {value!r} is in the list, and is a code for a gap under file: remove one of them. "
                        "missing_in states codes of single columns"
                    )
                if self.file.trim and isinstance(value, str) and value != value.strip(BLANKS):
                    raise ValueError(f"{name}: {value!r} has blanks around it, which trim: true ignores")
        return self

    @model_validator(mode="after")
    def _receipts_cover_all_persons(self) -> Schema:
        for receipt in self.private_bounds:
            receipt.check_covers(self.rows_per_person, 1, self.person or False)
        return self

    @model_validator(mode="after")
    def _pairs_are_of_columns(self) -> Schema:
        if isinstance(self.pairs, str):
            return self
        for first, second in self.pairs:
            if first == second:
                raise ValueError(f"pairs: {first} is paired with itself. Name two columns")
            for name in (first, second):
                if getattr(self.columns.get(name), "type", "text") == "text":
                    raise ValueError(f"pairs: {name} is not a column of numbers, dates or listed values")
        if len({frozenset(pair) for pair in self.pairs}) < len(self.pairs):
            raise ValueError("pairs: one is listed twice. Remove it")
        return self

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a .yaml, .yml or .json file."""
        return cls.from_dict(read_document(path))

    def save(self, path: str | Path) -> None:
        """Write the schema to a .yaml, .yml or .json file."""
        write_document(path, self.to_dict())

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Schema:
        if not isinstance(content, Mapping) or not all(isinstance(key, str) for key in content):
            raise SchemaError("a schema must be a mapping with the keys name, columns and target")
        return cls(**content)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON values."""
        return self.model_dump(mode="json")

    @property
    def count_noun(self) -> str:
        """Return what a table's public number counts: persons where a column identifies them, else records."""
        return "records" if self.person is None else "persons"

    @property
    def row_weight_bound(self) -> float:
        """Return the largest weight of a record, or person, in units of the mean weight; 1 without weights."""
        return 1.0 if self.weight is None else self.weight.bound

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the properties in canonical JSON; the order of columns counts."""
        return content_digest(self.properties())

    def properties(self) -> dict[str, Any]:
        """Return the settings that determine the meaning of rows: all but the file's format, descriptions and units.

        The names in ``file.names`` are included, because they determine which column is which.
        """
        content = self.to_dict()
        content.pop("file", None)
        if self.file.names:
            content["names"] = list(self.file.names)
        for part in (*content["columns"].values(), content["target"] or {}):
            for name in ("description", "unit"):
                part.pop(name, None)
        return content


SchemaLike = Schema | Mapping[str, Any] | str | Path
"""A schema, the path of its file, or a dict of its settings."""


def as_schema(schema: SchemaLike) -> Schema:
    """Return a schema from a schema, the path of its file, or a dict."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str | Path):
        return Schema.load(schema)
    if isinstance(schema, Mapping):
        return Schema.from_dict(schema)
    raise SchemaError("a schema must be a Schema, the path of a .yaml or .json file, or a dict")


def content_digest(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of plain JSON values in canonical form."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
