"""`list_parameters`: write the parameters that estimators share into the docstring of each, for `help` and editors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

_SECTIONS = ("Parameters", "Attributes", "Examples")


def list_parameters(base: type, *, without: Iterable[str] = ()) -> Callable[[Kind], Kind]:
    """Return a decorator that completes a class's docstring by the entries of another class's docstring.

    Parameters
    ----------
    base : type
        Its docstring describes parameters, of which those in the class's signature are taken, and attributes.
    without : names of attributes that the class does not have
    """

    def complete(kind: Kind) -> Kind:
        if kind.__doc__ and base.__doc__:  # python -OO drops them
            own, shared = _sections(inspect.cleandoc(kind.__doc__)), _sections(inspect.cleandoc(base.__doc__))
            described = _entries(shared["Parameters"]) | _entries(own.get("Parameters", ""))
            described = {name: text for names, text in described.items() for name in names.split(", ")}
            parameters = dict.fromkeys(
                described[name] for name in inspect.signature(kind).parameters if name in described
            )
            attributes = [
                text for name, text in _entries(shared["Attributes"]).items() if name not in without
            ]
            own |= {"Parameters": "".join(parameters), "Attributes": "".join(attributes)}
            titled = [
                f"{name}\n{'-' * len(name)}\n{own[name].strip()}\n" for name in _SECTIONS if name in own
            ]
            kind.__doc__ = "\n".join([own[""].strip() + "\n", *titled])
        return kind

    return complete


def _sections(docstring: str) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by title; the text before them has the title ""."""
    lines = docstring.splitlines()
    titles = [
        index for index, (line, below) in enumerate(pairwise(lines)) if line and below == "-" * len(line)
    ]
    sections = {lines[start]: lines[start + 2 : stop] for start, stop in pairwise([*titles, len(lines)])}
    return {"": "\n".join(lines[: titles[0]])} | {title: "\n".join(body) for title, body in sections.items()}


def _entries(section: str) -> dict[str, str]:
    """Return the entries of a section by the names on their first line; that line may go on after a backslash."""
    entries: dict[str, str] = {}
    name = ""
    for line in section.strip("\n").splitlines():
        if line and not line[0].isspace():
            name = line.partition(" : ")[0]
            entries[name] = ""
        entries[name] += f"{line}\n"
    return entries
