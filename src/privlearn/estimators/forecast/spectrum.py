"""The spectrum of synthetic rows, and what it says about noise and margins of predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array, is_sparse
from privlearn.data.sources.row_source import in_memory
from privlearn.estimators.reference import ReferenceProblem
from privlearn.mechanisms.noise import coordinate_deviation


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Second moments and variances of rows along their principal directions, each an array of shape (directions,).

    Parameters
    ----------
    moments : array
        Mean square along each direction, the intercept included.
    variances : array
        Variance along each: what distinguishes rows.
    """

    moments: Array
    variances: Array

    @classmethod
    def of(cls, features: Any) -> Spectrum:
        """Return the spectrum of rows, from the smaller one of the column moments and the row products."""
        features = in_memory(features)
        if features.shape[1] > features.shape[0]:
            return cls.of_products(_dense(features @ features.T))
        rows = _dense(features)
        return cls._along(rows @ np.linalg.eigh(rows.T @ rows)[1])

    @classmethod
    def of_products(cls, products: Array) -> Spectrum:
        """Return the spectrum of rows with these inner products, such as a kernel's values."""
        squares, directions = np.linalg.eigh(products)
        return cls._along(directions * np.sqrt(np.maximum(squares, 0.0)))

    def add_cells(self, share: float, cells: int) -> Spectrum:
        """Return the spectrum with a share of the squared norm moved to ``cells`` indicator features.

        Their frequencies follow Zipf's law: the k-th cell is filled 1/k times as often as the first.
        """
        each = 1.0 / np.arange(1.0, cells + 1.0)
        each *= share / each.sum()
        return Spectrum(*(np.append((1.0 - share) * part, each) for part in (self.moments, self.variances)))

    @classmethod
    def _along(cls, rows: Array) -> Spectrum:
        return cls(np.mean(rows**2, axis=0), np.var(rows, axis=0))


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix, dtype=np.float64)


def noise_in_prediction(mechanism: Any, spectrum: Spectrum, problem: ReferenceProblem) -> float:
    """Return the standard deviation of the noise in the prediction for a typical row."""
    length = math.sqrt(spectrum.moments.sum())
    if mechanism.perturbs != "objective":
        return _deviation(mechanism, mechanism.noise_scale) * length
    curvature = problem.curvature * spectrum.moments + mechanism.effective_regularization
    solved = _deviation(mechanism, mechanism.noise_scale) / mechanism.task.total
    return math.hypot(
        solved * math.sqrt(np.sum(spectrum.moments / curvature**2)),
        _deviation(mechanism, mechanism.tolerance_noise_scale) * length,
    )


def worst_case(mechanism: Any) -> float:
    """Return a proven bound on the standard deviation of the noise in any prediction, on any data.

    By Poincare's inequality, since a prediction is a 1/(N Lambda)-Lipschitz function of the noise.
    """
    direct = _deviation(mechanism, mechanism.noise_scale)
    if mechanism.perturbs != "objective":
        return direct
    if mechanism.noise == "norm_gamma":  # its Poincare constant exceeds its variance by this factor
        direct *= math.sqrt(1.0 + 1.0 / max(mechanism.task.dimension - 1, 1))
    through_solver = direct / (mechanism.task.total * mechanism.effective_regularization)
    tolerance = _deviation(mechanism, mechanism.tolerance_noise_scale)
    return math.hypot(through_solver, tolerance) + float(mechanism.solver_distance)


def typical_margin(regularization: float, spectrum: Spectrum, problem: ReferenceProblem) -> float:
    """Return the standard deviation of predictions without noise, shrunk by the regularization."""
    total = spectrum.variances.sum()
    if total == 0.0:  # all rows are equal
        return 0.0
    curvature = problem.curvature * spectrum.moments
    retained = curvature / (curvature + regularization)
    return problem.margin * math.sqrt(np.sum(spectrum.variances * retained**2) / total)


def _deviation(mechanism: Any, scale: float) -> float:
    return coordinate_deviation(mechanism.noise, scale, mechanism.task.dimension)
