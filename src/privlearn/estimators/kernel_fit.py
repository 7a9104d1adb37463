"""PRIVATE: an exact kernel machine's functions, found and certified."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.erm.kernel.dual import minimise_kernel
from privlearn.erm.kernel.multinomial import minimise_kernel_multinomial
from privlearn.erm.kernel.problem import KernelProblem, make_symmetric
from privlearn.erm.losses import Loss
from privlearn.errors import SolverError
from privlearn.estimators.goal import ClassGoal, TrainingRows
from privlearn.estimators.session_task import session_gap
from privlearn.features.kernel import Kernel
from privlearn.features.kernels import VectorKernel
from privlearn.mechanisms.session.task import KernelTask, kernel_rounding

TOGETHER = 512  # rows of the matrix that are computed at once


def exact_functions(rows: TrainingRows, features: Any, kernel: Kernel, facts: KernelTask) -> Array:
    """PRIVATE: the coefficients at the records, within the public bounds that the session's noise is calibrated by."""
    gap = session_gap(facts.task, kernel, rows.dimension)
    kernel.check(features)
    gram = symmetric_gram(kernel, features)
    problems = (
        KernelProblem(
            gram,
            signs,
            cast(Loss, facts.task.loss),
            facts.task.regularization,
            facts.task.total,
            row_weights=rows.weights,
            offsets=offsets,
            gram_error=kernel_rounding(kernel, rows.dimension),
            symmetric=True,
        )
        for signs, offsets in zip(rows.goal.signs, rows.goal.offsets, strict=True)
    )
    if facts.task.classes:
        labels = cast(ClassGoal, rows.goal).labels
        dual = minimise_kernel_multinomial(next(problems), labels, facts.functions, gap=gap).dual
    else:
        dual = np.array([minimise_kernel(problem, gap=gap).dual for problem in problems])
    if float(np.max(np.sum(np.abs(dual), axis=1))) > facts.slope_total * (1.0 + 1e-6):
        raise SolverError("the solver's coefficients exceed their bound: take a stronger regularization")
    return dual


def symmetric_gram(kernel: Kernel, points: Any) -> Array:
    """The matrix k(x, z) divided by the kernel's bound: symmetric to the last bit, finite, and nobody else's."""
    if isinstance(kernel, VectorKernel):
        gram = _from_upper_half(kernel, points)
    else:
        gram = kernel(points, points).copy()  # a function of the user's may want to keep what it returned
        make_symmetric(gram)
    if kernel.bound != 1.0:
        gram /= kernel.bound
    return gram


def _from_upper_half(kernel: VectorKernel, points: Array) -> Array:
    """Each value is computed once, and stands in two places."""
    gram = np.empty((len(points), len(points)))
    for start in range(0, len(points), TOGETHER):
        stop = min(start + TOGETHER, len(points))
        values = kernel(points[start:stop], points[start:])
        corner = values[:, : stop - start]
        below = np.tril_indices(stop - start, -1)
        corner[below] = corner.T[below]
        gram[start:stop, start:] = values
        gram[stop:, start:stop] = values[:, stop - start :].T
    return gram
