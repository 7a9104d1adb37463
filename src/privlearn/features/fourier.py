"""Paired random Fourier features: a finite map of norm 1 for shift-invariant kernels (docs/theory/fourier.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from privlearn.arrays import Array, Features, safe_norm
from privlearn.errors import DataError, InvalidParameter
from privlearn.features.feature_map import (
    FeatureMap,
    block_size,
    in_equal_blocks,
    whole_number,
    with_whole_groups,
)
from privlearn.features.kernel import Kernel, as_points
from privlearn.features.kernels import ShiftInvariantKernel, kernel_from_dict, kernel_names

MAX_FREQUENCIES = 2**27  # one gigabyte


class FourierFeatures(FeatureMap):
    """(cos <w_1, x>, ..., cos <w_D, x>, sin <w_1, x>, ..., sin <w_D, x>) / sqrt(D), D = n_pairs.

    Inner products of features estimate the kernel without bias, with standard deviation at most 1/sqrt(D).
    The frequencies come from a public seed, so that a release states only the seed.

    Parameters
    ----------
    kernel : RBFKernel, LaplacianKernel or CauchyKernel
    n_inputs : int
        Number of columns of the points.
    n_pairs : int
        Number of frequencies; Gaussian noise in a prediction does not grow with it.
    seed : int
        Public, at least 0, chosen without reading the data.

    Notes
    -----
    The raw 64-bit integers of numpy's PCG64, which numpy guarantees for a fixed seed in every version, become
    frequencies by quantile functions written here; numpy gives no such guarantee for its own normal and Laplace
    variates. Another platform's tan, log or normal quantile may differ in the last bits, and
    features then differ by about 1e-15.

    Examples
    --------
    >>> from privlearn.features import kernel_from_name
    >>> features = FourierFeatures(kernel_from_name("rbf"), n_inputs=2, n_pairs=500, seed=0)
    >>> psi = features.transform([[0.0, 0.0], [0.6, 0.8]])
    >>> bool(abs(psi[0] @ psi[1] - np.exp(-1.0)) < 0.1)
    True
    """

    def __init__(self, kernel: Kernel, n_inputs: int, n_pairs: int, seed: int) -> None:
        if not isinstance(kernel, ShiftInvariantKernel):
            raise InvalidParameter(
                f"only the kernels {', '.join(kernel_names(ShiftInvariantKernel))} have Fourier features. "
                "For other kernels use landmark features on public points."
            )
        self.kernel = kernel
        self.n_inputs = whole_number("n_inputs", n_inputs, 1)
        self.n_pairs = whole_number("n_pairs (fourier_pairs)", n_pairs, 1)
        self.seed = whole_number("seed (fourier_seed)", seed, 0)
        if self.n_inputs * self.n_pairs > MAX_FREQUENCIES:
            raise InvalidParameter(
                f"{self.n_inputs} inputs x {self.n_pairs} pairs need more than a gigabyte of frequencies. "
                "Use fewer pairs, hash texts to fewer columns, or use landmark features."
            )
        self.dimension = 2 * self.n_pairs

    @cached_property
    def _turns(self) -> Array:
        """Return the frequencies in turns; drawn when they are needed, since verification does not need them."""
        turns = _frequencies(self.kernel, self.n_inputs * self.n_pairs, self.seed) / (2.0 * np.pi)
        return turns.reshape(self.n_inputs, self.n_pairs)

    @cached_property
    def _padded_turns(self) -> Array:
        return with_whole_groups(self._turns)

    @cached_property
    def _block_size(self) -> int:
        return block_size([self._padded_turns])

    def draw(self) -> FourierFeatures:
        """Draw the frequencies now, so that a gamma that is too large is refused; return the map."""
        _ = self._turns
        return self

    @property
    def frequencies(self) -> Array:
        """Return the frequencies w_j, one per column."""
        return self._turns * (2.0 * np.pi)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings of the map as plain JSON values."""
        return {
            "kernel": self.kernel.to_dict(),
            "n_inputs": self.n_inputs,
            "n_pairs": self.n_pairs,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> FourierFeatures:
        settings = dict(content)
        if set(settings) != {"kernel", "n_inputs", "n_pairs", "seed"}:
            raise InvalidParameter("this does not describe Fourier features. Pass what to_dict() returns.")
        return cls(**settings | {"kernel": kernel_from_dict(settings["kernel"])})

    def _fill(self, X: Any, out: Features) -> None:
        points = as_points(X)
        if points.shape[1] != self.n_inputs:
            raise DataError(f"the points have {points.shape[1]} columns. The map needs {self.n_inputs}.")
        cosines, sines = out[:, : self.n_pairs], out[:, self.n_pairs :]
        angles = self._angles(points).astype(out.dtype, copy=False)
        np.cos(angles, out=cosines)
        np.sin(angles, out=sines)
        out *= out.dtype.type(safe_norm(out) / math.sqrt(self.n_pairs))

    def _angles(self, points: Any) -> Array:
        """Return <w_j, x> modulo 2 pi, in float64: a heavy-tailed frequency would lose its digits in float32."""
        with np.errstate(over="ignore", invalid="ignore"):
            turns = in_equal_blocks(lambda block: block @ self._padded_turns, points, self._block_size)[
                :, : self.n_pairs
            ]
            turns -= np.rint(turns)
        if math.isnan(turns.max()):
            raise DataError("the points have entries that are too large. Scale the rows to norm at most 1.")
        turns *= 2.0 * np.pi
        return turns


def _frequencies(kernel: ShiftInvariantKernel, count: int, seed: int) -> Array:
    bits = np.random.PCG64(seed).random_raw(count)
    # Strictly between 0 and 1, and exact:
    uniform: Array = ((bits >> np.uint64(12)) + np.float64(0.5)) * 2.0**-52
    with np.errstate(over="ignore"):
        frequencies = kernel.frequencies(uniform)
    if not np.isfinite(frequencies).all():
        raise InvalidParameter(f"gamma = {kernel.gamma!r} is too large. Choose a smaller one.")
    return frequencies
