"""The schema of a table: what is public about it, in a file that people can read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    model_serializer,
    model_validator,
)

from privlearn.data.schema.columns import Column, Target
from privlearn.data.schema.documents import read_document, write_document
from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.schema.public import PublicModel
from privlearn.data.schema.purchases import JointPurchase, Purchase
from privlearn.errors import SchemaError

Name = Annotated[StrictStr, Field(min_length=1)]


class Schema(PublicModel):
    """Public bounds, categories and classes of a table, and what a person is in it.

    Parameters
    ----------
    name : str
        Name of the data set; with the digest it identifies the data set in a ledger.
    columns : dict of str to NumberColumn, CategoryColumn, OrdinalColumn, DateColumn or TextColumn
        The feature columns, in the order of the encoded features. Columns of the table that are not
        listed are not read.
    target : Target or None, default=None
        The column to predict and its classes, or its bounds if it is a number.
    person : str or None, default=None
        Column that identifies a person who has several rows. The rows of a person are averaged, so that a
        person weighs as much as one record, however many rows they have.
    rows_per_person : int, default=1
        Largest number of rows a person may have where no column identifies them: the guarantee for a
        person then follows by group privacy.
    one_row_per_person : bool, default=False
        True states that every row is another person. It changes nothing that is computed; but training refuses a table
        with a column that is named like an identifier until this, ``person`` or ``rows_per_person`` is stated.
    bought : tuple of Purchase, default=()
        What parts of this schema were bought from the private rows, and their price; `privlearn.discover` writes it.
    pairs : "auto", "none" or tuple of pairs of columns, default="auto"
        Which pairs of columns may act together, each pair over a coarse grid. ``auto`` takes all that the number of
        records and epsilon afford (docs/explanation/resolution.md).
    file : FileFormat, optional
        How the table lies in its file: delimiter, decimal comma, encoding, codes for gaps, names of columns.

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
    bought: tuple[JointPurchase | Purchase, ...] = ()
    pairs: Literal["auto", "none"] | tuple[tuple[Name, Name], ...] = "auto"
    file: FileFormat = PLAIN

    @model_validator(mode="after")
    def _roles_do_not_overlap(self) -> Schema:
        if self.target is not None and self.target.name in self.columns:
            raise ValueError(f"columns.{self.target.name}: is the target: remove it from columns")
        if self.person is not None and self.person in self.columns:
            raise ValueError(f"columns.{self.person}: identifies a person: remove it from columns")
        if self.person is not None and self.target is not None and self.person == self.target.name:
            raise ValueError("person: is the target: name the column that identifies a person")
        if self.person is not None and self.rows_per_person > 1:
            raise ValueError(
                "rows_per_person: remove it: the rows of a person are found by the person column and averaged"
            )
        if self.one_row_per_person and (self.person is not None or self.rows_per_person > 1):
            raise ValueError(
                "one_row_per_person: remove it, or person and rows_per_person: they say that somebody has several rows"
            )
        return self

    @model_validator(mode="after")
    def _receipts_protect_the_same_people(self) -> Schema:
        for receipt in self.bought:
            receipt.check_covers(self.rows_per_person, 1, self.person or False)
        return self

    @model_validator(mode="after")
    def _pairs_are_of_columns(self) -> Schema:
        if isinstance(self.pairs, str):
            return self
        for one, other in self.pairs:
            if one == other:
                raise ValueError(f"pairs: {one} is paired with itself: name two columns")
            for name in (one, other):
                if getattr(self.columns.get(name), "type", "text") == "text":
                    raise ValueError(f"pairs: {name} is no column of numbers, dates or listed values")
        if len({frozenset(pair) for pair in self.pairs}) < len(self.pairs):
            raise ValueError("pairs: one is listed twice: remove it")
        return self

    @model_serializer(mode="wrap")
    def _without_what_is_not_said(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        content: dict[str, Any] = serialize(self)
        if content["pairs"] == "auto":
            del content["pairs"]
        for setting in ("bought", "one_row_per_person", "file"):  # digests from before stay valid
            if not content[setting]:
                del content[setting]
        return content

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
            raise SchemaError("a schema is a mapping with the keys name, columns and target")
        return cls(**content)

    def to_dict(self) -> dict[str, Any]:
        """Every setting, defaults included, as plain JSON values."""
        return self.model_dump(mode="json")

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form; the order of columns counts, since it fixes the features.

        How the table lies in its file is left out, and so are descriptions and units: rows that mean the same have one
        digest, whatever they are kept in. That holds for ``file.names`` too. They are what a line of names is to other
        files, and no digest covers that line: a holder who writes either wrongly gives out a worse model, under the
        same promise. What a release was read with stands in it, and its own digest covers that.
        """
        return content_digest(self.facts())

    def facts(self) -> dict[str, Any]:
        """What rows that were read mean; not how a file has to be read (``file``), which is its holder's to state."""
        content = self.to_dict()
        content.pop("file", None)
        for part in (*content["columns"].values(), content["target"] or {}):
            for words in ("description", "unit"):
                part.pop(words, None)
        return content


SchemaLike = Schema | Mapping[str, Any] | str | Path
"""A schema, or what one is made of: the path of its file, or a dict."""


def as_schema(schema: SchemaLike) -> Schema:
    """The schema itself."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str | Path):
        return Schema.load(schema)
    if isinstance(schema, Mapping):
        return Schema.from_dict(schema)
    raise SchemaError("a schema is a Schema, the path of a .yaml or .json file, or a dict")


def content_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of plain JSON values in one canonical form."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
