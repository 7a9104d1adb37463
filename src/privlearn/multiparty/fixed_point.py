"""Real vectors as integers modulo 2**64, in which masks are uniform and sums are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privlearn.errors import DataError, InvalidParameter

Array = NDArray[np.float64]
Words = NDArray[np.uint64]

MODULUS_BITS = 64
TAIL = 40.0


@dataclass(frozen=True)
class FixedPoint:
    """Multiples of a public step, modulo 2**64; what could overflow is refused when this object is made.

    The sum of ``parties`` vectors lies within parties (bound / step + 1) of zero. Its noise, a sum of discrete
    Gaussians, is subgaussian with their variances added (Canonne, Kamath and Steinke 2020): beyond ``TAIL`` = 40
    standard deviations with probability at most 2 exp(-800) a coordinate. Both together must stay below 2**63. Should
    the improbable happen, the sum wraps around: it is wrong then, and no less private, since wrapping is a function
    of the noisy sum.

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
        values = self.parties * (self.bound / self.step + 1.0)
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
