"""TDIL with the paper's constants: by hand, its exact privacy on a net, the law of its answers, and when it is zero."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax, logsumexp

from privlearn.accounting import zcdp_budget
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import PaperTDIL, PrecomputedMinimisers, Task
from privlearn.randomness import SecureRandomness, SeededRandomness
from privlearn.solvers import Logistic

ALARM = 1e-6
FAILURE = 0.05  # beta in the threshold; the paper leaves it open
NET = np.array([[0.999, 0.04], [-0.999, 0.04], [0.0, 0.001]])


def plan(epsilon: float = 1.0, delta: float = 1e-3, rounds: int | None = None, **facts: Any) -> PaperTDIL:
    known: dict[str, Any] = {
        "loss": Logistic(),
        "total": 36_000,
        "dimension": 2,
        "problems": 1,
        "regularization": 0.01,
        "tolerance": 1e-10,
        "neighbours": "replace_one",
    }
    task = Task(**known | facts)
    return PaperTDIL.calibrate(task, Guarantee(epsilon, delta), "laplace", "jt13", rounds=rounds)


def test_the_paper_s_constants_by_hand() -> None:
    mechanism = plan()
    rounds = int(36_000 / (100 * math.log(4000)))
    assert mechanism.rounds == rounds == 43
    eps0 = 36_000 * 0.01 / (10 * math.sqrt(rounds) * math.log(4000))
    assert mechanism.noise_scale == pytest.approx(1 / (2 * eps0), rel=1e-4)
    assert mechanism.threshold == pytest.approx(4 / eps0 * math.log(2 * rounds / FAILURE), rel=1e-4)
    constants = mechanism.constants()
    assert constants["step"] == pytest.approx(mechanism.threshold / 4)
    assert constants["net_radius"] == pytest.approx(2 / (eps0 * 36_000), rel=1e-4)
    assert constants["printed_choice_epsilon"] == pytest.approx(eps0 / 2, rel=1e-4)


def test_line_5_as_printed_overspends_and_ours_does_not() -> None:
    """x / (2 S) where x / 2 is meant: the printed choices alone cost many times the promise."""
    mechanism = plan()
    assert mechanism.listing_choice_epsilon == pytest.approx(
        mechanism.selection_epsilon / mechanism.sensitivity, rel=1e-4
    )
    assert not mechanism.listing_is_proved
    assert plan(
        regularization=0.001
    ).listing_is_proved  # N Lambda = 36: the paper's constants are that cautious
    printed = mechanism.rounds * mechanism.listing_choice_epsilon**2 / 8
    assert printed > 9 * zcdp_budget(1.0, 1e-3)
    assert mechanism.zcdp < zcdp_budget(1.0, 1e-3) / 5


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 15.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("problems", [1, 4])
def test_the_zcdp_of_the_paper_s_noise_proves_its_claim(epsilon: float, delta: float, problems: int) -> None:
    mechanism = plan(epsilon, delta, problems=problems)
    assert mechanism.spends() <= mechanism.guarantee
    assert mechanism.spends().delta == delta
    share = epsilon / (5 * math.sqrt(mechanism.rounds * problems) * math.log(4 / delta))
    wanted = mechanism.rounds * problems * share**2 * 65 / 32
    assert mechanism.zcdp == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize(("part", "factor"), [("noise_scale", 0.5), ("selection_epsilon", 2.0)])
def test_half_the_noise_or_twice_the_choice_is_twice_the_epsilon(part: str, factor: float) -> None:
    mechanism = plan()
    worse = dataclasses.replace(mechanism, **{part: factor * getattr(mechanism, part)})
    assert worse.spends().epsilon == pytest.approx(2 * mechanism.spends().epsilon, rel=1e-4)


def round_law(mechanism: PaperTDIL, w: Array, guess: Array) -> list[tuple[float, Array]]:
    """Log-probability of each choice with each verdict (none, up, down), and the guess after it; written anew."""
    rate = mechanism.selection_epsilon / (2 * mechanism.sensitivity)
    choices = log_softmax(rate * np.abs(NET @ (guess - w)))
    limit, step, found = mechanism.threshold, mechanism.threshold / 4, []
    for chance, point in zip(choices, NET, strict=True):
        law = stats.laplace(point @ (w - guess), mechanism.noise_scale)
        between = math.log(law.cdf(limit) - law.cdf(-limit))
        found += [
            (chance + between, guess),
            (chance + law.logsf(limit), guess + step * point),
            (chance + law.logcdf(-limit), guess - step * point),
        ]
    return found


def two_rounds(mechanism: PaperTDIL, w: Array) -> Array:
    """Log-probabilities of all that decides two rounds over the net."""
    return np.array(
        [
            first + second
            for first, guess in round_law(mechanism, w, np.zeros(2))
            for second, _ in round_law(mechanism, w, guess)
        ]
    )


@pytest.mark.parametrize("base", [(0.0, 0.0), (0.5, 0.1), (0.6, 8.0)])
@pytest.mark.parametrize("angle", [0.0, 1.0, math.pi / 2])
def test_two_rounds_keep_the_promise_exactly(base: tuple[float, float], angle: float) -> None:
    mechanism = plan(epsilon=4.0, rounds=2, total=100_000)
    step = mechanism.task.minimiser_sensitivity / 2 * np.array([math.cos(angle), math.sin(angle)])
    one, other = (two_rounds(mechanism, np.array(base) + sign * step) for sign in (1, -1))
    assert np.exp(logsumexp(one)) == pytest.approx(1.0)
    for first, second in ((one, other), (other, one)):
        # a choice costs x / 2, an answer 2 x
        assert np.max(first - second) <= 2 * 5 * mechanism.selection_epsilon * (1 + 1e-6)
        assert np.sum(np.maximum(np.exp(first) - np.exp(4.0 + second), 0.0)) <= 1e-3
        for order in (1.5, 3.0, 10.0):
            divergence = logsumexp(order * first + (1 - order) * second) / (order - 1)
            assert divergence <= mechanism.renyi(order)


def test_the_run_has_that_law() -> None:
    mechanism, w = plan(epsilon=4.0, rounds=1, total=100_000), np.array([0.32, 0.0])
    law = round_law(mechanism, w, np.zeros(2))
    still = float(np.exp(logsumexp([chance for chance, guess in law if not np.any(guess)])))
    assert 0.1 < still < 0.9
    randomness = SeededRandomness(0)
    runs = [mechanism.run(PrecomputedMinimisers(w[np.newaxis], NET), randomness)[0] for _ in range(3000)]
    found = sum(not np.any(run) for run in runs)
    assert stats.binomtest(found, 3000, still).pvalue > ALARM


def test_at_realistic_sizes_it_is_vacuous_and_the_model_is_zero() -> None:
    mechanism = plan(total=36_000, regularization=1e-3, dimension=5)
    assert mechanism.is_vacuous
    assert mechanism.constants()["vacuous"]
    longest = np.zeros((1, 5))
    longest[0, 0] = mechanism.task.ball_radius
    assert not np.any(mechanism.run(PrecomputedMinimisers(longest), SecureRandomness()))


def test_with_very_many_records_it_finds_the_minimiser() -> None:
    mechanism = plan(epsilon=4.0, total=10**8, rounds=4000)
    assert not mechanism.is_vacuous
    w = np.array([[2.0, -1.0]])
    axes = np.vstack([np.eye(2), [[0.7, 0.7], [0.7, -0.7]]])
    found = mechanism.run(PrecomputedMinimisers(w, axes), SeededRandomness(0))
    assert np.linalg.norm(found - w) < 2 * mechanism.threshold < 0.2


def test_refusals_and_no_promise() -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        plan(delta=0.0)
    task = plan().task
    plain = PaperTDIL.calibrate(task, Guarantee(math.inf), "laplace", "jt13")
    assert np.array_equal(
        plain.run(PrecomputedMinimisers(np.ones((1, 2))), SecureRandomness()), np.ones((1, 2))
    )
