"""PINP: exact privacy loss on small cases by integration, and the paper's constants written out anew."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import PaperPINP, TightPINP
from privlearn.mechanisms.session import KernelTask
from privlearn.mechanisms.session.pinp import FAILURE, QUERIES, AboveThreshold
from privlearn.randomness import SeededRandomness
from tests.support.session_support import (
    PROMISE,
    WrittenLearner,
    open_session,
    points_in_ball,
    written_learner,
)


class Recorder(SeededRandomness):
    """Always draws the same number, and remembers the scales it was asked for."""

    def __init__(self, draw: int = 0) -> None:
        super().__init__(0)
        self.draw = draw
        self.laplace: list[float] = []
        self.gaussian: list[float] = []

    def discrete_laplace(self, scale: float, size: int) -> Any:
        self.laplace.append(scale)
        return np.full(size, self.draw)

    def discrete_gaussian(self, scale: float, size: int) -> Any:
        self.gaussian.append(scale)
        return np.full(size, self.draw)


def noise_of(test: AboveThreshold) -> tuple[float, float]:
    """Scales of the noise on the threshold and on a distance, as drawn, in the units of the distances."""
    recorder = Recorder()
    steps = test.draw_threshold(recorder)
    test.is_above(0.0, steps, recorder)
    return recorder.laplace[0] * test.threshold / steps, recorder.laplace[1] * test.threshold / steps


def noise_of_answer(mechanism: TightPINP | PaperPINP) -> float:
    """Scale of the noise in an answer, as drawn, in the units of the answers."""
    large = 2**40
    zero, one = Recorder(), Recorder(large)
    scores = [mechanism.ask(10 * mechanism.threshold, 0.0, -large, source).score for source in (zero, one)]
    assert scores[0] is not None
    assert scores[1] is not None
    return (zero.gaussian or zero.laplace)[-1] * (scores[1] - scores[0]) / large


NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def quadrature(corners: list[float], scale: float) -> tuple[Array, Array]:
    """Nodes and weights for integrands that are smooth between the corners and decay at the scale."""
    spread = np.concatenate([np.arange(-40, 41, 2) * scale + corner for corner in corners])
    edges = np.unique(np.concatenate([spread, corners]))
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * WEIGHTS).ravel()


def below(x: Array, scale: float) -> Array:
    """Laplace distribution function."""
    return np.where(x < 0, 0.5 * np.exp(-np.abs(x) / scale), 1.0 - 0.5 * np.exp(-np.abs(x) / scale))


def first_above(distances: Array, threshold: float, scales: tuple[float, float]) -> Array:
    """Probability that the first "above" comes at each place, and (last) that none comes."""
    on_threshold, on_distance = scales
    noisy, weights = quadrature(sorted({threshold, *distances}), on_threshold)
    mass = weights * np.exp(-np.abs(noisy - threshold) / on_threshold) / (2.0 * on_threshold)
    found = []
    for distance in distances:
        found.append(float(np.sum(mass * below(distance - noisy, on_distance))))
        mass = mass * below(noisy - distance, on_distance)
    return np.array([*found, float(np.sum(mass))])


PAIRS = {
    "many below, then one above": ([3.0] * 50 + [1.0], [4.0] * 50 + [0.0]),
    "all up": ([0.0, 0.3, 2.0], [1.0, 1.3, 3.0]),
    "mixed": ([1.0, 0.0, 2.5], [0.0, 1.0, 2.5]),
}


def worst_loss(test: AboveThreshold, scales: tuple[float, float], unit: float) -> float:
    losses = []
    for left, right in PAIRS.values():
        p = first_above(np.array(left) * unit, test.threshold, scales)
        q = first_above(np.array(right) * unit, test.threshold, scales)
        assert p.sum() == pytest.approx(1.0, abs=1e-8)
        losses.append(np.max(np.abs(np.log(p / q))))
    return float(max(losses))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_above_threshold_keeps_its_epsilon_exactly(epsilon: float) -> None:
    """On distances that move by the sensitivity; with half the noise the same cases break the promise."""
    test = AboveThreshold(sensitivity=0.7, epsilon=epsilon, threshold=2.0)
    scales = noise_of(test)
    worst = worst_loss(test, scales, 0.7)
    assert worst <= epsilon * (1 + 1e-9)
    assert worst == pytest.approx(epsilon, rel=1e-6)  # and there is no noise to spare
    assert worst_loss(test, (scales[0] / 2, scales[1] / 2), 0.7) > epsilon


def test_the_noise_of_above_threshold_is_drawn_and_compared() -> None:
    """The probability of "above", by simulation, is the one integrated above."""
    test = AboveThreshold(sensitivity=0.5, epsilon=1.0, threshold=1.0)
    randomness, runs = SeededRandomness(1), 4000
    hits = sum(test.is_above(1.7, test.draw_threshold(randomness), randomness) for _ in range(runs))
    expected = first_above(np.array([1.7]), 1.0, noise_of(test))[0]
    assert abs(hits - runs * expected) < 5.0 * math.sqrt(runs * expected * (1 - expected))


def hockey_stick(epsilon: float, ratio: float) -> float:
    return float(
        norm.cdf(ratio / 2 - epsilon / ratio) - math.exp(epsilon) * norm.cdf(-ratio / 2 - epsilon / ratio)
    )


class TwoUpdates:
    """PINP with two updates asked at one point twice, as in the code: first guess 0, then the first answer.

    An outcome is what the analyst sees: at each query "guess" or a noisy answer; the session ends after two queries.
    """

    def __init__(self, mechanism: TightPINP, noise: float = 1.0) -> None:
        self.threshold = mechanism.threshold
        scales = noise_of(mechanism.test)
        self.scales = (scales[0] * noise, scales[1] * noise)
        self.scale = noise_of_answer(mechanism) * noise

    def delta(self, epsilon: float, value: float, other: float) -> float:
        """Exact hockey-stick divergence from ``value`` to ``other``."""
        p, q = (first_above(np.abs([v, v]), self.threshold, self.scales) for v in (value, other))
        ratio = abs(value - other) / self.scale
        never = max(0.0, p[2] - math.exp(epsilon) * q[2])
        second_only = p[1] * hockey_stick(epsilon - math.log(p[1] / q[1]), ratio)
        return float(never + second_only + self._after_first(epsilon, value, other, p[0], q[0]))

    def _after_first(self, epsilon: float, value: float, other: float, p: float, q: float) -> float:
        ratio = abs(value - other) / self.scale

        def integrand(answer: float) -> float:
            # the guess is now the answer: how far it is off is tested anew, with a fresh threshold
            left = first_above(np.abs([value - answer]), self.threshold, self.scales)
            right = first_above(np.abs([other - answer]), self.threshold, self.scales)
            a = p * norm.pdf(answer, value, self.scale) * left
            b = q * norm.pdf(answer, other, self.scale) * right
            quiet = max(0.0, a[1] - math.exp(epsilon) * b[1])
            return quiet + a[0] * hockey_stick(epsilon - math.log(a[0] / b[0]), ratio)

        low, high = min(value, other) - 9 * self.scale, max(value, other) + 9 * self.scale
        grid = np.linspace(low, high, 241)
        return float(np.trapezoid([integrand(answer) for answer in grid], grid))


def small_pinp(epsilon: float, delta: float) -> TightPINP:
    """Return PINP for two updates, with a threshold of the order of the noise, so that both outcomes happen."""
    facts = written_learner(total=100, regularization=0.1).kernel_task("replace_one")
    found = TightPINP.calibrate(facts, Guarantee(epsilon, delta))
    rho = found.updates * found.test_epsilon**2
    test_epsilon = math.sqrt(rho / 2)
    sensitivity = found.constants()["answer_sensitivity"]
    mechanism = dataclasses.replace(
        found,
        updates=2,
        test_epsilon=test_epsilon,
        answer_scale=sensitivity / test_epsilon,
        threshold=sensitivity / test_epsilon,
    )
    assert mechanism.spends().delta <= delta * (1 + 1e-6)
    return mechanism


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (3.0, 1e-2)])
def test_tight_pinp_keeps_its_promise_exactly(epsilon: float, delta: float) -> None:
    mechanism = small_pinp(epsilon, delta)
    moved = mechanism.constants()["answer_sensitivity"]
    start = 3.0 * mechanism.threshold
    claimed, halved = TwoUpdates(mechanism), TwoUpdates(mechanism, noise=0.5)
    pairs = [(start, start + moved), (start + moved, start), (0.2 * moved, 1.2 * moved)]
    assert max(claimed.delta(epsilon, *pair) for pair in pairs) <= delta
    assert max(halved.delta(epsilon, *pair) for pair in pairs) > delta


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_tight_calibration_spends_what_was_promised(epsilon: float) -> None:
    guarantee = Guarantee(epsilon, 1e-6)
    mechanism = TightPINP.calibrate(
        written_learner(total=10**6, regularization=0.1).kernel_task("replace_one"), guarantee
    )
    assert mechanism.spends() <= guarantee
    assert mechanism.spends().delta == pytest.approx(1e-6, rel=1e-4)
    moved = 2.0 / (10**6 * 0.1) + 2e-8 + 2.0 * 10.0 * 2.0**-34
    rho = mechanism.updates * (mechanism.test_epsilon**2 / 2 + (moved / mechanism.answer_scale) ** 2 / 2)
    assert mechanism.renyi(3.0) == pytest.approx(3.0 * rho)
    for worse in (
        dataclasses.replace(mechanism, answer_scale=mechanism.answer_scale / 2),
        dataclasses.replace(mechanism, test_epsilon=mechanism.test_epsilon * 2),
    ):
        assert not worse.spends() <= guarantee


def test_paper_mode_has_the_papers_constants() -> None:
    """THEORY.md 3.4: the smaller eps0, B from the potential argument, sigma = (4 / eps0) log(2 T / beta)."""
    n, lam, epsilon, delta = 10**9, 0.1, 1.0, 1e-6
    facts = KernelTask(written_learner(total=n, regularization=lam).kernel_task("replace_one").task, 0.0)
    mechanism = PaperPINP.calibrate(facts, Guarantee(epsilon, delta))
    radius = facts.norm_bound
    logs = math.log(4 / delta) * math.log(2 * QUERIES / FAILURE)
    # the rounding of values is inside S, and here it is not small compared with it
    moved = 2 / (n * lam) + 2 * 10 * 2.0**-34
    assert mechanism.updates == int(radius * epsilon / (200 * math.sqrt(5) * moved * logs)) > 1
    listing = n * epsilon * lam / (200 * math.sqrt(mechanism.updates) * math.log(4 / delta))
    theorem = epsilon / (200 * math.sqrt(mechanism.updates) * 2 / (n * lam) * math.log(4 / delta))
    inside = (2 / (n * lam)) / moved
    eps0 = min(listing, theorem) * inside
    assert mechanism.answer_scale == pytest.approx(1 / eps0, rel=1e-6)
    assert mechanism.threshold == pytest.approx(4 / eps0 * math.log(2 * QUERIES / FAILURE), rel=1e-6)
    assert noise_of_answer(mechanism) == pytest.approx(1 / eps0, rel=1e-6)
    assert mechanism.spends() <= Guarantee(epsilon, delta)
    assert not dataclasses.replace(mechanism, answer_scale=mechanism.answer_scale / 2).spends() <= Guarantee(
        epsilon, delta
    )


def test_at_realistic_numbers_of_records_the_papers_threshold_is_vacuous() -> None:
    facts = written_learner(total=36_222, regularization=1e-3).kernel_task("replace_one")
    mechanism = PaperPINP.calibrate(facts, Guarantee(1.0, 1e-5))
    assert mechanism.is_vacuous
    assert mechanism.threshold > 100 * facts.norm_bound


def plentiful() -> WrittenLearner:
    """Return a task with enough records for a sharp test of the guess."""
    return written_learner(total=10**8, regularization=0.1)


@pytest.mark.usefixtures("no_sync")
@pytest.mark.parametrize("mode", ["tight", "paper"])
def test_the_guess_is_corrected_where_it_is_wrong(tmp_path: Path, mode: str) -> None:
    learner = plentiful()
    session = open_session(
        tmp_path / "a.session", learner, mechanism="pinp", mode=mode, guarantee=Guarantee(3.0, 1e-5)
    )
    mechanism: Any = session.certificate.mechanism
    points = points_in_ball(300, 3, 3)
    answers = session.decide(points)
    late = np.abs(answers.scores - learner.values(points)[:, 0])[150:]
    assert np.max(late) <= 1.5 * mechanism.threshold + 1e-9
    assert set(answers.sources) == {"noisy", "guess"}
    assert not session.exhausted


def test_every_update_draws_a_new_threshold(tmp_path: Path) -> None:
    session = open_session(
        tmp_path / "a.session", plentiful(), mechanism="pinp", guarantee=Guarantee(3.0, 1e-5)
    )
    thresholds, updates = [session._session._threshold], 0  # type: ignore[union-attr]
    for point in points_in_ball(40, 3, 3):
        updates += session.decide(point).sources == "noisy"
        thresholds.append(session._session._threshold)  # type: ignore[union-attr]
    assert len(set(thresholds)) == updates + 1 > 2


@pytest.mark.parametrize("mode", ["tight", "paper"])
def test_after_exhaustion_the_private_function_is_not_read(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = plentiful()
    path = tmp_path / "a.session"
    session = open_session(path, learner, mechanism="pinp", mode=mode)
    mechanism: Any = session.certificate.mechanism
    monkeypatch.setattr(session._session, "_mechanism", dataclasses.replace(mechanism, updates=2))
    points = points_in_ball(60, 3, 4)
    sources = session.decide(points).sources.tolist()
    assert session.exhausted
    assert sources.count("noisy") == 2
    last = max(place for place, source in enumerate(sources) if source == "noisy")
    assert set(sources[last + 1 :]) == {"exhausted"}
    monkeypatch.setattr(learner, "values", None)
    assert session.decide(points_in_ball(3, 3, 5)).sources.tolist() == ["exhausted"] * 3
    session.close()


def test_several_functions_are_refused() -> None:
    for mode in (TightPINP, PaperPINP):
        with pytest.raises(InvalidParameter, match="function_release"):
            mode.calibrate(written_learner(functions=3).kernel_task("replace_one"), PROMISE)


def test_promises_that_pinp_cannot_make_are_refused() -> None:
    facts = written_learner().kernel_task("replace_one")
    for guarantee in (Guarantee(PROMISE.epsilon), Guarantee(math.inf)):
        for mode in (TightPINP, PaperPINP):
            with pytest.raises(InvalidParameter):
                mode.calibrate(facts, guarantee)
