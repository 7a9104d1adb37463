"""What a reproduction reports: agreements, figures and their panels."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

Row = Mapping[str, Any]
Item = TypeVar("Item")

Track = Callable[[Sequence[Any]], Iterable[Any]]
"""Goes through the parts of the work, and may show how far it is; `iter` shows nothing."""


@dataclass(frozen=True)
class Result:
    """One table or figure of a paper, run again.

    Attributes
    ----------
    title : str
        Paper, figure or table, and setting.
    table : tuple of dict
        One row per measured number, with the same keys in every row.
    figure : callable
        Given the module matplotlib, returns a `matplotlib.figure.Figure` with the paper's axes.
    agreement : str
        In a sentence or two: what of the paper's claims was seen again, and what the paper leaves open.
    """

    title: str
    table: tuple[Row, ...]
    figure: Callable[[Any], Any]
    agreement: str

    def csv(self) -> str:
        """The table for other programs, with every digit."""
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(self.table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.table)
        return text.getvalue()

    def lines(self) -> list[str]:
        """The table for people."""
        cells = [list(self.table[0]), *([_written(value) for value in row.values()] for row in self.table)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return ["  ".join(map(str.rjust, line, widths)) for line in cells]


def averaged(errors: Sequence[float]) -> dict[str, Any]:
    """Mean and standard error, as every table has them; a single error does not tell how sure it is."""
    single = len(errors) == 1
    spread = None if single else float(np.std(errors, ddof=1) / np.sqrt(len(errors)))
    return {"error": float(np.mean(errors)), "standard_error": spread}


def held(claims: Sequence[bool]) -> str:
    """How often a claim of the paper was seen again."""
    return f"{sum(map(bool, claims))} of {len(claims)}"


def _written(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


BLACK, ORANGE, YELLOW, SKY, BLUE, GREEN, PINK = (
    "#000000", "#D55E00", "#E69F00", "#56B4E9", "#0072B2", "#009E73", "#CC79A7",
)  # fmt: skip
"""Okabe and Ito's colours, which colour-blind people can tell apart; markers say the same once more."""


_TICKS = 10  # a tick for each place measured, unless they are so many that they make a line


@dataclass(frozen=True)
class Look:
    """How a curve is drawn; ``line=""`` leaves the markers alone, for values that a paper prints."""

    colour: str
    marker: str
    line: str = "-"
    wide: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes: rows with an algorithm, an error, maybe its standard error, and a number to go across.

    ``evenly`` gives each number across the same room, as the columns of a table have it.
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
    """A matplotlib figure, a line of panels for each line of the grid; bars are standard errors."""
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
    places = sorted({row[panel.x] for row in panel.rows if row[panel.x] is not None})
    shown = {place: number if panel.evenly else place for number, place in enumerate(places)}
    for name, look in looks.items():
        points = [row for row in panel.rows if row["algorithm"] == name and row.get(panel.value) is not None]
        if points:
            _draw_curve(axes, points, panel, look, name, shown)
    axes.set(xlabel=panel.across, title=panel.title)
    axes.margins(x=0.08)  # neighbours' tick labels do not meet
    if panel.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(panel.bottom, panel.top)
    if panel.log_x:
        axes.set_xscale("log")
    if len(places) <= _TICKS:
        axes.set_xticks(list(shown.values()), [f"{place:,g}" for place in places])
        axes.minorticks_off()
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _draw_curve(
    axes: Any, points: Sequence[Row], panel: Panel, look: Look, name: str, shown: Mapping[float, float]
) -> None:
    style: dict[str, Any] = {"color": look.colour, "label": name, "linestyle": look.line}
    style |= {"linewidth": 2.5 if look.wide else 1.3, "zorder": 4 if not look.line else 3 if look.wide else 2}
    if points[0][panel.x] is None:  # it has no such parameter: the same everywhere
        axes.axhline(points[0][panel.value], **style)
        return
    across, up = [shown[row[panel.x]] for row in points], [row[panel.value] for row in points]
    bars = [row.get("standard_error") for row in points]
    style |= {"marker": look.marker, "markersize": 5}
    if None in bars:
        axes.plot(across, up, **style)
    else:
        axes.errorbar(across, up, yerr=bars, **style)
