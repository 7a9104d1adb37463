"""A digest as pronounceable words that people can compare over the telephone."""

from __future__ import annotations

_CONSONANTS = "bdfghjklmnprstvz"
_VOWELS = "aiou"
WORDS = 12
"""Words in a fingerprint, of 16 bits each: 192 bits, so two plans with one fingerprint take 2^96 tries to find."""


def in_words(digest: str) -> str:
    """Return the first 192 bits of a hexadecimal digest as pronounceable words (proquints, Wilkerson 2009).

    Examples
    --------
    >>> in_words("7f000001" + 40 * "0")
    'lusab babad babab babab babab babab babab babab babab babab babab babab'
    """
    raw = bytes.fromhex(digest)[: 2 * WORDS]
    if len(raw) < 2 * WORDS:
        raise ValueError("a fingerprint needs a digest of at least 192 bits")
    return " ".join(_word(int.from_bytes(raw[start : start + 2])) for start in range(0, len(raw), 2))


def _word(number: int) -> str:
    """Return consonant, vowel, consonant, vowel, consonant: 4 + 2 + 4 + 2 + 4 bits."""
    letters = ""
    for alphabet, shift in zip((_CONSONANTS, _VOWELS) * 2 + (_CONSONANTS,), (12, 10, 6, 4, 0), strict=True):
        letters += alphabet[number >> shift & len(alphabet) - 1]
    return letters
