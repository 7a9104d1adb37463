"""The schema of a table: what is public about it, in a file that people can read."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    model_serializer,
    model_validator,
)

from privlearn.data.schema.columns import Column, Target
from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.schema.public import PublicModel
from privlearn.errors import InvalidParameter, SchemaError
from privlearn.guarantee import Guarantee
from privlearn.relation import relation_named

_YAML_SUFFIXES = {".yaml", ".yml"}


def read_document(path: str | Path) -> Any:
    """Read a YAML or JSON file, told apart by its suffix."""
    path = Path(path)
    yaml_expected = is_yaml(path)
    try:
        text = path.read_text(encoding="utf-8")
        return parse_yaml(text) if yaml_expected else parse_json(text)
    except OSError as error:
        raise SchemaError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SchemaError(f"{path} is not valid {'YAML' if yaml_expected else 'JSON'}: {error}") from error


def write_document(path: str | Path, content: dict[str, Any]) -> None:
    """Write a YAML or JSON file, told apart by its suffix."""
    path = Path(path)
    if is_yaml(path):
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        if parse_yaml(text) != content:  # rare line separators do not survive unescaped
            text = yaml.safe_dump(content, sort_keys=False, allow_unicode=False)
    else:
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SchemaError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SchemaError(f"{path} is not valid TOML: {error}") from None


def parse_yaml(text: str) -> Any:
    return yaml.load(text, Loader=_UniqueKeyLoader)


def parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique_pairs)


def is_yaml(path: Path) -> bool:
    """True for YAML, False for JSON; any other name is refused."""
    if path.suffix.lower() in _YAML_SUFFIXES:
        return True
    if path.suffix.lower() == ".json":
        return False
    raise SchemaError(f"{path}: the name of a schema file must end in .yaml, .yml or .json")


class _UniqueKeyLoader(yaml.SafeLoader):
    """The safe loader, which would otherwise let the last of two equal keys win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        _refuse_repeated(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, value in node.value:
            if key.tag.endswith(":int") and value.tag.endswith(":null"):  # {upper: 6,0}
                raise ValueError(
                    f"{key.value!r} stands where a name is expected: write decimals with a point, 6.0"
                )
        return super().construct_mapping(node, deep=deep)


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _refuse_repeated(key for key, _ in pairs)
    return dict(pairs)


def _refuse_repeated(keys: Iterable[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"the key {key!r} is given twice: keep one")
        seen.add(key)


Positive = Annotated[float, Field(gt=0)]
Count = Annotated[StrictInt, Field(ge=1)]


Neighbours = Annotated[StrictStr, AfterValidator(lambda name: relation_named(name).name)]
"""The name of a known relation, as a setting."""


class Purchase(PublicModel):
    """One purchase: what was bought, the price of all of it together, and the constants to recompute the price.

    Parameters
    ----------
    bounds : tuple of str
        Bounds bought as private quantiles, such as ``"age upper"``.
    anchors : int
        Private centres and spreads of columns, which the bounds were bought with.
    lists : tuple of str
        Columns whose values or classes were bought as the frequent ones among their cells.
    epsilon, delta, neighbours
        The price, as in `Guarantee`.
    records : int
        Public number of records, or of persons; the expected one where it is private.
    rows_per_person : int
        How many records one person may own.
    person : str or False, optional
        Column by which a person's rows were found and counted as one record; False if rows were counted. Receipts of
        version 0.1 do not say: absent, it is taken to be as in the schema that holds the receipt.
    quantile_epsilon : float, optional
        Of one bound; an anchor's is half of it.
    noise_scale, threshold : float, optional
        Standard deviation of the noise in a count, and what the noisy count of a listed value exceeds.
    randomness : str
        Where the random bits came from.
    secure : bool
        False for a seeded generator: then nothing is promised.
    """

    bounds: tuple[StrictStr, ...] = ()
    anchors: Annotated[StrictInt, Field(ge=0)] = 0
    lists: tuple[StrictStr, ...] = ()
    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1)]
    neighbours: Neighbours
    records: Count
    rows_per_person: Count
    person: Annotated[StrictStr, Field(min_length=1)] | Literal[False] | None = None
    quantile_epsilon: Positive | None = None
    noise_scale: Positive | None = None
    threshold: Positive | None = None
    randomness: StrictStr
    secure: StrictBool

    @model_validator(mode="after")
    def _has_its_constants(self) -> Purchase:
        constants = (
            (self.bounds, self.quantile_epsilon),
            (self.lists, self.noise_scale),
            (self.lists, self.threshold),
        )
        if any(bool(parts) != (constant is not None) for parts, constant in constants):
            raise ValueError(
                "a receipt states quantile_epsilon with bounds, noise_scale and threshold with lists"
            )
        return self

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.epsilon, self.delta, self.neighbours)

    def check_covers(self, rows: int, parties: int, person: str | bool) -> None:
        """Refuse to add up with a promise to people who have more rows, at more parties, or are told apart otherwise.

        ``person`` is the column that identifies them, or True if a column does whose name is not known, or False.
        """
        counted = False if self.rows_per_person > 1 else self.person
        alike = counted in (None, person) or (person is True and bool(counted))
        covered = getattr(self, "parties_per_person", 1)
        if rows > self.rows_per_person or parties > covered or not alike:
            raise ValueError(
                f"bought: the price of what was bought is for {_people(self.rows_per_person, covered, counted)}, and "
                f"here it is {_people(rows, parties, person)}. State what it was bought with; {_BUY_AGAIN}"
            )

    @model_serializer(mode="wrap")
    def _without_what_is_not_said(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        content: dict[str, Any] = serialize(self)
        if self.person is None:  # digests from before stay valid
            del content["person"]
        return content


class JointPurchase(Purchase):
    """A purchase of several holders, by one noisy sum of counts (docs/theory/multiparty.md, "Bounds and lists").

    Parameters
    ----------
    noise_scale : float
        Standard deviation of the promised noise in every number of the sum.
    cells : int
        How many numbers there are in the sum.
    parties, noise_shares, parties_per_person : int
        As in `SummedCounts`.
    """

    noise_scale: Positive
    cells: Count
    parties: Count
    noise_shares: Count
    parties_per_person: Count

    @model_validator(mode="after")
    def _has_its_constants(self) -> JointPurchase:
        if self.quantile_epsilon is not None or self.threshold is not None or self.anchors:
            raise ValueError("a receipt of several holders states noise_scale and cells, and no quantile")
        return self


_BUY_AGAIN = (
    "or take the receipt out of bought, write buy where its bounds and lists stand, and pay for them again"
)


def _people(rows: int, parties: int, person: str | bool | None) -> str:
    """Whom a price is for, as schemas and plans say it."""
    column = (
        f"person: {person}"
        if isinstance(person, str)
        else "a person column"
        if person
        else "no person column"
    )
    return f"rows_per_person: {rows}, parties_per_person: {parties}, {column}"


def read_purchase(record: Mapping[str, Any]) -> Purchase:
    """A receipt from what a file says of it: several holders state how many they are."""
    return (JointPurchase if "parties" in record else Purchase)(**record)


def with_purchases(guarantee: Guarantee, bought: Iterable[Purchase]) -> Guarantee:
    """A promise together with those of the purchases, by basic composition; other neighbours are refused."""
    for part in bought:
        if part.neighbours != guarantee.neighbours:
            raise InvalidParameter(
                f"parts of the schema were bought under neighbours={part.neighbours!r}, which does not add up with "
                f"{guarantee.neighbours!r}: take neighbours={part.neighbours!r} here as well; {_BUY_AGAIN}"
            )
        guarantee += part.guarantee
    return guarantee


def bought_beside(guarantee: Guarantee, bought: Iterable[Purchase]) -> Guarantee | None:
    """What the purchases that count the same neighbours cost together; ``None`` if there are none."""
    alike = [part.guarantee for part in bought if part.neighbours == guarantee.neighbours]
    return sum(alike[1:], start=alike[0]) if alike else None


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
