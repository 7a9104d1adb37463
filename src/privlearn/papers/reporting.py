"""Results of reproductions: a table, a sentence about the agreement with the paper, and a figure of panels."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from privlearn.release.html import GRID

Row = Mapping[str, Any]
Item = TypeVar("Item")

Track = Callable[[Sequence[Any]], Iterable[Any]]
"""Iterates over the parts of the work and may show progress; `iter` shows none."""


@dataclass(frozen=True)
class Result:
    """A reproduced table or figure of a paper.

    Attributes
    ----------
    title : str
        Paper, figure or table, and setting.
    table : tuple of dict
        One row per measured number, with the same keys in every row.
    figure : callable
        Given the module matplotlib, returns a `matplotlib.figure.Figure` with the paper's axes.
    agreement : str
        The claims of the paper that were reproduced, and its open points, in a few sentences.
    """

    title: str
    table: tuple[Row, ...]
    figure: Callable[[Any], Any]
    agreement: str

    def csv(self) -> str:
        """Return the table as CSV, with every digit."""
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(self.table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.table)
        return text.getvalue()

    def lines(self) -> list[str]:
        """Return the table as aligned lines of text."""
        cells = [list(self.table[0]), *([_format(value) for value in row.values()] for row in self.table)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return ["  ".join(map(str.rjust, line, widths)) for line in cells]


def mean_error(errors: Sequence[float]) -> dict[str, Any]:
    """Return the mean and its standard error, which a single error does not have."""
    single = len(errors) == 1
    standard_error = None if single else float(np.std(errors, ddof=1) / np.sqrt(len(errors)))
    return {"error": float(np.mean(errors)), "standard_error": standard_error}


def tally(claims: Sequence[bool]) -> str:
    """Return how often a claim of the paper was reproduced, as text."""
    return f"{sum(map(bool, claims))} of {len(claims)}"


def _format(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


BLACK = "#000000"


_MAX_TICKS = 10  # one for each measured value; more would overlap


@dataclass(frozen=True)
class Look:
    """The style of a curve; ``line=""`` draws markers only, for values that a paper prints."""

    colour: str
    marker: str
    line: str = "-"
    wide: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes: rows with an algorithm, an error, an optional standard error, and a number for the x axis.

    ``evenly`` puts these numbers at equal distances, like the columns of a table.
    """

    title: str
    across: str
    rows: Sequence[Row]
    x: str
    up: str = "test error"
    log_x: bool = False
    log_y: bool = False
    evenly: bool = False
    bottom: float = 0.0
    top: float | None = None
    value: str = "error"


def draw_panels(
    matplotlib: Any,
    title: str,
    grid: Sequence[Sequence[Panel]],
    looks: Mapping[str, Look],
    sharey: Any = True,
) -> Any:
    """Return a matplotlib figure with a line of panels for each line of the grid; bars are standard errors."""
    height = 1.2 + 3.6 * len(grid)
    figure = matplotlib.figure.Figure(figsize=(9.6, height), layout="constrained")
    all_axes = figure.subplots(len(grid), len(grid[0]), sharey=sharey, squeeze=False)
    handles: dict[str, Any] = {}
    for line, axes_line in zip(grid, all_axes, strict=True):
        for panel, axes in zip(line, axes_line, strict=True):
            _draw_panel(axes, panel, looks)
            handles |= {name: handle for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
        axes_line[0].set_ylabel(line[0].up)
    figure.suptitle(title)
    ordered = [name for name in looks if name in handles]
    figure.legend(
        [handles[name] for name in ordered], ordered, loc="outside lower center", ncols=3, frameon=False
    )
    return figure


def _draw_panel(axes: Any, panel: Panel, looks: Mapping[str, Look]) -> None:
    values = sorted({row[panel.x] for row in panel.rows if row[panel.x] is not None})
    positions = {value: number if panel.evenly else value for number, value in enumerate(values)}
    for name, look in looks.items():
        points = [row for row in panel.rows if row["algorithm"] == name and row.get(panel.value) is not None]
        if points:
            _draw_curve(axes, points, panel, look, name, positions)
    axes.set(xlabel=panel.across, title=panel.title)
    axes.margins(x=0.08)  # so that tick labels of neighbouring panels do not overlap
    if panel.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(panel.bottom, panel.top)
    if panel.log_x:
        axes.set_xscale("log")
    if len(values) <= _MAX_TICKS:
        axes.set_xticks(list(positions.values()), [f"{value:,g}" for value in values])
        axes.minorticks_off()
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def _draw_curve(
    axes: Any, points: Sequence[Row], panel: Panel, look: Look, name: str, positions: Mapping[float, float]
) -> None:
    style: dict[str, Any] = {"color": look.colour, "label": name, "linestyle": look.line}
    style |= {"linewidth": 2.5 if look.wide else 1.3, "zorder": 4 if not look.line else 3 if look.wide else 2}
    if points[0][panel.x] is None:  # the algorithm has no such parameter: a horizontal line
        axes.axhline(points[0][panel.value], **style)
        return
    across, up = [positions[row[panel.x]] for row in points], [row[panel.value] for row in points]
    bars = [row.get("standard_error") for row in points]
    style |= {"marker": look.marker, "markersize": 5}
    if None in bars:
        axes.plot(across, up, **style)
    else:
        axes.errorbar(across, up, yerr=bars, **style)
