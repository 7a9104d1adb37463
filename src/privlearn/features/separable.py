"""Sums over coordinates of a function of the difference of two points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from privlearn.features.points import Array, Points, is_sparse

Term = Callable[[Array], Array]


def coordinate_sums(X: Points, Z: Points, term: Term) -> Array:
    """``sum_j term(x_j - z_j)`` for every x of X and z of Z.

    Parameters
    ----------
    X, Z : dense or CSR matrices with the same number of columns
    term : function of an array
        With ``term(0) = 0``, so that only coordinates that differ count.
    """
    if is_sparse(X) or is_sparse(Z):
        return _sparse_sums(sparse.csr_array(X), sparse.csr_array(Z), term)
    sums = np.zeros((len(X), len(Z)))
    for left, right in zip(X.T, Z.T, strict=True):
        sums += term(np.subtract.outer(left, right))
    return sums


def _sparse_sums(X: sparse.csr_array, Z: sparse.csr_array, term: Term) -> Array:
    """As if x were zero, corrected where it is not: never more entries at once than X has."""
    owner = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    sums = np.empty((X.shape[0], Z.shape[0]))
    point = np.zeros(Z.shape[1])
    for place in range(Z.shape[0]):
        entries = slice(Z.indptr[place], Z.indptr[place + 1])
        columns, values = Z.indices[entries], Z.data[entries]
        point[columns] = values
        there = point[X.indices]
        corrections = term(X.data - there) - term(-there)
        sums[:, place] = np.bincount(owner, corrections, minlength=X.shape[0]) + term(-values).sum()
        point[columns] = 0.0
    return sums
