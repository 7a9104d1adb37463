"""Numbers as integers modulo 2^b, and each party's share of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import DataError, InvalidParameter
from privlearn.mechanisms.noise import grid_step
from privlearn.mechanisms.summed.summed import SHARE_GRID_BITS
from privlearn.multiparty.secure_sum.session import Cohort
from privlearn.randomness import Randomness

Words = NDArray[np.uint64]

MODULUS_BITS = 64
TAIL = 40.0


@dataclass(frozen=True)
class FixedPoint:
    """Multiples of a public step, modulo 2**64; what could overflow is refused when this object is made.

    The sum of ``parties`` vectors lies within min(parties bound, sum_bound) / step + parties of zero. Its noise, a sum
    of discrete Gaussians, is subgaussian with their variances added (Canonne, Kamath and Steinke 2020): beyond
    ``TAIL`` = 40 standard deviations with probability at most 2 exp(-800) a coordinate. Both together must stay below
    2**63. Should the improbable happen, the sum wraps around: it is wrong then, and no less private, since wrapping is
    a function of the noisy sum.

    Parameters
    ----------
    bound : float
        No coordinate of a party's vector is larger in modulus: a theorem about the vector, not a look at it.
    step : float
        The grid's width, a power of two: dividing by it is exact, and rounding is the only error.
    parties : int
        How many vectors are summed at most.
    noise_scale : float, default=0.0
        Standard deviation of the noise that each party adds.
    sum_bound : float, optional
        No coordinate of the sum of all vectors is larger in modulus, where more is known than parties times bound.

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

    def __post_init__(self) -> None:
        if not 0 < self.bound < math.inf:
            raise InvalidParameter(
                "bound must be a finite number above 0: the largest modulus of a coordinate"
            )
        if not (0 < self.step < math.inf and math.frexp(self.step)[0] == 0.5):
            raise InvalidParameter("step must be a power of two, for instance 2**-20")
        if self.parties < 1 or not 0 <= self.noise_scale < math.inf:
            raise InvalidParameter("parties must be at least 1, and noise_scale finite and at least 0")
        needed = 1 + math.log2(self._largest_sum())
        if needed >= MODULUS_BITS:
            raise InvalidParameter(
                f"the sum of {self.parties} vectors may need {math.ceil(needed)} bits, there are {MODULUS_BITS}: "
                "take a larger step or a smaller bound"
            )

    def _largest_sum(self) -> float:
        together = self.sum_bound * (1.0 + 2.0**-40)  # parties' parts of it are rounded
        largest = min(self.parties * self.bound, together)
        values = largest / self.step + self.parties
        return values + TAIL * math.sqrt(self.parties) * self.noise_scale / self.step

    def encode(self, values: Array) -> Words:
        """The nearest multiples of the step, as words; refused if a coordinate is not within the bound."""
        if values.ndim != 1:
            raise DataError(
                f"a party's contribution must be a vector, not an array of {values.ndim} dimensions"
            )
        if not np.all(np.abs(values) <= self.bound):  # a comparison with NaN is False
            raise DataError(
                "a party's contribution is not finite or exceeds its declared bound: nothing was sent"
            )
        return np.rint(values / self.step).astype(np.int64).astype(np.uint64)

    def decode(self, total: Words) -> Array:
        """The sum as real numbers: words in the upper half of the range are negative."""
        return total.astype(np.int64).astype(np.float64) * self.step


def distributed_zcdp(distance: float, share_scale: float, shares: int, dimension: int) -> float:
    """The rho at which the sum of ``shares`` discrete Gaussian vectors hides a shift by ``distance``, in grid units.

    **Theorem** (Kairouz, Liu and Steinke 2021, Theorem 1). Let each of n = ``shares`` parties add to every one of d =
    ``dimension`` integer coordinates an independent discrete Gaussian of scale s = ``share_scale`` >= 1/2. If
    neighbouring data move the sum by at most D in L2, its release is rho-zCDP with

        rho = (D / (s sqrt(n)) + tau sqrt(d))^2 / 2,    tau = 10 sum_{k=1}^{n-1} exp(-2 pi^2 s^2 k / (k+1)).

    Parties beyond the n only add independent noise, which is post-processing. The page docs/theory/secure-sum.md has a
    proof.
    """
    if share_scale < 0.5:
        raise InvalidParameter("the noise share must be at least half a grid step: take a smaller step")
    if shares < 1 or dimension < 1 or distance < 0:
        raise InvalidParameter("shares and dimension must be at least 1, and distance at least 0")
    gaps = (math.exp(-2.0 * (math.pi * share_scale) ** 2 * k / (k + 1)) for k in range(1, shares))
    root = distance / (share_scale * math.sqrt(shares)) + 10.0 * math.fsum(gaps) * math.sqrt(dimension)
    return 0.5 * root**2


@dataclass(frozen=True)
class NoiseShare:
    """One party's part of Gaussian noise of standard deviation ``scale`` on the sum.

    Each share has variance scale^2 / (K - dropouts - colluding): with that many parties missing or colluding, the
    promised noise is still in the sum and known to nobody. When all are present there is more.

    Parameters
    ----------
    scale : float
        Standard deviation of the promised noise, in the units of the vectors.
    cohort : Cohort
    parties_per_person : int, default=1
        How many parties may have records of one person.

    Examples
    --------
    >>> noise = NoiseShare.calibrated(rho=0.5, sensitivity=2.0, cohort=Cohort(5, dropouts=1), dimension=100)
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
    def calibrated(cls, rho: float, sensitivity: float, cohort: Cohort, dimension: int) -> NoiseShare:
        """The least noise for one rho-zCDP release of a sum that a neighbour moves by at most ``sensitivity``.

        With step <= share_scale 2^-32 the rounding costs at most sqrt(d / honest) 2^-32 of sqrt(2 rho), and tau is 0 to
        all digits; 2^-40 of the scale pays for the arithmetic here.
        """
        if not 0 < rho < math.inf or not 0 < sensitivity < math.inf:
            raise InvalidParameter("rho and sensitivity must be finite and above 0")
        root = math.sqrt(2.0 * rho) - math.ldexp(math.sqrt(dimension / cohort.honest), -SHARE_GRID_BITS)
        if root <= 0:
            raise InvalidParameter("so small a rho is lost in the grid's rounding: ask for a larger one")
        return cls(sensitivity / root * (1.0 + 2.0**-40), cohort)

    @property
    def share_scale(self) -> float:
        """Standard deviation of one party's noise."""
        return self.scale / math.sqrt(self.cohort.honest)

    @property
    def step(self) -> float:
        """The grid's width: the power of two at most 2^-32 of the share's scale, over `parties_per_person`.

        As many vectors may be rounded otherwise on a neighbour's data; together they cost no more than one did.
        """
        return grid_step(self.share_scale / self.parties_per_person, SHARE_GRID_BITS)

    def encoding(self, bound: float, sum_bound: float = math.inf) -> FixedPoint:
        """The integers for vectors whose coordinates are at most ``bound``, with room for everyone's noise."""
        return FixedPoint(bound, self.step, self.cohort.parties, self.share_scale, sum_bound)

    def draw(self, dimension: int, randomness: Randomness) -> Words:
        """This party's noise, to be added to its encoded vector."""
        return randomness.discrete_gaussian(self.share_scale / self.step, dimension).astype(np.uint64)

    def zcdp(self, sensitivity: float, dimension: int) -> float:
        """The rho of one noisy sum that a neighbour moves by at most ``sensitivity`` in L2.

        A neighbour changes one party's vector only, or those of ``parties_per_person``. Rounding moves each of its
        coordinates by at most half a step, on either side: sqrt(d) steps more for each such party.
        """
        distance = sensitivity / self.step + self.parties_per_person * math.sqrt(dimension)
        return distributed_zcdp(distance, self.share_scale / self.step, self.cohort.honest, dimension)
