"""A loss as steep, as curved and as monotone as it says: measured at public arguments, refused where it is not.

Noise is scaled by these facts, so a wrong one breaks the promise while nothing fails. Arguments cannot prove a fact;
they find one that was copied, forgotten or off by a factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter

_ROUNDING = 2.0**-40  # relative
_FAR_AND_NEAR = np.geomspace(1e-6, 1e6, 200)
ARGUMENTS: Array = np.unique(  # dense where corners are: at 0 and at 1
    np.concatenate(
        [np.linspace(-6.0, 6.0, 4801), *(c + s * _FAR_AND_NEAR for c in (0.0, 1.0) for s in (-1.0, 1.0))]
    )
)


def refuse_contradicted(loss: Any) -> None:
    """Public: refuse a loss of margins or residuals whose values contradict its facts."""
    with np.errstate(all="ignore"):  # a NaN keeps no claim
        for claim, kept in _claims(loss):
            if not kept.all():
                raise InvalidParameter(
                    f"the loss {loss.name!r} is not as it states: {claim} fails at the argument "
                    f"{ARGUMENTS[np.argmin(kept)]:g}, so that its noise would be wrong"
                )


def _claims(loss: Any) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """What the facts say, and at which arguments it is so."""
    values, slopes, bends = (f(ARGUMENTS) for f in (loss.value, loss.derivative, loss.curvature))
    steps, rises, turns = np.diff(ARGUMENTS), np.diff(values), np.diff(slopes)
    slack = _ROUNDING * loss.lipschitz
    yield f"lipschitz = {loss.lipschitz:g}", np.abs(slopes) <= loss.lipschitz + slack
    yield "convexity of its value (a derivative that never falls)", turns >= -slack
    yield f"smoothness = {loss.smoothness:g}", turns <= loss.smoothness * steps + slack
    most = loss.smoothness * (1.0 + _ROUNDING)
    yield f"a curvature from 0 to smoothness = {loss.smoothness:g}", (bends >= 0.0) & (bends <= most)
    if loss.monotone:
        sign = np.sign(slopes[np.argmax(np.abs(slopes))])
        yield "monotone = True", sign * slopes >= -slack
    # Between two arguments a convex function rises at least as its slope at the first, at most as at the second.
    loose = _ROUNDING * (1.0 + np.abs(ARGUMENTS) + np.abs(values))[1:] + slack * steps
    least, largest = slopes[:-1] * steps - loose, slopes[1:] * steps + loose
    yield "a derivative that fits the value", (least <= rises) & (rises <= largest)
