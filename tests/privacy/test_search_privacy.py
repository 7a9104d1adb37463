"""Both private searches, whole, on records of one bit: their exact law on every data set and every neighbour.

The candidates are coins: each answers with the majority of the bits it sees, flipped now and then. Everything else is
the library's: how records are split, what a trial's promise is, the weights of the choice, the noise on the score.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import EveryCandidate, Partition, RandomStopping, Task
from privlearn.mechanisms.search import SCORE_SHARE, split_rows
from privlearn.randomness import SecureRandomness, SeededRandomness
from privlearn.solvers import Logistic

Bits = tuple[int, ...]
ALARM = 1e-6


@dataclass(frozen=True)
class Coin:
    """The majority of some bits, told truthfully with probability e^epsilon / (1 + e^epsilon).

    With ``delta``, it is told in the clear (answers 2 and 3) with that probability: (epsilon, delta)-private, exactly.
    """

    guarantee: Guarantee
    bias: int = 0
    rows: int = 1

    @cached_property
    def task(self) -> Task:
        return Task(
            loss=Logistic(), total=10, dimension=1, problems=1, regularization=1.0, tolerance=1e-9,
            neighbours="replace_one", rows_per_person=self.rows,
        )  # fmt: skip

    def spends(self) -> Guarantee:
        return self.guarantee

    def renyi(self, order: float) -> float:
        one, other = self._law(1)[:2], self._law(0)[:2]
        return float(np.log(np.sum(one**order * other ** (1.0 - order)))) / (order - 1.0)

    def law(self, bits: Sequence[int]) -> Array:
        return self._law(int(2 * sum(bits) + self.bias > len(bits)))

    def _law(self, majority: int) -> Array:
        truth = math.exp(self.guarantee.epsilon) / (1.0 + math.exp(self.guarantee.epsilon))
        told = np.array([1.0 - truth, truth] if majority else [truth, 1.0 - truth])
        clear = np.eye(2)[majority]
        return np.append((1.0 - self.guarantee.delta) * told, self.guarantee.delta * clear)


def pure_coin(**settings: int) -> Callable[[Guarantee], Coin]:
    """Plans a coin that never tells in the clear: its Renyi divergences are finite."""
    return lambda share: Coin(Guarantee(share.epsilon), **settings)


def mistakes(answer: int, bits: Sequence[int]) -> int:
    return sum(bit != answer % 2 for bit in bits)


def neighbours(records: int) -> Iterator[tuple[Bits, Bits, int]]:
    """Yield every data set, every record of it replaced."""
    for bits in itertools.product((0, 1), repeat=records):
        for place in range(records):
            changed = list(bits)
            changed[place] = 1 - changed[place]
            yield bits, tuple(changed), place


def hockey_stick(first: Array, second: Array, epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


class TestPartition:
    """Six records, two candidates, three parts."""

    records = 6
    promise = Guarantee(1.0)

    def search(self, promise: Guarantee) -> Partition:
        return Partition.calibrate(promise, [Coin, lambda share: Coin(share, bias=1)], validation_rows=2)

    def parts(self) -> list[list[int]]:
        return [part.tolist() for part in split_rows(self.records, 3, SeededRandomness(1))]

    def law(self, search: Partition, bits: Bits, parts: list[list[int]]) -> Array:
        """Probability of every candidate's answer and of the choice, more than is released."""
        shown = [[bits[place] for place in part] for part in parts]
        candidates: Any = search.candidates
        laws = [coin.law(seen) for coin, seen in zip(candidates, shown, strict=False)]
        result = np.zeros((4, 4, 2))
        for answers in itertools.product(range(4), repeat=2):
            chance = math.prod(law[answer] for law, answer in zip(laws, answers, strict=True))
            counts = np.array([mistakes(answer, shown[-1]) for answer in answers], dtype=float)
            weights = search.weights(counts)
            result[answers] = chance * weights / weights.sum()
        return result.ravel()

    def worst(self, parts: list[list[int]]) -> dict[int, float]:
        """Largest log-ratio that a change of each record can cause."""
        search, losses = self.search(self.promise), dict.fromkeys(range(self.records), 0.0)
        for bits, changed, place in neighbours(self.records):
            one, other = self.law(search, bits, parts), self.law(search, changed, parts)
            told = one > 0  # nothing is told in the clear here
            loss = np.max(np.abs(np.log(one[told] / other[told])))
            losses[place] = max(losses[place], float(loss))
        return losses

    def test_law_is_a_law(self) -> None:
        assert math.isclose(self.law(self.search(self.promise), (0, 1, 1, 0, 1, 0), self.parts()).sum(), 1.0)

    def test_the_whole_procedure_keeps_its_promise(self) -> None:
        spent = self.search(self.promise).spends()
        assert spent <= self.promise
        losses = self.worst(self.parts())
        assert max(losses.values()) <= spent.epsilon + 1e-12
        # and the test can tell: records of both kinds come near the promise
        *training, validation = self.parts()
        assert max(losses[place] for part in training for place in part) > 0.7 * spent.epsilon
        assert max(losses[place] for place in validation) > 0.4 * spent.epsilon

    def test_a_validation_part_used_twice_breaks_it(self) -> None:
        """Records that choose, and train as well, have two ways to be seen."""
        first, second, last = self.parts()
        losses = self.worst([first + last, second, last])
        assert max(losses[place] for place in last) > 1.1 * self.promise.epsilon

    @pytest.mark.parametrize("delta", [0.0, 0.01])
    @pytest.mark.parametrize("at", [0.0, 0.3, 0.7, 1.0, 1.5])
    def test_hockey_stick_divergences(self, delta: float, at: float) -> None:
        promise = Guarantee(1.0, delta)
        search, parts = self.search(promise), self.parts()
        spent = search.spends()
        assert spent.delta == delta
        # a mechanism that is epsilon-private but for delta has no larger divergence than this one
        allowed = delta + max(0.0, (1.0 - delta) * (math.exp(1.0) - math.exp(at)) / (1.0 + math.exp(1.0)))
        for bits, changed, _ in neighbours(self.records):
            divergence = hockey_stick(self.law(search, bits, parts), self.law(search, changed, parts), at)
            assert divergence <= allowed + 1e-9

    def scattered_law(self, search: Partition, bits: Bits) -> Array:
        """Return the distribution of parts that each record draws independently: the mean over all draws."""
        laws = []
        for drawn in itertools.product(range(3), repeat=len(bits)):
            parts = [[place for place, part in enumerate(drawn) if part == wanted] for wanted in range(3)]
            laws.append(self.law(search, bits, parts))
        return np.asarray(np.mean(laws, axis=0))

    def test_a_record_more_or_less_keeps_the_promise_of_scattered_parts(self) -> None:
        """Every table of up to four records, none included, and every record that may join it."""
        search = self.search(self.promise)
        losses = []
        for count in range(5):
            for bits in itertools.product((0, 1), repeat=count):
                for joined in (0, 1):
                    one, other = self.scattered_law(search, bits), self.scattered_law(search, (*bits, joined))
                    told = one > 0
                    losses.append(float(np.max(np.abs(np.log(one[told] / other[told])))))
        assert max(losses) <= search.spends().epsilon
        # each record is in a third of the draws where it matters most, so that little of the promise is used
        assert max(losses) > 0.2 * search.spends().epsilon

    def test_every_record_is_in_one_part(self) -> None:
        for rows, count in ((7, 3), (100, 6), (5, 5)):
            parts = split_rows(rows, count, SecureRandomness())
            assert sorted(np.concatenate(parts).tolist()) == list(range(rows))
            assert max(map(len, parts)) - min(map(len, parts)) <= 1

    def test_the_choice_follows_the_weights(self) -> None:
        search, randomness = self.search(self.promise), SeededRandomness(0)
        counts = [2.0, 0.0]
        drawn = [search.run(lambda place: (place, counts[place]), randomness) for _ in range(4000)]
        assert all(chosen == output for chosen, output in drawn)
        expected = 1.0 / (1.0 + math.exp(-self.promise.epsilon * 2.0 / 2.0))
        share = sum(chosen for chosen, _ in drawn)
        assert stats.binomtest(share, len(drawn), expected).pvalue > ALARM

    def test_persons_with_several_rows_are_refused(self) -> None:
        with pytest.raises(InvalidParameter, match="random_stopping"):
            Partition.calibrate(self.promise, [lambda share: Coin(share, rows=2)] * 2, 3)


def score_grid(search: Any, cells: int) -> Array:
    return np.linspace(-7.0, 7.0, cells) * search.score_noise_scale


def score_cells(search: Any, count: int, cells: int) -> Array:
    """Chance that the noisy number of mistakes falls into each cell of the grid; the outer ones have no end."""
    noise = stats.laplace if search.score_noise == "laplace" else stats.norm
    below = noise.cdf(score_grid(search, cells) - count, scale=search.score_noise_scale)
    return np.diff(np.append(below[1:], 1.0), prepend=0.0)


class TestRandomStopping:
    """Four records, two candidates; a trial's answer is seen with its noisy number of mistakes."""

    records = 4
    cells = 20001

    def search(self, promise: Guarantee, trials: int = 6) -> RandomStopping:
        return RandomStopping.calibrate(promise, [pure_coin(), pure_coin(bias=1)], trials)

    def law(self, search: RandomStopping, bits: Bits) -> Array:
        """Probability of each (candidate, answer, cell of the score's grid) of the best trial.

        The score's cells are ordered, best first, the outer ones without end. f(x) = g x / (1 - (1-g) x) is the chance
        that all trials are at a place or after it; within a cell the first to be tried wins.
        """
        trial = np.empty((2, 2, self.cells))
        candidates: Any = search.candidates
        for place, answer in itertools.product(range(2), range(2)):
            cells = score_cells(search, mistakes(answer, bits), self.cells)
            trial[place, answer] = candidates[place].law(bits)[answer] / 2.0 * cells
        cells = trial.sum(axis=(0, 1))
        tails = np.append(np.cumsum(cells[::-1])[::-1], 0.0)
        stop = 1.0 / search.expected_trials
        best = stop * tails / (1.0 - (1.0 - stop) * tails)
        return (trial * ((best[:-1] - best[1:]) / cells)).ravel()

    @pytest.mark.parametrize("promise", [Guarantee(2.0), Guarantee(1.0, 0.05), Guarantee(4.0, 1e-3)], ids=str)
    def test_the_whole_procedure_keeps_its_promise(self, promise: Guarantee) -> None:
        search = self.search(promise)
        spent = search.spends()
        assert spent <= promise
        laws = {bits: self.law(search, bits) for bits in itertools.product((0, 1), repeat=self.records)}
        assert all(math.isclose(law.sum(), 1.0, abs_tol=1e-6) for law in laws.values())
        worst = max(
            hockey_stick(laws[bits], laws[changed], promise.epsilon)
            for bits, changed, _ in neighbours(self.records)
        )
        assert worst <= spent.delta + 1e-12
        order = search.order or 8.0
        for bits, changed, _ in neighbours(self.records):
            one, other = laws[bits], laws[changed]
            moment = np.logaddexp.reduce(order * np.log(one) + (1.0 - order) * np.log(other))
            assert moment / (order - 1.0) <= search.renyi(order) + 1e-6

    def test_the_best_of_many_trials_costs_more_than_one(self) -> None:
        """What many people do: give every trial the whole epsilon, and publish the best. The claim says so, too."""
        trial = Guarantee(1.0)
        naive = RandomStopping(
            Guarantee(2.0), (Coin(trial), Coin(trial, bias=1)), score_noise_scale=1.0, expected_trials=40
        )
        loss = max(
            float(np.max(np.log(self.law(naive, bits) / self.law(naive, changed))))
            for bits, changed, _ in neighbours(self.records)
        )
        assert 1.5 * 2.0 < loss < naive.spends().epsilon

    def test_the_best_trial_follows_the_exact_law(self) -> None:
        """Number of trials, uniform candidates, noise on the score, the best kept: all at once, by a chi-square."""
        search, bits = self.search(Guarantee(6.0), trials=3), (1, 1, 1, 0)
        generator, randomness = np.random.default_rng(5), SeededRandomness(6)
        candidates: Any = search.candidates

        def trial(place: int) -> tuple[int, float]:
            answer = int(generator.choice(2, p=candidates[place].law(bits)[:2]))
            return answer, float(mistakes(answer, bits))

        drawn = [search.run(trial, randomness) for _ in range(6000)]
        scores = score_grid(search, self.cells)
        cuts = np.searchsorted(scores, [-2.0, 0.0, 1.0, 2.0, 4.0])
        law = self.law(search, bits).reshape(2, 2, -1)
        expected = np.array([piece.sum(axis=2) for piece in np.split(law, cuts, axis=2)])
        counted = np.zeros_like(expected)
        for best in drawn:
            cell = np.searchsorted(
                cuts, np.searchsorted(scores, best.mistakes, side="right") - 1, side="right"
            )
            counted[cell, best.candidate, best.output] += 1
        expected *= len(drawn) / expected.sum()
        assert stats.chisquare(counted.ravel(), expected.ravel()).pvalue > ALARM

    def test_the_number_of_trials_is_geometric(self) -> None:
        search, randomness = self.search(Guarantee(3.0), trials=5), SeededRandomness(2)
        tried: list[int] = []
        counts = []
        for _ in range(3000):
            tried.clear()
            search.run(lambda place: (tried.append(place), 0.0), randomness)
            counts.append(len(tried))
        observed = np.bincount(np.minimum(counts, 21), minlength=22)[1:]
        chances = stats.geom.pmf(np.arange(1, 21), 0.2)
        expected = len(counts) * np.append(chances, 1.0 - chances.sum())
        assert stats.chisquare(observed, expected).pvalue > ALARM

    @pytest.mark.parametrize("promise", [Guarantee(1.5), Guarantee(1.5, 1e-4)], ids=str)
    @pytest.mark.parametrize("rows", [1, 3])
    def test_the_score_s_noise(self, promise: Guarantee, rows: int) -> None:
        """Drawn as calibrated, calibrated as derived: a tenth of what a trial may cost, for all of a person's rows."""
        search = RandomStopping.calibrate(promise, [pure_coin(rows=rows)] * 2, expected_trials=1)
        randomness = SeededRandomness(3)
        noisy = [search.run(lambda place: (place, 10.0), randomness).mistakes - 10.0 for _ in range(2000)]
        pure = promise.delta == 0
        law = stats.laplace if pure else stats.norm
        assert stats.kstest(noisy, law(scale=search.score_noise_scale).cdf).pvalue > ALARM
        fit = max(candidate.spends().epsilon for candidate in search.candidates)
        if pure:
            assert math.isclose(
                rows / search.score_noise_scale, SCORE_SHARE * promise.epsilon / 3.0, rel_tol=1e-6
            )
            assert math.isclose(fit + rows / search.score_noise_scale, promise.epsilon / 3.0, rel_tol=1e-6)
        else:
            score = (rows / search.score_noise_scale) ** 2 / 2.0
            trial = max(search.candidates[0].renyi(a) / a for a in (search.order, search.inner_order)) + score
            assert math.isclose(score, SCORE_SHARE * (trial - score), rel_tol=0.02)

    @pytest.mark.parametrize("promise", [Guarantee(1.0), Guarantee(1.0, 1e-5)], ids=str)
    def test_less_noise_does_not_keep_the_promise(self, promise: Guarantee) -> None:
        search = self.search(promise)
        orders = search.order, search.inner_order
        assert search.spends() <= promise
        scale, trials = search.score_noise_scale, search.expected_trials
        cheaper = RandomStopping(promise, search.candidates, scale / 2.0, trials, *orders)
        assert not cheaper.spends() <= promise
        if promise.delta:
            more = RandomStopping(promise, search.candidates, scale, 4 * trials, *orders)
            assert not more.spends() <= promise


class TestEveryCandidate:
    """Four records, two candidates; both answers and both scores are looked at, more than is released."""

    def search(self, promise: Guarantee) -> EveryCandidate:
        return EveryCandidate.calibrate(promise, [pure_coin(), pure_coin(bias=1)])

    def law(self, search: EveryCandidate, bits: Bits) -> Array:
        """Return the distribution of (answer, cell of the score) of both candidates: a product."""
        candidates: Any = search.candidates
        cells = [score_cells(search, mistakes(answer, bits), 301) for answer in range(2)]
        laws = [
            np.concatenate([c * cell for c, cell in zip(coin.law(bits), cells, strict=False)])
            for coin in candidates
        ]
        return np.outer(*laws).ravel()

    @pytest.mark.parametrize("promise", [Guarantee(1.0), Guarantee(1.0, 0.05), Guarantee(3.0, 1e-3)], ids=str)
    def test_the_whole_procedure_keeps_its_promise(self, promise: Guarantee) -> None:
        search = self.search(promise)
        spent = search.spends()
        assert spent <= promise
        laws = {bits: self.law(search, bits) for bits in itertools.product((0, 1), repeat=4)}
        pairs = [(laws[bits], laws[changed]) for bits, changed, _ in neighbours(4)]
        assert max(hockey_stick(*pair, promise.epsilon) for pair in pairs) <= spent.delta + 1e-12
        if promise.delta == 0:
            largest = max(float(np.max(np.log(one / other))) for one, other in pairs)
            assert 0.5 * promise.epsilon < largest <= spent.epsilon

    def test_the_best_is_kept(self) -> None:
        search = self.search(Guarantee(1000.0))
        best = search.run(lambda place: (place, (7.0, 2.0)[place]), SeededRandomness(0))
        assert (best.candidate, best.output) == (1, 1)
        assert abs(best.mistakes - 2.0) < 2.0

    @pytest.mark.parametrize("promise", [Guarantee(1.5), Guarantee(1.5, 1e-4)], ids=str)
    def test_the_promise_is_used_up(self, promise: Guarantee) -> None:
        """So that noise which is twice too large would be noticed."""
        spent = self.search(promise).spends()
        assert spent <= promise
        if promise.delta:
            assert spent.delta > 0.9 * promise.delta
        else:
            assert spent.epsilon > 0.999 * promise.epsilon
