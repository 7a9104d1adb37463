"""A comparison as a page with figures."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import numpy as np

from privlearn._version import __version__
from privlearn.arrays import Array
from privlearn.papers.study.comparison import METHODS, Comparison
from privlearn.papers.study.figures import STYLE, image_of, require_matplotlib
from privlearn.release.html import BLUE, GREEN, GREY, GRID, OLIVE, ORANGE, PINK, SKY, YELLOW, html_table, page

_COLOURS = (BLUE, SKY, GREEN, OLIVE, ORANGE, YELLOW, PINK)  # markers distinguish the methods too
_MARKERS = "osD^vPX"


def draw(comparison: Comparison, model: str) -> str:
    """Return an ``<svg>`` element with a curve for each method."""
    matplotlib = require_matplotlib()
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": model}):
        figure = matplotlib.figure.Figure(figsize=(4.2, 4.8), layout="constrained")
        axes = figure.add_subplot()
        _draw_curves(axes, comparison, model)
        _draw_axes(axes, comparison)
        figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=9, handlelength=3)
        svg = image_of(figure, "svg").decode()
    return _inline(svg, _describe(comparison, model))


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
    axes.axhline(comparison.majority.mean(), color=GREY, linestyle=":", label=comparison.measure.guess)
    axes.axhline(comparison.plain[model].mean(), color="black", linestyle="--", label="no privacy")


def _draw_axes(axes: Any, comparison: Comparison) -> None:
    axes.set_xscale("log")
    axes.set_xticks(comparison.epsilons, [f"{epsilon:g}" for epsilon in comparison.epsilons])
    axes.set_ylim(*_error_range(comparison))
    axes.minorticks_off()
    axes.set_xlabel("epsilon (smaller: more privacy)")
    axes.set_ylabel(comparison.measure.title)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def _error_range(comparison: Comparison) -> tuple[float, float]:
    """Return one range for all drawings, so that they can be compared."""
    curves = [found.mean(axis=1) for methods in comparison.errors.values() for found in methods.values()]
    levels = [[found.mean()] for found in (comparison.majority, *comparison.plain.values())]
    errors = np.concatenate([*curves, *levels])
    margin = 0.05 * (errors.max() - errors.min()) + 0.002
    return errors.min() - margin, errors.max() + margin


def _describe(comparison: Comparison, model: str) -> str:
    """Return the drawing in a sentence, for people who cannot see it."""
    default = comparison.errors[model].get(METHODS[0].name)
    found = "Without privacy"
    if default is not None:
        first, last = default.mean(axis=1)[[0, -1]]
        found = (
            f"The default goes from {_number(first)} at epsilon {comparison.epsilons[0]:g} "
            f"to {_number(last)} at epsilon {comparison.epsilons[-1]:g}; without privacy"
        )
    return (
        f"{_title(comparison)} against epsilon of {model}, a curve for each mechanism. {found} "
        f"it is {_number(comparison.plain[model].mean())}. The table below has all numbers."
    )


def _inline(svg: str, description: str) -> str:
    """Keep the drawing element alone, without namespace addresses, which HTML does not need."""
    element = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg[svg.index("<svg") :])
    return element.replace("<svg", f'<svg role="img" aria-label="{description}"', 1)


_WARNING = """
<div class="warning" role="note"><strong>Looking at this page is not private.</strong> These errors were
measured on the table's own rows, without noise and outside any budget. Make such a page from public or
simulated data only; if the table holds people, do not publish it, and do not choose epsilon or a mechanism
by it.</div>
"""


def write_page(comparison: Comparison) -> str:
    """Return the whole page as HTML."""
    figures = "".join(
        f"<section><h2>{escape(model.capitalize())}</h2>{draw(comparison, model)}</section>"
        for model in comparison.errors
    )
    tables = "".join(_table(comparison, model) for model in comparison.errors)
    body = f"""{_WARNING}{_introduction(comparison)}
<div class="figures">{figures}</div>
<h2>The numbers</h2><p>Mean over the splits, and in small print its standard deviation.</p>
{tables}{_refusals(comparison)}
<footer>Made by <code>privlearn compare</code>, version {__version__}. RA12, CMS11 and RBHT are the
papers' own calibrations; the others are privlearn's tight ones.</footer>"""
    return page(f"{_title(comparison)} against epsilon: {comparison.dataset}", body)


def _introduction(comparison: Comparison) -> str:
    splits = f"{comparison.seeds} random splits" if comparison.seeds > 1 else "one random split"
    return (
        f"<p>{comparison.rows:,} rows; mean over {splits} into 80 % for training and 20 % for the test. "
        f"Gaussian methods have delta = <span>{comparison.delta:g}</span>, the others delta = 0; neighbours: "
        "replace_one. The dashed line is the same model without privacy, the dotted one is what "
        f"{comparison.measure.guess} gives.</p>"
    )


def _table(comparison: Comparison, model: str) -> str:
    columns = len(comparison.epsilons)
    rows = [
        (escape(name), *(_cell(errors, is_default=name == METHODS[0].name) for errors in results))
        for name, results in comparison.errors[model].items()
    ]
    rows.append(("no privacy", *[_cell(comparison.plain[model])] * columns))
    rows.append((escape(comparison.measure.guess), *[_cell(comparison.majority)] * columns))
    headings = ("method", *(f"{epsilon:g}" for epsilon in comparison.epsilons))
    title = f"<h3>{escape(model.capitalize())}: {comparison.measure.title} by epsilon</h3>"
    return title + html_table(headings, rows)


def _cell(errors: Array, *, is_default: bool = False) -> str:
    mean = f"<b>{_number(errors.mean())}</b>" if is_default else _number(errors.mean())
    return f"{mean} <small>{_number(errors.std())}</small>"


def _number(value: float) -> str:
    """Rates to three places; what is in a target's own unit, to four digits at least."""
    return f"{value:.3f}" if value < 10 else f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"


def _title(comparison: Comparison) -> str:
    title = comparison.measure.title
    return title[0].upper() + title[1:]


def _refusals(comparison: Comparison) -> str:
    return "".join(f"<p>{escape(name)}: {escape(reason)}.</p>" for name, reason in comparison.refused.items())
