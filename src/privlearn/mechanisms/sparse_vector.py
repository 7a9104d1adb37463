"""The sparse vector technique: many tests for the price of one, as long as the answer is "below"."""

from __future__ import annotations

from dataclasses import dataclass

from privlearn.mechanisms.noise import GRID_BITS, grid_step
from privlearn.randomness import Randomness


@dataclass(frozen=True)
class AboveThreshold:
    """The sparse vector technique for one update: noise on the threshold once, on every distance anew.

    **Theorem** (Dwork and Roth 2014, Theorem 3.23). If one person moves each distance by at most S, all answers up to
    and including the first "above" are together epsilon-private, with Laplace noise of scale 2 S / epsilon on the
    threshold and 4 S / epsilon on each distance, however many there are and however they are chosen.

    Both sides are integers, multiples of one grid step; a rounded distance moves by at most S plus one step.
    """

    sensitivity: float
    epsilon: float
    threshold: float

    @property
    def _scale(self) -> float:
        # grid_step(scale) is at most scale 2^-44: with this scale, 2 (S + step) / scale is at most epsilon
        return 2.0 * self.sensitivity / (self.epsilon - 2.0 * 2.0**-GRID_BITS)

    def draw_threshold(self, randomness: Randomness) -> int:
        """The noisy threshold in grid steps; keep it secret and use it until the first "above"."""
        step = grid_step(self._scale)
        return round(self.threshold / step) + int(randomness.discrete_laplace(self._scale / step, 1)[0])

    def is_above(self, distance: float, noisy_threshold: int, randomness: Randomness) -> bool:
        step = grid_step(self._scale)
        noise = int(randomness.discrete_laplace(2.0 * self._scale / step, 1)[0])
        return round(distance / step) + noise >= noisy_threshold
