"""One party's noise over a whole run: fresh noise for each question, or noise that is drawn once for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privlearn.arrays import Array
from privlearn.mechanisms.summed.summed import Question
from privlearn.parties.run.agreement import Agreement
from privlearn.parties.secure_sum.noise_share import Words
from privlearn.randomness import Randomness, SecureRandomness


class NoisyAnswers:
    """PRIVATE: adds a party's noise to its exact answers. Without ``randomness`` it draws secure bits."""

    def __init__(self, agreement: Agreement, randomness: Randomness | None = None) -> None:
        self._agreement = agreement
        self._randomness = SecureRandomness() if randomness is None else randomness
        self._stored_share: Words | None = None

    def check(self, question: Question, values: Array) -> Array:
        """Return the exact answer; refuse one that is not within the question's bound."""
        self._agreement.encoding(question).check(values)
        return values

    def noisy_words(self, question: Question, values: Array) -> Words:
        """Return the noisy answer as integers, which may leave under masks."""
        noise = self._agreement.party_noise(question)
        share = self._stored_share if noise.keeps_share else None
        if share is None:
            share = noise.draw_share(question.length, self._randomness)
        if noise.keeps_share:
            self._stored_share = share
        return noise.add_whole(values, self._agreement.encoding(question), self._randomness) + share

    def stored_noise(self) -> list[int] | None:
        """Return the noise that was drawn once, for another process of this party that resumes the run."""
        return None if self._stored_share is None else self._stored_share.tolist()

    def resume(self, stored: Sequence[int] | None) -> None:
        """Continue with the noise that another process of this party drew."""
        self._stored_share = None if stored is None else np.array(stored, dtype=np.uint64)
