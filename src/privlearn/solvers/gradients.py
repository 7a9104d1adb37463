"""Conjugate gradients, which need only products with the matrix, and a preconditioner for kernel machines.

A kernel machine's system is ``(diag(ridge) + K) x = b`` with thousands of rows. A kernel's eigenvalues decrease
quickly, so a few hundred rows span nearly all of the part of K that is larger than the ridge. Let ``B B'`` be the
projection of K on their span (Nystroem's method). The system with ``diag(ridge) + B B'`` is solved directly, and serves
as the preconditioner: a dozen steps then replace a factorisation of K. The result is a direction for Newton's method,
which certifies its own result, so an inexact direction costs only time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.imports import linalg

MAX_PRODUCTS = 2000  # Hessian products for one direction


def conjugate_gradients(
    product_with: Callable[[Any], Any],
    precondition: Callable[[Any], Any],
    right: Any,
    residual_norm: float,
    max_products: int = MAX_PRODUCTS,
) -> tuple[Any, bool]:
    """Solve ``product_with(x) = right``; return x and whether the residual's norm is at most ``residual_norm``.

    Examples
    --------
    >>> matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> conjugate_gradients(lambda x: matrix @ x, lambda residual: residual, np.array([3.0, 4.0]), residual_norm=1e-12)
    (array([1., 1.]), True)
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    scaled = precondition(residual)
    search, energy = scaled.copy(), float(residual @ scaled)
    for _ in range(max_products):
        if float(np.linalg.norm(residual)) <= residual_norm:
            return solution, True
        product = product_with(search)
        length = energy / float(search @ product)
        solution += length * search
        residual -= length * product
        scaled = precondition(residual)
        energy, previous = float(residual @ scaled), energy
        search = scaled + (energy / previous) * search
    return solution, False


SKETCHED = 400  # rows that span the preconditioner
MAX_STEPS = 40  # beyond, a factorisation is faster
RESIDUAL = 1e-5  # relative: about what single precision allows
JITTER = 1e-6  # relative to the largest entry

Single = NDArray[np.float32]


def sketch(rows: Single, sample: NDArray[np.intp]) -> Single:
    """Return B, with one column for each of ``rows``: those of K at ``sample``."""
    corner = rows[:, sample].astype(np.float64)
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


def solve_by_gradients(system: Single, ridge: Single, right: Single, sketch: Single) -> Single | None:
    """Return ``(diag(ridge) + system)^-1 right``; None if that takes too many steps."""
    solution, converged = conjugate_gradients(
        lambda vector: system @ vector + ridge * vector,
        _Preconditioner(ridge, sketch),
        right,
        RESIDUAL * float(np.linalg.norm(right)),
        MAX_STEPS,
    )
    return solution if converged else None


class _Preconditioner:
    """``(diag(ridge) + B B')^-1`` by Woodbury's identity."""

    def __init__(self, ridge: Single, sketch: Single) -> None:
        self._ridge, self._sketch = ridge, sketch
        inner: Any = sketch.T @ (sketch / ridge[:, np.newaxis])
        inner[np.diag_indices_from(inner)] += np.float32(1.0)
        self._factor = linalg.cho_factor(inner, check_finite=False)

    def __call__(self, residual: Single) -> Single:
        scaled = residual / self._ridge
        inside = linalg.cho_solve(self._factor, self._sketch.T @ scaled, check_finite=False)
        return np.asarray(scaled - (self._sketch @ inside) / self._ridge, np.float32)
