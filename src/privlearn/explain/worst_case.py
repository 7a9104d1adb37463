"""`MinimiserShift`: a bound, for any table, on how far noise in an objective moves its minimiser."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri

from privlearn.arrays import Array
from privlearn.explain.simulated_errors import DRAWS, block_sizes
from privlearn.mechanisms.noise import coordinate_deviation

BIAS = 3.0 * math.sqrt(3.0) / 64.0  # constant of the bound on the mean error (theorem, 2.)
_SCORES = ndtri((np.arange(DRAWS) + 0.5) / DRAWS)  # quantiles of a normal number: less noisy than draws


@dataclass(frozen=True)
class MinimiserShift:
    """The distance of a minimiser with noise in its objective from the one without.

    **Theorem** (docs/theory/intervals.md). Let F be convex with Hessian at least r, w(b) minimise F(w) + b'w over d
    coefficients, e = w(b) - w(0), and let b be Gaussian of deviation s in each coordinate.

    1. r e lies in the ball that has 0 and -b as ends of a diameter. So v'e <= (|v'b| + |v| |b|) / (2 r). A cone of rows
       attains it in the limit.
    2. Let F be r/2 |w|^2 plus a sum of losses of rows of norm at most 1 whose third derivative is at most k times their
       second. Then the mean of v'e is at most B = (3 sqrt(3) / 64) k sqrt(d) (s / r)^2 |v| in size, and its quantile at
       P(Z < z) at most B + (s / r) |v| E max(z - Z, 0), Z standard normal.
    3. Under the same condition, for a matrix V: V e less its mean is smaller in the convex order than V b / r. So a
       quantile of |V e| is at most B with |v| the largest singular value of V, plus the mean of |V b| / r beyond its
       own quantile at that level.

    CMS11's noise, of density proportional to exp(-|b| / scale), is Gaussian given s^2, which is 2 scale^2 times a Gamma
    variable of shape (d + 1) / 2: all three hold given s.

    Parameters
    ----------
    noise : {"gaussian", "norm_gamma"}
    scale : float
        Scale of the noise in the sum of gradients: s, or CMS11's scale.
    second_scale : float
        Scale of noise of the same distribution that is added to the minimiser afterwards.
    dimension : int
    ridge : float
        r.
    self_concordance : float
        k; ``math.inf`` where only 1. holds.
    sampling : float, default=0
        Deviation, per unit of |v|, of an independent normal error that intervals cover in addition.
    """

    noise: str
    scale: float
    second_scale: float
    dimension: int
    ridge: float
    self_concordance: float
    sampling: float = 0.0

    def half_width(self, level: float) -> float:
        """Return how far v'w may lie from v'w(0), with probability ``level``, for |v| = 1."""
        hard, smooth = self._draw_parts(self._component_draws, level)
        return min(_quantile(drawn, (1.0 + level) / 2.0) for drawn in (hard, smooth))

    def length_quantile(self, functions: Array, level: float) -> float:
        """Return how long the vector of errors of v'w is, over the rows v of ``functions``, with that probability."""
        squares = _squares(functions)
        hard, smooth = self._draw_parts(partial(self._length_draws, squares), level)
        tail = np.sort(smooth)[math.floor(level * len(smooth)) :]
        return min(_quantile(hard, level), float(np.mean(tail)))

    def length_deviation(self, functions: Array) -> float:
        """Return a bound on the root mean square of that vector's length."""
        squares = _squares(functions)
        first, second = (
            coordinate_deviation(self.noise, scale, self.dimension)
            for scale in (self.scale, self.second_scale)
        )
        bias = min(float(self._bias(first)), math.sqrt(self.dimension) * first / (2.0 * self.ridge))
        variance = (first / self.ridge) ** 2 + second**2 + self.sampling**2
        return math.sqrt(float(np.sum(squares)) * variance + float(squares[0]) * bias**2)

    def _component_draws(self, generator: np.random.Generator) -> tuple[Array, Array]:
        """Draw the bounds 1 and 2 of v'e, |v| = 1, each together with the other errors."""
        first, second = self._deviations(generator)
        along, after = (generator.permutation(_SCORES) for _ in range(2))
        length = np.sqrt(along**2 + _chi_square(self.dimension - 1, generator))
        other = self.sampling * generator.permutation(_SCORES)
        hard = first * (along + length) / (2.0 * self.ridge) + second * after
        smooth = self._bias(first) + np.hypot(first / self.ridge, second) * mean_excess(along)
        return hard + other, smooth + other

    def _length_draws(self, squares: Array, generator: np.random.Generator) -> tuple[Array, Array]:
        """Draw the bounds 1 and 3 of |V e|, each together with the other errors; of V the squared singular values."""
        first, second = self._deviations(generator)
        norm, shape = math.sqrt(float(squares[0])), (DRAWS, len(squares))
        along, after = generator.standard_normal(shape) ** 2, generator.standard_normal(shape) ** 2
        reach = np.sqrt(along @ squares)
        length = np.sqrt(along.sum(axis=1) + _chi_square(self.dimension - len(squares), generator))
        hard = first * (reach + norm * length) / (2.0 * self.ridge)
        other = np.hypot(second, self.sampling)
        smooth = norm * self._bias(first) + np.hypot(first / self.ridge, other) * reach
        return hard + other * np.sqrt(after @ squares), smooth

    def _draw_parts(
        self, draw: Callable[[np.random.Generator], tuple[Array, Array]], level: float
    ) -> tuple[Array, Array]:
        """Draw both bounds, so often that some twenty draws lie beyond the level."""
        drawn = [draw(np.random.default_rng(seed)) for seed in range(len(block_sizes(level)))]
        return np.concatenate([hard for hard, _ in drawn]), np.concatenate([smooth for _, smooth in drawn])

    def _deviations(self, generator: np.random.Generator) -> tuple[Array, Array]:
        """Draw s of both noises; of Gaussian noise it is known."""
        if self.noise == "gaussian":
            return np.full(DRAWS, self.scale), np.full(DRAWS, self.second_scale)
        shape = (self.dimension + 1.0) / 2.0
        roots = np.sqrt(2.0 * generator.gamma(shape, size=(2, DRAWS)))
        return self.scale * roots[0], self.second_scale * roots[1]

    def _bias(self, deviation: Array | float) -> Array | float:
        """Return the bound on the mean error for |v| = 1; infinite where the loss has no third derivative."""
        if not math.isfinite(self.self_concordance):
            return math.inf
        return BIAS * self.self_concordance * math.sqrt(self.dimension) * (deviation / self.ridge) ** 2


def mean_excess(z: Array) -> Array:
    """Return E max(z - Z, 0) for a standard normal Z."""
    return np.asarray(z * ndtr(z) + np.exp(-(z**2) / 2.0) / math.sqrt(2.0 * math.pi))


def _quantile(values: Array, level: float) -> float:
    """Return the draw that the level reaches; np.quantile would interpolate between infinite ones."""
    return float(np.sort(values)[min(math.ceil(level * len(values)), len(values) - 1)])


def _squares(functions: Array) -> Array:
    """Return the squared singular values of a matrix, the largest first."""
    return np.asarray(np.linalg.svd(functions, compute_uv=False) ** 2)


def _chi_square(degrees: int, generator: np.random.Generator) -> Array:
    return generator.chisquare(degrees, DRAWS) if degrees > 0 else np.zeros(DRAWS)
