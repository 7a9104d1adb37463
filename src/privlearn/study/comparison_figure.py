"""Error against epsilon as an SVG drawing that stands inside a page."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from privlearn.study.comparison import METHODS, Comparison
from privlearn.study.drawing import STYLE, image_of, require_matplotlib

# Okabe and Ito's colours, which colour-blind people can tell apart; markers say the same once more.
_COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#8A7A00", "#D55E00", "#E69F00", "#CC79A7")
_MARKERS = "osD^vPX"


def draw(comparison: Comparison, model: str) -> str:
    """An ``<svg>`` element with a curve for each method."""
    matplotlib = require_matplotlib()
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": model}):
        figure = matplotlib.figure.Figure(figsize=(4.2, 4.8), layout="constrained")
        axes = figure.add_subplot()
        _draw_curves(axes, comparison, model)
        _draw_axes(axes, comparison)
        figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=9, handlelength=3)
        svg = image_of(figure, "svg").decode()
    return _inline(svg, _described(comparison, model))


def _draw_curves(axes: Any, comparison: Comparison, model: str) -> None:
    for method, colour, marker in zip(METHODS, _COLOURS, _MARKERS, strict=True):
        if method.name not in comparison.errors[model]:
            continue
        means = comparison.errors[model][method.name].mean(axis=1)
        is_default = method is METHODS[0]
        axes.plot(
            comparison.epsilons,
            means,
            color=colour,
            marker=marker,
            markersize=5,
            linewidth=2.5 if is_default else 1.3,
            zorder=3 if is_default else 2,
            label=method.name,
        )
    axes.axhline(comparison.majority.mean(), color="#777777", linestyle=":", label="majority class")
    axes.axhline(comparison.plain[model].mean(), color="black", linestyle="--", label="no privacy")


def _draw_axes(axes: Any, comparison: Comparison) -> None:
    axes.set_xscale("log")
    axes.set_xticks(comparison.epsilons, [f"{epsilon:g}" for epsilon in comparison.epsilons])
    axes.set_ylim(*_error_range(comparison))
    axes.minorticks_off()
    axes.set_xlabel("epsilon (smaller: more privacy)")
    axes.set_ylabel("test error")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _error_range(comparison: Comparison) -> tuple[float, float]:
    """One range for all drawings, so that they can be compared."""
    curves = [found.mean(axis=1) for methods in comparison.errors.values() for found in methods.values()]
    levels = [[found.mean()] for found in (comparison.majority, *comparison.plain.values())]
    errors = np.concatenate([*curves, *levels])
    margin = 0.05 * (errors.max() - errors.min()) + 0.002
    return errors.min() - margin, errors.max() + margin


def _described(comparison: Comparison, model: str) -> str:
    """The drawing in a sentence, for those who cannot see it."""
    default = comparison.errors[model].get(METHODS[0].name)
    found = "Without privacy"
    if default is not None:
        first, last = default.mean(axis=1)[[0, -1]]
        found = (
            f"The default goes from {first:.3f} at epsilon {comparison.epsilons[0]:g} "
            f"to {last:.3f} at epsilon {comparison.epsilons[-1]:g}; without privacy"
        )
    return (
        f"Test error against epsilon of {model}, a curve for each mechanism. {found} "
        f"the error is {comparison.plain[model].mean():.3f}. The table below has all numbers."
    )


def _inline(svg: str, description: str) -> str:
    """Keep the drawing element alone, without namespace addresses, which HTML does not need."""
    element = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg[svg.index("<svg") :])
    return element.replace("<svg", f'<svg role="img" aria-label="{description}"', 1)
