"""Vectors as integers modulo 2^64, and the noise that each party adds to them.

Noise comes in two forms. A Gaussian is split into shares (`NoiseShare`), so that the noise for the guarantee is in the
sum although some parties are missing or collude. A norm-Gamma vector, for delta = 0, is added whole by every party
(`PartyNoise`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import DataError, InvalidParameter, ProtocolError
from privlearn.mechanisms.noise import grid_step, norm_gamma_steps
from privlearn.mechanisms.summed.summed import SHARE_GRID_BITS, Question
from privlearn.parties.secure_sum.session import Cohort
from privlearn.randomness import Randomness

Words = NDArray[np.uint64]

MODULUS_BITS = 64
TAIL = 40.0  # standard deviations
GAMMA_TAIL = 800.0


@dataclass(frozen=True)
class FixedPoint:
    """Multiples of a public step, modulo 2**64; parameters with which a sum could overflow are refused.

    The sum of ``parties`` vectors lies within min(parties bound, sum_bound) / step + parties of zero. Its noise, a sum
    of discrete Gaussians, is subgaussian with their variances added (Canonne, Kamath and Steinke 2020): beyond
    ``TAIL`` = 40 standard deviations with probability at most 2 exp(-800) a coordinate. Both together must stay below
    2**63. Beyond that the sum wraps around: it is wrong then, but not less private, since wrapping is a function of the
    noisy sum.

    Parameters
    ----------
    bound : float
        Maximum modulus of a coordinate of a party's vector: from a theorem, not from the data.
    step : float
        The grid's width, a power of two: dividing by it is exact, and rounding is the only error.
    parties : int
        Maximum number of vectors in the sum.
    noise_scale : float, default=0.0
        Standard deviation of the noise that each party adds.
    sum_bound : float, optional
        Maximum modulus of a coordinate of the sum, where it is known to be less than parties times bound.
    noise_bound : float, default=0.0
        Maximum modulus of a coordinate of other noise of each party, except with negligible probability.

    Examples
    --------
    >>> encoding = FixedPoint(bound=4.0, step=2.0**-20, parties=3)
    >>> words = encoding.encode(np.array([1.5, -0.25]))
    >>> encoding.decode(words + words)
    array([ 3. , -0.5])
    """

    bound: float
    step: float
    parties: int
    noise_scale: float = 0.0
    sum_bound: float = math.inf
    noise_bound: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.bound < math.inf:
            raise InvalidParameter("bound must be a finite number above 0")
        if not (0 < self.step < math.inf and math.frexp(self.step)[0] == 0.5):
            raise InvalidParameter("step must be a power of two, for instance 2**-20")
        if self.parties < 1 or not 0 <= self.noise_scale < math.inf or not 0 <= self.noise_bound < math.inf:
            raise InvalidParameter(
                "parties must be at least 1, noise_scale and noise_bound finite and at least 0"
            )
        # One more bit, for the sign.
        needed = 1 + math.log2(self._max_sum())
        if needed >= MODULUS_BITS:
            raise InvalidParameter(
                f"the sum of {self.parties} vectors may need {math.ceil(needed)} bits, there are {MODULUS_BITS}. "
                "Use a larger step or a smaller bound"
            )

    def _max_sum(self) -> float:
        sum_bound = self.sum_bound * (1.0 + 2.0**-40)  # since parties' parts of it are rounded
        bound = min(self.parties * self.bound, sum_bound)
        values = bound / self.step + self.parties * (1.0 + self.noise_bound / self.step)
        # The sum is of independent shares, so the tail grows with the root of their number.
        return values + TAIL * math.sqrt(self.parties) * self.noise_scale / self.step

    def encode(self, values: Array) -> Words:
        """Return the nearest multiples of the step, as words; refuse a coordinate that is not within the bound."""
        self.check(values)
        # int64 first: a negative float has no defined value as uint64.
        return np.rint(values / self.step).astype(np.int64).astype(np.uint64)

    def check(self, values: Array) -> None:
        """Refuse an array that is not a vector, or not within the bound."""
        if values.ndim != 1:
            raise DataError(f"a party's contribution must be a vector, not {values.ndim}-dimensional")
        if not np.all(np.abs(values) <= self.bound):  # a comparison with NaN is False
            raise DataError("a party's contribution is not finite or exceeds its bound. Nothing was sent")

    def check_sum(self, total: Words) -> None:
        """Refuse a sum beyond the bound of the vectors and their noise: some vector in it exceeded its own."""
        if np.any(np.abs(total.astype(np.int64).astype(np.float64)) > self._max_sum()):
            raise ProtocolError("the sum exceeds the bound of the parties' vectors and their noise")

    def decode(self, total: Words) -> Array:
        """Return the sum as real numbers: words in the upper half of the range are negative."""
        # Two's complement: the conversion to int64 is what makes words of the upper half negative.
        return total.astype(np.int64).astype(np.float64) * self.step


def distributed_zcdp(distance: float, share_scale: float, shares: int, dimension: int) -> float:
    """Return the rho of a sum of ``shares`` discrete Gaussian vectors under a shift by ``distance``, in grid units.

    **Theorem** (Kairouz, Liu and Steinke 2021, Theorem 1). Let each of n = ``shares`` parties add to every one of d =
    ``dimension`` integer coordinates an independent discrete Gaussian of scale s = ``share_scale`` >= 1/2. If
    neighbouring data move the sum by at most D in L2, its release is rho-zCDP with

        rho = (D / (s sqrt(n)) + tau sqrt(d))^2 / 2,    tau = 10 sum_{k=1}^{n-1} exp(-2 pi^2 s^2 k / (k+1)).

    Parties beyond the n only add independent noise, which is post-processing. Proof: docs/theory/secure-sum.md.
    """
    if share_scale < 0.5:
        raise InvalidParameter("the noise share must be at least half a grid step. Use a smaller step")
    if shares < 1 or dimension < 1 or distance < 0:
        raise InvalidParameter("shares and dimension must be at least 1, and distance at least 0")
    # A sum of discrete Gaussians is not quite a discrete Gaussian: tau bounds the difference.
    gaps = (math.exp(-2.0 * (math.pi * share_scale) ** 2 * k / (k + 1)) for k in range(1, shares))
    root = distance / (share_scale * math.sqrt(shares)) + 10.0 * math.fsum(gaps) * math.sqrt(dimension)
    return 0.5 * root**2


@dataclass(frozen=True)
class NoiseShare:
    """One party's part of Gaussian noise of standard deviation ``scale`` on the sum.

    Each share has variance scale^2 / (K - dropouts - colluding): with that many parties missing or colluding, noise
    of the required scale is still in the sum, unknown to the adversary. If all parties are present there is more.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise that the guarantee needs, in the units of the vectors.
    cohort : Cohort
    parties_per_person : int, default=1
        Maximum number of parties with records of one person.

    Examples
    --------
    >>> noise = NoiseShare.calibrate(rho=0.5, sensitivity=2.0, cohort=Cohort(5, dropouts=1), dimension=100)
    >>> round(noise.scale, 6), round(noise.share_scale, 6)
    (2.0, 1.154701)
    >>> noise.zcdp(sensitivity=2.0, dimension=100) <= 0.5
    True
    """

    scale: float
    cohort: Cohort
    parties_per_person: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise InvalidParameter("the noise scale must be finite and above 0")

    @classmethod
    def calibrate(cls, rho: float, sensitivity: float, cohort: Cohort, dimension: int) -> NoiseShare:
        """Return the smallest noise for a rho-zCDP release of a sum that a neighbour moves by at most ``sensitivity``.

        With step <= share_scale 2^-32 the rounding costs at most sqrt(d / honest) 2^-32 of sqrt(2 rho), and tau is 0 to
        all digits; 2^-40 of the scale covers the rounding of the arithmetic here.
        """
        if not 0 < rho < math.inf or not 0 < sensitivity < math.inf:
            raise InvalidParameter("rho and sensitivity must be finite and above 0")
        # What rounding costs is taken off first, so that noise and rounding together spend rho.
        root = math.sqrt(2.0 * rho) - math.ldexp(math.sqrt(dimension / cohort.honest), -SHARE_GRID_BITS)
        if root <= 0:
            raise InvalidParameter("rho is smaller than the cost of rounding to the grid. Use a larger one")
        return cls(sensitivity / root * (1.0 + 2.0**-40), cohort)

    @property
    def share_scale(self) -> float:
        """Standard deviation of one party's noise."""
        return self.scale / math.sqrt(self.cohort.honest)

    @property
    def step(self) -> float:
        """The grid's width: the power of two at most 2^-32 of the share's scale, over `parties_per_person`.

        On a neighbour's data that many vectors may be rounded differently; together they cost no more than one.
        """
        # A power of two: dividing by it is exact, so that encoding rounds once.
        return grid_step(self.share_scale / self.parties_per_person, SHARE_GRID_BITS)

    def encoding(self, bound: float, sum_bound: float = math.inf) -> FixedPoint:
        """Return the encoding of vectors with coordinates of at most ``bound``, with capacity for all noise."""
        return FixedPoint(bound, self.step, self.cohort.parties, self.share_scale, sum_bound)

    def draw(self, dimension: int, randomness: Randomness) -> Words:
        """Return this party's noise, to be added to its encoded vector."""
        return randomness.discrete_gaussian(self.share_scale / self.step, dimension).astype(np.uint64)

    def zcdp(self, sensitivity: float, dimension: int) -> float:
        """Return the rho of one noisy sum that a neighbour moves by at most ``sensitivity`` in L2.

        A neighbour changes the vectors of at most ``parties_per_person`` parties. Rounding moves each of their
        coordinates by at most half a step on either side: sqrt(d) more steps for each such party.
        """
        distance = sensitivity / self.step + self.parties_per_person * math.sqrt(dimension)
        return distributed_zcdp(distance, self.share_scale / self.step, self.cohort.honest, dimension)


@dataclass(frozen=True)
class PartyNoise:
    """One party's noise in its answer to a question, and the encoding of the answer.

    **Theorem** (docs/theory/secure-sum.md, "Noise in whole vectors"). With b of density exp(-|b| / s), s being
    ``whole_scale``, the party sends the integers nearest to (x + b) / step, its Gaussian share added to them, modulo
    2^64. The sum x + b is rounded exactly, once, and the rest is a function of the result and of independent draws. So
    the privacy loss of this message between two vectors x at distance D is at most D / s for any messages of other
    parties.

    Parameters
    ----------
    share : NoiseShare, optional
        The Gaussian part.
    keeps_share : bool
        Whether the share is drawn once, for all questions of the run.
    whole_scale : float
        Scale of the norm-Gamma part; 0 if there is none.
    parties : int
    """

    share: NoiseShare | None
    keeps_share: bool
    whole_scale: float
    parties: int

    @classmethod
    def of(cls, question: Question, cohort: Cohort, parties_per_person: int) -> PartyNoise:
        """Return the noise that a party of the cohort adds to its answer."""
        shared = [noise for noise in question.noise if not noise.is_whole]
        whole = [noise for noise in question.noise if noise.is_whole]
        if (
            not question.noise
            or max(len(shared), len(whole)) > 1
            or any(noise.once_per_run for noise in whole)
        ):
            raise InvalidParameter("an answer needs noise: one Gaussian part, one norm-Gamma part, or both")
        return cls(
            share=NoiseShare(shared[0].scale, cohort, parties_per_person) if shared else None,
            keeps_share=any(noise.once_per_run for noise in shared),
            whole_scale=whole[0].scale if whole else 0.0,
            parties=cohort.parties,
        )

    @property
    def step(self) -> float:
        """The grid's width: that of the shares, if there are any, since only for them rounding costs privacy."""
        return grid_step(self.whole_scale, SHARE_GRID_BITS) if self.share is None else self.share.step

    def encoding(self, bound: float, length: int) -> FixedPoint:
        """Return the encoding of answers of ``length`` coordinates that add up to at most ``bound`` in modulus.

        |b| / s is a Gamma variable of shape d: above d + sqrt(2 d x) + x with probability at most exp(-x), x = 800.
        """
        share_scale = 0.0 if self.share is None else self.share.share_scale
        noise_bound = self.whole_scale * (length + math.sqrt(2.0 * length * GAMMA_TAIL) + GAMMA_TAIL)
        return FixedPoint(
            bound, self.step, self.parties, share_scale, sum_bound=bound, noise_bound=noise_bound
        )

    def draw_share(self, length: int, randomness: Randomness) -> Words:
        """Return the Gaussian part, in steps."""
        return np.zeros(length, np.uint64) if self.share is None else self.share.draw(length, randomness)

    def add_whole(self, values: Array, encoding: FixedPoint, randomness: Randomness) -> Words:
        """Return ``values`` with the norm-Gamma part, in steps; only the exact sum is rounded, not its terms."""
        if not self.whole_scale:
            return encoding.encode(values)
        encoding.check(values)
        # Exact rational arithmetic, so Python integers: they exceed 64 bits before the reduction.
        steps = norm_gamma_steps(values.tolist(), self.whole_scale, self.step, randomness)
        return np.array([number % 2**MODULUS_BITS for number in steps], dtype=np.uint64)
