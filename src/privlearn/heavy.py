"""Large libraries that training needs, imported when they are first used.

A privlearn that only predicts and verifies (`pip install privlearn-core`) has none of them. A module that this one's
readers share takes them from here; one that only training reads imports them as usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from privlearn.errors import MissingPart

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
    [
        "alembic",
        "dp_accounting",
        "flint",
        "opendp",
        "pyarrow",
        "scipy",
        "sklearn",
        "sqlalchemy",
        "threadpoolctl",
    ]
)


@contextmanager
def explained() -> Iterator[None]:
    """What to install, instead of the name of a module that is not there."""
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
    """Whether the libraries that read tables and compute with many rows are installed."""
    try:
        return all(import_module(name) for name in ("pyarrow", "scipy"))
    except ModuleNotFoundError:
        return False


class _Late(ModuleType):
    """A module that is imported when one of its names is asked for."""

    def __getattr__(self, name: str) -> Any:
        with explained():
            found = getattr(import_module(self.__name__), name)
        setattr(self, name, found)
        return found


if not TYPE_CHECKING:
    flint, optimize, linalg, sparse, special = map(
        _Late, ("flint", "scipy.optimize", "scipy.linalg", "scipy.sparse", "scipy.special")
    )
    pa, pc, arrow_csv, arrow_fs, parquet = map(
        _Late, ("pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.fs", "pyarrow.parquet")
    )
