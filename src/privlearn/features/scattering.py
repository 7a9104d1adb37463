"""Scattering features of images and signals: fixed wavelets, modulus and averages (docs/theory/feature-maps.md).

For J octaves: averages of the input, of the moduli of its wavelet transforms, and of the moduli of the wavelet
transforms of those, at every 2^J-th position. The channels of one octave are normalised together, image by image, and
all are projected to ``projections`` random directions from a public seed, which are whitened by public drawings. Every
step reads one row.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from privlearn.data.encoding.arrays import blocks
from privlearn.data.sources.passes import one_blas_thread
from privlearn.errors import InvalidParameter, preview
from privlearn.features.feature_map import in_equal_blocks, rows_alike, whole_number
from privlearn.features.public_map import PublicMap, gaussian_matrix, register_feature_map
from privlearn.features.wavelets import Single, Wavelets

BLOCK = 64  # rows
CHUNKS = (16, 8, 4)  # rows of a transform, which stay in the cache, and of a projection
MIN_DEVIATION = 1e-4  # of a group of channels whose numbers lie between 0 and 1
OUTPUT_SIDE = 7  # about this many positions per side are left by default
MAX_DRAWINGS, MIN_DRAWINGS, DRAWN_NUMBERS = 1000, 32, 1 << 20
MAX_DRAWN_NUMBERS = 1 << 23
SMOOTHNESS = 2.5  # the amplitudes of a field fall with this power of the frequency
MIN_VARIANCE = 1e-3  # of the largest: smaller ones are taken for this one


@register_feature_map
class ScatteringFeatures(PublicMap):
    """Second-order scattering with group normalisation and a random projection, for images and signals.

    Parameters
    ----------
    input_shape : tuple of int
        (height, width), (height, width, channels), or (length,) for a signal.
    value_bounds : two floats, default=(0, 255)
        Public bounds of a pixel or sample; others are clamped.
    octaves : int, optional
        J: wavelets have widths up to 2^J. By default about 7 positions per side remain (28 x 28: 2), 16 of a signal.
    directions : int, default=8
        Orientations of the wavelets of images; wavelets per octave of signals.
    projections : int, default=1000
        Number of features; 0 keeps all scattering coefficients, which are not whitened.
    seed : int, default=0
        Public seed of the projection and of the drawings.
    whiten : bool, default=True
        Whether to whiten the projections by the covariance of those of public drawings.

    Examples
    --------
    >>> features = ScatteringFeatures((28, 28))
    >>> features.n_coefficients, features.dimension
    (3969, 1000)
    """

    name = "scattering"
    settings = ("input_shape", "value_bounds", "octaves", "directions", "projections", "seed", "whiten")

    def __init__(
        self,
        input_shape: Any,
        value_bounds: Any = (0.0, 255.0),
        octaves: int | None = None,
        directions: int = 8,
        projections: int = 1000,
        seed: int = 0,
        whiten: bool = True,
    ) -> None:
        self.input_shape = _check_shape(input_shape)
        self.value_bounds = _check_bounds(value_bounds)
        sides = self.input_shape[:2]
        self.octaves = _default_octaves(sides) if octaves is None else whole_number("octaves", octaves, 1)
        self.directions = whole_number("directions", directions, 1)
        self.projections = whole_number("projections", projections, 0)
        self.seed = whole_number("seed", seed, 0)
        if not isinstance(whiten, bool):
            raise InvalidParameter(f"whiten must be True or False, not {preview(whiten)}")
        self.whiten = whiten
        self._wavelets = Wavelets(sides, self.octaves, self.directions)
        colours = self.input_shape[2] if len(self.input_shape) == 3 else 1
        self.n_coefficients = colours * self._wavelets.channels * self._wavelets.positions
        self.dimension = self.projections or self.n_coefficients

    def _fill(self, X: Any, out: Any) -> None:
        # Which products treat equal rows alike depends on the number of threads, and is tested once.
        with one_blas_thread():
            out[:] = in_equal_blocks(self._block, X, BLOCK)

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """Return how many transforms, and projections, at once treat equal rows alike, tested on a random row."""
        image = np.random.default_rng(0).random((1, *self.input_shape), dtype=np.float32)
        transforms = rows_alike(self.coefficients, image, CHUNKS)
        if not self.projections:
            return transforms, 1
        matrix, _ = self._projection
        return transforms, rows_alike(lambda rows: rows @ matrix, self.coefficients(image), CHUNKS)

    @cached_property
    def _projection(self) -> tuple[Single, Single]:
        """Return a matrix, and what to subtract from products with it."""
        if self.whiten:
            return _whitened_projection(self)
        return self.random_matrix(), np.zeros(self.projections, dtype=np.float32)

    def random_matrix(self) -> Single:
        """Return the projection before whitening, of shape (n_coefficients, projections)."""
        return gaussian_matrix(self.n_coefficients, self.projections, self.seed)

    def drawings(self, count: int) -> Any:
        """Return public raw rows other than those that whiten, for forecasts: fewer than `count` of large images."""
        count = min(count, max(MAX_DRAWN_NUMBERS // self.n_inputs, MIN_DRAWINGS))
        lower, upper = self.value_bounds
        return lower + (upper - lower) * _drawings(self.input_shape, self.seed + 2, count)

    def _block(self, X: Any) -> Any:
        """Return unit vectors of a block of rows."""
        lower, upper = self.value_bounds
        values = (np.clip(X, lower, upper).astype(np.float64) - lower) / (upper - lower)
        inputs = values.astype(np.float32).reshape(-1, *self.input_shape)
        transforms, projections = self._sizes
        rows = in_equal_blocks(self.coefficients, inputs, transforms)
        if self.projections:
            matrix, mean = self._projection
            rows = in_equal_blocks(lambda part: part @ matrix, rows, projections) - mean
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
        rows /= np.maximum(norms, np.finfo(np.float32).tiny)[:, np.newaxis].astype(np.float32)
        return rows

    def coefficients(self, inputs: Any) -> Any:
        """Return the normalised coefficients of inputs between 0 and 1."""
        if len(self.input_shape) < 3:
            return self._normalise(self._wavelets.scatter(inputs))
        colours = [self._wavelets.scatter(inputs[..., index]) for index in range(inputs.shape[-1])]
        return np.concatenate([self._normalise(each) for each in colours], axis=1)

    def _normalise(self, coefficients: Single) -> Single:
        """Return (n, coefficients): each group of a row has mean 0 and deviation 1 over the root of its order's size.

        So averages, first and second order have the same share of a row's norm, whatever their number of channels.
        """
        parts, start = [], 0
        for size, order_size in self._wavelets.groups:
            part = coefficients[:, start : start + size].reshape(len(coefficients), -1)
            part = part - part.mean(axis=1, keepdims=True)
            deviation = np.sqrt(np.einsum("ij,ij->i", part, part) / np.float32(part.shape[1]))
            divisor = (deviation + np.float32(MIN_DEVIATION)) * np.float32(math.sqrt(order_size))
            parts.append(part / divisor[:, np.newaxis])
            start += size
        return np.concatenate(parts, axis=1)


@lru_cache(maxsize=4)
@one_blas_thread()
def _whitened_projection(features: ScatteringFeatures) -> tuple[Single, Single]:
    """Return the random matrix times C^(-1/4), and the mean times it: C is the covariance of drawings' projections.

    Noise of a given variance matters least in features whose variances are roots of what they were: of all matrices S,
    the trace of S times the mean of <x, S^-1 x> is smallest at S = C^(1/2).
    """
    matrix = features.random_matrix()
    size = math.prod(features.input_shape)
    count = min(max(DRAWN_NUMBERS // size, MIN_DRAWINGS), MAX_DRAWINGS)
    drawings = _drawings(features.input_shape, features.seed + 1, count)
    parts = [features.coefficients(drawings[part]) @ matrix for part in blocks(len(drawings), CHUNKS[0])]
    rows = np.concatenate(parts).astype(np.float64)
    mean = rows.mean(axis=0)
    variances, directions = np.linalg.eigh((rows - mean).T @ (rows - mean))
    root = (directions * np.maximum(variances / variances[-1], MIN_VARIANCE) ** -0.25) @ directions.T
    return (matrix @ root).astype(np.float32), (mean @ root).astype(np.float32)


def _drawings(shape: tuple[int, ...], seed: int, count: int) -> Single:
    """Return public images of random lines, between 0 and 1: bright where a smooth random field is near 0."""
    sides, colours = shape[:2], math.prod(shape[2:])
    noise = gaussian_matrix(count * colours, math.prod(sides), seed).reshape(count, colours, *sides)
    axes = tuple(range(2, noise.ndim))
    frequencies = np.linalg.norm(np.meshgrid(*map(np.fft.fftfreq, sides), indexing="ij"), axis=0)
    frequencies.flat[0] = math.inf  # the mean of a field is 0
    fields = np.real(np.fft.ifftn(np.fft.fftn(noise, axes=axes) * frequencies**-SMOOTHNESS, axes=axes))
    fields /= fields.std(axis=axes, keepdims=True)
    lines = np.clip(1.5 - 4.0 * np.abs(fields), 0.0, 1.0)
    return np.moveaxis(lines, 1, -1).reshape(count, *shape).astype(np.float32)


def _default_octaves(sides: tuple[int, ...]) -> int:
    positions = OUTPUT_SIDE if len(sides) == 2 else 2 * OUTPUT_SIDE + 2
    return max(1, round(math.log2(min(sides) / positions)))


def _check_shape(shape: Any) -> tuple[int, ...]:
    sides = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    if len(sides) not in (1, 2, 3):
        raise InvalidParameter(
            "input_shape must be (height, width), (height, width, channels) or (length,), such as (28, 28)"
        )
    return tuple(whole_number("input_shape", side, 8 if index < 2 else 1) for index, side in enumerate(sides))


def _check_bounds(bounds: Any) -> tuple[float, float]:
    pair = tuple(bounds) if isinstance(bounds, list | tuple) else ()
    if len(pair) != 2 or not all(isinstance(end, int | float) for end in pair):
        raise InvalidParameter(f"value_bounds must be two numbers, such as (0, 255), not {preview(bounds)}")
    lower, upper = float(pair[0]), float(pair[1])
    if not (lower < upper and math.isfinite(upper - lower)):
        raise InvalidParameter("value_bounds must be finite, the lower number first")
    return lower, upper
