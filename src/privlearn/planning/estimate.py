"""How much of a mechanism's noise reaches a prediction, and how large predictions are without it.

Objective perturbation releases about w - (H + Lambda)^-1 b / N, b its noise and H the data's curvature, so a prediction
at phi is off by <(H + Lambda)^-1 phi, b> / N. Two answers, argued in docs/theory/planning.md:

- `worst_case`, proven for all data: H is at least 0;
- `noise_in_prediction`, realistic: H is a typical curvature times the second moments of stand-in rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.features.points import is_sparse
from privlearn.mechanisms.noise import coordinate_deviation
from privlearn.planning.typical import TypicalProblem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Rows along the principal directions of their second moments.

    Parameters
    ----------
    moments : array
        Mean square along each direction, in which the intercept is one like the others.
    variances : array
        Variance along each: what can tell one row from another.
    """

    moments: Array
    variances: Array

    @classmethod
    def of(cls, features: Any) -> Spectrum:
        """From whichever is smaller, the moments of the columns or the inner products of the rows."""
        if features.shape[1] > features.shape[0]:
            return cls.of_products(_dense(features @ features.T))
        rows = _dense(features)
        return cls._along(rows @ np.linalg.eigh(rows.T @ rows)[1])

    @classmethod
    def of_products(cls, products: Array) -> Spectrum:
        """From the inner products of the rows, such as a kernel's values."""
        squares, directions = np.linalg.eigh(products)
        return cls._along(directions * np.sqrt(np.maximum(squares, 0.0)))

    @classmethod
    def _along(cls, rows: Array) -> Spectrum:
        return cls(np.mean(rows**2, axis=0), np.var(rows, axis=0))


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix, dtype=np.float64)


def noise_in_prediction(mechanism: Any, spectrum: Spectrum, problem: TypicalProblem) -> float:
    """Standard deviation of the noise in the prediction for a typical row."""
    length = math.sqrt(spectrum.moments.sum())
    if mechanism.perturbs != "objective":
        return _deviation(mechanism, mechanism.noise_scale) * length
    held = problem.curvature * spectrum.moments + mechanism.effective_regularization
    solved = _deviation(mechanism, mechanism.noise_scale) / mechanism.task.total
    return math.hypot(
        solved * math.sqrt(np.sum(spectrum.moments / held**2)),
        _deviation(mechanism, mechanism.tolerance_noise_scale) * length,
    )


def worst_case(mechanism: Any) -> float:
    """Proven bound on the standard deviation of the noise in any prediction, whatever the data.

    By Poincare's inequality, since a prediction is a 1/(N Lambda)-Lipschitz function of the noise.
    """
    direct = _deviation(mechanism, mechanism.noise_scale)
    if mechanism.perturbs != "objective":
        return direct
    if mechanism.noise == "norm_gamma":  # its Poincare constant is that much larger than its variance
        direct *= math.sqrt(1.0 + 1.0 / max(mechanism.task.dimension - 1, 1))
    through_solver = direct / (mechanism.task.total * mechanism.effective_regularization)
    tolerance = _deviation(mechanism, mechanism.tolerance_noise_scale)
    return math.hypot(through_solver, tolerance) + float(mechanism.solver_distance)


def typical_margin(regularization: float, spectrum: Spectrum, problem: TypicalProblem) -> float:
    """Spread of the predictions without noise: those of the typical problem, shrunk by the regularization."""
    everything = spectrum.variances.sum()
    if everything == 0.0:  # all rows are alike
        return 0.0
    curvature = problem.curvature * spectrum.moments
    kept = curvature / (curvature + regularization)
    return problem.margin * math.sqrt(np.sum(spectrum.variances * kept**2) / everything)


def _deviation(mechanism: Any, scale: float) -> float:
    return coordinate_deviation(mechanism.noise, scale, mechanism.task.dimension)
