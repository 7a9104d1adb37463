"""Simulated errors of released coefficients: draws of each noise along linear functions, and what is read off them.

Seeds are fixed, so that an interval does not change from one call to the next. For example, three functions of d
coefficients under Laplace noise: `draw_laplace` takes an array of shape (3, d) and returns one of shape (count, 3).
"""

from __future__ import annotations

import math

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.mechanisms.noise import coordinate_deviation
from privlearn.mechanisms.statistics.curvature import MAX_COEFFICIENTS

BOOTSTRAPS = 100
"""Draws of the curvature's own noise, for a parametric bootstrap."""

DRAWS = 100 * BOOTSTRAPS  # of the errors, in one block
_MAX_DRAWS = 100 * DRAWS


def symmetric_noise(scale: float, size: int, generator: np.random.Generator) -> Array:
    """Draw noise as `NoisyCurvature` adds it."""
    above = np.triu(generator.normal(0.0, scale * math.sqrt(0.5), (size, size)), 1)
    return np.asarray(above + above.T + np.diag(generator.normal(0.0, scale, size)))


def draw_components(noise: str, functions: Array, generator: np.random.Generator) -> Array:
    """Draw a noise vector's component along each function, over its deviation.

    CMS11's distribution is the same along all; independent Laplace coordinates occur in output perturbation only.
    """
    dimension = functions.shape[1]
    unit = coordinate_deviation(noise, 1.0, dimension)
    if noise == "norm_gamma":
        along = generator.standard_normal((DRAWS, 1))
        across = generator.chisquare(dimension - 1, (DRAWS, 1)) if dimension > 1 else 0.0
        return np.asarray(
            generator.gamma(dimension, size=(DRAWS, 1)) * along / np.sqrt(along**2 + across) / unit
        )
    lengths = np.sqrt(np.maximum(squares(functions), 1e-300))
    return draw_laplace(functions / lengths[:, np.newaxis], 1.0, generator, DRAWS)


def draw_laplace(functions: Array, deviation: float, generator: np.random.Generator, count: int) -> Array:
    """Draw functions of independent Laplace coordinates."""
    dimension = functions.shape[1]
    if dimension > MAX_COEFFICIENTS:
        raise InvalidParameter(
            f"intervals under Laplace noise are known for at most {MAX_COEFFICIENTS} coefficients. Train with "
            "noise='norm_gamma', or with delta > 0"
        )
    draws = generator.laplace(scale=deviation * math.sqrt(0.5), size=(count, dimension))
    return np.asarray(draws @ functions.T)


def draw_isotropic(dimension: int, size: int, generator: np.random.Generator, count: int) -> Array:
    """Draw ``size`` coordinates of CMS11's noise vector, over their deviation."""
    along = generator.standard_normal((count, size))
    across = generator.chisquare(dimension - size, count) if dimension > size else 0.0
    radius = generator.gamma(dimension, size=count) / math.sqrt(dimension + 1.0)
    return np.asarray(along * (radius / np.sqrt(squares(along) + across))[:, np.newaxis])


def root_of(covariance: Array) -> Array:
    """Return a matrix R with R'R = covariance and orthogonal rows, as many as its rank."""
    lengths, vectors = np.linalg.eigh(covariance)
    used = lengths > 1e-12 * max(float(lengths[-1]), 1e-300)
    return np.asarray(np.sqrt(lengths[used])[:, np.newaxis] * vectors[:, used].T)


def block_sizes(level: float) -> list[int]:
    """Return the sizes of blocks of draws, so that some twenty lie beyond the level."""
    count = math.ceil(20.0 / max(1.0 - level, 20.0 / _MAX_DRAWS) / DRAWS)
    return [DRAWS] * count


def squares(rows: Array) -> Array:
    """Return the squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
