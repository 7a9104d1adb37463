"""A plan as a drawing: noise and margins against epsilon, and against the number of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from privlearn.planning.forecast import LARGEST_RATIO, LEAST_EPSILON, MOST_EPSILON, MOST_ROWS
from privlearn.planning.planner import Plan
from privlearn.study.drawing import STYLE, image_of, require_matplotlib

POINTS = 25
_REACH = 30.0  # how far around what was asked for


def draw_plan(plan: Plan, kind: str) -> bytes:
    """An image of that kind, svg, png or pdf."""
    matplotlib = require_matplotlib()
    rows, epsilon = plan.rows, plan.guarantee.epsilon
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "plan"}):
        figure = matplotlib.figure.Figure(figsize=(9.6, 4.8), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        epsilons = _around(epsilon, LEAST_EPSILON, MOST_EPSILON)
        _draw_panel(left, epsilons, lambda at: plan.at(epsilon=at), epsilon)
        left.set_xlabel(f"epsilon, with {rows:,} {plan.counted}")
        left.set_ylabel("size in a prediction")
        sizes = np.unique(np.round(_around(float(rows), 1.0, float(MOST_ROWS))))
        _draw_panel(right, sizes, lambda at: plan.at(rows=int(at)), float(rows))
        right.set_xlabel(f"{plan.counted}, at epsilon {epsilon:g}")
        for axes in (left, right):
            _plain_numbers(axes, matplotlib.ticker)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
        figure.suptitle(
            f"{plan.verdict}: noise {plan.noise:.2g} against margins of {plan.margin:.2g} "
            f"with {rows:,} {plan.counted} at {_promise(plan)}",
            fontsize=10,
        )
        return image_of(figure, kind)


def _draw_panel(axes: Any, places: Any, plan_at: Callable[[float], Plan], asked: float) -> None:
    plans = [plan_at(float(place)) for place in places]
    margin, noise = [made.margin for made in plans], [made.noise for made in plans]
    axes.plot(places, margin, color="#009E73", linewidth=2, linestyle="--", label="typical margin")
    axes.plot(places, noise, color="#0072B2", linewidth=2.5, label="noise in a prediction, estimated")
    worst = [made.worst_case for made in plans]
    axes.plot(places, worst, color="#0072B2", linewidth=1, linestyle=":", label="noise at worst, proven")
    _shade(axes, places, [made.ratio for made in plans])
    axes.axvline(asked, color="#777777", linestyle=":", label="asked for")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(places[0], places[-1])
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _shade(axes: Any, places: Any, ratios: Any) -> None:
    """The parts of the axis that are drowned and clear."""
    between = np.geomspace(places[0], places[-1], 20 * POINTS)
    ratio = np.exp(np.interp(np.log(between), np.log(places), np.log(ratios)))
    drowned, clear = ratio > LARGEST_RATIO["noisy"], ratio <= LARGEST_RATIO["clear"]
    everywhere = axes.get_xaxis_transform()
    for where, colour, label in ((drowned, "#D55E00", "drowned"), (clear, "#009E73", "clear")):
        axes.fill_between(
            between, 0, 1, where, transform=everywhere, color=colour, alpha=0.12, linewidth=0, label=label
        )


def _plain_numbers(axes: Any, ticker: Any) -> None:
    """0.5 and 1,000 rather than powers of ten."""
    for axis, subs in ((axes.xaxis, (1.0,)), (axes.yaxis, (1.0, 2.0, 5.0))):
        axis.set_major_locator(ticker.LogLocator(subs=subs))
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(ticker.NullFormatter())


def _around(asked: float, low: float, high: float) -> Any:
    return np.geomspace(max(asked / _REACH, low), min(asked * _REACH, high), POINTS)


def _promise(plan: Plan) -> str:
    delta = f", delta {plan.guarantee.delta:g}" if plan.guarantee.delta else ""
    return f"epsilon {plan.guarantee.epsilon:g}{delta}"
