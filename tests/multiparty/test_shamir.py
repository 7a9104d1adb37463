from __future__ import annotations

import secrets

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from privlearn.errors import InvalidParameter, ProtocolError
from privlearn.multiparty.secure_sum.masks import PRIME, SECRET_BYTES, SHARE_BYTES, recover, split

SECRETS = st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES)


@given(SECRETS, st.data())
def test_any_threshold_of_shares_opens_the_secret(secret: bytes, data: st.DataObject) -> None:
    points = data.draw(st.lists(st.integers(1, 1000), min_size=1, max_size=12, unique=True))
    threshold = data.draw(st.integers(1, len(points)))
    shares = split(secret, threshold, points)
    chosen = data.draw(st.permutations(points))[:threshold]
    assert recover({point: shares[point] for point in chosen}) == secret


@given(SECRETS, st.integers(2, 8))
def test_one_share_less_opens_nothing(secret: bytes, threshold: int) -> None:
    shares = split(secret, threshold, range(1, 10))
    assert _opened({point: shares[point] for point in range(1, threshold)}) != secret


@pytest.mark.parametrize("secret", [bytes(32), b"\xff" * 32], ids=["zeros", "ones"])
def test_fewer_shares_are_uniform_whatever_the_secret(secret: bytes) -> None:
    """Two shares of three, two thousand times: their bytes, and those of their sum, say nothing."""
    drawn = [split(secret, 3, [1, 2, 3]) for _ in range(2000)]
    numbers = [[int.from_bytes(shares[point]) for point in (1, 2)] for shares in drawn]
    for sequence in ([a for a, _ in numbers], [b for _, b in numbers], [(a + b) % PRIME for a, b in numbers]):
        low = b"".join((number % 2**256).to_bytes(32) for number in sequence)
        assert chisquare(np.bincount(np.frombuffer(low, np.uint8), minlength=256)).pvalue > 1e-9


def test_the_field_is_one() -> None:
    """Fermat's test to many bases: below a composite number most of them would tell."""
    assert all(pow(secrets.randbelow(PRIME - 2) + 2, PRIME - 1, PRIME) == 1 for _ in range(40))


def test_wrong_shares_do_not_open_the_secret() -> None:
    secret = secrets.token_bytes(32)
    shares = split(secret, 2, [1, 2, 3])
    moved = {1: shares[1], 3: shares[2]}
    assert _opened(moved) != secret
    for garbage in (b"", b"\xff" * SHARE_BYTES, bytes(SHARE_BYTES - 1), PRIME.to_bytes(SHARE_BYTES)):
        with pytest.raises(ProtocolError, match="share"):
            recover({1: shares[1], 2: garbage})


def _opened(shares: dict[int, bytes]) -> bytes | None:
    try:
        return recover(shares)
    except ProtocolError:
        return None


@pytest.mark.parametrize(
    ("secret", "threshold", "points"),
    [
        (b"short", 2, [1, 2]),
        (bytes(32), 3, [1, 2]),
        (bytes(32), 0, [1]),
        (bytes(32), 2, [1, 1]),
        (bytes(32), 1, [0]),
    ],
    ids=["short", "too few", "none", "twice", "at zero"],
)
def test_nonsense_is_refused(secret: bytes, threshold: int, points: list[int]) -> None:
    with pytest.raises(InvalidParameter):
        split(secret, threshold, points)
