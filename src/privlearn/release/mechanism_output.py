"""The mechanism's own output, for models that a public prior or public weights of the regularizer lead to.

`check_grid` checks any noisy numbers: they lie on a grid, so a stated noise scale that is too large shows in their last
bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import VerificationError

NAMES = ("mechanism", "prior", "scales")


@dataclass(frozen=True, eq=False)
class MechanismOutput:
    """Coefficients u on the grid of the noise; the model's are (u + prior) * scales, one operation per number.

    Parameters
    ----------
    coefficients : array of shape (rows, features)
        u, as the mechanism released them.
    prior : array of the same shape, optional
        Public: the model of ``regularize_towards`` over the scaled features, rounded to the same grid.
    scales : array of shape (features,), optional
        Public: 1/sqrt(g) of ``regularization_weights`` g.
    """

    coefficients: Array
    prior: Array | None = None
    scales: Array | None = None

    @property
    def model_coefficients(self) -> Array:
        """Return the coefficients of the model, before any refinement."""
        shifted = self.coefficients if self.prior is None else self.coefficients + self.prior
        return shifted if self.scales is None else shifted * self.scales

    def arrays(self) -> dict[str, Array]:
        """Return the members of a release file, by name."""
        named = zip(NAMES, (self.coefficients, self.prior, self.scales), strict=True)
        return {name: array for name, array in named if array is not None}


def prior_norm(prior: Array | None) -> float:
    """Return the norm of the longest row; no row of features of norm at most 1 has a larger score."""
    return 0.0 if prior is None else float(np.linalg.norm(prior, axis=1).max())


def largest_ridge(scales: Array | None) -> float:
    """Return the largest weight of a coefficient in the regularizer; 1 without weights."""
    return 1.0 if scales is None else float((1.0 / scales**2).max())


def output_from_arrays(arrays: Mapping[str, Array]) -> MechanismOutput | None:
    """Read the form of `MechanismOutput.arrays`; return None where the model is the mechanism's output itself."""
    if "mechanism" not in arrays:
        return None
    return MechanismOutput(arrays["mechanism"], arrays.get("prior"), arrays.get("scales"))


def on_grid(values: Array, step: float) -> Array:
    """Return the nearest multiples of the step; a number of 2^53 steps or more is one already."""
    small = np.abs(values) < 2.0**53 * step
    return np.where(small, np.rint(np.where(small, values, 0.0) / step) * step, values)


def check_grid(values: Array, step: float, what: str) -> None:
    """Refuse values that are not multiples of the step, a power of two."""
    steps = np.asarray(values) / step
    if not np.array_equal(steps, np.rint(steps)):
        raise VerificationError(
            f"the {what} do not lie on the grid of the stated noise: the stated scale is wrong"
        )
