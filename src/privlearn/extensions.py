"""What others add: modules that register losses, kernels, relations, mechanisms or kinds of job when imported."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from privlearn.errors import InvalidParameter, shown

Listed = TypeVar("Listed")


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
        except Exception as error:  # it is another's code, and may raise anything
            raise InvalidParameter(
                f"the extension {name} fails while it is imported ({type(error).__name__}: {error}): mend it"
            ) from None


def listed(known: Mapping[str, Listed], name: object, what: str) -> Listed:
    """What a file means by a name; one that an extension registers is known only where its module is loaded."""
    if not isinstance(name, str) or name not in known:
        raise InvalidParameter(
            f"the {what} {shown(name)} is not known here: load the module that registers it, as in `privlearn "
            "--extension MODULE verify ...`, or import it in Python"
        )
    return known[name]


def enlist(
    known: dict[str, Any],
    name: str,
    kind: type,
    what: str,
    facts: Iterable[str] = (),
    refuse_unfit: Callable[[Any], None] = lambda kind: None,
) -> None:
    """Make a class known by its name, if it states every fact; one that is imported again takes its own place."""
    fields = getattr(kind, "__dataclass_fields__", {})
    missing = [fact for fact in facts if not hasattr(kind, fact) and fact not in fields]
    missing += sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise InvalidParameter(
            f"the {what} {name!r} does not state its {', '.join(missing)}: add what is missing to its class, "
            "no fact has a default"
        )
    refuse_unfit(kind)
    other = known.get(name)
    if other is not None and (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InvalidParameter(f"there is a {what} {name!r} already: take another name")
    known[name] = kind
