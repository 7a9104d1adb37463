"""A plan in words and numbers, for people and for programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from privlearn.planning.verdict import LARGEST_RATIO

if TYPE_CHECKING:
    from privlearn.planning.foretold import Foretold

Line = tuple[str, str, str]

_MEANING = {
    "clear": "CLEAR: the noise is small beside the margins. Expect about the error of the model without privacy.",
    "noisy": "NOISY: the noise is visible beside the margins. Expect to lose a part of what the model could tell.",
    "drowned": "DROWNED: the noise is about as large as the margins, or larger. Expect answers little better than "
    "guessing; do not spend budget on this.",
}
_SCALE = f"clear up to {LARGEST_RATIO['clear']:g}, drowned above {LARGEST_RATIO['noisy']:g}"
_BETTER = {"drowned": ("noisy", "clear"), "noisy": ("clear",), "clear": ("clear",)}
_IN_WORDS = {"noisy": "not drowned", "clear": "clear"}
_USUAL_DELTA = 1e-6


def lines(plan: Foretold) -> list[Line]:
    """What, how much, what it means."""
    mechanism = plan.mechanism
    problems = f", {plan.problems} problems" if plan.problems > 1 else ""
    return [
        ("records", f"{plan.rows:,}", f"{plan.features:,} features{problems}"),
        ("epsilon", f"{plan.guarantee.epsilon:g}", str(plan.guarantee)),
        ("mechanism", mechanism.name, f"{mechanism.noise} noise of scale {plan.noise_scale:.3g}"),
        ("regularization", f"{plan.regularization:.3g}", "Lambda, as fit will take it"),
        ("noise in a prediction", f"{plan.noise:.3g}", "standard deviation, estimated for a typical row"),
        ("  at worst", f"{plan.worst_case:.3g}", "proven for every row and all data"),
        ("typical margin", f"{plan.margin:.3g}", "of predictions without noise, estimated"),
        ("noise / margin", f"{plan.ratio:.2g}", f"{plan.verdict}: {_SCALE}"),
    ]


def table(plan: Foretold) -> str:
    """The lines, aligned."""
    rows = lines(plan)
    widths = [max(len(row[place]) for row in rows) for place in range(2)]
    return "\n".join(
        f"{what:<{widths[0]}}  {amount:>{widths[1]}}  {meaning}" for what, amount, meaning in rows
    )


def advice(plan: Foretold) -> list[str]:
    """How strong the promise is if it is weak, the verdict, and what would change it: one sentence a line."""
    weak = [f"WEAK: this promise is {plan.weakness}."] if plan.weakness else []
    return [
        *weak,
        _MEANING[plan.verdict],
        *(_needed(plan, verdict) for verdict in _BETTER[plan.verdict]),
        *_buys_delta(plan),
    ]


def as_dict(plan: Foretold) -> dict[str, Any]:
    """Plain JSON values."""
    mechanism = plan.mechanism
    return {
        "rows": plan.rows,
        "features": plan.features,
        "problems": plan.problems,
        "guarantee": plan.guarantee.to_dict(),
        "mechanism": mechanism.name,
        "noise_kind": mechanism.noise,
        "noise_scale": plan.noise_scale,
        "regularization": plan.regularization,
        "noise": plan.noise,
        "worst_case": plan.worst_case,
        "margin": plan.margin,
        "ratio": plan.ratio,
        "verdict": plan.verdict,
        "weakness": plan.weakness,
        "smallest_rows": {verdict: plan.smallest_rows(verdict) for verdict in LARGEST_RATIO},
        "smallest_epsilon": {verdict: plan.smallest_epsilon(verdict) for verdict in LARGEST_RATIO},
    }


def _needed(plan: Foretold, verdict: str) -> str:
    rows, epsilon = plan.smallest_rows(verdict), plan.smallest_epsilon(verdict)
    at_epsilon = f"epsilon {plan.guarantee.epsilon:g}"
    with_rows = "no number of records is enough" if rows is None else f"{_rounded_up(rows):,.0f} records"
    if epsilon is None:
        with_epsilon = "no epsilon up to 100 is enough"
    else:
        weak = ", hardly private," if plan.at(epsilon=_rounded_up(epsilon)).weakness else ""
        with_epsilon = f"epsilon {_rounded_up(epsilon):g}{weak}"
    return (
        f"Smallest that is {_IN_WORDS[verdict]}: {with_rows} at {at_epsilon}; "
        f"{with_epsilon} with {plan.rows:,} records."
    )


def _buys_delta(plan: Foretold) -> list[str]:
    """Pure noise grows with the number of features, Gaussian noise does not."""
    if plan.guarantee.delta > 0:
        return []
    gaussian = plan.at(delta=_USUAL_DELTA)
    if gaussian.ratio > 0.9 * plan.ratio:
        return []
    return [
        f"With delta {_USUAL_DELTA:g} instead of 0: noise / margin {gaussian.ratio:.2g}, {gaussian.verdict}."
    ]


def _rounded_up(number: float) -> float:
    """To two digits; more would promise a precision that estimates do not have."""
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / step * (1.0 - 1e-12)) * step
