"""Sparse features hashed into many columns leave most of them empty: solve without those.

In an empty column j the minimiser is ``-linear_j / Lambda``, and the gradient left by rounding that quotient
is at most ``u |linear_j|``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privlearn.erm.objective import SAFETY, UNIT_ROUNDOFF
from privlearn.erm.problem import Problem, Solution

WORTHWHILE = 0.5  # renumbering copies the column indices: only if this share of the columns or less is in use


def used_columns(problem: Problem) -> NDArray[np.intp] | None:
    """The columns in use, in order, or None if leaving out the others would gain little."""
    if not sparse.issparse(problem.features):
        return None
    features: Any = problem.features
    present = np.zeros(features.shape[1], dtype=bool)
    present[features.indices] = True
    present[0] = True  # a problem has at least one column
    used = np.flatnonzero(present)
    return used if len(used) <= WORTHWHILE * len(present) else None


def restrict(problem: Problem, used: NDArray[np.intp]) -> Problem:
    """The problem in the used columns alone; the values are shared, the indices renumbered."""
    features = problem.features
    number = np.zeros(features.shape[1], dtype=features.indices.dtype)
    number[used] = np.arange(len(used))
    parts = (features.data, number[features.indices], features.indptr)
    kept = sparse.csr_array(parts, shape=(features.shape[0], len(used)))
    return replace(problem, features=kept, linear=None if problem.linear is None else problem.linear[used])


def extend(problem: Problem, used: NDArray[np.intp], found: Solution) -> Solution:
    """The solution in all columns, with the certificate of both parts."""
    if problem.linear is None:
        coefficients, rest = np.zeros(problem.features.shape[1]), 0.0
    else:
        coefficients = -problem.linear / problem.regularization
        rest = SAFETY * UNIT_ROUNDOFF * float(np.linalg.norm(problem.linear))
    coefficients[used] = found.coefficients
    norm = math.hypot(found.gradient_norm, rest)
    return Solution(coefficients, norm, norm / problem.regularization, found.iterations)
