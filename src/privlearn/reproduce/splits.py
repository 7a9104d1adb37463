"""Training and test rows of the experiments, prepared as CMS11's section 7.1 does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]

INSIDE = 1.0 - 2.0**-40
"""Scaled rows stay in the unit ball when rounded."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows in the unit ball, dense or CSR, with their signs."""

    rows: Any
    signs: Array
    test_rows: Any
    test_signs: Array
    offsets: None = None

    def error(self, coefficients: Array) -> float:
        """Share of test rows whose sign is predicted wrongly."""
        return float(np.mean((self.test_rows @ coefficients.ravel() > 0) != (self.test_signs > 0)))


@dataclass(frozen=True, eq=False)
class TargetSplit:
    """The same for regression: targets in [-1, 1] instead of signs."""

    rows: Any
    offsets: Array
    test_rows: Any
    test_targets: Array

    @property
    def signs(self) -> Array:
        return np.ones(len(self.offsets))

    def error(self, coefficients: Array) -> float:
        """Norm of the residuals on the test rows, of predictions clamped to the targets' range."""
        predicted = np.clip(self.test_rows @ coefficients.ravel(), -1.0, 1.0)
        return float(np.linalg.norm(predicted - self.test_targets))


def folds(rows: Any, signs: Array, count: int, random: np.random.Generator) -> Iterator[Split]:
    """Each part is the test part once."""
    parts = np.array_split(random.permutation(len(signs)), count)
    for place, part in enumerate(parts):
        rest = np.concatenate([other for number, other in enumerate(parts) if number != place])
        yield Split(rows[rest], signs[rest], rows[part], signs[part])


def paper_rows(table: pa.Table, target: str, positive: str) -> tuple[Any, Array]:
    """Categories one-hot, each column divided by its maximum, each row by its norm; CSR rows, and signs.

    Reading categories and maxima off the data is not private; it is done because the paper did.
    """
    names = [name for name in table.column_names if name != target]
    rows = sparse.hstack([_columns(table[name]) for name in names], format="csr")
    norms = np.sqrt(rows.multiply(rows).sum(axis=1))
    rows = sparse.csr_array(sparse.diags_array(INSIDE / norms) @ rows)
    return rows, np.where(pc.equal(table[target], positive).to_numpy(), 1.0, -1.0)


def sample(load: Callable[[], tuple[Any, Array]], count: int | None, seed: Any) -> tuple[Any, Array]:
    """All rows, or so many of them."""
    rows, signs = load()
    if count is None or count >= len(signs):
        return rows, signs
    chosen = np.random.default_rng(seed).permutation(len(signs))[:count]
    return rows[chosen], signs[chosen]


def _columns(column: pa.ChunkedArray) -> Any:
    if pa.types.is_string(column.type):
        codes = pc.dictionary_encode(column.combine_chunks())
        places = codes.indices.to_numpy()
        ones = np.ones(len(places))
        return sparse.csr_array(
            (ones, (np.arange(len(places)), places)), (len(places), len(codes.dictionary))
        )
    values = column.to_numpy().astype(np.float64)
    largest = values.max()
    return sparse.csr_array((values / largest if largest > 0 else values)[:, np.newaxis])
