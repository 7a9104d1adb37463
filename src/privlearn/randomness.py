"""Where all random bits come from.

Noise that protects people comes from the operating system's secure bits, through OpenDP's exact samplers on the
integers. A seeded source exists for tests and experiments only; what it released says "not private".
"""

from __future__ import annotations

import numbers
import secrets
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from opendp.mod import Measurement

Integers = NDArray[np.int64]


class GaussianIntegers(Protocol):
    """A source of Gaussian integers, which is all that a session's path needs."""

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        """Independent draws with probability proportional to exp(-k^2 / (2 scale^2)) on the integers."""


class Randomness(GaussianIntegers, Protocol):
    """A source of random integers; everything else is built on these in `mechanisms.noise` and `.selection`."""

    description: str
    secure: bool

    def discrete_laplace(self, scale: float, size: int) -> Integers:
        """Independent draws with probability proportional to exp(-|k| / scale) on the integers."""

    def bits(self, count: int) -> int:
        """A uniform draw from the integers 0 to 2**count - 1."""


class SecureRandomness:
    """The operating system's secure bits through OpenDP's exact samplers: no rounding, no truncation."""

    description = "operating system's secure bits, OpenDP exact discrete samplers"
    secure = True

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        return _draw(_gaussian(scale), size)

    def discrete_laplace(self, scale: float, size: int) -> Integers:
        return _draw(_laplace(scale), size)

    def bits(self, count: int) -> int:
        return secrets.randbits(count)


class SeededRandomness:
    """A replayable generator for tests and experiments. Whoever knows the seed can subtract the noise."""

    description = "seeded generator: not private, for tests and experiments only"
    secure = False

    def __init__(self, seed: int | np.random.Generator) -> None:
        self._generator = np.random.default_rng(seed)

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        # Rounded continuous draws: indistinguishable from the exact law at the scales we use (at least 2**39).
        return np.rint(self._generator.normal(0.0, scale, size)).astype(np.int64)

    def discrete_laplace(self, scale: float, size: int) -> Integers:
        return np.rint(self._generator.laplace(0.0, scale, size)).astype(np.int64)

    def bits(self, count: int) -> int:
        whole_bytes = -(-count // 8)
        return int.from_bytes(self._generator.bytes(whole_bytes), "big") >> (8 * whole_bytes - count)


def randomness_from(random_state: int | np.random.Generator | np.random.RandomState | None) -> Randomness:
    """Secure bits for ``None``; a seeded, not private source for an integer or a numpy generator."""
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


# OpenDP is read when noise is drawn: whoever predicts or verifies needs none of its 265 MB. These parts, not
# opendp.prelude: that imports polars and scikit-learn, two seconds more.
# Kept, because a session draws at the same few scales for each point, and making one takes as long as drawing.
@lru_cache(maxsize=16)
def _gaussian(scale: float) -> Measurement:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T=float), scale=scale)


@lru_cache(maxsize=16)
def _laplace(scale: float) -> Measurement:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T=float), scale=scale)


def _draw(measurement: Measurement, size: int) -> Integers:
    return np.array(measurement([0] * size), dtype=np.int64)
