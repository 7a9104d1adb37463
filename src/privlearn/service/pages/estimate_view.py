"""An estimate as a page shows it: a verdict in words, a few numbers, and a drawing of noise against epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.service.datasets import OfferedDataSet
from privlearn.service.keys import Caller
from privlearn.service.pages.faces import Face
from privlearn.service.pages.figures import Axis, Figure, Line
from privlearn.service.service import Service

_MEANING = {
    "clear": "The noise is small beside the signal. Expect about the error of the same model without privacy.",
    "noisy": "The noise is visible beside the signal. Expect to lose a part of what the model could tell.",
    "drowned": "The noise is about as large as the signal, or larger. Expect little better than guessing: do not spend "
    "budget on this.",
}
_UP_TO_POINTS = "How noisy it will be depends on your points. Try it on made-up rows first."
_RATIOS = (0.03, 0.1, 0.25, 0.75, 3.0)


@dataclass(frozen=True)
class EstimateView:
    """What a template shows."""

    verdict: str
    meaning: str
    facts: Sequence[tuple[str, str]]
    figures: Sequence[tuple[Figure, Sequence[Sequence[str]]]]


def estimate_view(
    service: Service, caller: Caller, offered: OfferedDataSet, learner: str, face: Face, guarantee: Guarantee
) -> EstimateView:
    price = _price(guarantee)
    try:
        found = service.estimate(caller, offered.name, learner, guarantee, mechanism=face.mechanism)
    except InvalidParameter:
        if face.name != "points":  # whose kernel may need them
            raise
        return EstimateView("", _UP_TO_POINTS, [price], [])
    return EstimateView(
        found["verdict"],
        _MEANING[found["verdict"]],
        [price, *_facts(found)],
        [_figure(found["curve"], guarantee.epsilon)],
    )


def _price(guarantee: Guarantee) -> tuple[str, str]:
    delta = f" and delta {guarantee.delta:g}" if guarantee.delta else ""
    return "price", f"epsilon {guarantee.epsilon:g}{delta}, once; answers are free afterwards"


def _facts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    needed = found["smallest_epsilon"]["clear"]
    return [
        (
            "noise in a prediction",
            f"{_short(found['noise'])}, against a typical signal of {_short(found['margin'])}",
        ),
        ("clear from", "no epsilon up to 100" if needed is None else f"epsilon {needed:.2g} on"),
        ("method", f"{found['mechanism'].replace('_', ' ')}, {found['noise_kind']} noise"),
    ]


def _figure(curve: Sequence[Mapping[str, Any]], asked: float) -> tuple[Figure, list[list[str]]]:
    """Noise in units of the signal; what is not finite stays at the upper edge."""
    low, high = _RATIOS[0], _RATIOS[-1]
    points = [(entry["epsilon"], high if entry["ratio"] is None else entry["ratio"]) for entry in curve]
    begin, end = points[0][0], points[-1][0]
    figure = Figure(
        id="noise",
        title="Noise against epsilon",
        description=f"Noise divided by signal falls from {points[0][1]:.2g} at epsilon {begin:.2g} to "
        f"{points[-1][1]:.2g} at epsilon {end:.2g}. Up to 0.25 a model is clear, above 0.75 drowned.",
        x=Axis(begin, end, "log"),
        y=Axis(low, high, "log"),
        x_ticks=[(tick, f"{tick:g}") for tick in (0.01, 0.1, 1.0, 10.0)],
        y_ticks=[(tick, f"{tick:g}") for tick in _RATIOS],
        x_label="epsilon (dotted: what you ask for)",
        lines=[
            Line("noise / signal", points, "line-main"),
            Line("drowned above 0.75", [(begin, 0.75), (end, 0.75)], "line-limit"),
            Line("clear below 0.25", [(begin, 0.25), (end, 0.25)], "line-plain"),
        ],
        asked=asked,
    )
    rows = [[_short(entry["epsilon"]), _short(entry["ratio"]), entry["verdict"]] for entry in curve[::2]]
    return figure, rows


def _short(value: float | None) -> str:
    return "unbounded" if value is None else f"{value:.2g}"
