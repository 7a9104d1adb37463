"""Whole norm-Gamma vectors over the secure sum: exact law, privacy loss, strength of the noise, what is drawn once."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privlearn import Ledger
from privlearn.arrays import Array
from privlearn.errors import DataError, InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.summed import Noise, Question
from privlearn.parties import Cohort, FixedPoint
from privlearn.parties.run import NoisyAnswers, PartyRun, RunBudget
from privlearn.parties.secure_sum import Words
from privlearn.parties.secure_sum.noise_share import PartyNoise
from privlearn.randomness import SeededRandomness
from tests.support.run_cases import IDENTITIES, TABLES, Wire, agreement_of

ALARM = 1e-9
PURE: dict[str, Any] = {"algorithm": "psgd", "delta": 0.0}


class CoarseNoise(PartyNoise):
    """On a grid as wide as the noise, where every wrong rounding shows."""

    step = 1.0


def cells(value: float, scale: float, reach: int = 60) -> Array:
    """Return the exact probabilities of the integers nearest to value + b, b a norm-Gamma number: Laplace's."""
    edges, law = np.arange(-reach, reach + 2) - 0.5, stats.laplace(value, scale)
    below = np.diff(law.cdf(edges))
    return np.where(edges[:-1] > value, -np.diff(law.sf(edges)), below)  # accurate in both tails


def words_of(value: float, scale: float, draws: int) -> Array:
    noise, source = CoarseNoise(None, False, scale, 3), SeededRandomness(5)
    encoding = FixedPoint(bound=100.0, step=1.0, parties=3, noise_bound=1000.0)
    words = [noise.add_whole(np.array([value]), encoding, source) for _ in range(draws)]
    return encoding.decode(np.concatenate(words))


@pytest.mark.parametrize("scale", [0.7, 1.5])
@pytest.mark.parametrize("distance", [0.01, 0.3, 1.0, 2.4])
def test_the_exact_privacy_loss_of_one_message(scale: float, distance: float) -> None:
    """At every pair of values at this distance, wherever they lie on the grid, and both ways; and it is reached."""
    largest = 0.0
    for value in np.linspace(-0.5, 0.5, 41):
        one, other = cells(value, scale), cells(value + distance, scale)
        largest = max(largest, float(np.abs(np.log(one / other)).max()))
    assert largest <= distance / scale * (1.0 + 1e-9)
    assert largest > 0.999 * distance / scale


@pytest.mark.parametrize("value", [0.0, 0.3, -7.45])
def test_messages_have_that_law(value: float) -> None:
    """Rounding terms before they are added would move the mean of 0.3 to 0, and that of -7.45 to -7."""
    scale, draws = 0.7, 4000
    expected = draws * cells(value, scale)
    observed, _ = np.histogram(words_of(value, scale, draws), bins=np.arange(-60, 62) - 0.5)
    common = expected > 5
    merged = [np.append(counts[common], counts[~common].sum()) for counts in (observed, expected)]
    assert stats.chisquare(merged[0], merged[1] * draws / merged[1].sum()).pvalue > ALARM
    for wrong in (2.0, 0.5):
        other = draws * cells(value, wrong * scale)
        merged = [np.append(counts[common], counts[~common].sum()) for counts in (observed, other)]
        assert stats.chisquare(merged[0], merged[1] * draws / merged[1].sum()).pvalue < ALARM


def noisy(agreement: Any, seed: int, rounds: int = 1) -> Array:
    """Return what a party with exact answers 0 sends, round by round, without masks."""
    answers, sent = NoisyAnswers(agreement, SeededRandomness(seed)), []
    for number in range(rounds):
        question = agreement.mechanism.question(number)
        sent.append(
            agreement.encoding(question).decode(answers.noisy_words(question, np.zeros(question.length)))
        )
    return np.array(sent)


@pytest.mark.parametrize(
    "changes", [PURE, {"algorithm": "aggregation", "delta": 0.0, "rounds": None}], ids=str
)
@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_a_partys_own_noise_is_what_the_mechanism_states(changes: dict[str, Any], factor: float) -> None:
    """|b| is a Gamma variable; one party alone adds all of it."""
    agreement = agreement_of(**changes)
    (noise,) = agreement.mechanism.question(0).noise
    lengths = [np.linalg.norm(noisy(agreement, seed)) / (factor * noise.scale) for seed in range(400)]
    law = stats.gamma(agreement.mechanism.question(0).length)
    assert (stats.kstest(lengths, law.cdf).pvalue > ALARM) == (factor == 1.0)


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_algorithm_1_draws_one_vector_anew_and_a_share_once(factor: float) -> None:
    agreement = agreement_of(algorithm="psgd", rounds=2)
    first, second = np.array([noisy(agreement, seed, 2) for seed in range(400)]).transpose(1, 0, 2)
    share = factor * agreement.mechanism.run_noise_scale / math.sqrt(agreement.cohort.honest)  # type: ignore[attr-defined]
    anew = factor * agreement.mechanism.round_scale * math.sqrt(first.shape[1] + 1.0)  # type: ignore[attr-defined]
    assert (np.mean((first - second) ** 2) == pytest.approx(2.0 * anew**2, rel=0.25)) == (factor == 1.0)
    assert (np.mean(first * second) == pytest.approx(share**2, rel=0.4)) == (factor == 1.0)


def test_what_was_drawn_once_survives_a_crash() -> None:
    agreement = agreement_of(algorithm="psgd", rounds=2)
    question = agreement.mechanism.question(0)
    before, after = NoisyAnswers(agreement, SeededRandomness(1)), NoisyAnswers(agreement, SeededRandomness(2))
    before.noisy_words(question, np.zeros(question.length))
    after.resume(before.stored_noise())
    after.noisy_words(question, np.zeros(question.length))
    assert after.stored_noise() == before.stored_noise() is not None


class Memory:
    """What a party writes to its file, in order."""

    def __init__(self, *contents: Any) -> None:
        self.contents = list(contents)

    def read(self) -> Any:
        return self.contents[-1] if self.contents else None

    def write(self, content: Any) -> None:
        self.contents.append(content)


def test_a_party_started_again_goes_on_with_it(tmp_path: Path) -> None:
    agreement = agreement_of(algorithm="psgd", rounds=2, accept_weak_privacy=True)
    ledger = Ledger.create(tmp_path / "ledger", "census", Guarantee(100.0, 1e-4))
    rows = agreement.read_party("north", TABLES["north"])
    wire, memory = Wire(agreement), Memory()

    def started(memory: Any) -> PartyRun:
        return PartyRun(
            agreement,
            "north",
            IDENTITIES["north"],
            rows,
            RunBudget(agreement, "north", ledger),
            print,
            memory,
        )

    wire.parties["north"] = started(memory)
    wire.coordinator.train()
    answered = next(kept for kept in memory.contents if kept["noise"] is not None and kept["begun"] is None)
    answered["budget"]["answered"] = sorted(wire.parties["north"]._budget.answered)
    again = started(Memory(answered))
    assert again._noise.stored_noise() == answered["noise"] == memory.contents[-1]["noise"]


def test_a_sum_has_capacity_for_everybodys_noise() -> None:
    """The bound on |b| is exceeded with probability exp(-800) at most; a sum that cannot hold K of them is refused."""
    noise = PartyNoise(None, False, 2.0, parties=3)
    encoding = noise.encoding(bound=1.0, length=10)
    assert stats.gamma(10).logsf(encoding.noise_bound / 2.0) < -800.0
    assert 2.0**-33 <= encoding.step / 2.0 <= 2.0**-32
    with pytest.raises(InvalidParameter, match="bits"):
        noise.encoding(bound=1.0, length=2**31)


def test_only_noise_that_parties_can_add_is_accepted() -> None:
    whole, kept = Noise("norm_gamma", 1.0), Noise("norm_gamma", 1.0, once_per_run=True)
    for parts in ((), (whole, whole), (kept,)):
        with pytest.raises(InvalidParameter, match="noise"):
            PartyNoise.of(Question(0, "gradients", 2, 1.0, parts), Cohort(3), 1)


def test_what_is_beyond_the_bound_is_refused() -> None:
    agreement = agreement_of(**PURE)
    question = agreement.mechanism.question(0)
    for value in (2.0 * question.bound, math.nan):
        with pytest.raises(DataError, match="Nothing was sent"):
            NoisyAnswers(agreement).noisy_words(question, np.full(question.length, value))


def test_words_are_taken_modulo_the_sums_range() -> None:
    """A draw beyond the range, which no run will see, wraps around like a sum of words does."""
    noise = CoarseNoise(None, False, 1e30, 3)
    encoding = FixedPoint(bound=100.0, step=1.0, parties=3)
    words: Words = noise.add_whole(np.zeros(3), encoding, SeededRandomness(1))
    assert words.dtype == np.uint64
