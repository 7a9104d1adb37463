"""RA12's PSGD: its noise as printed (misprints corrected), its limit, and the two guarantees told apart."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from privlearn.accounting import pure_composition_delta, pure_composition_epsilon
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import PrivateSGD
from privlearn.mechanisms.summed import NoisySum, Question
from privlearn.parties import TrustedSum
from privlearn.randomness import SeededRandomness
from privlearn.solvers import Hinge, Logistic
from tests.support.oracles import Sums
from tests.support.party_cases import (
    DELTA,
    EPSILON,
    exact_sum,
    parties_of,
    pooled_minimiser,
    psgd,
    random_rows,
    task_of,
)


def brute_force_delta(round_epsilon: float, times: int, epsilon: float) -> float:
    """Randomised response ``times`` times, every outcome written out."""
    high = 1.0 / (1.0 + math.exp(-round_epsilon))
    excess = 0.0
    for outcome in itertools.product([0, 1], repeat=times):
        one = math.prod(high if bit else 1.0 - high for bit in outcome)
        other = math.prod(1.0 - high if bit else high for bit in outcome)
        excess += max(0.0, one - math.exp(epsilon) * other)
    return excess


@pytest.mark.parametrize("times", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.1])
def test_composition_is_that_of_randomised_response(times: int, epsilon: float) -> None:
    assert pure_composition_delta(0.5, times, epsilon) == pytest.approx(
        brute_force_delta(0.5, times, epsilon), abs=1e-15
    )


def test_composed_epsilon_inverts_composed_delta() -> None:
    for times in (1, 10, 1000):
        epsilon = pure_composition_epsilon(0.1, times, 1e-3)
        assert pure_composition_delta(0.1, times, epsilon) == pytest.approx(1e-3, rel=1e-6)
        assert epsilon <= times * 0.1
    assert pure_composition_epsilon(0.1, 2, 0.5) == 0.0


def test_the_two_guarantees_are_told_apart() -> None:
    mechanism = psgd(task_of(), rounds=200)
    assert mechanism.limit == Guarantee(EPSILON, DELTA)
    assert mechanism.guarantee.epsilon > 50 * mechanism.limit.epsilon
    assert mechanism.guarantee.epsilon < 200 * EPSILON  # the paper's own count for T rounds
    assert mechanism.guarantee.delta == DELTA
    assert mechanism.spends() <= mechanism.guarantee
    constants = mechanism.constants()
    assert constants["limit_epsilon"] == EPSILON
    assert constants["transcript_epsilon_pure"] == pytest.approx(200 * EPSILON, rel=1e-6)
    assert "RA12 claims epsilon = 1.3 for their limit alone" in mechanism.covers
    assert mechanism.renyi(2.0) == pytest.approx(200 * EPSILON, rel=1e-6)  # 2 * 1.3^2 / 2 is above 1.3


def test_one_round_costs_no_more_than_it_says() -> None:
    mechanism = psgd(task_of(), rounds=1)
    assert mechanism.guarantee.epsilon <= EPSILON * (1.0 + 1e-6)


def test_noise_drawn_once_is_that_of_the_appendix() -> None:
    """P(U <= (sigma^2 e - 2)^2 / (4 sigma^2)) = 1 - delta, e what 2 log(1 + c / (N Lambda)) leaves of epsilon."""
    mechanism = psgd(task_of(dimension=10, loss=Logistic()))
    rest = EPSILON - 2.0 * math.log1p(0.25 / (1000 * 0.05))
    sigma = mechanism.run_noise_scale
    assert stats.chi2.sf((sigma**2 * rest - 2.0) ** 2 / (4.0 * sigma**2), 10) == pytest.approx(
        DELTA, rel=1e-9
    )
    assert mechanism.effective_regularization == 0.05
    weak = psgd(task_of(loss=Logistic(), regularization=1e-6))
    assert weak.effective_regularization == pytest.approx(0.25 / (1000 * math.expm1(EPSILON / 4.0)))


def test_its_limit_is_gaussian_objective_perturbation() -> None:
    rows, signs = random_rows(200, 3, seed=5)
    task = task_of(total=200, loss=Logistic(), regularization=0.2)
    mechanism = psgd(task, rounds=4_000)
    noise = np.array([3.0, -8.0, 5.0])
    exact = exact_sum(parties_of(mechanism, rows, signs, [50, 50, 100]))

    def ask(question: Question) -> NoisySum:
        answer = exact.ask(question)
        return NoisySum(answer.vector + noise, answer.total, answer.parties)

    limit = pooled_minimiser(task, rows, signs, noise / 200)
    assert mechanism.run(Sums(ask))[0] == pytest.approx(limit, abs=5e-3)


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_every_party_draws_anew_and_once(factor: float) -> None:
    """Between two rounds only the noise drawn anew differs; over many runs both add up to the variances said."""
    mechanism = psgd(task_of(total=12), rounds=2)
    parties = parties_of(mechanism, np.zeros((12, 3)), np.ones(12), [1, 4, 7])
    answers: list[list[np.ndarray]] = []
    for seed in range(250):
        sums, seen = TrustedSum(mechanism, parties, SeededRandomness(seed)), list[np.ndarray]()

        def record(question: Question, sums: TrustedSum = sums, seen: list[np.ndarray] = seen) -> NoisySum:
            answer = sums.ask(question)
            seen.append(answer.vector)
            return answer

        mechanism.run(Sums(record))
        answers.append(seen)
    first, second = np.array(answers).transpose(1, 0, 2)
    # a norm-Gamma vector in 3 dimensions has E|b|^2 = 3 * 4 scale^2; three parties draw one each
    anew = 2.0 * 3 * 4.0 * (factor * mechanism.round_scale) ** 2
    once = (factor * mechanism.run_noise_scale) ** 2
    assert (np.mean((first - second) ** 2) == pytest.approx(anew, rel=0.3)) == (factor == 1.0)
    assert (np.mean(first * second) == pytest.approx(once, rel=0.3)) == (factor == 1.0)


def test_refusals_say_why() -> None:
    assert "smooth" in str(PrivateSGD.explain_refusal(task_of(loss=Hinge()), "norm_gamma"))
    assert "two classes" in str(PrivateSGD.explain_refusal(task_of(problems=3), "norm_gamma"))
    wrong = (("ra12", Guarantee(1.0)), ("split", Guarantee(1.0, 1e-4)), ("split", Guarantee(math.inf)))
    for calibration, guarantee in wrong:
        with pytest.raises(ValueError, match="finite epsilon"):
            PrivateSGD.calibrate(task_of(), guarantee, "norm_gamma", calibration, parties=3, shares=3)


@pytest.mark.parametrize("rounds", [None, 1, 500])
def test_without_delta_all_rounds_together_cost_epsilon(rounds: int | None) -> None:
    """RA12 section 3.2: the epsilons of the rounds add up to epsilon, each by its own noise."""
    members = {"parties": 3, "shares": 2}
    mechanism = PrivateSGD.calibrate(
        task_of(), Guarantee(EPSILON), "norm_gamma", "split", rounds=rounds, **members
    )
    spent = mechanism.rounds * mechanism.sum_sensitivity / mechanism.round_scale
    assert EPSILON * (1.0 - 1e-6) < spent <= EPSILON
    assert mechanism.spends() == Guarantee(spent)
    assert mechanism.epsilon_after(mechanism.rounds) == pytest.approx(spent)
    assert [noise.distribution for noise in mechanism.question(0).noise] == ["norm_gamma"]
    assert "retained_scale" not in mechanism.constants()
    assert "noise scale" not in mechanism.covers
    assert "whatever the coordinator and all other parties do" in mechanism.covers


def test_composition_without_delta_is_the_sum_of_all_rounds() -> None:
    """The probability that all of 2,000 answers speak for one data set is no floating-point number above 0."""
    assert pure_composition_epsilon(0.1, 2_000, 0.0) == 200.0


def test_what_is_spent_so_far_grows_to_the_transcripts_guarantee() -> None:
    mechanism = psgd(task_of(), rounds=30)
    spent = [mechanism.epsilon_after(questions) for questions in (0, 1, 10, 30)]
    assert spent == sorted(spent)
    assert spent[-1] == pytest.approx(mechanism.guarantee.epsilon, rel=1e-6)
