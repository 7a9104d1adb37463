from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privlearn.errors import DataError, InvalidParameter
from privlearn.parties import FixedPoint
from privlearn.parties.secure_sum.noise_share import TAIL

ENCODING = FixedPoint(bound=100.0, step=2.0**-20, parties=5)
VECTORS = arrays(np.float64, 4, elements=st.floats(-100.0, 100.0))


@given(st.lists(VECTORS, min_size=1, max_size=5))
def test_a_sum_of_words_is_the_sum_of_the_rounded_vectors(vectors: list[np.ndarray]) -> None:
    words = [ENCODING.encode(vector) for vector in vectors]
    total = ENCODING.decode(np.sum(words, axis=0, dtype=np.uint64))
    rounded = [np.rint(vector / ENCODING.step) * ENCODING.step for vector in vectors]
    np.testing.assert_array_equal(total, np.sum(rounded, axis=0))
    assert np.all(np.abs(total - np.sum(vectors, axis=0)) <= len(vectors) * ENCODING.step)


@given(VECTORS, VECTORS)
def test_rounding_moves_neighbours_apart_by_at_most_a_step_a_coordinate(
    one: np.ndarray, other: np.ndarray
) -> None:
    difference = ENCODING.encode(one).astype(np.int64) - ENCODING.encode(other).astype(np.int64)
    distance = np.linalg.norm(one - other) / ENCODING.step + math.sqrt(one.size)
    assert np.linalg.norm(difference.astype(float)) <= distance * (1 + 1e-12)


def test_the_largest_sum_fits_and_one_bit_more_is_refused() -> None:
    encoding = FixedPoint(bound=2.0**42 - 1, step=2.0**-20, parties=2)
    largest = encoding.encode(np.array([encoding.bound, -encoding.bound]))
    np.testing.assert_array_equal(
        encoding.decode(largest + largest), [2 * encoding.bound, -2 * encoding.bound]
    )
    with pytest.raises(InvalidParameter, match="need 64 bits"):
        FixedPoint(bound=2.0**42, step=2.0**-20, parties=2)
    with pytest.raises(InvalidParameter, match="bits"):
        FixedPoint(bound=2.0**42 - 1, step=2.0**-20, parties=3)


def test_a_bound_of_the_sum_makes_room_for_many_parties() -> None:
    """What is known of the sum can only help; everybody's rounding has room beside it."""
    FixedPoint(bound=2.0**42, step=2.0**-20, parties=1000, sum_bound=2.0**42)
    FixedPoint(bound=1.0, step=1.0, parties=2, sum_bound=1e300)
    FixedPoint(bound=1.0, step=1.0, parties=2**62, sum_bound=1.0)
    with pytest.raises(InvalidParameter, match="bits"):
        FixedPoint(bound=1.0, step=1.0, parties=2**63, sum_bound=1.0)


def test_the_noise_has_room_too() -> None:
    room = 2.0**63 - 4 * (2.0**40 + 1)
    largest_noise = room / (TAIL * math.sqrt(4))
    FixedPoint(bound=2.0**40, step=1.0, parties=4, noise_scale=largest_noise * 0.999)
    with pytest.raises(InvalidParameter, match="bits"):
        FixedPoint(bound=2.0**40, step=1.0, parties=4, noise_scale=largest_noise * 1.001)


@pytest.mark.parametrize(
    "fields",
    [
        {"bound": 0.0},
        {"bound": math.inf},
        {"bound": math.nan},
        {"step": 0.1},
        {"step": 0.0},
        {"step": -1.0},
        {"step": math.nan},
        {"parties": 0},
        {"noise_scale": -1.0},
        {"noise_scale": math.inf},
    ],
    ids=str,
)
def test_nonsense_is_refused_at_construction(fields: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        FixedPoint(**({"bound": 1.0, "step": 0.5, "parties": 2} | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [100.25, -1e300, math.nan, math.inf, -math.inf], ids=str)
def test_what_is_beyond_the_bound_is_refused_and_not_named(value: float) -> None:
    with pytest.raises(DataError, match="Nothing was sent") as caught:
        ENCODING.encode(np.array([0.0, value]))
    assert "100.25" not in str(caught.value)


def test_only_vectors_are_encoded() -> None:
    with pytest.raises(DataError, match="vector"):
        ENCODING.encode(np.zeros((2, 2)))
