"""The exact privacy curve of a release against the one that its certificate stands for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.accounting import PureCurve
from privlearn.audit.laws import LawPair, exact_laws
from privlearn.audit.neighbours import worst_pairs
from privlearn.audit.report import Finding, judged
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee

SHARES = (0.25, 0.5, 1.0, 1.5)
"""Where curves are compared, in parts of the promised epsilon."""

QUADRATURE = 1e-3
"""What the integrals may be wrong by, relative."""


def claimed_delta(mechanism: Any, epsilon: float) -> float:
    """delta(epsilon) by the mechanism's own theorem and constants."""
    promise = mechanism.guarantee
    if promise.delta == 0:
        return float(PureCurve(mechanism.spends().epsilon).delta(epsilon))
    asked = Guarantee(epsilon, promise.delta, promise.neighbours)
    try:
        spent = dataclasses.replace(mechanism, guarantee=asked).spends()
    except InvalidParameter:  # a delta of 1 and more: so near to zero the theorem claims nothing
        return 1.0
    # a theorem that fixes delta answers with an epsilon, and says nothing below it
    return float(spent.delta) if spent.epsilon <= epsilon else 1.0


def check_curve(mechanism: Any, probes: NDArray[np.float64] | None = None) -> Iterator[Finding]:
    """The exact curve on the worst neighbours stays below the claimed one, and below the promise."""
    promise = mechanism.guarantee
    found = [(pair.name, exact_laws(mechanism, pair, probes)) for pair in worst_pairs(mechanism.task)]
    name, worst = max(found, key=lambda item: item[1].delta(promise.epsilon))
    yield judged(
        "exact curve",
        f"promised epsilon {promise.epsilon:g}, worst of {len(found)} pairs of neighbours: {name}",
        _is_kept(worst, promise) and all(_is_kept(laws, promise) for _, laws in found),
        "the law of the release, integrated numerically, breaks the promise: too little noise",
        {"exact delta": worst.delta(promise.epsilon), "promised delta": promise.delta}
        | ({"largest loss": max(laws.worst_loss for _, laws in found)} if promise.delta == 0 else {}),
    )
    points = [
        (share * promise.epsilon, claimed_delta(mechanism, share * promise.epsilon)) for share in SHARES
    ]
    worst_ratio, where = max(
        (_over(laws.delta(epsilon), claimed, laws), epsilon)
        for epsilon, claimed in points
        for _, laws in found
    )
    yield judged(
        "exact curve",
        f"delta at {len(points)} other epsilons against the certificate's constants",
        worst_ratio <= 1.0 + QUADRATURE,
        f"at epsilon {where:.3g} the exact curve lies above the one that the constants claim",
        {"largest share of the claim": worst_ratio},
    )


def _is_kept(laws: LawPair, promise: Guarantee) -> bool:
    if promise.delta == 0:
        return laws.worst_loss <= promise.epsilon * (1.0 + 1e-9)
    return _over(laws.delta(promise.epsilon), promise.delta, laws) <= 1.0 + QUADRATURE


def _over(exact: float, claimed: float, laws: LawPair) -> float:
    """Exact over claimed, what the grid missed set aside."""
    return max(exact - 2.0 * laws.lost_mass, 0.0) / max(claimed, 1e-12)
