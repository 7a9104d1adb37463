"""The kernel machine as a linear one, for tables on which the quick methods fail.

The Gram matrix is ``B B'``, B its eigenvectors times the roots of its eigenvalues: a kernel machine on the rows is a
linear machine on the rows of B, and the linear solvers reach their goal on every table. What they find is a point to
start from; the certificate is the kernel machine's own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privlearn.erm.certifiable import least_gap, least_tolerance
from privlearn.erm.hinge import minimise_dual
from privlearn.erm.kernel_gap import WeightedLoss
from privlearn.erm.kernel_gram import SignedGram
from privlearn.erm.losses import Array
from privlearn.erm.problem import Problem
from privlearn.erm.solve import minimise

NEGLIGIBLE = 1e-17  # eigenvalues, relative to the sum of all


def linear_start(gram: SignedGram, losses: WeightedLoss, total: float) -> Array:
    """``alpha`` of the linear machine's minimiser."""
    features = _rows_of_root(gram)
    problem = Problem(
        features,
        gram.signs,
        losses.loss,
        gram.scale / total,
        math.ceil(total),
        losses.weights,
        norm_bound=1.001 * math.sqrt(gram.largest),
        offsets=losses.offsets,
    )
    facts: dict[str, Any] = {
        "dimension": features.shape[1],
        "weight_bound": max(float(np.sum(losses.weights)) / total, 1e-12) * max(gram.largest, 1.0),
    }
    if math.isinf(losses.loss.smoothness):
        return minimise_dual(problem, least_gap(problem.regularization, **facts))
    tolerance = least_tolerance(losses.loss, problem.regularization, **facts)
    coefficients = minimise(problem, tolerance=min(tolerance, 1e-3)).coefficients
    return -losses.slope(gram.signs * (features @ coefficients))


def _rows_of_root(gram: SignedGram) -> Array:
    values, vectors = np.linalg.eigh(gram.block(np.arange(gram.count)))
    kept = values > NEGLIGIBLE * np.sum(values)
    return (
        np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))
        if kept.any()
        else np.zeros((gram.count, 1))
    )
