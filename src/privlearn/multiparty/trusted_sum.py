"""The sum of all parties in one process, for simulations and tests: whoever runs it sees every party's rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privlearn.mechanisms.noise import ADD_NOISE
from privlearn.mechanisms.summed import Noise, NoisySum, Question, SummedMechanism
from privlearn.multiparty.party import Party
from privlearn.randomness import Randomness

Array = NDArray[np.float64]


class TrustedSum:
    """Adds the parties' answers and as much noise as a secure sum holds when nobody is missing.

    That is K shares where ``mechanism.shares`` of them keep the promise.
    """

    def __init__(self, mechanism: SummedMechanism, parties: Sequence[Party], randomness: Randomness) -> None:
        self._surplus = mechanism.surplus
        self._parties = tuple(parties)
        self._randomness = randomness
        self._kept: dict[Noise, Array] = {}

    def __call__(self, question: Question) -> NoisySum:
        vector = np.sum([party.answer(question) for party in self._parties], axis=0)
        for noise in question.noise:
            vector = self._with_noise(vector, noise)
        return NoisySum(vector, sum(party.total for party in self._parties), len(self._parties))

    def _with_noise(self, vector: Array, noise: Noise) -> Array:
        if noise.kept:
            if noise not in self._kept:
                self._kept[noise] = self._drawn(np.zeros_like(vector), noise)
            return np.asarray(vector + self._kept[noise])
        for _ in range(len(self._parties) if noise.by_each else 1):
            vector = self._drawn(vector, noise)
        return vector

    def _drawn(self, vector: Array, noise: Noise) -> Array:
        scale = noise.scale * (self._surplus if noise.law == "gaussian" else 1.0)
        return ADD_NOISE[noise.law](vector, scale, self._randomness)
