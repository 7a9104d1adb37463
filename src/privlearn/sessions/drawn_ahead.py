"""Noise for the next answers, drawn together: a call of the exact sampler takes ten times as long as a draw."""

from __future__ import annotations

import numpy as np

from privlearn.randomness import GaussianIntegers, Integers

AHEAD = 64


class DrawnAhead:
    """Independent Gaussian integers of another source, each given once.

    PRIVATE: what is kept will be noise. It dies with its process, and a fork of the process must not use it
    (`SharedState.check_open` refuses there).
    """

    def __init__(self, source: GaussianIntegers) -> None:
        self._source = source
        self._kept: dict[float, Integers] = {}

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        kept = self._kept.get(scale, np.empty(0, dtype=np.int64))
        if len(kept) < size:
            kept = np.concatenate([kept, self._source.discrete_gaussian(scale, max(size, AHEAD))])
        self._kept[scale] = kept[size:]
        return kept[:size]
