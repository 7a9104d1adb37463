"""What certificates of version 0.1 said otherwise. Its files keep their words, and are held to these."""

from __future__ import annotations

from privlearn.mechanisms import Mechanism, ReleaseMechanism, SummedMechanism

FIRST_VERSION = "0.1.0"

_FLOATING_POINT = {
    "norm_gamma": "no exact sampler is known: combined from exact draws in floating point, result rounded to a public "
    "grid of 2^-40 of the noise scale; the guarantee holds for the ideal law",
    "psgd": "no exact sampler is known for the noise drawn anew: combined from exact draws in floating point, rounded "
    "to a public grid of 2^-40 of its scale; the guarantee holds for the ideal law",
    "tdil": "answers and draws from a net: exact discrete samplers; rounding is inside the guarantee. Draws from the "
    "unit ball: no exact sampler is known: combined from exact draws in floating point, rounded to a public grid of "
    "2^-40; there the guarantee holds for the ideal law",
}


def first_floating_point(mechanism: Mechanism) -> str | None:
    """Of a mechanism, or a noise, whose real numbers it drew in floating point."""
    by_noise = _FLOATING_POINT.get(mechanism.noise) if isinstance(mechanism, ReleaseMechanism) else None
    return _FLOATING_POINT.get(mechanism.name, by_noise)


def first_covers(mechanism: Mechanism) -> str | None:
    """Of several holders: it did not say what a lying coordinator learns."""
    if not isinstance(mechanism, SummedMechanism):
        return None
    return (
        f"Everything the coordinator sees: {mechanism.transcript}, and so this file. It holds if {mechanism.shares} of "
        f"the {mechanism.parties} parties each add their share of the noise, whoever else colludes with the "
        "coordinator or drops out, and if only sums over all parties are opened (secure sum). Each person's records "
        "lie with one party. Number of parties and records, plan and schema are public and enter as such."
    )
