"""Provide all random bits, and exact draws of integers from them.

Noise that protects people is computed from bits that the operating system returns for that very draw (`os.urandom`).
There is no generator, buffer or other state in the process, so a copy of it (a fork, a restored snapshot of a machine,
a checkpointed container) draws different noise. A seeded source exists for tests and experiments only; a release made
with it is marked "not private".

**Theorem** (docs/theory/noise.md). If the 64-bit words are independent and uniform, then `sample` returns independent
integers with P(k) proportional to exp(-f(|k|)): f(m) = m^2 / (2 scale^2) for `gaussian`, f(m) = m / scale for
`laplace`. Nothing is truncated or rounded. A candidate is a block j (probability 2^-(j+1)), a position in the block
(uniform) and a sign; it is accepted with probability exp(-f(m) + j log 2 - offset) <= 1. A uniform real U decides that:
53 of its bits are compared with a double whose relative error is below `MARGIN`. If these bits do not decide (once in
2^35 candidates), more bits of the same U are compared with a ball that contains the true probability.

Exactness costs no range either: j has no upper end. Where the first word does not determine it (once in
2^(64 - block_bits) candidates, 2^19 at the scales of releases), the candidate is handled in Python integers.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, preview
from privlearn.imports import flint

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
WordSource = Callable[[int], Words]

MIN_SCALE = 2.0**-40
MAX_SCALE = 2.0**55
"""Up to this scale blocks have at most 2^56 integers, so that the fast path's candidates fit into 64 bits."""

MARGIN = 2.0**-36
"""Bound on the relative error of a computed acceptance probability; the proven bound is 2^-39."""

_WORD_BITS = 64
_FAST_BITS = 53  # of U, which a double holds
_CANDIDATES = 1 << 14  # at a time: the arrays stay in the processor's cache
_MAX_EXPONENT = 40.0  # exp(-40) < 2^-53: no fast acceptance beyond it
_HALVINGS = 8
_COEFFICIENTS = [1.0 / math.factorial(order) for order in range(10, -1, -1)]


class GaussianIntegers(Protocol):
    """A source of Gaussian integers, which is all that a session's path needs."""

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        """Return independent draws with probability proportional to exp(-k^2 / (2 scale^2)) on the integers."""


class Randomness(GaussianIntegers, Protocol):
    """A source of random integers; everything else is built on these in `mechanisms.noise` and `.selection`."""

    description: str
    secure: bool

    def discrete_laplace(self, scale: float, size: int) -> Integers:
        """Return independent draws with probability proportional to exp(-|k| / scale) on the integers."""

    def bits(self, count: int) -> int:
        """Return a uniform draw from the integers 0 to 2**count - 1."""


class SecureRandomness:
    """Draw from the operating system's secure bits, with exact samplers: no rounding, no truncation."""

    description = "operating system's secure bits for every draw, exact discrete samplers"
    secure = True

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        return sample(gaussian(scale), size, system_words)

    def discrete_laplace(self, scale: float, size: int) -> Integers:
        return sample(laplace(scale), size, system_words)

    def bits(self, count: int) -> int:
        whole_bytes = -(-count // 8)
        return int.from_bytes(os.urandom(whole_bytes), "big") >> (8 * whole_bytes - count)


SECURE_DESCRIPTIONS = (SecureRandomness.description,)
"""Descriptions of the secure sources, as certificates state them."""


def system_words(count: int) -> Words:
    """Return uniform 64-bit words, requested from the operating system now."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededRandomness:
    """A replayable generator for tests and experiments: with the seed, anyone can subtract the noise."""

    description = "seeded generator: not private, for tests and experiments only"
    secure = False

    def __init__(self, seed: int | np.random.Generator) -> None:
        self._generator = np.random.default_rng(seed)

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        # Rounded continuous draws: indistinguishable from exact draws at the scales we use (at least 2**39).
        return np.rint(self._generator.normal(0.0, scale, size)).astype(np.int64)

    def discrete_laplace(self, scale: float, size: int) -> Integers:
        return np.rint(self._generator.laplace(0.0, scale, size)).astype(np.int64)

    def bits(self, count: int) -> int:
        whole_bytes = -(-count // 8)
        return int.from_bytes(self._generator.bytes(whole_bytes), "big") >> (8 * whole_bytes - count)


def randomness_from(random_state: int | np.random.Generator | np.random.RandomState | None) -> Randomness:
    """Return secure bits for ``None``; a seeded, not private source for an integer or a numpy generator."""
    if random_state is None:
        return SecureRandomness()
    if isinstance(random_state, np.random.RandomState):
        return SeededRandomness(int(random_state.randint(2**31)))
    if isinstance(random_state, np.random.Generator):
        return SeededRandomness(random_state)
    if isinstance(random_state, numbers.Integral) and random_state >= 0:
        return SeededRandomness(int(random_state))
    raise InvalidParameter(
        "random_state must be None (secure, private) or, for tests, a non-negative integer or a numpy generator"
    )


@dataclass(frozen=True)
class Distribution:
    """A distribution exp(-f) on the integers and its proposal: blocks of 2^block_bits, j-th block 2^-(j+1)."""

    scale: float
    power: int
    block_bits: int
    offset: float

    def exponent(self, magnitude: Array, block: Array) -> Array:
        """Return f(m) - j log 2 + offset, with an error below 2^-43 where the result is at most 40 and j at most 63."""
        ratio = magnitude / self.scale
        energy = ratio if self.power == 1 else 0.5 * ratio * ratio
        return np.asarray(energy - block * math.log(2.0) + self.offset)

    def exact_exponent(self, magnitude: int, block: int) -> flint.arb:
        """Return a ball that contains f(m) - j log 2 + offset, at flint's present precision."""
        ratio = flint.arb(magnitude) / self.scale
        energy = ratio if self.power == 1 else ratio * ratio / 2
        return energy - block * flint.arb.const_log2() + self.offset


def gaussian(scale: float) -> Distribution:
    """Return the discrete Gaussian: probabilities proportional to exp(-k^2 / (2 scale^2))."""
    scale = _check_scale(scale)
    bits = _block_bits(0.6 * scale)
    ratio = (math.ldexp(1.0, bits) / scale) ** 2  # at least 0.36, so there is no maximum at j >= 4
    highest = max(j * math.log(2.0) - j * j * ratio / 2.0 for j in range(4))
    return Distribution(scale, 2, bits, highest + 2.0**-40)


def laplace(scale: float) -> Distribution:
    """Return the discrete Laplace distribution: probabilities proportional to exp(-|k| / scale)."""
    scale = _check_scale(scale)
    return Distribution(scale, 1, _block_bits(0.7 * scale), 0.0)  # 0.7 > log 2


def sample(distribution: Distribution, size: int, words: WordSource) -> Integers:
    """Return ``size`` independent draws.

    A draw beyond 63 bits makes the result an array of Python integers: still exact. Its probability is below exp(-2^8)
    for `laplace` at the largest scale, and far smaller elsewhere.
    """
    parts = [np.empty(0, dtype=np.int64)]
    missing = size
    while missing > 0:
        # 2.2 candidates are enough for one draw on average; those accepted beyond `size` are thrown away.
        parts.append(_draw_accepted(distribution, min(_CANDIDATES, int(2.2 * missing) + 8), words)[:missing])
        missing -= len(parts[-1])
    return np.concatenate(parts)


def exp_minus(exponent: Array) -> Array:
    """Return exp(-x) for 0 <= x <= 40, with a relative error below 2^-40.

    Only additions and multiplications, which IEEE 754 rounds correctly: the bound needs no trust in a library's exp.
    """
    reduced = exponent * -(2.0**-_HALVINGS)
    value = np.full_like(reduced, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        value *= reduced
        value += coefficient
    for _ in range(_HALVINGS):
        value *= value
    return value


def _draw_accepted(distribution: Distribution, count: int, words: WordSource) -> Integers:
    """Return the accepted ones of ``count`` candidates, in their order: truncating the result introduces no bias."""
    position, decision = words(2 * count).reshape(2, count)
    zeros = position >> np.uint64(distribution.block_bits)
    block = np.bitwise_count(~zeros & (zeros - np.uint64(1))).astype(np.int64)  # trailing zeros
    inside = position & np.uint64((1 << distribution.block_bits) - 1)
    magnitude = (block << distribution.block_bits) + inside.astype(np.int64)
    negative = (decision & np.uint64(1)).astype(bool)
    uniform = (decision >> np.uint64(_WORD_BITS - _FAST_BITS)).astype(np.float64)

    exponent = distribution.exponent(magnitude.astype(np.float64), block.astype(np.float64))
    threshold = exp_minus(np.minimum(exponent, _MAX_EXPONENT)) * 2.0**_FAST_BITS
    known = zeros != 0  # the block is known
    twice = negative & (magnitude == 0)  # zero would be drawn with either sign
    accept = (uniform + 1.0 <= threshold * (1.0 - MARGIN)) & known & ~twice
    reject = (uniform >= threshold * (1.0 + MARGIN)) & known | twice

    values = np.where(negative, -magnitude, magnitude)
    for index in np.flatnonzero(~(accept | reject)):
        exact = _exact_magnitude(distribution, int(position[index]), words)
        accept[index] = _accepts(distribution, *exact, int(uniform[index]), words)
        signed = -exact[0] if negative[index] else exact[0]
        if abs(signed) >= 2**63:
            values = values.astype(object)
        values[index] = signed
    accepted: Integers = values[accept]
    return accepted


def _exact_magnitude(distribution: Distribution, position: int, words: WordSource) -> tuple[int, int]:
    """Return m and j, as Python integers; draw more bits of j while all are zero."""
    bits = distribution.block_bits
    zeros, block = position >> bits, 0
    width = _WORD_BITS - bits
    while not zeros:
        block += width
        zeros, width = int(words(1)[0]), _WORD_BITS
    block += (zeros & -zeros).bit_length() - 1
    return (block << bits) + (position & ((1 << bits) - 1)), block


def _accepts(distribution: Distribution, magnitude: int, block: int, digits: int, words: WordSource) -> bool:
    """Return whether U, which begins with these binary digits, is below the acceptance probability."""
    bits = _FAST_BITS
    while True:
        # Another thread may set the precision meanwhile: balls are larger then, or smaller, but contain the truth.
        with flint.ctx.workprec(bits + 2 * _WORD_BITS):
            probability = (-distribution.exact_exponent(magnitude, block)).exp()
            if flint.arb((digits + 1, -bits)) <= probability:
                return True
            if flint.arb((digits, -bits)) >= probability:
                return False
        digits, bits = digits << _WORD_BITS | int(words(1)[0]), bits + _WORD_BITS


def _block_bits(lower: float) -> int:
    """Return the exponent of the smallest power of two that is an integer and at least ``lower``."""
    mantissa, exponent = math.frexp(lower)
    return max(0, exponent - (mantissa == 0.5))


def _check_scale(scale: float) -> float:
    """Return the scale in double precision; refuse one outside of the proven range."""
    scale = float(scale)  # numpy's single precision would compute the offset below in it
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise InvalidParameter(
            f"the scale of integer noise must be between {MIN_SCALE:g} and {MAX_SCALE:g}, not {preview(scale)}"
        )
    return scale
