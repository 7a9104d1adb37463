"""Masks that cancel in the sum, shares of their secrets (Shamir), and the boxes in which shares travel."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from privlearn.errors import InvalidParameter, ProtocolError
from privlearn.multiparty.secure_sum.noise_share import Words
from privlearn.multiparty.secure_sum.session import SumSession, agree, derive_key

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
    secret = _value_at(shares, 0)
    if secret >= 2 ** (8 * SECRET_BYTES):
        raise ProtocolError("shares do not belong together")
    return secret.to_bytes(SECRET_BYTES)


def share_at(shares: Mapping[int, bytes], point: int) -> bytes:
    """The share at another point that belongs to exactly ``threshold`` shares."""
    return _value_at(shares, point).to_bytes(SHARE_BYTES)


def _value_at(shares: Mapping[int, bytes], point: int) -> int:
    weights = _weights_at(point, tuple(shares))
    return sum(weights[other] * _number(share) for other, share in shares.items()) % PRIME


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
def _weights_at(place: int, points: tuple[int, ...]) -> dict[int, int]:
    """Lagrange: the polynomial's value at the place is the sum of these times its values at the points."""
    weights = {}
    for point in points:
        numerator = denominator = 1
        for other in points:
            if other != point:
                numerator = numerator * (other - place) % PRIME
                denominator = denominator * (other - point) % PRIME
        weights[point] = numerator * pow(denominator, -1, PRIME) % PRIME
    return weights


TAG_BYTES = 16
_NONCE = bytes(12)


class ShareBox:
    """The box in which one party sends shares to another: encrypted, and authentic.

    Its key is bound to session, sender and receiver, and locks one content: a nonce is never used twice.
    """

    def __init__(
        self, private: X25519PrivateKey, public: bytes, session: SumSession, sender: int, receiver: int
    ) -> None:
        self._sender = sender
        key = derive_key(agree(private, public), session, "share box", sender, receiver)
        self._cipher = ChaCha20Poly1305(key)

    def lock(self, content: bytes) -> bytes:
        return self._cipher.encrypt(_NONCE, content, None)

    def unlock(self, box: bytes) -> bytes:
        """What the sender locked in; refused if anyone touched it."""
        try:
            return self._cipher.decrypt(_NONCE, box, None)
        except InvalidTag:
            raise ProtocolError(
                f"the shares of party {self._sender} were changed on their way, or meant for another"
            ) from None


WORD_BYTES = 8


def self_mask(secret: bytes, session: SumSession, round: int, party: int) -> Words:
    """The mask of a party's own, opened once its vector has arrived in time."""
    return _stream(derive_key(secret, session, "self mask", round, party), session.dimension)


def pair_masks(
    secret: bytes, publics: Mapping[int, bytes], session: SumSession, round: int, party: int
) -> Words:
    """The sum of a party's masks with others: what it adds with one of a higher number, that one subtracts."""
    total = np.zeros(session.dimension, dtype=np.uint64)
    private = X25519PrivateKey.from_private_bytes(secret)
    for other, public in publics.items():
        low, high = min(party, other), max(party, other)
        mask = _stream(
            derive_key(agree(private, public), session, "pair mask", round, low, high), session.dimension
        )
        total = total + mask if party == low else total - mask
    return total


def _stream(key: bytes, dimension: int) -> Words:
    nonce = bytes(16)  # every key is derived for one round and one mask: it never sees a second nonce
    stream = Cipher(ChaCha20(key, nonce), mode=None).encryptor().update(bytes(dimension * WORD_BYTES))
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64)
