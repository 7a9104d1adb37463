"""The view of an estimate: a verdict, a few numbers, and the figure of the lost gain against epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privlearn.errors import InvalidParameter
from privlearn.estimators.forecast.forecast import MEANING
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import MECHANISMS
from privlearn.server.access.keys import Caller
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.jobs.requests import JobRequest
from privlearn.server.pages.choices import FormOfRelease
from privlearn.server.pages.figures import Axis, Figure, Line
from privlearn.server.pages.formatting import number
from privlearn.server.service import Service

_UP_TO_POINTS = "The noise depends on your points. Try it on made-up rows first."
_NOISES = {"gaussian": "Gaussian", "laplace": "Laplace", "norm_gamma": "gamma-distributed"}
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class EstimateView:
    """The parts of an estimate that a template shows."""

    weakness: str | None
    verdict: str
    meaning: str
    properties: Sequence[tuple[str, str]]
    figure: Figure | None


def estimate_view(
    service: Service,
    caller: Caller,
    offered: OfferedDataSet,
    learner: str,
    face: FormOfRelease,
    guarantee: Guarantee,
) -> EstimateView:
    weakness = offered.weakness(guarantee)
    fields = face.fields(learner)
    requested = JobRequest(offered.name, face.kind, guarantee.epsilon, guarantee.delta, fields=fields)
    try:
        found = service.estimate(caller, requested)
    except InvalidParameter:
        if face.name != "points":  # whose kernel may need them
            raise
        return EstimateView(weakness, "", _UP_TO_POINTS, [_price(guarantee)], None)
    return make_estimate_view(found, guarantee, weakness)


def make_estimate_view(found: Mapping[str, Any], guarantee: Guarantee, weakness: str | None) -> EstimateView:
    """Return the view of an estimate of any kind of job; without training, only its cost and method."""
    if "verdict" not in found:
        names = [found["mechanism"]] if found else []
        methods = [("method", MECHANISMS[name].title if name in MECHANISMS else name) for name in names]
        return EstimateView(weakness, "", "", [_price(guarantee), *methods], None)
    return EstimateView(
        weakness,
        found["verdict"],
        MEANING[found["verdict"]].partition(": ")[2].capitalize(),
        [_price(guarantee), *_properties(found)],
        _figure(found["curve"], guarantee.epsilon),
    )


def _price(guarantee: Guarantee) -> tuple[str, str]:
    delta = f" and delta {number(guarantee.delta)}" if guarantee.delta else ""
    return "price", f"epsilon {number(guarantee.epsilon)}{delta}, once; answers are free afterwards"


def _properties(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    needed, kind = found["smallest_epsilon"]["clear"], found["noise_kind"]
    quality = found["quality"]
    low, high = quality["range"]
    return [
        ("gain lost", f"{_share(found['lost'])} of what a typical model gains over a constant prediction"),
        (
            f"expected {quality['measure']}",
            f"{quality['expected']:.2f}, {low:.2f} to {high:.2f} for weak to strong signals; "
            f"{quality['without_privacy']:.2f} without privacy",
        ),
        (
            "noise in a prediction",
            f"{_short(found['noise'])}, against a typical signal of {_short(found['margin'])}",
        ),
        ("clear from", "no epsilon up to 100" if needed is None else f"epsilon {needed:.2g} on"),
        ("method", f"{MECHANISMS[found['mechanism']].title}; {_NOISES.get(kind, kind)} noise"),
    ]


def _figure(curve: Sequence[Mapping[str, Any]], requested: float) -> Figure:
    """Return the figure of the share of the gain that is lost; more than all of it is drawn at the upper edge."""
    points = [(row["epsilon"], 1.0 if row["lost"] is None else min(row["lost"], 1.0)) for row in curve]
    begin, end = points[0][0], points[-1][0]
    rows = [[_short(entry["epsilon"]), _share(entry["lost"]), entry["verdict"]] for entry in curve[::2]]
    return Figure(
        id="noise",
        title="Gain lost against epsilon",
        description=f"The share of the gain that is lost, for a typical signal: {_share(points[0][1])} at epsilon "
        f"{begin:.2g}, {_share(points[-1][1])} at epsilon {end:.2g}.",
        x=Axis(begin, end, "log"),
        y=Axis(0.0, 1.0),
        x_ticks=[(tick, f"{tick:g}") for tick in (0.01, 0.1, 1.0, 10.0)],
        y_ticks=[(tick, f"{tick:.0%}") for tick in _TICKS],
        x_label="epsilon (dotted: what you ask for)",
        lines=[Line("gain lost", points, "line-main")],
        requested=requested,
        table=[["epsilon", "gain lost", "verdict"], *rows],
    )


def _short(value: float | None) -> str:
    return "unbounded" if value is None else f"{value:.2g}"


def _share(value: float | None) -> str:
    return "all" if value is None or value >= 1.0 else f"{value:.0%}"
