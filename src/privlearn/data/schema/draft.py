"""Schema drafts: schemas with bounds and lists that are still to be estimated privately."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from privlearn.data.schema.documents import read_document
from privlearn.data.schema.name_ranges import expand_ranges
from privlearn.data.schema.private_bounds import PrivateBounds
from privlearn.data.schema.public import ESTIMATE, ESTIMATE_LISTS, Value
from privlearn.data.schema.schema import Schema, content_digest
from privlearn.errors import SchemaError

_SIDES, _LISTS = {"lower", "upper"}, {"values", "classes"}
_STAND_IN: dict[type, tuple[Value, ...]] = {str: ("a value", "another value"), int: (0, 1)}


class Bound(NamedTuple):
    """One end of a number column, or of a number to predict."""

    column: str
    side: str

    def __str__(self) -> str:
        return f"{self.column} {self.side}"


class SchemaDraft:
    """A schema in which ``lower``, ``upper``, ``values`` or ``classes`` may be the mark ``estimate``.

    `privlearn.discover` estimates what is marked, and charges the budget; all other functions need a `Schema`. An
    estimated list has text; with ``estimate whole numbers`` it has integers.

    Attributes
    ----------
    bounds : tuple of Bound
        The bounds to estimate, in the order of the schema.
    lists : dict of str to type
        The columns (or the target) whose values or classes to estimate, and their type: ``str`` or ``int``.
    stand_in : Schema
        The schema with arbitrary bounds and values instead of marks: to read and check a table, not to train.

    Examples
    --------
    >>> draft = SchemaDraft.from_dict({
    ...     "name": "clinic",
    ...     "columns": {"age": {"type": "number", "lower": 0, "upper": "estimate"}},
    ...     "target": {"name": "outcome", "classes": "estimate"},
    ... })
    >>> [str(bound) for bound in draft.bounds], list(draft.lists)
    (['age upper'], ['outcome'])
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = copy.deepcopy(dict(content)) if isinstance(content, Mapping) else content
        if isinstance(content, Mapping) and "columns" in content:
            self._content["columns"] = expand_ranges(self._content["columns"])
        marks = [(name, part, _marks(part)) for name, part in _parts(self._content)]
        self.bounds = tuple(
            Bound(name, side) for name, _, marked in marks for side in sorted(marked & _SIDES)
        )
        self.lists = {
            name: ESTIMATE_LISTS[part[key]] for name, part, marked in marks for key in marked & _LISTS
        }
        for name, part, marked in marks:
            if marked and (part.get("type") in ("date", "ordinal") or part.get("period") is not None):
                raise SchemaError(
                    f"{name}: dates, orders and the ends of a period cannot be estimated privately. State them."
                )
            if marked & _LISTS and part.get("unknown") == "refuse":
                raise SchemaError(
                    f"{name}: unknown: an estimated list has no rare values. Write zero or omit it"
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
        """Return the settings as plain JSON values, marks included."""
        content = self.stand_in.to_dict()
        marks = {kind: mark for mark, kind in ESTIMATE_LISTS.items()}
        for name, part in _parts(content):
            part.update({side: ESTIMATE for column, side in self.bounds if column == name})
            if name in self.lists:
                part["values" if "values" in part else "classes"] = marks[self.lists[name]]
        return content

    @property
    def centres(self) -> tuple[str, ...]:
        """Return the columns of which both bounds are to be estimated."""
        sides = [bound.column for bound in self.bounds]
        return tuple(name for name in dict.fromkeys(sides) if sides.count(name) == 2)

    def public_bound(self, bound: Bound) -> float | None:
        """Return the other end of a column; None if it is to be estimated as well."""
        if bound.column in self.centres:
            return None
        part: Any = self.stand_in.columns.get(bound.column, self.stand_in.target)
        return float(part.lower if bound.side == "upper" else part.upper)

    @property
    def is_complete(self) -> bool:
        """Return whether nothing is marked: ``stand_in`` is then the schema itself."""
        return not self.bounds and not self.lists

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the stand-in and the marks."""
        marks = [*map(str, self.bounds), *self.lists]
        return content_digest({"schema": self.stand_in.properties(), "estimate": marks})

    def complete(
        self, bounds: Mapping[Bound, float], lists: Mapping[str, Sequence[Value]], receipt: PrivateBounds
    ) -> Schema:
        """Return the schema with the estimates, and their receipt after earlier ones.

        Estimated bounds that cross or meet are put in order and apart. A column whose list has fewer than two values
        is left out.
        """
        content = self._fill(bounds, lists)
        content["private_bounds"] = [*content.get("private_bounds", ()), receipt.model_dump(mode="json")]
        for name in self.lists:
            part = content["columns"].get(name)
            if part is not None and len(part["values"]) + (part["unknown"] == "other") < 2:
                del content["columns"][name]
        if not content["columns"]:
            raise SchemaError(
                "no column is left, because no value was frequent enough. Spend more, or list values."
            )
        target = content.get("target")
        if target and target["name"] in self.lists and len(target["classes"]) < 2:
            raise SchemaError("fewer than two classes were frequent enough. Spend more, or list the classes.")
        return Schema.from_dict(content)

    def _stand_in(self) -> Schema:
        bounds = {bound: float(bound.side == "upper") for bound in self.bounds}
        lists = {name: _STAND_IN[kind] for name, kind in self.lists.items()}
        return Schema.from_dict(self._fill(bounds, lists))

    def _fill(self, bounds: Mapping[Bound, float], lists: Mapping[str, Sequence[Value]]) -> Any:
        content = copy.deepcopy(self._content)
        for name, part in _parts(content):
            marked = _marks(part)
            for key in marked & _LISTS:
                part[key] = list(lists[name])
                part.setdefault("unknown", "other" if key == "values" else "zero")
            part.update(_in_order(part, {side: bounds[Bound(name, side)] for side in marked & _SIDES}))
        return content


def as_draft(draft: SchemaDraft | Mapping[str, Any] | str | Path) -> SchemaDraft:
    """Return a draft from a draft, the path of its file, or a dict."""
    if isinstance(draft, SchemaDraft):
        return draft
    return SchemaDraft.load(draft) if isinstance(draft, str | Path) else SchemaDraft(draft)


def _marks(part: Mapping[str, Any]) -> set[str]:
    """Return the settings of a column or target that are to be estimated."""
    text = {key: part[key] for key in _SIDES | _LISTS if isinstance(part.get(key), str)}
    return {key for key, mark in text.items() if mark in (ESTIMATE_LISTS if key in _LISTS else [ESTIMATE])}


def _parts(content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and settings of each column and of the target; `Schema` refuses malformed ones."""
    if not isinstance(content, Mapping):
        return
    columns, target = content.get("columns"), content.get("target")
    if isinstance(columns, Mapping):
        yield from ((name, part) for name, part in columns.items() if isinstance(part, dict))
    if isinstance(target, dict) and isinstance(target.get("name"), str):
        yield target["name"], target


def _in_order(part: Mapping[str, Any], estimates: Mapping[str, float]) -> dict[str, float]:
    """Return the estimated ends of a column, moved so that lower < upper; a public end stays."""
    lower, upper = (estimates.get(side, part.get(side)) for side in ("lower", "upper"))
    if not (isinstance(lower, float | int) and isinstance(upper, float | int)):
        return dict(estimates)  # `Schema` refuses a malformed public end
    if len(estimates) == 2:
        lower, upper = min(lower, upper), max(lower, upper)
    if lower >= upper and "upper" in estimates:
        upper = lower + _apart(lower)
    elif lower >= upper:
        lower = upper - _apart(upper)
    return {side: {"lower": lower, "upper": upper}[side] for side in estimates}


def _apart(bound: float) -> float:
    """Return a distance that is visible compared with the bound."""
    return abs(bound) / 1024 or 1.0
