"""PINP's threshold beside the answers: the paper's constants written out anew."""

from __future__ import annotations

import math

import pytest

from privlearn.bounds import pinp_threshold
from privlearn.errors import InvalidParameter
from privlearn.mechanisms.pinp import FAILURE, QUERIES


def test_paper_mode_by_hand() -> None:
    rows, strength, epsilon, delta = 10**8, 0.01, 1.0, 1e-6
    sizes = pinp_threshold(rows, strength, epsilon, delta)
    tests = math.log(2 * QUERIES / FAILURE)
    updates = int(
        sizes.largest_answer * rows * epsilon * strength / (200 * math.sqrt(5) * math.log(4 / delta) * tests)
    )
    assert sizes.largest_answer <= math.sqrt(2 / strength) * (1 + 1e-4)  # J(0) = 1 for the hinge
    assert sizes.updates == pytest.approx(updates, abs=1)
    moved = 2 / (rows * strength)  # rounding adds a little
    answer_epsilon = epsilon / (200 * moved * math.sqrt(sizes.updates) * math.log(4 / delta))
    assert sizes.answer_epsilon == pytest.approx(answer_epsilon, rel=2e-2)
    assert sizes.threshold == pytest.approx(4 / sizes.answer_epsilon * tests)
    assert not sizes.vacuous


def test_adult_is_too_small_for_the_paper_and_not_for_the_tight_mode() -> None:
    sizes = pinp_threshold(36_000, 1e-3, 1.0, 1e-6)
    assert sizes.vacuous
    assert sizes.threshold > 100 * sizes.largest_answer
    assert sizes.tight_threshold < 0.02 * sizes.threshold


def test_more_records_lower_every_threshold() -> None:
    small, large = pinp_threshold(10**4, 0.01, 1.0, 1e-6), pinp_threshold(10**6, 0.01, 1.0, 1e-6)
    assert large.threshold < small.threshold
    assert large.tight_threshold < small.tight_threshold
    assert large.tight_updates >= small.tight_updates


def test_refuses_a_promise_without_delta() -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        pinp_threshold(1000, 0.01, 1.0, 0.0)
