"""A schema with gaps, to be filled by what is bought."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from privlearn.data.schema.documents import read_document
from privlearn.data.schema.public import BUY, BUY_LISTS, Value
from privlearn.data.schema.purchases import Purchase
from privlearn.data.schema.schema import Schema, content_digest
from privlearn.errors import SchemaError

_SIDES, _LISTS = {"lower", "upper"}, {"values", "classes"}
_STAND_IN: dict[type, tuple[Value, ...]] = {
    str: ("a value", "another value"),
    int: (0, 1),
}


class Bound(NamedTuple):
    """One end of a number column, or of a number to predict."""

    column: str
    side: str

    def __str__(self) -> str:
        return f"{self.column} {self.side}"


class SchemaDraft:
    """A schema in which ``lower``, ``upper``, ``values`` or ``classes`` may be the word ``buy``.

    A bought list holds text; ``buy whole numbers`` makes it one of integers.

    `privlearn.discover` completes it, at a price. Nothing else takes a draft: whatever reads rows wants a `Schema`.

    Attributes
    ----------
    bounds : tuple of Bound
        The bounds to buy, in the order of the schema.
    lists : dict of str to type
        The columns (or the target) whose values or classes to buy, and whether they are ``str`` or ``int``.
    stand_in : Schema
        The same schema with made-up bounds and values in the gaps: for reading and checking a table, not for training.

    Examples
    --------
    >>> draft = SchemaDraft.from_dict({
    ...     "name": "clinic",
    ...     "columns": {"age": {"type": "number", "lower": 0, "upper": "buy"}},
    ...     "target": {"name": "outcome", "classes": "buy"},
    ... })
    >>> [str(bound) for bound in draft.bounds], list(draft.lists)
    (['age upper'], ['outcome'])
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = copy.deepcopy(dict(content)) if isinstance(content, Mapping) else content
        marks = [(name, part, _marked(part)) for name, part in _parts(self._content)]
        self.bounds = tuple(
            Bound(name, side) for name, _, marked in marks for side in sorted(marked & _SIDES)
        )
        self.lists = {name: BUY_LISTS[part[key]] for name, part, marked in marks for key in marked & _LISTS}
        for name, part, marked in marks:
            if marked and (part.get("type") in ("date", "ordinal") or part.get("period") is not None):
                raise SchemaError(
                    f"{name}: dates, orders and the ends of a period cannot be bought: state them"
                )
            if marked & _LISTS and part.get("unknown") == "refuse":
                raise SchemaError(
                    f"{name}: unknown: a bought list lacks rare values: write zero, or leave it out"
                )
        self.stand_in = self._stand_in()

    @classmethod
    def load(cls, path: str | Path) -> SchemaDraft:
        """Read a draft, or a complete schema, from a .yaml, .yml or .json file."""
        return cls(read_document(path))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> SchemaDraft:
        return cls(content)

    def to_dict(self) -> dict[str, Any]:
        """Every setting, defaults included, as plain JSON values, with the marks in their places."""
        content = self.stand_in.to_dict()
        marks = {kind: mark for mark, kind in BUY_LISTS.items()}
        for name, part in _parts(content):
            part.update({side: BUY for column, side in self.bounds if column == name})
            if name in self.lists:
                part["values" if "values" in part else "classes"] = marks[self.lists[name]]
        return content

    @property
    def centres(self) -> tuple[str, ...]:
        """The columns of which both bounds are to be bought."""
        sides = [bound.column for bound in self.bounds]
        return tuple(name for name in dict.fromkeys(sides) if sides.count(name) == 2)

    def public_bound(self, bound: Bound) -> float | None:
        """The other end of a column, unless it is to be bought as well."""
        if bound.column in self.centres:
            return None
        part: Any = self.stand_in.columns.get(bound.column, self.stand_in.target)
        return float(part.lower if bound.side == "upper" else part.upper)

    @property
    def is_complete(self) -> bool:
        """True if nothing is marked: ``stand_in`` is then the schema itself."""
        return not self.bounds and not self.lists

    @property
    def digest(self) -> str:
        """SHA-256 of the stand-in and the marks."""
        marks = [*map(str, self.bounds), *self.lists]
        return content_digest({"schema": self.stand_in.facts(), "buy": marks})

    def complete(
        self, bounds: Mapping[Bound, float], lists: Mapping[str, Sequence[Value]], purchase: Purchase
    ) -> Schema:
        """The schema with what was bought, and its price beside what was bought earlier.

        Bought bounds that cross or meet are put in order and apart. A column whose list came out too short to tell
        anything apart is left out.
        """
        content = self._filled(bounds, lists)
        content["bought"] = [*content.get("bought", ()), purchase.model_dump(mode="json")]
        for name in self.lists:
            part = content["columns"].get(name)
            if part is not None and len(part["values"]) + (part["unknown"] == "other") < 2:
                del content["columns"][name]
        if not content["columns"]:
            raise SchemaError("no column is left: no value was frequent enough. Spend more, or list values")
        if (
            content.get("target")
            and content["target"]["name"] in self.lists
            and len(content["target"]["classes"]) < 2
        ):
            raise SchemaError(
                "fewer than two classes were frequent enough to be listed: spend more, or list the classes"
            )
        return Schema.from_dict(content)

    def _stand_in(self) -> Schema:
        bounds = {bound: float(bound.side == "upper") for bound in self.bounds}
        lists = {name: _STAND_IN[kind] for name, kind in self.lists.items()}
        return Schema.from_dict(self._filled(bounds, lists))

    def _filled(self, bounds: Mapping[Bound, float], lists: Mapping[str, Sequence[Value]]) -> Any:
        content = copy.deepcopy(self._content)
        for name, part in _parts(content):
            marked = _marked(part)
            for key in marked & _LISTS:
                part[key] = list(lists[name])
                part.setdefault("unknown", "other" if key == "values" else "zero")
            part.update(_in_order(part, {side: bounds[Bound(name, side)] for side in marked & _SIDES}))
        return content


def as_draft(draft: SchemaDraft | Mapping[str, Any] | str | Path) -> SchemaDraft:
    """A draft, or what one is made of: the path of its file, or a dict."""
    if isinstance(draft, SchemaDraft):
        return draft
    return SchemaDraft.load(draft) if isinstance(draft, str | Path) else SchemaDraft(draft)


def _marked(part: Mapping[str, Any]) -> set[str]:
    """The settings of a column or target that are to be bought."""
    text = {key: part[key] for key in _SIDES | _LISTS if isinstance(part.get(key), str)}
    return {key for key, mark in text.items() if mark in (BUY_LISTS if key in _LISTS else [BUY])}


def _parts(content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and settings of each column and of the target; what is malformed is left for `Schema` to refuse."""
    if not isinstance(content, Mapping):
        return
    columns, target = content.get("columns"), content.get("target")
    if isinstance(columns, Mapping):
        yield from ((name, part) for name, part in columns.items() if isinstance(part, dict))
    if isinstance(target, dict) and isinstance(target.get("name"), str):
        yield target["name"], target


def _in_order(part: Mapping[str, Any], bought: Mapping[str, float]) -> dict[str, float]:
    """The bought ends of one column, moved so that lower < upper; a public end stays where it is."""
    lower, upper = (bought.get(side, part.get(side)) for side in ("lower", "upper"))
    if not (isinstance(lower, float | int) and isinstance(upper, float | int)):
        return dict(bought)  # the public end is malformed: `Schema` says so
    if len(bought) == 2:
        lower, upper = min(lower, upper), max(lower, upper)
    if lower >= upper and "upper" in bought:
        upper = lower + _apart(lower)
    elif lower >= upper:
        lower = upper - _apart(upper)
    return {side: {"lower": lower, "upper": upper}[side] for side in bought}


def _apart(bound: float) -> float:
    """A distance that is visible beside the bound."""
    return abs(bound) / 1024 or 1.0
