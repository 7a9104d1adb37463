"""Random real numbers, read to as many digits as an answer about them needs.

A uniform real is a string of random bits without end. Of what is known of it after some bits, an interval, everything
else is computed with python-flint's balls: an approximation together with a proven bound on its error. If the balls
do not settle the answer (a number rounds to one integer or to the next), more bits of the same reals are drawn. So the
answer is that of the real numbers themselves, with probability 1, and not of their approximations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from flint import arb, ctx

from privlearn.randomness import Randomness

Answer = TypeVar("Answer")

FIRST_BITS = 128
"""Bits of each real that are drawn at once: for a rounding to 2^-40 more are needed about once in 2^70 coordinates."""

_GUARD_BITS = 64  # of the arithmetic, beyond those that are known
_HALF = arb(0.5)


def exactly(count: int, randomness: Randomness, answer: Callable[[Sequence[arb]], Answer | None]) -> Answer:
    """What ``answer`` says of ``count`` independent reals, uniform between 0 and 1.

    It is asked with balls that contain them, and asked again with smaller ones as long as it says ``None``.
    """
    known, bits = [0] * count, 0
    while True:
        more = bits or FIRST_BITS
        known = [digits << more | randomness.bits(more) for digits in known]
        bits += more
        # Another thread may set the precision meanwhile: balls are larger then, or smaller, but true.
        with ctx.workprec(bits + _GUARD_BITS):
            found = answer([_ball(digits, bits) for digits in known])
        if found is not None:
            return found


def gamma(uniforms: Sequence[arb]) -> arb:
    """A Gamma variable whose shape is their number: a sum of exponentials, -log of a product of uniforms."""
    return -math.prod(uniforms, start=arb(1)).log()


def normals(uniforms: Sequence[arb]) -> list[arb]:
    """As many independent standard normal variables, an even number (Box and Muller 1958)."""
    found = []
    for first, second in zip(uniforms[::2], uniforms[1::2], strict=True):
        radius = (-2 * first.log()).sqrt()
        sine, cosine = (2 * second).sin_cos_pi()
        found += [radius * cosine, radius * sine]
    return found


def norm(vector: Sequence[arb]) -> arb:
    """Euclidean length."""
    return sum((value * value for value in vector), arb(0)).sqrt()


def rounded(vector: Sequence[arb]) -> list[int] | None:
    """The nearest integers; ``None`` if a ball does not tell which one is nearest."""
    whole = [(value + _HALF).floor().unique_fmpz() for value in vector]
    return None if None in whole else [int(value) for value in whole if value is not None]


def _ball(digits: int, bits: int) -> arb:
    """All reals whose binary digits after the point begin with these."""
    return arb((2 * digits + 1, -bits - 1), (1, -bits - 1))
