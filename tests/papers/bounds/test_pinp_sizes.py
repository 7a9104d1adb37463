"""PINP's threshold beside the answers: the paper's constants written out anew."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import PaperPINP, Task, TightPINP
from privlearn.mechanisms.session import KernelTask
from privlearn.mechanisms.session.pinp import FAILURE, QUERIES
from privlearn.papers.bounds import pinp_threshold
from privlearn.randomness import SeededRandomness
from privlearn.solvers import Hinge


def test_paper_mode_by_hand() -> None:
    rows, strength, epsilon, delta = 10**8, 0.01, 1.0, 1e-6
    sizes = pinp_threshold(rows, strength, epsilon, delta)
    tests = math.log(2 * QUERIES / FAILURE)
    updates = int(
        sizes.max_answer * rows * epsilon * strength / (400 * math.sqrt(5) * math.log(4 / delta) * tests)
    )  # S = 2 L / (N Lambda)
    assert sizes.max_answer <= math.sqrt(2 / strength) * (1 + 1e-4)  # J(0) = 1 for the hinge
    assert sizes.updates == pytest.approx(updates, abs=1)
    moved = 2 / (rows * strength)  # rounding adds a little
    answer_epsilon = epsilon / (200 * moved * math.sqrt(sizes.updates) * math.log(4 / delta))
    assert sizes.answer_epsilon == pytest.approx(answer_epsilon, rel=2e-2)
    assert sizes.threshold == pytest.approx(4 / sizes.answer_epsilon * tests)
    assert not sizes.vacuous


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
def test_the_papers_updates_are_what_its_potential_argument_needs(neighbours: str) -> None:
    """Each update shrinks |w - f|^2, at most C^2 at first, by 5 threshold^2 / 16: B is the fixed point of both."""
    for queries in (100, 10_000):
        sizes = pinp_threshold(10**9, 0.01, 1.0, 1e-6, queries=queries, neighbours=neighbours)
        needed = 16.0 * sizes.max_answer**2 / (5.0 * sizes.threshold**2)
        assert sizes.updates == pytest.approx(needed, rel=0.03)


def test_adult_is_too_small_for_the_paper_and_not_for_the_tight_mode() -> None:
    sizes = pinp_threshold(36_000, 1e-3, 1.0, 1e-6)
    assert sizes.vacuous
    assert sizes.threshold > 100 * sizes.max_answer
    assert sizes.tight_threshold < 0.02 * sizes.threshold


def test_the_noise_of_a_test_can_reach_what_is_not_vacuous_and_not_what_is() -> None:
    """Between once and twice the largest answer tight mode is not vacuous: its noise reaches it."""
    between = pinp_threshold(36_000, 1e-3, 1.0, 1e-6)
    assert between.max_answer < between.tight_threshold <= 2 * between.max_answer
    assert not between.tight_vacuous
    beyond = pinp_threshold(4_000, 5e-3, 1.0, 1e-6)
    assert beyond.tight_threshold > 2 * beyond.max_answer
    assert beyond.tight_vacuous


@pytest.mark.parametrize(("rows", "strength"), [(4_000, 5e-3), (10**8, 1e-3)])
def test_a_vacuous_session_answers_zero_and_another_does_not(rows: int, strength: float) -> None:
    """Every test at the largest answer there can be: 10,000 of them say "below", or nearly all say "above"."""
    facts = KernelTask(Task(Hinge(), rows, 1, 1, strength, 1e-10, "replace_one"), 0.0)
    for mode in (TightPINP, PaperPINP):
        plan = mode.calibrate(facts, Guarantee(1.0, 1e-6))
        randomness = SeededRandomness(0)
        threshold = plan.draw_threshold(randomness)
        corrected = [
            plan.ask(facts.norm_bound, 0.0, threshold, randomness).score is not None for _ in range(QUERIES)
        ]
        assert not any(corrected) if plan.is_vacuous else np.mean(corrected) > 0.9


def test_more_records_lower_every_threshold() -> None:
    small, large = pinp_threshold(10**4, 0.01, 1.0, 1e-6), pinp_threshold(10**6, 0.01, 1.0, 1e-6)
    assert large.threshold < small.threshold
    assert large.tight_threshold < small.tight_threshold
    assert large.tight_updates >= small.tight_updates


def test_refuses_a_promise_without_delta() -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        pinp_threshold(1000, 0.01, 1.0, 0.0)
