"""The bounds as a drawing: optimal privacy against regularization, noise against epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from privlearn.study.bounds_table import Case
from privlearn.study.drawing import STYLE, image_of, require_matplotlib

POINTS = 200


def draw_bounds(case: Case, kind: str) -> bytes:
    """An image of that kind, svg, png or pdf."""
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
    """Upper and lower bounds on the least epsilon of all useful mechanisms."""
    strengths = np.geomspace(_weakest(case), max(1.0, case.regularization), POINTS)
    cases = [case.at(regularization=float(strength)) for strength in strengths]
    axes.plot(
        strengths, [at.upper_bound for at in cases], color="#0072B2", linewidth=2, label="Laplace noise keeps"
    )
    if case.ball_bound is not None:
        axes.plot(
            strengths,
            [at.ball_bound for at in cases],
            color="#009E73",
            linestyle="-.",
            label="norm-Gamma noise keeps",
        )
    lower = np.array([at.lower_bound for at in cases])
    if np.any(lower > 0):
        axes.plot(
            strengths,
            np.where(lower > 0, lower, np.nan),
            color="#D55E00",
            linewidth=2,
            label="no mechanism keeps less",
        )
    axes.axvline(
        case.regularization, color="#777777", linestyle=":", label=f"asked for: {case.regularization:g}"
    )
    _finish(axes, "regularization lambda", "epsilon of useful mechanisms")


def _draw_noise(axes: Any, case: Case) -> None:
    """The noise that privacy asks for, beside what usefulness allows: useful where the first is below."""
    epsilons = np.geomspace(min(0.01, case.epsilon), max(100.0, case.epsilon), POINTS)
    needed = [case.at(epsilon=float(epsilon)).private_noise for epsilon in epsilons]
    axes.plot(epsilons, needed, color="#0072B2", linewidth=2, label="privacy needs")
    allowed = np.full(POINTS, case.useful_noise)
    axes.plot(epsilons, allowed, color="#009E73", linestyle="--", label="usefulness allows")
    axes.axvline(case.epsilon, color="#777777", linestyle=":", label=f"asked for: {case.epsilon:g}")
    _finish(axes, "epsilon", "scale of the Laplace noise")


def _finish(axes: Any, across: str, up: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, fontsize=9)


def _weakest(case: Case) -> float:
    """Weak enough for the lower bound to show, since its range grows as the regularization falls."""
    strength = min(1e-6, case.regularization)
    while 0 < case.at(regularization=strength).accuracy_limit <= case.accuracy:
        strength /= 10.0
    return strength / 10.0
