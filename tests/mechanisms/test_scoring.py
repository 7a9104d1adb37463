"""Noisy Fisher scoring: the ratio by hand, the exact law on the worst neighbours, and the noise that is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import MECHANISMS, NoisyScoring
from privlearn.mechanisms.statistics.scoring import COUNTS, MATRIX, VECTOR, pack_symmetric, unpack_symmetric
from privlearn.randomness import SeededRandomness

ALARM = 1e-6
SENSITIVITIES = {
    "zero_out": {COUNTS: 1.0, VECTOR: 1.0, MATRIX: 1.0},
    "add_remove": {COUNTS: 1.0, VECTOR: 1.0, MATRIX: 1.0},
    "replace_one": {COUNTS: math.sqrt(2.0), VECTOR: 2.0, MATRIX: math.sqrt(2.0)},
}
SUMS = [(COUNTS, 4, 0.1), (VECTOR, 3, 0.5), (MATRIX, 6, 0.4)]


def planned(neighbours: str = "zero_out", epsilon: float = 1.0, delta: float = 1e-6) -> NoisyScoring:
    return NoisyScoring.of_sums(Guarantee(epsilon, delta, neighbours), 1000, SUMS)


class Zeros:
    """Sums of no records."""

    def __init__(self, mechanism: NoisyScoring) -> None:
        self.cells = mechanism.cells

    def sums(self, released: Sequence[Array]) -> Array:
        return np.zeros(self.cells[len(released)])


def test_it_is_listed() -> None:
    assert MECHANISMS["scoring"] is NoisyScoring


@pytest.mark.parametrize("neighbours", SENSITIVITIES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (4.0, 1e-5)])
def test_what_it_spends_is_the_exact_delta_of_the_worst_neighbours(
    neighbours: str, epsilon: float, delta: float
) -> None:
    mechanism = planned(neighbours, epsilon, delta)
    moves = [
        SENSITIVITIES[neighbours][kind] / scale
        for kind, scale in zip(mechanism.kinds, mechanism.scales, strict=True)
    ]
    ratio = math.hypot(*moves)
    exact = stats.norm.cdf(ratio / 2 - epsilon / ratio) - math.exp(epsilon) * stats.norm.cdf(
        -ratio / 2 - epsilon / ratio
    )
    assert exact <= mechanism.spends().delta <= delta
    assert exact >= 0.999 * delta
    assert mechanism.renyi(3.0) == pytest.approx(1.5 * ratio**2, rel=1e-9)


def test_shares_divide_the_squared_ratio() -> None:
    mechanism = planned("replace_one")
    ratios = [
        SENSITIVITIES["replace_one"][kind] / scale
        for kind, scale in zip(mechanism.kinds, mechanism.scales, strict=True)
    ]
    squares = np.square(ratios)
    assert squares / squares.sum() == pytest.approx([0.1, 0.5, 0.4])


def test_noise_has_the_stated_scale() -> None:
    mechanism = planned()
    randomness = SeededRandomness(0)
    draws = [mechanism.run_in_turn(Zeros(mechanism), randomness) for _ in range(400)]
    for index, scale in enumerate(mechanism.scales):
        noise = np.concatenate([draw[index] for draw in draws]) / scale
        assert stats.kstest(noise, "norm").pvalue > ALARM
        assert 0.9 < noise.std() < 1.1


def test_a_matrix_as_released_has_noise_of_one_deviation_in_every_direction() -> None:
    mechanism = planned()
    randomness = SeededRandomness(1)
    direction = np.array([0.6, 0.8, 0.0])
    noise = [
        direction @ unpack_symmetric(mechanism.run_in_turn(Zeros(mechanism), randomness)[2]) @ direction
        for _ in range(400)
    ]
    assert stats.kstest(np.array(noise) / mechanism.scales[2], "norm").pvalue > ALARM


def test_packing_keeps_the_norm() -> None:
    matrix = np.array([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0], [0.5, 0.0, 1.0]])
    packed = pack_symmetric(matrix)
    assert np.linalg.norm(packed) == pytest.approx(np.linalg.norm(matrix))
    assert unpack_symmetric(packed) == pytest.approx(matrix)


def test_without_a_guarantee_nothing_is_added() -> None:
    mechanism = NoisyScoring.of_sums(Guarantee(math.inf, 0.0, "zero_out"), 1000, SUMS)
    assert all(not table.any() for table in mechanism.run_in_turn(Zeros(mechanism), SeededRandomness(0)))


def test_pure_privacy_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="delta > 0"):
        planned(delta=0.0)


def test_a_sum_of_another_size_is_refused() -> None:
    mechanism = planned()

    class Wrong:
        def sums(self, released: Sequence[Array]) -> Array:
            return np.zeros(2)

    with pytest.raises(InvalidParameter, match="size"):
        mechanism.run_in_turn(Wrong(), SeededRandomness(0))
