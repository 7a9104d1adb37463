"""Figures of bounds and forecasts, their common style, and how figures become files."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privlearn.errors import InvalidParameter, PrivlearnError, preview
from privlearn.estimators.forecast.fit_forecast import Plan
from privlearn.estimators.forecast.forecast import MAX_EPSILON, MAX_ROWS, MIN_EPSILON
from privlearn.papers.study.case import Case
from privlearn.release.html import BLUE, GREEN, GREY, GRID, ORANGE

STYLE = {
    "font.size": 10,
    "font.family": "sans-serif",
    "svg.fonttype": "none",  # text remains text, which can be read aloud, searched and copied
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_KINDS = ("svg", "png", "pdf")


def require_matplotlib() -> Any:
    """Return the module matplotlib, with its figures; refuse if it is not installed."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise PrivlearnError("drawing needs matplotlib. Run: pip install 'privlearn[plots]'") from None
    return matplotlib


def image_of(figure: Any, kind: str) -> bytes:
    """Return a drawing as the content of a file of that kind, with the same bytes in every run."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=_NO_METADATA if kind == "svg" else None, dpi=150)
    return buffer.getvalue()


def kind_of_image(path: Path) -> str:
    """Return svg, png or pdf, by the end of the name."""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in _KINDS:
        raise InvalidParameter(f"--out must end in .{', .'.join(_KINDS)}, not {preview(path.name)}")
    return kind


BOUND_POINTS = 200


def draw_bounds(case: Case, kind: str) -> bytes:
    """Return an image of bounds as svg, png or pdf."""
    matplotlib = require_matplotlib()
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "bounds"}):
        figure = matplotlib.figure.Figure(figsize=(9.6, 4.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_privacy(left, case)
        _draw_noise(right, case)
        figure.suptitle(
            f"{case.rows:,} records, {case.kernel} kernel, {case.columns} columns; useful: within "
            f"{case.accuracy:g}, except with probability {case.failure:g}",
            fontsize=10,
        )
        return image_of(figure, kind)


def _draw_privacy(axes: Any, case: Case) -> None:
    """Draw upper and lower bounds on the smallest epsilon of all useful mechanisms."""
    strengths = np.geomspace(_weakest(case), max(1.0, case.regularization), BOUND_POINTS)
    cases = [case.at(regularization=float(strength)) for strength in strengths]
    axes.plot(
        strengths, [at.upper_bound for at in cases], color=BLUE, linewidth=2, label="with Laplace noise"
    )
    if case.ball_bound is not None:
        in_ball = [at.ball_bound for at in cases]
        axes.plot(strengths, in_ball, color=GREEN, linestyle="-.", label="norm-Gamma noise achieves")
    lower = np.array([at.lower_bound for at in cases])
    if np.any(lower > 0):
        shown = np.where(lower > 0, lower, np.nan)
        axes.plot(strengths, shown, color=ORANGE, linewidth=2, label="no mechanism goes below")
    axes.axvline(case.regularization, color=GREY, linestyle=":", label=f"requested: {case.regularization:g}")
    _finish(axes, "regularization lambda", "epsilon of useful mechanisms")


def _draw_noise(axes: Any, case: Case) -> None:
    """Draw the noise that privacy needs and the noise that usefulness allows."""
    epsilons = np.geomspace(min(0.01, case.epsilon), max(100.0, case.epsilon), BOUND_POINTS)
    needed = [case.at(epsilon=float(epsilon)).private_noise for epsilon in epsilons]
    axes.plot(epsilons, needed, color=BLUE, linewidth=2, label="privacy needs")
    allowed = np.full(BOUND_POINTS, case.useful_noise)
    axes.plot(epsilons, allowed, color=GREEN, linestyle="--", label="usefulness allows")
    axes.axvline(case.epsilon, color=GREY, linestyle=":", label=f"requested: {case.epsilon:g}")
    _finish(axes, "epsilon", "scale of the Laplace noise")


def _finish(axes: Any, across: str, up: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, fontsize=9)


def _weakest(case: Case) -> float:
    """Return a regularization so weak that the lower bound applies, since its range grows as that falls."""
    strength = min(1e-6, case.regularization)
    while 0 < case.at(regularization=strength).accuracy_limit <= case.accuracy:
        strength /= 10.0
    return strength / 10.0


FORECAST_POINTS = 25
_REACH = 30.0  # factor around the requested value


def draw_forecast(plan: Plan, kind: str) -> bytes:
    """Return an image of noise and margins against epsilon and the number of records, as svg, png or pdf."""
    matplotlib = require_matplotlib()
    rows, epsilon = plan.rows, plan.guarantee.epsilon
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "plan"}):
        figure = matplotlib.figure.Figure(figsize=(9.6, 4.8), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        epsilons = _around(epsilon, MIN_EPSILON, MAX_EPSILON)
        _draw_panel(left, epsilons, lambda at: plan.at(epsilon=at), epsilon)
        left.set_xlabel(f"epsilon, with {rows:,} {plan.count_noun}")
        left.set_ylabel("size in a prediction")
        sizes = np.unique(np.round(_around(float(rows), 1.0, float(MAX_ROWS))))
        _draw_panel(right, sizes, lambda at: plan.at(rows=int(at)), float(rows))
        right.set_xlabel(f"{plan.count_noun}, at epsilon {epsilon:g}")
        for axes in (left, right):
            _plain_numbers(axes, matplotlib.ticker)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
        figure.suptitle(
            f"{plan.verdict}: privacy costs {min(plan.lost, 1.0):.0%} of a typical model's gain "
            f"with {rows:,} {plan.count_noun} at {_describe_guarantee(plan)}",
            fontsize=10,
        )
        return image_of(figure, kind)


def _draw_panel(axes: Any, values: Any, forecast_at: Callable[[float], Plan], requested: float) -> None:
    forecasts = [forecast_at(float(value)) for value in values]
    margin, noise = [one.margin for one in forecasts], [one.noise for one in forecasts]
    axes.plot(values, margin, color=GREEN, linewidth=2, linestyle="--", label="typical margin")
    axes.plot(values, noise, color=BLUE, linewidth=2.5, label="noise in a prediction, estimated")
    worst = [one.worst_case for one in forecasts]
    axes.plot(values, worst, color=BLUE, linewidth=1, linestyle=":", label="noise at worst, proven")
    _shade(axes, values, forecasts)
    axes.axvline(requested, color=GREY, linestyle=":", label="requested")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(values[0], values[-1])
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def _shade(axes: Any, values: Any, forecasts: Sequence[Plan]) -> None:
    """Shade the parts of the axis where the signal is drowned or clear."""
    between = np.geomspace(values[0], values[-1], 20 * FORECAST_POINTS)
    not_clear, drowned = (
        np.interp(np.log(between), np.log(values), [min(one.exceeds(verdict), 10.0) for one in forecasts])
        > 1.0
        for verdict in ("clear", "noisy")
    )
    clear = ~not_clear
    everywhere = axes.get_xaxis_transform()
    for where, colour, label in ((drowned, ORANGE, "drowned"), (clear, GREEN, "clear")):
        axes.fill_between(
            between, 0, 1, where, transform=everywhere, color=colour, alpha=0.12, linewidth=0, label=label
        )


def _plain_numbers(axes: Any, ticker: Any) -> None:
    """Label ticks with 0.5 and 1,000 rather than powers of ten."""
    for axis, subs in ((axes.xaxis, (1.0,)), (axes.yaxis, (1.0, 2.0, 5.0))):
        axis.set_major_locator(ticker.LogLocator(subs=subs))
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(ticker.NullFormatter())


def _around(requested: float, low: float, high: float) -> Any:
    return np.geomspace(max(requested / _REACH, low), min(requested * _REACH, high), FORECAST_POINTS)


def _describe_guarantee(plan: Plan) -> str:
    delta = f", delta {plan.guarantee.delta:g}" if plan.guarantee.delta else ""
    return f"epsilon {plan.guarantee.epsilon:g}{delta}"
