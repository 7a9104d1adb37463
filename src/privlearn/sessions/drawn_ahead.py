"""Noise for the next answers, drawn together: a call of the exact sampler takes ten times as long as a draw."""

from __future__ import annotations

import time

import numpy as np

from privlearn.randomness import GaussianIntegers, Integers

AHEAD = 64
LONGEST = 1.0  # seconds


class DrawnAhead:
    """Independent Gaussian integers of another source, each given once.

    PRIVATE: what is kept will be noise. It dies with its process, and a fork of the process must not use it
    (`SharedState.check_open` refuses there). A machine that is copied while it runs copies it too: so it is kept for a
    second at most, and `forget` it when another process has answered.
    """

    def __init__(self, source: GaussianIntegers) -> None:
        self._source = source
        self._kept: dict[float, Integers] = {}
        self._drawn_at = time.monotonic()

    def forget(self) -> None:
        """Draw anew from here on."""
        self._kept.clear()
        self._drawn_at = time.monotonic()

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        if time.monotonic() - self._drawn_at > LONGEST:
            self.forget()
        kept = self._kept.get(scale, np.empty(0, dtype=np.int64))
        if len(kept) < size:
            kept = np.concatenate([kept, self._source.discrete_gaussian(scale, max(size, AHEAD))])
        self._kept[scale] = kept[size:]
        return kept[:size]
