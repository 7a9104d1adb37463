"""Shamir 1979: a secret in shares of which ``threshold`` open it, and fewer say nothing at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from functools import lru_cache

from privlearn.errors import InvalidParameter, ProtocolError

PRIME = 2**256 + 297
"""The smallest prime above all secrets of 32 bytes."""

SECRET_BYTES = 32
SHARE_BYTES = 33


def split(secret: bytes, threshold: int, points: Iterable[int]) -> dict[int, bytes]:
    """A share for every point: the values there of a random polynomial that is the secret at zero."""
    points = list(points)
    if len(secret) != SECRET_BYTES:
        raise InvalidParameter(f"a secret to share has {SECRET_BYTES} bytes")
    if not 1 <= threshold <= len(points) or len(set(points)) < len(points) or min(points) < 1:
        raise InvalidParameter("shares need distinct points above 0, at least as many as the threshold")
    coefficients = [secrets.randbelow(PRIME) for _ in range(threshold - 1)]
    return {point: _value(coefficients, int.from_bytes(secret), point) for point in points}


def recover(shares: Mapping[int, bytes]) -> bytes:
    """The secret of exactly ``threshold`` shares, by point. From wrong shares: refused, or some other bytes."""
    weights = _weights_at_zero(tuple(shares))
    secret = sum(weights[point] * _number(share) for point, share in shares.items()) % PRIME
    if secret >= 2 ** (8 * SECRET_BYTES):
        raise ProtocolError("shares do not belong together")
    return secret.to_bytes(SECRET_BYTES)


def _value(coefficients: list[int], constant: int, point: int) -> bytes:
    value = 0
    for coefficient in coefficients:
        value = (value + coefficient) * point % PRIME
    return ((value + constant) % PRIME).to_bytes(SHARE_BYTES)


def _number(share: bytes) -> int:
    number = int.from_bytes(share)
    if len(share) != SHARE_BYTES or number >= PRIME:
        raise ProtocolError(f"a share is a number below the prime in {SHARE_BYTES} bytes")
    return number


@lru_cache(maxsize=64)
def _weights_at_zero(points: tuple[int, ...]) -> dict[int, int]:
    """Lagrange: the value at zero is the sum of these times the values at the points."""
    weights = {}
    for point in points:
        numerator = denominator = 1
        for other in points:
            if other != point:
                numerator = numerator * other % PRIME
                denominator = denominator * (other - point) % PRIME
        weights[point] = numerator * pow(denominator, -1, PRIME) % PRIME
    return weights
