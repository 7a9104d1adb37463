"""The masks of Bonawitz et al. 2017: uniform words, of which the pairwise ones cancel in the sum.

A mask is the ChaCha20 key stream of a 256-bit key used for nothing else, read as words modulo 2**64.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from privlearn.multiparty.agreement import agree, derive_key
from privlearn.multiparty.fixed_point import Words
from privlearn.multiparty.sum_session import SumSession

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
