"""`TextFeatures`: hashed word and character n-grams of a text, each text by itself."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from privlearn.errors import DataError
from privlearn.features.feature_map import whole_number
from privlearn.features.public_map import PublicMap, register_feature_map

_WORD = re.compile(r"\w+")


@register_feature_map
class TextFeatures(PublicMap):
    """Square roots of the numbers of n-grams, hashed with signs to ``dimension`` features, divided by their norm.

    Parameters
    ----------
    dimension : int, default=4096
    words : int, default=2
        Longest sequence of words.
    characters : int, default=5
        Longest sequence of characters within a word, from 3; 0 for none.

    Examples
    --------
    >>> TextFeatures(dimension=64).transform(["to be or not to be", ""]).shape
    (2, 64)
    """

    name = "text"
    settings = ("dimension", "words", "characters")
    input_shape = ()

    def __init__(self, dimension: int = 4096, words: int = 2, characters: int = 5) -> None:
        self.dimension = whole_number("dimension", dimension, 2)
        self.words = whole_number("words", words, 1)
        self.characters = whole_number("characters", characters, 0)

    def read(self, X: Any) -> Any:
        """Return a list of texts as an array of objects; a missing text is empty."""
        texts = [X] if isinstance(X, str) else list(X)
        if not all(isinstance(text, str) or text is None for text in texts):
            raise DataError("features='text' reads a list of texts. Convert X to text.")
        return np.array(["" if text is None else text for text in texts] + [None], dtype=object)[:-1]

    def _fill(self, X: Any, out: Any) -> None:
        out[:] = 0.0
        for row, text in zip(out, X, strict=True):
            vector = np.zeros(self.dimension)
            for gram, count in Counter(self._grams(text)).items():
                digest = int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest(), "little")
                vector[(digest >> 1) % self.dimension] += np.sqrt(count) * (1.0 if digest & 1 else -1.0)
            row[:] = vector / max(float(np.sqrt(vector @ vector)), 1.0)

    def _grams(self, text: str) -> Iterator[str]:
        words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
        for length in range(1, self.words + 1):
            for start in range(len(words) - length + 1):
                yield "w " + " ".join(words[start : start + length])
        for word in words:
            framed = f"<{word}>"
            for length in range(3, self.characters + 1):
                for start in range(len(framed) - length + 1):
                    yield "c " + framed[start : start + length]
