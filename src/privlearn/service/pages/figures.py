"""Drawings that stand inside a page: elements without style or script, coloured by the style sheet.

Lines are drawn in a stretched square and text beside it at places in per cent, so that a drawing fills a phone and a
wide screen alike while its text keeps its size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

_SIDE = 1000  # of the square

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """Where numbers lie between 0 and 1."""

    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"

    def place(self, value: float) -> float:
        low, high, value = (
            map(math.log, (self.low, self.high, max(value, self.low)))
            if self.scale == "log"
            else (self.low, self.high, value)
        )
        return min(max((value - low) / (high - low), 0.0), 1.0)


@dataclass(frozen=True)
class Line:
    """A line through points; ``style`` is its class in the style sheet and tells lines apart by dashes too."""

    name: str
    points: Points
    style: str


@dataclass(frozen=True)
class Figure:
    """A drawing with its axes."""

    id: str
    title: str
    description: str
    x: Axis
    y: Axis
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    x_label: str
    lines: Sequence[Line]
    areas: Sequence[Line] = ()
    asked: float | None = None
    table: Sequence[Sequence[str]] = ()
    """The same in numbers: a row of headings, then the rows."""

    def __html__(self) -> Markup:
        """What a template shows of it."""
        return Markup(
            '<svg class="figure" role="img" aria-labelledby="{id}-title {id}-desc">'
            '<title id="{id}-title">{title}</title><desc id="{id}-desc">{description}</desc>{inside}</svg>'
        ).format(id=self.id, title=self.title, description=self.description, inside=self._inside())

    def _inside(self) -> Markup:
        parts = [self._grid(), self._plot(), self._labels()]
        return Markup("").join(parts)

    def _grid(self) -> Markup:
        row = Markup('<line class="grid" x2="100%" y1="{:.2f}%" y2="{:.2f}%"/>')
        heights = (self._down(value) for value, _ in self.y_ticks)
        return Markup("").join(row.format(height, height) for height in heights)

    def _plot(self) -> Markup:
        drawn = Markup('<svg viewBox="0 0 {side} {side}" preserveAspectRatio="none">').format(side=_SIDE)
        areas = Markup("").join(
            Markup('<polygon class="{}" points="{} {},{side} {},{side}"/>').format(
                area.style,
                self._path(area.points),
                self._across(area.points[-1][0]),
                self._across(area.points[0][0]),
                side=_SIDE,
            )
            for area in self.areas
        )
        marks = Markup("")
        if self.asked is not None:
            across = self._across(self.asked)
            marks = Markup('<line class="asked" x1="{}" x2="{}" y1="0" y2="{}"/>').format(
                across, across, _SIDE
            )
        lines = Markup("").join(
            Markup('<polyline class="{}" points="{}"/>').format(line.style, self._path(line.points))
            for line in self.lines
        )
        return drawn + areas + marks + lines + Markup("</svg>")

    def _labels(self) -> Markup:
        text = Markup('<text class="{}" x="{:.2f}%" y="{:.2f}%" {}>{}</text>')
        ticks = [
            text.format("left", 0, self._down(value), Markup('dx="-8" dy="4"'), name)
            for value, name in self.y_ticks
        ]
        for value, name in self.x_ticks:
            place = self.x.place(value)
            side = "first" if place < 0.05 else "last" if place > 0.95 else "middle"
            ticks.append(text.format(side, 100 * place, 100, Markup('dy="18"'), name))
        ticks.append(text.format("middle", 50, 100, Markup('dy="40"'), self.x_label))
        return Markup("").join(ticks)

    def _path(self, points: Points) -> str:
        return " ".join(f"{self._across(x)},{round(_SIDE * (1 - self.y.place(y)))}" for x, y in points)

    def _across(self, value: float) -> int:
        return round(_SIDE * self.x.place(value))

    def _down(self, value: float) -> float:
        return 100 * (1 - self.y.place(value))


def round_ticks(high: float, most: int = 5) -> list[float]:
    """0 and round numbers up to ``high``, at most so many steps."""
    step = 10.0 ** math.floor(math.log10(high))
    for smaller in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0):
        if high / (step * smaller) <= most:
            step *= smaller
            break
    return [step * place for place in range(math.floor(high / step * (1 + 1e-9)) + 1)]


def meter(name: str, spent: float, reserved: float, total: float, said: str) -> Markup:
    """A bar of what is spent and reserved of a total, which screen readers call a meter."""
    taken, held = 100 * min(spent / total, 1.0), 100 * min(reserved / total, 1.0)
    return Markup(
        '<div class="meter" role="meter" aria-label="{}" aria-valuemin="0" aria-valuemax="{:g}" aria-valuenow="{:g}" '
        'aria-valuetext="{}"><svg aria-hidden="true" preserveAspectRatio="none">'
        '<rect class="track" width="100%" height="100%"/><rect class="spent" width="{:.3f}%" height="100%"/>'
        '<rect class="reserved" x="{:.3f}%" width="{:.3f}%" height="100%"/></svg></div>'
    ).format(escape(name), total, spent + reserved, escape(said), taken, taken, held)
