"""Mask keys against the standards, computed anew: no bit of them is lost (a published framework keeps 32)."""

from __future__ import annotations

import hashlib
import hmac
import struct

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from privlearn.parties import Cohort
from privlearn.parties.secure_sum import generate_key, pair_masks, public_half, self_mask
from tests.support.masking_steps import Steps

SESSION = Steps(Cohort(3), dimension=50, rounds=9).session


def _hkdf_sha256(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """RFC 5869 for one block of output."""
    pseudorandom_key = hmac.digest(salt, secret, hashlib.sha256)
    return hmac.digest(pseudorandom_key, info + b"\x01", hashlib.sha256)


def _stream(secret: bytes, purpose: bytes, *numbers: int, question: bytes = b"") -> np.ndarray:
    info = b"privlearn secure sum: " + purpose + b"".join(struct.pack(">Q", number) for number in numbers)
    key = _hkdf_sha256(secret, SESSION.digest, info + hashlib.sha256(question).digest())
    words = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(8 * SESSION.dimension))
    return np.frombuffer(words, "<u8")


def test_masks_are_the_streams_of_whole_keys() -> None:
    mine, theirs = generate_key(), generate_key()
    numbers = [int.from_bytes(key) for key in (mine, theirs)]
    keys = [ec.derive_private_key(number, ec.SECP256R1()) for number in numbers]
    shared = keys[0].exchange(ec.ECDH(), keys[1].public_key())
    public = public_half(theirs)
    for question in (b"", b"w"):
        mask = _stream(shared, b"pair mask", 7, 0, 2, question=question)
        np.testing.assert_array_equal(pair_masks(mine, {2: public}, SESSION, 7, 0, question), mask)
        np.testing.assert_array_equal(
            pair_masks(mine, {0: public}, SESSION, 7, 2, question), np.uint64(0) - mask
        )
    np.testing.assert_array_equal(self_mask(shared, SESSION, 7, 1), _stream(shared, b"self mask", 7, 1))


def test_every_bit_of_a_secret_changes_its_mask() -> None:
    secret = bytes(range(32))
    masks = {self_mask(secret, SESSION, 0, 0).tobytes()}
    for place in range(256):
        changed = bytearray(secret)
        changed[place // 8] ^= 1 << place % 8
        masks.add(self_mask(bytes(changed), SESSION, 0, 0).tobytes())
    assert len(masks) == 257


def test_masks_of_other_sessions_rounds_and_parties_differ() -> None:
    secret, other = bytes(32), Steps(Cohort(3), dimension=50).session
    question_rounds = [(SESSION, 0, 0), (SESSION, 0, 1), (SESSION, 1, 0), (other, 0, 0)]
    assert len({self_mask(secret, *place).tobytes() for place in question_rounds}) == 4
