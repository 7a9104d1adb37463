from __future__ import annotations

import secrets

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from privlearn.errors import InvalidParameter
from privlearn.parties.secure_sum import KEY_BYTES, ORDER, recover, split, value_at

SECRETS = st.integers(1, ORDER - 1).map(lambda number: number.to_bytes(KEY_BYTES))


def shares_at(secret: bytes, threshold: int, points: list[int]) -> dict[int, bytes]:
    polynomial = split(secret, threshold)
    return {point: value_at(polynomial, point).to_bytes(KEY_BYTES) for point in points}


@given(SECRETS, st.data())
def test_any_threshold_of_shares_opens_the_secret(secret: bytes, data: st.DataObject) -> None:
    points = data.draw(st.lists(st.integers(1, 1000), min_size=1, max_size=12, unique=True))
    threshold = data.draw(st.integers(1, len(points)))
    shares = shares_at(secret, threshold, points)
    chosen = data.draw(st.permutations(points))[:threshold]
    assert recover({point: shares[point] for point in chosen}) == secret


@given(SECRETS, st.integers(2, 8))
def test_one_share_less_opens_nothing(secret: bytes, threshold: int) -> None:
    shares = shares_at(secret, threshold, list(range(1, threshold)))
    assert recover(shares) != secret


@pytest.mark.parametrize("number", [1, ORDER - 1], ids=["smallest", "largest"])
def test_fewer_shares_are_uniform_whatever_the_secret(number: int) -> None:
    """Two shares of three, two thousand times: their bytes, and those of their sum, say nothing."""
    drawn = [shares_at(number.to_bytes(KEY_BYTES), 3, [1, 2]) for _ in range(2000)]
    numbers = [[int.from_bytes(shares[point]) for point in (1, 2)] for shares in drawn]
    for sequence in ([a for a, _ in numbers], [b for _, b in numbers], [(a + b) % ORDER for a, b in numbers]):
        low = b"".join(
            (each % 2**192).to_bytes(24) for each in sequence
        )  # the order's top bytes are not uniform
        assert chisquare(np.bincount(np.frombuffer(low, np.uint8), minlength=256)).pvalue > 1e-9


def test_the_field_is_one() -> None:
    """Fermat's test to many bases: below a composite number most of them would tell."""
    assert all(pow(secrets.randbelow(ORDER - 2) + 2, ORDER - 1, ORDER) == 1 for _ in range(40))


def test_a_share_at_another_point_does_not_open_the_secret() -> None:
    secret = (secrets.randbelow(ORDER - 1) + 1).to_bytes(KEY_BYTES)
    shares = shares_at(secret, 2, [1, 2, 3])
    assert recover({1: shares[1], 3: shares[2]}) != secret


@pytest.mark.parametrize(
    ("secret", "threshold"),
    [(b"short", 2), (bytes(32), 2), (ORDER.to_bytes(32), 2), (b"\x01" * 32, 0)],
    ids=["short", "zero", "too large", "no share"],
)
def test_nonsense_is_refused(secret: bytes, threshold: int) -> None:
    with pytest.raises(InvalidParameter):
        split(secret, threshold)


def test_no_share_is_at_zero() -> None:
    with pytest.raises(InvalidParameter, match="above 0"):
        recover({0: bytes(32)})
