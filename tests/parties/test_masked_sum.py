"""Masks cancel, whoever is missing; beyond the plan's limit nothing is opened."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn.errors import InvalidParameter, ProtocolError, TooFewParties
from privlearn.parties import Cohort, FixedPoint, NoiseShare
from privlearn.randomness import SeededRandomness
from tests.support.secure_sum import SecureSum

DIMENSION = 7


def _words(parties: int, seed: int = 0) -> dict[int, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {n: generator.integers(0, 2**64, DIMENSION, dtype=np.uint64) for n in range(parties)}


def _sum(words: dict[int, np.ndarray]) -> np.ndarray:
    return np.asarray(np.sum(list(words.values()), axis=0, dtype=np.uint64))


@pytest.mark.parametrize("parties", [2, 3, 10])
def test_masks_cancel(parties: int) -> None:
    words = _words(parties)
    np.testing.assert_array_equal(SecureSum(Cohort(parties), DIMENSION).total(words), _sum(words))


@pytest.mark.parametrize(
    ("before", "after"), [(b, a) for b, a in itertools.product(range(3), repeat=2) if b + a <= 2]
)
def test_the_sum_of_those_who_sent_is_exact_up_to_the_plan_s_dropouts(before: int, after: int) -> None:
    """Parties 0.. are missing from the start, the next are lost once their vector has arrived."""
    words = {number: vector for number, vector in _words(8).items() if number >= before}
    summation = SecureSum(Cohort(8, dropouts=2), DIMENSION)
    lost = range(before, before + after)
    np.testing.assert_array_equal(summation.total(words, lost_after_masking=lost), _sum(words))
    assert summation.coordinator.arrived == list(words)


def test_one_more_missing_before_masking_stops_the_round() -> None:
    words = {number: vector for number, vector in _words(8).items() if number > 2}
    with pytest.raises(TooFewParties, match="5 parties answered; 6 are needed"):
        SecureSum(Cohort(8, dropouts=2), DIMENSION).total(words)


def test_one_more_lost_after_masking_leaves_the_sum_closed() -> None:
    with pytest.raises(TooFewParties, match="The sum stays closed"):
        SecureSum(Cohort(8, dropouts=2), DIMENSION).total(_words(8), lost_after_masking=[1, 3, 4])


@settings(max_examples=20)
@given(st.data())
def test_rounds_are_independent_and_who_was_missing_may_return(data: st.DataObject) -> None:
    summation = SecureSum(Cohort(8, dropouts=2), DIMENSION, rounds=3)
    for round in range(3):
        lost = data.draw(st.sets(st.integers(0, 7), max_size=2))
        before = data.draw(st.sets(st.sampled_from(sorted(lost)))) if lost else set()
        words = {number: vector for number, vector in _words(8, round).items() if number not in before}
        np.testing.assert_array_equal(summation.total(words, lost - before), _sum(words))


def test_no_more_rounds_than_agreed() -> None:
    summation = SecureSum(Cohort(3), DIMENSION, rounds=1)
    summation.total(_words(3))
    with pytest.raises(ProtocolError, match="round 1 is over or does not exist"):
        summation.total(_words(3))


def test_real_vectors_with_noise() -> None:
    cohort = Cohort(5, dropouts=1)
    noise, source = NoiseShare(0.25, cohort), SeededRandomness(0)
    encoding = noise.encoding(bound=4.0)
    vectors = {number: np.full(DIMENSION, float(number)) for number in range(4)}
    words = {n: encoding.encode(vector) + noise.draw(DIMENSION, source) for n, vector in vectors.items()}
    total = encoding.decode(SecureSum(cohort, DIMENSION).total(words))
    np.testing.assert_array_equal(total, encoding.decode(_sum(words)))
    assert np.all(total != 6.0)
    plain = FixedPoint(bound=4.0, step=0.5, parties=5)
    exact = SecureSum(cohort, DIMENSION).total({n: plain.encode(vector) for n, vector in vectors.items()})
    np.testing.assert_array_equal(plain.decode(exact), 6.0)
    with pytest.raises(TooFewParties):
        SecureSum(cohort, DIMENSION).total({})


@pytest.mark.parametrize("fields", [{"dimension": 0}, {"rounds": 0}], ids=str)
def test_an_empty_session_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        SecureSum(Cohort(3), **({"dimension": 2} | fields))
