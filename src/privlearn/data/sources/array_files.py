"""`read_arrays`: arrays of numbers or texts from a NumPy file (.npz), such as images and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile

from privlearn.data.sources.addresses import StoredPath, TablePath
from privlearn.data.sources.files import existing_file
from privlearn.data.sources.table import safely
from privlearn.errors import DataError

ENDING = ".npz"


def read_arrays(path: str | TablePath, names: Sequence[str]) -> list[Any]:
    """PRIVATE: return arrays of an ``.npz`` file; refuse Python objects, since reading them could run their code."""
    path = existing_file(path)
    if path.suffix.lower() != ENDING:
        raise DataError(f"{path}: rows of arrays are read from {ENDING} files. Write one with numpy.savez.")
    file = path.open() if isinstance(path, StoredPath) else path
    damaged = f"{path} cannot be read as an {ENDING} file. It may be cut off or damaged. Write it again."
    arrays = safely(lambda: np.load(file, allow_pickle=False), damaged)
    if not isinstance(arrays, NpzFile):
        raise DataError(damaged)
    with arrays:
        for name in names:
            if name not in arrays.files:
                raise DataError(
                    f"{path} has no array {name!r}. Write it with numpy.savez(path, X=rows, y=labels)."
                )
        return [_read(arrays, name, path) for name in names]


def _read(arrays: NpzFile, name: str, path: TablePath) -> Any:
    return safely(
        lambda: arrays[name],
        f"the array {name!r} of {path} is damaged, or has Python objects. Convert it to one type, and write it again.",
    )
