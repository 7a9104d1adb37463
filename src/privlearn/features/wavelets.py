"""Morlet wavelets on a grid of one or two dimensions, and the moduli of their transforms, averaged.

Filters follow Bruna and Mallat (2013): width 0.8 * 2^j, centre frequency (3 pi / 4) / 2^j. Transforms are products of
discrete Fourier transforms; a transform of octave j is computed at every 2^j-th position. A batch of n inputs has
shape (n, *sides); moduli have shape (n, channels, *sides).
"""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH, FREQUENCY = 0.8, 0.75 * np.pi
WRAPS = 2  # periods on either side over which a filter is summed

Single = NDArray[np.float32]


class Wavelets:
    """The filters of a scattering transform.

    Parameters
    ----------
    sides : tuple of int
        (height, width), or (length,).
    octaves : int
    directions : int
        Orientations in two dimensions, wavelets per octave in one.

    Attributes
    ----------
    channels : int
        Number of averages at each position: 1, plus first order, plus second order.
    positions : int
        Number of positions.
    groups : list of (int, int)
        Numbers of neighbouring channels of one octave and direction, each with the number of channels of its order.
    """

    def __init__(self, sides: tuple[int, ...], octaves: int, directions: int) -> None:
        self._sides, self._octaves, self._directions = sides, octaves, directions
        step = 2**octaves
        self._counts = tuple(-(-side // step) for side in sides)
        self._padded = tuple((count + 2) * step for count in self._counts)
        first = octaves * directions
        second = directions**2 * octaves * (octaves - 1) // 2
        self.channels = 1 + first + second
        self.groups = [
            (1, 1),
            *[(directions, first)] * octaves,
            *[(directions, second)] * (second // directions),
        ]
        self.positions = int(np.prod(self._counts))

    def scatter(self, inputs: Single) -> Single:
        """Return the averages of the inputs and of their moduli, of shape (n, channels, *positions)."""
        step = 2**self._octaves
        padded = np.zeros((len(inputs), 1, *self._padded), dtype=np.float32)
        inside: Any = (slice(None), 0, *(slice(step, step + side) for side in self._sides))
        padded[inside] = inputs
        averages, second = [self._average(padded, 0)], []
        spectrum = self._transform(padded)
        for octave in range(self._octaves):
            moduli = self._moduli(spectrum, 0, octave)
            averages.append(self._average(moduli, octave))
            inner = self._transform(moduli) if octave + 1 < self._octaves else None
            for later in range(octave + 1, self._octaves):
                second.append(self._average(self._moduli(inner, octave, later), later))
        return np.concatenate(averages + second, axis=1)

    @property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-len(self._sides), 0))

    def _transform(self, moduli: Single) -> Any:
        return np.fft.fftn(moduli, axes=self._axes)

    def _moduli(self, spectrum: Any, octave: int, later: int) -> Single:
        """Return |wavelet transforms| of octave ``later``; the spectrum is at every 2^octave-th position."""
        parts = []
        for wavelet in self._filters[octave, later]:
            image = spectrum * wavelet
            for axis in self._axes:
                for _ in range(later - octave):  # a spectrum folded in half has every second position
                    half = image.shape[axis] // 2
                    whole = np.moveaxis(image, axis, -1)
                    image = np.moveaxis(whole[..., :half] + whole[..., half:], -1, axis)
            parts.append(np.abs(np.fft.ifftn(image, axes=self._axes)))
        return np.concatenate(parts, axis=1)

    def _average(self, moduli: Single, octave: int) -> Single:
        """Return Gaussian averages around every 2^J-th position, as matrix products along each axis."""
        for axis, weights in zip(self._axes, self._averages[octave], strict=True):
            moduli = np.moveaxis(np.moveaxis(moduli, axis, -1) @ weights, -1, axis)
        return moduli.reshape(*moduli.shape[:2], -1)

    @cached_property
    def _averages(self) -> list[list[Single]]:
        """Return, for each octave of moduli, the weights (side, positions) of each axis."""
        return [
            [self._weights(axis, octave) for axis in range(len(self._sides))]
            for octave in range(self._octaves)
        ]

    def _weights(self, axis: int, octave: int) -> Single:
        step = 2**self._octaves
        centres = step + step * np.arange(self._counts[axis]) + (step - 1) / 2.0
        grid = np.arange(0, self._padded[axis], 2**octave)[:, np.newaxis]
        width = WIDTH * 2 ** (self._octaves - 1)
        weights = np.exp(-((grid - centres) ** 2) / (2.0 * width**2))
        return np.asarray(weights / weights.sum(axis=0), dtype=np.float32)

    @cached_property
    def _filters(self) -> dict[tuple[int, int], list[Any]]:
        """Return the filters of octave j for spectra at every 2^i-th position, i <= j, by (i, j)."""
        filters: dict[tuple[int, int], list[Any]] = {}
        for octave in range(self._octaves):
            whole = [self._filter(octave, number) for number in range(self._directions)]
            for earlier in range(octave + 1):
                # Folding of an input at every 2^i-th position repeats its spectrum; the filter keeps low frequencies.
                scale = 2.0 ** (-(octave - earlier) * len(self._sides))
                filters[earlier, octave] = [scale * _low(each, 2**earlier) for each in whole]
        return {key: [each.astype(np.float32) for each in group] for key, group in filters.items()}

    def _filter(self, octave: int, number: int) -> NDArray[np.float64]:
        """Return the Fourier transform of a wavelet, which is real, up to the sign of its position."""
        if len(self._sides) == 1:
            scale, angle, slant = 2.0 ** (octave + number / self._directions), 0.0, 1.0
        else:
            scale, angle, slant = 2.0**octave, np.pi * number / self._directions, 4.0 / self._directions
        width, frequency = WIDTH * scale, FREQUENCY / scale
        frequencies = [2.0 * np.pi * np.fft.fftfreq(side) for side in self._padded]
        gabor = _gabor(frequencies, width, frequency, angle, slant)
        envelope = _gabor(frequencies, width, 0.0, angle, slant)
        origin = (0,) * len(self._sides)
        return np.asarray(gabor - gabor[origin] / envelope[origin] * envelope)  # mean 0


def _gabor(
    frequencies: list[Any], width: float, frequency: float, angle: float, slant: float
) -> NDArray[np.float64]:
    """Return the transform of a Gaussian of a width, elongated by 1 / slant across ``angle``, at a frequency."""
    total = np.zeros(tuple(map(len, frequencies)))
    for wraps in product(range(-WRAPS, WRAPS + 1), repeat=len(frequencies)):
        shifted = [each + 2.0 * np.pi * wrap for each, wrap in zip(frequencies, wraps, strict=True)]
        grid = np.meshgrid(*shifted, indexing="ij")
        if len(grid) == 1:
            along, across = grid[0] - frequency, 0.0
        else:
            along = grid[0] * np.cos(angle) + grid[1] * np.sin(angle) - frequency
            across = (grid[1] * np.cos(angle) - grid[0] * np.sin(angle)) / slant
        total += np.exp(-0.5 * width**2 * (along**2 + across**2))
    return total


def _low(spectrum: NDArray[np.float64], fold: int) -> NDArray[np.float64]:
    """Return the spectrum of every ``fold``-th position of a filter."""
    for axis in range(spectrum.ndim):
        if fold > 1:
            before, after = spectrum.shape[:axis], spectrum.shape[axis + 1 :]
            spectrum = spectrum.reshape(*before, fold, -1, *after).sum(axis=axis)
    return spectrum
