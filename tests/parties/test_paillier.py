from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn.errors import DataError, InvalidParameter, ProtocolError
from privlearn.parties import Cohort, NoiseShare
from privlearn.randomness import SeededRandomness
from tests.support.paillier import KEY_BITS, PaillierSum, generate_keys
from tests.support.secure_sum import SecureSum

PUBLIC, PRIVATE = generate_keys()


def test_masks_and_paillier_agree_to_the_last_digit() -> None:
    cohort = Cohort(4, dropouts=1)
    noise = NoiseShare(0.5, cohort)
    encoding, source = noise.encoding(bound=50.0), SeededRandomness(7)
    vectors = np.random.default_rng(7).uniform(-50, 50, (4, 60))
    words = {n: encoding.encode(vector) + noise.draw(60, source) for n, vector in enumerate(vectors)}
    paillier = PaillierSum(PUBLIC, parties=4, dimension=60)
    assert paillier.ciphertexts == 2
    decrypted = paillier.decrypt(paillier.add([paillier.encrypt(word) for word in words.values()]), PRIVATE)
    np.testing.assert_array_equal(decrypted, SecureSum(cohort, 60).total(words))


@settings(max_examples=5)
@given(st.lists(st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3), min_size=1, max_size=3))
def test_sums_wrap_like_words(rows: list[list[int]]) -> None:
    words = np.array([*rows, [2**64 - 1] * 3], dtype=np.uint64)
    paillier = PaillierSum(PUBLIC, parties=300, dimension=3)
    total = paillier.add([paillier.encrypt(row) for row in words])
    np.testing.assert_array_equal(paillier.decrypt(total, PRIVATE), words.sum(axis=0, dtype=np.uint64))


def test_carries_do_not_reach_the_neighbour() -> None:
    """As many of the largest word as there is room for: 256 summands fill the guard byte, no more."""
    paillier = PaillierSum(PUBLIC, parties=256, dimension=2)
    assert paillier.slot_bytes == 9
    full = paillier.encrypt(np.array([2**64 - 1, 1], dtype=np.uint64))
    total = paillier.decrypt(paillier.add([full] * 256), PRIVATE)
    np.testing.assert_array_equal(total, np.array([2**64 - 256, 256], dtype=np.uint64))
    with pytest.raises(ProtocolError, match="between 1 and 256"):
        paillier.add([full] * 257)
    assert PaillierSum(PUBLIC, parties=257, dimension=2).slot_bytes == 10


def test_the_same_vector_never_looks_the_same() -> None:
    paillier = PaillierSum(PUBLIC, parties=2, dimension=1)
    zero = np.zeros(1, dtype=np.uint64)
    assert paillier.encrypt(zero) != paillier.encrypt(zero)
    assert PUBLIC.n.bit_length() == KEY_BITS
    assert len(paillier.encrypt(zero)) == 2 * KEY_BITS // 8


def test_garbage_is_refused() -> None:
    paillier = PaillierSum(PUBLIC, parties=2, dimension=1)
    good = paillier.encrypt(np.ones(1, dtype=np.uint64))
    size = paillier.ciphertext_bytes
    for garbage in (b"", good[:-1], good + good, bytes(size), b"\xff" * size, PUBLIC.n.to_bytes(size)):
        with pytest.raises(ProtocolError, match="encrypted vector"):
            paillier.add([good, garbage])
    with pytest.raises(ProtocolError, match="larger than a sum of words"):
        paillier.decrypt(PUBLIC.encrypt(PUBLIC.n // 2).to_bytes(size), PRIVATE)
    with pytest.raises(ProtocolError, match="between 1 and 2"):
        paillier.add([])
    with pytest.raises(DataError, match="1 coordinates"):
        paillier.encrypt(np.ones(2, dtype=np.uint64))
    with pytest.raises(InvalidParameter):
        PaillierSum(PUBLIC, parties=0, dimension=1)
