"""PRIVATE: solve an exact kernel machine, with a certified gap."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import SolverError
from privlearn.estimators.session_task import session_gap
from privlearn.estimators.training_rows import ClassTargets, TrainingRows
from privlearn.features.kernel import Kernel
from privlearn.features.kernels import VectorKernel
from privlearn.mechanisms.session.task import KernelTask, kernel_rounding
from privlearn.solvers.kernel.dual import minimise_kernel
from privlearn.solvers.kernel.multinomial import minimise_kernel_multinomial
from privlearn.solvers.kernel.problem import KernelProblem, make_symmetric
from privlearn.solvers.losses import Loss

BLOCK_ROWS = 512  # rows of the matrix that are computed at once


def exact_functions(rows: TrainingRows, features: Any, kernel: Kernel, kernel_task: KernelTask) -> Array:
    """PRIVATE: return the coefficients at the records, within the public bounds that the noise is calibrated by."""
    gap = session_gap(kernel_task.task, kernel, rows.dimension)
    kernel.check(features)
    gram = symmetric_gram(kernel, features)
    problems = (
        KernelProblem(
            gram,
            signs,
            cast(Loss, kernel_task.task.loss),
            kernel_task.task.regularization,
            kernel_task.task.total,
            row_weights=rows.weights,
            offsets=offsets,
            gram_error=kernel_rounding(kernel, rows.dimension),
            symmetric=True,
        )
        for signs, offsets in zip(rows.targets.signs, rows.targets.offsets, strict=True)
    )
    if kernel_task.task.classes:
        labels = cast(ClassTargets, rows.targets).labels
        dual = minimise_kernel_multinomial(next(problems), labels, kernel_task.functions, gap=gap).dual
    else:
        dual = np.array([minimise_kernel(problem, gap=gap).dual for problem in problems])
    if float(np.max(np.sum(np.abs(dual), axis=1))) > kernel_task.max_dual_sum * (1.0 + 1e-6):
        raise SolverError("the solver's coefficients exceed their bound: take a stronger regularization")
    return dual


def symmetric_gram(kernel: Kernel, points: Any) -> Array:
    """Return the matrix k(x, z) divided by the kernel's bound: exactly symmetric, finite, and a copy."""
    if isinstance(kernel, VectorKernel):
        gram = _from_upper_half(kernel, points)
    else:
        gram = kernel(points, points).copy()  # the user's function may keep a reference to what it returned
        make_symmetric(gram)
    if kernel.bound != 1.0:
        gram /= kernel.bound
    return gram


def _from_upper_half(kernel: VectorKernel, points: Array) -> Array:
    """Return the symmetric matrix, computing each pair of points once."""
    gram = np.empty((len(points), len(points)))
    for start in range(0, len(points), BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, len(points))
        values = kernel(points[start:stop], points[start:])
        corner = values[:, : stop - start]
        below = np.tril_indices(stop - start, -1)
        corner[below] = corner.T[below]
        gram[start:stop, start:] = values
        gram[stop:, start:stop] = values[:, stop - start :].T
    return gram
