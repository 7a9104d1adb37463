"""How far a computed kernel value may lie from the kernel's."""

from __future__ import annotations

from privlearn.errors import InvalidParameter
from privlearn.features import Kernel
from privlearn.mechanisms.kernel_task import KERNEL_ROUNDING

_UNIT = 2.0**-53


def kernel_rounding(kernel: Kernel, dimension: int) -> float:
    """Bound on the error of a computed value, divided by the kernel's bound, at dense points of norm at most 1.

    An inner product of d terms errs by at most d u, so the polynomial kernel by degree (d + 2) u of its bound, and a
    squared distance by (4 d + 12) u. The other kernels' sums s, of dense rows, have no negative term, so they err by
    (d + 2) u of themselves and by d u, and s exp(-s) < 1. Each is doubled. For a kernel of one's own
    `KERNEL_ROUNDING` is assumed.

    Raises
    ------
    InvalidParameter
        If it exceeds `KERNEL_ROUNDING`, on which the guarantees rest.
    """
    gamma, terms = float(getattr(kernel, "gamma", 1.0)), dimension + 4
    bounds = {
        "linear": 2.0 * terms * _UNIT,
        "polynomial": 2.0 * getattr(kernel, "degree", 1) * terms * _UNIT,
        "rbf": 8.0 * (gamma + 1.0) * terms * _UNIT,
        "laplacian": 4.0 * terms * _UNIT,
        "cauchy": 4.0 * terms * _UNIT,
    }
    bound = bounds.get(kernel.to_dict()["kernel"], KERNEL_ROUNDING)
    if bound > KERNEL_ROUNDING:
        raise InvalidParameter(
            f"the kernel {kernel.name!r} with gamma={gamma:g} on {dimension} features cannot be computed precisely "
            "enough for the guarantee: take a smaller gamma"
        )
    return bound
