"""Modules that are imported late: large libraries when they are first used, and extensions when they are named.

A privlearn that only predicts and verifies (`pip install privlearn-core`) has none of the large libraries. Modules that
it shares with training take them from here; a module that only training uses imports them as usual.

An extension is a user's module that registers losses, kernels, relations, mechanisms or kinds of job when imported.
`register` and `look_up` are what all these registries share.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from privlearn.errors import InvalidParameter, MissingPart, preview

if TYPE_CHECKING:
    import flint as flint
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as arrow_csv
    import pyarrow.fs as arrow_fs
    import pyarrow.parquet as parquet
    from scipy import linalg as linalg
    from scipy import optimize as optimize
    from scipy import sparse as sparse
    from scipy import special as special

__all__ = ["arrow_csv", "arrow_fs", "flint", "linalg", "optimize", "pa", "parquet", "pc", "sparse", "special"]

HEAVY = frozenset(
    ("alembic", "dp_accounting", "flint", "pyarrow", "scipy", "sklearn", "sqlalchemy", "threadpoolctl")
)
"""Libraries that privlearn-core leaves out."""

Entry = TypeVar("Entry")

VIEWS: dict[str, Callable[..., Any]] = {}
"""Functions of later layers that `Release` offers as methods, by name. `privlearn` registers them when it is imported,
so that a release can be explained without an import that goes up; their modules are imported at the first call."""


@contextmanager
def explain_missing() -> Iterator[None]:
    """Raise MissingPart, which says what to install, where a large library is not found."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in HEAVY:
            raise
        raise MissingPart(
            f"this needs {library}, which privlearn-core leaves out: `pip install privlearn` brings all that trains"
        ) from None


def is_whole() -> bool:
    """Return whether the libraries that read tables and compute with many rows are installed."""
    try:
        return all(import_module(name) for name in ("pyarrow", "scipy"))
    except ModuleNotFoundError:
        return False


class _Late(ModuleType):
    """A module that is imported at the first use of one of its names."""

    def __getattr__(self, name: str) -> Any:
        with explain_missing():
            value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if not TYPE_CHECKING:
    flint, optimize, linalg, sparse, special = map(
        _Late, ("flint", "scipy.optimize", "scipy.linalg", "scipy.sparse", "scipy.special")
    )
    pa, pc, arrow_csv, arrow_fs, parquet = map(
        _Late, ("pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.fs", "pyarrow.parquet")
    )


def export_late(package: str) -> Callable[[str], object]:
    """Return a package's `__getattr__`, which imports a name of its `if TYPE_CHECKING:` block when it is first used.

    That block is the only list of these names: type checkers read it, and so does this function (SPEC 1 of Scientific
    Python reads a stub in the same way). Tests and users import these names from the package, source code from modules.

    >>> import privlearn.budget
    >>> privlearn.budget.Cost.__module__  # imported now
    'privlearn.budget.composition'
    """

    def get(name: str) -> object:
        source = Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8")
        module = late_exports(source).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with explain_missing():
            value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return get


def late_exports(source: str) -> dict[str, str]:
    """Return the module of each name that a package's source imports for type checkers only."""
    blocks = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    checked = (block for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING")
    imports = (node for block in checked for node in block.body if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def load_extensions(modules: Iterable[str]) -> None:
    """Import extensions, also from the current directory; each calls `register_loss` or the like."""
    for name in modules:
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise InvalidParameter(
                f"the extension {name} cannot be imported ({error}). Name a module in this directory, or put its "
                "directory on PYTHONPATH."
            ) from None
        except Exception as error:  # a user's code may raise anything
            raise InvalidParameter(
                f"the extension {name} fails while it is imported ({type(error).__name__}: {error}). Correct it."
            ) from None


def look_up(known: Mapping[str, Entry], name: object, what: str) -> Entry:
    """Return the entry that a file refers to; one that an extension registers is known only after it is loaded."""
    if not isinstance(name, str) or name not in known:
        raise InvalidParameter(
            f"the {what} {preview(name)} is not known here: load the module that registers it, as in `privlearn "
            "--extension MODULE verify ...`, or import it in Python"
        )
    return known[name]


def register(
    known: dict[str, Any],
    name: str,
    kind: type,
    what: str,
    required: Iterable[str] = (),
    refuse_unfit: Callable[[Any], None] = lambda kind: None,
) -> None:
    """Add a class to a registry if it defines every required property; a module imported again replaces its class."""
    fields = getattr(kind, "__dataclass_fields__", {})
    missing = [each for each in required if not hasattr(kind, each) and each not in fields]
    missing += sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise InvalidParameter(
            f"the {what} {name!r} does not define {', '.join(missing)}. Add them to its class: none has a default."
        )
    refuse_unfit(kind)
    other = known.get(name)
    if other is not None and (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InvalidParameter(f"there is a {what} {name!r} already. Choose another name.")
    known[name] = kind
