"""What others add: modules that register losses, kernels, relations, mechanisms or kinds of job when imported."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from typing import Any

from privlearn.errors import InvalidParameter


def load_extensions(modules: Iterable[str]) -> None:
    """Import them, from the present folder too; each calls `register_loss` and the like."""
    for name in modules:
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise InvalidParameter(
                f"the extension {name} cannot be imported ({error}): name a module in this folder, or put its folder "
                "on PYTHONPATH"
            ) from None


def enlist(known: dict[str, Any], name: str, kind: type, what: str, facts: Iterable[str] = ()) -> None:
    """Make a class known by its name; one that is imported again takes its own place."""
    missing = [fact for fact in facts if not hasattr(kind, fact)]
    if missing:
        raise InvalidParameter(
            f"the {what} {name!r} does not state its {', '.join(missing)}: no fact has a default"
        )
    other = known.get(name)
    if other is not None and (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InvalidParameter(f"there is a {what} {name!r} already: take another name")
    known[name] = kind
