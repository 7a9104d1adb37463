"""Check that a loss's values agree with its properties, at public arguments.

Noise is scaled by these properties, so a wrong one breaks the guarantee silently. Sample arguments prove nothing, but
they detect a property that was copied, forgotten or off by a factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter

_ROUNDING = 2.0**-40  # relative
_NOTHING = 1e-200  # second derivatives below it may be rounded to 0
_FAR_AND_NEAR = np.geomspace(1e-6, 1e6, 200)
ARGUMENTS: Array = np.unique(  # dense where corners are: at 0 and at 1
    np.concatenate(
        [np.linspace(-6.0, 6.0, 4801), *(c + s * _FAR_AND_NEAR for c in (0.0, 1.0) for s in (-1.0, 1.0))]
    )
)


def check_loss_properties(loss: Any) -> None:
    """Public: raise InvalidParameter for a loss of margins or residuals whose values contradict its properties."""
    with np.errstate(all="ignore"):  # a NaN satisfies no claim
        for claim, holds in _claims(loss):
            if not holds.all():
                raise InvalidParameter(
                    f"the loss {loss.name!r} is not as it states: {claim} fails at the argument "
                    f"{ARGUMENTS[np.argmin(holds)]:g}, so that its noise would be wrong"
                )


def _claims(loss: Any) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield each claim of the properties, and at which arguments it holds."""
    values, first, second = (
        f(ARGUMENTS) for f in (loss.value, loss.first_derivative, loss.second_derivative)
    )
    steps, rises, turns = np.diff(ARGUMENTS), np.diff(values), np.diff(first)
    slack = _ROUNDING * loss.lipschitz
    yield f"lipschitz = {loss.lipschitz:g}", np.abs(first) <= loss.lipschitz + slack
    yield "convexity of its value (a derivative that never falls)", turns >= -slack
    yield f"smoothness = {loss.smoothness:g}", turns <= loss.smoothness * steps + slack
    upper = loss.smoothness * (1.0 + _ROUNDING)
    yield (
        f"a second derivative from 0 to smoothness = {loss.smoothness:g}",
        (second >= 0.0) & (second <= upper),
    )
    if np.isfinite(loss.self_concordance):
        change = (1.0 + _ROUNDING) * np.exp(np.minimum(loss.self_concordance * steps, 600.0))
        less, more = np.minimum(second[:-1], second[1:]), np.maximum(second[:-1], second[1:])
        yield f"self_concordance = {loss.self_concordance:g}", (more <= less * change) | (more < _NOTHING)
    if loss.monotone:
        sign = np.sign(first[np.argmax(np.abs(first))])
        yield "monotone = True", sign * first >= -slack
    # Between two arguments a convex function's slope lies between its derivatives at the two.
    loose = _ROUNDING * (1.0 + np.abs(ARGUMENTS) + np.abs(values))[1:] + slack * steps
    lower, upper = first[:-1] * steps - loose, first[1:] * steps + loose
    yield "a derivative that fits the value", (lower <= rises) & (rises <= upper)
