"""The samplers of integers, word by word: every acceptance probability to 117 binary digits, and the distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import mpmath
import numpy as np
import pytest
from scipy import stats

from privlearn import randomness
from privlearn.errors import InvalidParameter
from privlearn.randomness import (
    MARGIN,
    MAX_SCALE,
    MIN_SCALE,
    Distribution,
    Integers,
    SecureRandomness,
    Words,
    exp_minus,
    gaussian,
    laplace,
    sample,
)

ALARM = 1e-7  # of one test; a chi-square statistic with ten expected draws in a cell has a heavier tail
DIGITS = 53 + 64  # of U: those of the fast path and one word of the exact one
SMALL = [0.05, 0.3, 1.0, 1.4, 3.7, 5.0]
LAWS = [gaussian, laplace]
Law = Callable[[float], Distribution]


class Script:
    """Return given words, then words of zeros; count the requests."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)
        self.requests: list[int] = []

    def __call__(self, count: int) -> Words:
        self.requests.append(count)
        given, self.words = self.words[:count], self.words[count:]
        return np.array(given + [0] * (count - len(given)), dtype=np.uint64)


def draw(distribution: Distribution, block: int, inside: int, uniform: int, negative: int = 0) -> Integers:
    """Run one candidate, given its block, its position inside and 117 binary digits of U."""
    bits = distribution.block_bits
    zeros, more = block, []
    width = 64 - bits
    while zeros >= width:  # all bits of this word that count the block are zero
        zeros, width = zeros - width, 64
        more.append(1 << zeros if zeros < width else 0)
    position = inside if more else inside | 1 << (bits + zeros)
    decision = uniform >> 64 << 11 | negative
    return randomness._draw_accepted(
        distribution, 1, Script(position, decision, *more, uniform & (2**64 - 1))
    )


def accepted_uniforms(distribution: Distribution, block: int, inside: int) -> int:
    """Count the U among 0 to 2^117 - 1 that accept a candidate, by bisection; they are the small ones."""
    low, high = -1, 1 << DIGITS  # the first is accepted, the second is not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if len(draw(distribution, block, inside, middle)) else (low, middle)
    return high


def energy(law: Law, magnitude: int, scale: float) -> mpmath.mpf:
    ratio = mpmath.mpf(magnitude) / mpmath.mpf(scale)
    return ratio if law is laplace else ratio**2 / 2


def candidates(distribution: Distribution, blocks: int) -> Iterator[tuple[int, int]]:
    size = 1 << distribution.block_bits
    chosen = range(size) if size <= 8 else (0, 1, size // 3, size - 1)
    return ((block, inside) for block in range(blocks) for inside in chosen)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [*SMALL, 1000.3, 2.0**27, 1.7 * 2.0**44, MAX_SCALE])
def test_every_candidate_is_accepted_with_its_exact_probability(law: Law, scale: float) -> None:
    """P(m) is 2^-(j+1) times the share of accepted U: proportional to exp(-f(m)), to 117 digits of U."""
    distribution = law(scale)
    with mpmath.workprec(400):
        unit = accepted_uniforms(distribution, 0, 0)
        assert unit <= 2**DIGITS
        assert unit > 0.3 * 2**DIGITS  # efficient, too
        for block, inside in candidates(distribution, 5):
            count = accepted_uniforms(distribution, block, inside)
            magnitude = (block << distribution.block_bits) + inside
            expected = unit * mpmath.exp(-energy(law, magnitude, scale)) * 2**block
            assert expected <= 2**DIGITS + 2.0**block
            assert abs(count - expected) <= 2.0 + 2.0**block, (block, inside)


@pytest.mark.parametrize("scale", [1.4, 2.0**54 * 1.42])
def test_far_blocks_are_reached_and_decided_exactly(scale: float) -> None:
    """Blocks that the first word does not hold, where the double of the fast path would be wrong."""
    distribution = laplace(scale)
    width = 64 - distribution.block_bits
    with mpmath.workprec(400):
        for block in (width - 1, width, width + 5, width + 64, width + 70):
            count = accepted_uniforms(distribution, block, 0)
            magnitude = block << distribution.block_bits
            expected = mpmath.exp(block * mpmath.log(2) - energy(laplace, magnitude, scale)) * 2**DIGITS
            assert abs(count - expected) <= 2.0
            drawn = draw(distribution, block, 0, 0, negative=1)
            assert drawn.tolist() == [-magnitude]
            assert (drawn.dtype == np.int64) is (magnitude < 2**63)


@pytest.mark.parametrize("law", LAWS)
def test_bits_that_do_not_decide_lead_to_more_bits_of_the_same_uniform(law: Law) -> None:
    """The first 53 digits of U are those of the probability, then the next 64: the fast path cannot know."""
    scale, inside = 1000.3, 300
    distribution = law(scale)
    with mpmath.workprec(400):
        probability = mpmath.exp(-energy(law, inside, scale) - mpmath.mpf(distribution.offset))
        digits = int(mpmath.floor(probability * 2 ** (DIGITS + 64)))
    first, second, third = digits >> 128, digits >> 64 & (2**64 - 1), digits & (2**64 - 1)
    position = inside | 1 << distribution.block_bits
    for words, accepted, requests in (
        ([second - 1], True, [2, 1]),
        ([second + 1], False, [2, 1]),
        ([second, third - 1], True, [2, 1, 1]),
        ([second, third + 1], False, [2, 1, 1]),
    ):
        source = Script(position, first << 11, *words)
        assert len(randomness._draw_accepted(distribution, 1, source)) == accepted
        assert source.requests == requests
    for away, accepted in ((-(2**20), True), (2**20, False)):
        source = Script(position, (first + away) << 11)
        assert len(randomness._draw_accepted(distribution, 1, source)) == accepted
        assert source.requests == [2]  # decided by doubles


def test_probabilities_are_computed_within_the_proven_bounds() -> None:
    rng = np.random.default_rng(3)
    exponents = np.concatenate([rng.uniform(0.0, 40.0, 3000), [0.0, 5e-324, 1e-9, 40.0]])
    with mpmath.workprec(200):
        exact = [mpmath.exp(-mpmath.mpf(x)) for x in exponents.tolist()]
        errors = [abs(y / e - 1) for y, e in zip(exp_minus(exponents).tolist(), exact, strict=True)]
        assert max(errors) < 2.0**-40
        assert MARGIN >= 8 * (2.0**-40 + 2.0**-43)
        for law in LAWS:
            distribution = law(1.7 * 2.0**44)
            blocks = rng.integers(0, 19, 1000)
            inside = rng.integers(0, 1 << distribution.block_bits, 1000)
            magnitudes = (blocks << distribution.block_bits) + inside
            computed = distribution.exponent(magnitudes.astype(float), blocks.astype(float))
            for m, j, value in zip(magnitudes.tolist(), blocks.tolist(), computed.tolist(), strict=True):
                true = (
                    energy(law, m, distribution.scale) - j * mpmath.log(2) + mpmath.mpf(distribution.offset)
                )
                assert true >= 0
                assert value > 40.0 or abs(value - true) < 2.0**-43


@pytest.mark.parametrize("law", LAWS)
def test_no_acceptance_probability_exceeds_one(law: Law) -> None:
    """At the start of each block, where it is largest, for every ratio of scale and block size."""
    for scale in np.concatenate([np.geomspace(0.5, 8.0, 400), [MIN_SCALE, 2.0 / 0.6, 2.0 / 0.7, MAX_SCALE]]):
        distribution = law(float(scale))
        size = 1 << distribution.block_bits
        with mpmath.workprec(200):
            starts = [
                energy(law, j * size, float(scale)) - j * mpmath.log(2) + mpmath.mpf(distribution.offset)
                for j in range(60)
            ]
        assert min(starts) >= 0


def test_zero_has_one_sign() -> None:
    for law in LAWS:
        distribution = law(3.7)
        assert draw(distribution, 0, 0, 0).tolist() == [0]
        assert draw(distribution, 0, 0, 0, negative=1).tolist() == []
        assert draw(distribution, 0, 1, 0, negative=1).tolist() == [-1]


def test_truncation_keeps_the_order_of_candidates() -> None:
    """A candidate of the exact path stands where it was drawn: the surplus is dropped by order, not by value."""
    distribution = laplace(1.4)
    far = [0, 0]  # no block in the first word; accepted
    near = [1 << distribution.block_bits, 0]
    positions, decisions = zip(far, *[near] * 9, strict=True)
    drawn = sample(distribution, 1, Script(*positions, *decisions, 1))
    assert drawn.tolist() == [(64 - distribution.block_bits) << distribution.block_bits]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.0, -1.0, MIN_SCALE / 2, MAX_SCALE * 2, math.inf, math.nan])
def test_scales_out_of_range_are_refused(law: Law, scale: float) -> None:
    with pytest.raises(InvalidParameter, match="scale of integer noise"):
        law(scale)


# The distribution of what the secure source returns.


def secure(law: Law, scale: float, size: int) -> Integers:
    source = SecureRandomness()
    return (source.discrete_gaussian if law is gaussian else source.discrete_laplace)(scale, size)


def chi_square_alarm(drawn: Integers, law: Law, scale: float) -> bool:
    support = np.arange(-700, 701)
    ratio = np.abs(support) / scale
    weights = np.exp(-(ratio if law is laplace else ratio**2 / 2.0))
    expected = len(drawn) * weights / weights.sum()
    kept = expected >= 10.0
    counts = np.array([np.count_nonzero(drawn == k) for k in support[kept]])
    rest = len(drawn) - counts.sum(), len(drawn) - expected[kept].sum()
    statistic = np.sum((counts - expected[kept]) ** 2 / expected[kept]) + (rest[0] - rest[1]) ** 2 / max(
        rest[1], 10.0
    )
    return bool(statistic > stats.chi2(len(counts)).isf(ALARM))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [*SMALL, 21.3])
def test_small_scales_follow_the_exact_formula(law: Law, scale: float) -> None:
    drawn = secure(law, scale, 500_000)
    assert not chi_square_alarm(drawn, law, scale)
    if scale >= 0.3:
        assert chi_square_alarm(drawn, law, 2.0 * scale)
        assert chi_square_alarm(drawn, law, 0.5 * scale)
        assert chi_square_alarm(drawn, law, 1.05 * scale)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "scale", [2.0**20, 2.0**44, 1.19 * 2.0**44, 1.43 * 2.0**44, 1.7 * 2.0**44, MAX_SCALE]
)
def test_large_scales_have_the_moments_tails_and_last_bits(law: Law, scale: float) -> None:
    size = 300_000
    drawn = secure(law, scale, size)
    ratio = drawn.astype(np.float64) / scale
    continuous = stats.norm if law is gaussian else stats.laplace
    assert stats.kstest(ratio, continuous.cdf).pvalue > ALARM
    assert stats.kstest(ratio, continuous(scale=1.1).cdf).pvalue < ALARM
    for moment, (mean, deviation) in {1: (0.0, 1.0), 2: (1.0, math.sqrt(2.0))}.items():
        if law is laplace:
            mean, deviation = (0.0, math.sqrt(2.0)) if moment == 1 else (2.0, math.sqrt(20.0))
        assert abs(np.mean(ratio**moment) - mean) < 6.0 * deviation / math.sqrt(size)
    for beyond in (2.0, 3.0, 4.0, 6.0):
        count = int(np.count_nonzero(np.abs(ratio) > beyond))
        assert stats.binomtest(count, size, 2.0 * continuous.sf(beyond)).pvalue > ALARM
    assert stats.chisquare(np.bincount(drawn & 63, minlength=64)).pvalue > ALARM


def opendp_draws(law: Law, scale: float, size: int) -> Integers:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64"))
    measurement = (
        make_gaussian(space, l2_distance(T=float), scale=scale)
        if law is gaussian
        else make_laplace(space, l1_distance(T=float), scale=scale)
    )
    return np.array(measurement([0] * size), dtype=np.int64)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [1.0, 3.7, 2.0**44 * 1.3])
def test_distribution_is_that_of_opendps_sampler(law: Law, scale: float) -> None:
    """Two samples, one distribution; OpenDP's has the same formula (Canonne, Kamath and Steinke 2020)."""
    theirs, ours, wrong = (
        opendp_draws(law, scale, 40_000),
        secure(law, scale, 200_000),
        secure(law, 1.1 * scale, 200_000),
    )

    def p_value(sampled: Integers) -> float:
        edges = np.unique(np.quantile(theirs, np.linspace(0.0, 1.0, 30)[1:-1]))
        table = [
            np.bincount(np.searchsorted(edges, part), minlength=len(edges) + 1) for part in (theirs, sampled)
        ]
        return float(stats.chi2_contingency(np.array(table)[:, np.sum(table, axis=0) > 0]).pvalue)

    assert p_value(ours) > ALARM
    assert p_value(wrong) < ALARM
