"""Newton's systems in a kernel's space by conjugate gradients.

``(diag(ridge) + K) x = b`` with thousands of rows. A kernel's eigenvalues fall quickly, so that a few hundred rows span
nearly all of K that is larger than the ridge: with ``B B'`` K's projection on their span (Nystroem's), the system
``diag(ridge) + B B'`` is solved at once, and a dozen steps that it preconditions take the place of a factorisation.
What comes out is a direction for Newton's method, whose result is certified elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.heavy import linalg

SKETCHED = 400  # rows that span the preconditioner
MAX_STEPS = 40  # beyond, a factorisation is quicker
RESIDUAL = 1e-5  # relative: about what single precision allows
JITTER = 1e-6  # relative to the largest entry

Single = NDArray[np.float32]


def sketch(rows: Single, chosen: NDArray[np.intp]) -> Single:
    """B, of as many columns as there are ``rows``: those of K at ``chosen``."""
    corner = rows[:, chosen].astype(np.float64)
    jitter = JITTER * float(np.max(np.diagonal(corner)))
    while True:
        corner[np.diag_indices_from(corner)] += jitter
        try:
            root = linalg.cholesky(corner, lower=True, check_finite=False).astype(np.float32)
        except linalg.LinAlgError:
            jitter *= 10.0
        else:
            break
    return np.asarray(linalg.solve_triangular(root, rows, lower=True, check_finite=False).T, np.float32)


def solve_by_gradients(system: Single, ridge: Single, right: Single, spread: Single) -> Single | None:
    """``(diag(ridge) + system)^-1 right``; None if that takes too many steps."""
    precondition = _Preconditioner(ridge, spread)
    solution, residual = np.zeros_like(right), right.copy()
    goal = RESIDUAL * float(np.linalg.norm(right))
    pushed = precondition(residual)
    direction, size = pushed, float(residual @ pushed)
    for _ in range(MAX_STEPS):
        if float(np.linalg.norm(residual)) <= goal:
            return solution
        image = system @ direction + ridge * direction
        length = np.float32(size / float(direction @ image))
        solution += length * direction
        residual -= length * image
        pushed = precondition(residual)
        size, before = float(residual @ pushed), size
        direction = pushed + np.float32(size / before) * direction
    return None


class _Preconditioner:
    """``(diag(ridge) + B B')^-1`` by Woodbury's identity."""

    def __init__(self, ridge: Single, spread: Single) -> None:
        self._ridge, self._spread = ridge, spread
        inner: Any = spread.T @ (spread / ridge[:, np.newaxis])
        inner[np.diag_indices_from(inner)] += np.float32(1.0)
        self._factor = linalg.cho_factor(inner, check_finite=False)

    def __call__(self, residual: Single) -> Single:
        scaled = residual / self._ridge
        inside = linalg.cho_solve(self._factor, self._spread.T @ scaled, check_finite=False)
        return np.asarray(scaled - (self._spread @ inside) / self._ridge, np.float32)
