"""Figures inside a page, coloured by the style sheet.

Lines are drawn in a stretched square, and text next to it at positions in per cent, so that a figure fills a phone and
a wide screen alike while its text keeps its size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

from privlearn.release.html import element

_SIDE = 1000  # of the square

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """An axis; `position` maps its values to 0, ..., 1."""

    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"

    def position(self, value: float) -> float:
        low, high, value = (
            map(math.log, (self.low, self.high, max(value, self.low)))
            if self.scale == "log"
            else (self.low, self.high, value)
        )
        return min(max((value - low) / (high - low), 0.0), 1.0)


@dataclass(frozen=True)
class Line:
    """A line through points; ``style`` is its class in the style sheet, which also sets its dashes."""

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
    requested: float | None = None
    table: Sequence[Sequence[str]] = ()
    """The numbers of a figure: a row of headings, then the rows."""

    def __html__(self) -> Markup:
        """Return the figure for a template."""
        title, description = f"{self.id}-title", f"{self.id}-desc"
        named = element("title", escape(self.title), id=title) + element(
            "desc", escape(self.description), id=description
        )
        content = named + self._grid() + self._plot() + self._labels()
        labels = f"{title} {description}"
        return Markup(element("svg", content, class_="figure", role="img", aria_labelledby=labels))

    def _grid(self) -> str:
        heights = (self._down(value) for value, _ in self.y_ticks)
        return "".join(element("line", class_="grid", x2="100%", y1=down, y2=down) for down in heights)

    def _plot(self) -> str:
        shapes = []
        for area in self.areas:
            last, first = self._across(area.points[-1][0]), self._across(area.points[0][0])
            outline = f"{self._path(area.points)} {last},{_SIDE} {first},{_SIDE}"
            shapes.append(element("polygon", class_=area.style, points=outline))
        if self.requested is not None:
            across = self._across(self.requested)
            shapes.append(element("line", class_="requested", x1=across, x2=across, y1=0, y2=_SIDE))
        for line in self.lines:
            shapes.append(element("polyline", class_=line.style, points=self._path(line.points)))
        square = {"viewBox": f"0 0 {_SIDE} {_SIDE}", "preserveAspectRatio": "none"}
        return element("svg", "".join(shapes), **square)

    def _labels(self) -> str:
        texts = [
            element("text", escape(name), class_="left", x="0%", y=self._down(value), dx=-8, dy=4)
            for value, name in self.y_ticks
        ]
        for value, name in self.x_ticks:
            position = self.x.position(value)
            side = "first" if position < 0.05 else "last" if position > 0.95 else "middle"
            across = f"{100 * position:.2f}%"
            texts.append(element("text", escape(name), class_=side, x=across, y="100%", dy=18))
        texts.append(element("text", escape(self.x_label), class_="middle", x="50%", y="100%", dy=40))
        return "".join(texts)

    def _path(self, points: Points) -> str:
        return " ".join(f"{self._across(x)},{round(_SIDE * (1 - self.y.position(y)))}" for x, y in points)

    def _across(self, value: float) -> int:
        return round(_SIDE * self.x.position(value))

    def _down(self, value: float) -> str:
        return f"{100 * (1 - self.y.position(value)):.2f}%"


def round_ticks(high: float) -> list[float]:
    """Return 0 and round numbers up to ``high``, in at most five steps."""
    step = 10.0 ** math.floor(math.log10(high))
    for smaller in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0):
        if high / (step * smaller) <= 5:
            step *= smaller
            break
    return [step * index for index in range(math.floor(high / step * (1 + 1e-9)) + 1)]


def meter(name: str, spent: float, reserved: float, total: float, text: str) -> Markup:
    """Return a bar of what is spent and reserved of a total; screen readers read ``text``."""
    spent_width, reserved_width = (f"{100 * min(part / total, 1.0):.3f}%" for part in (spent, reserved))
    bars = (
        element("rect", class_="track", width="100%", height="100%")
        + element("rect", class_="spent", width=spent_width, height="100%")
        + element("rect", class_="reserved", x=spent_width, width=reserved_width, height="100%")
    )
    drawing = element("svg", bars, aria_hidden="true", preserveAspectRatio="none")
    values = {"aria_valuemin": 0, "aria_valuemax": f"{total:g}", "aria_valuenow": f"{spent + reserved:g}"}
    described = {"role": "meter", "aria_label": name, **values, "aria_valuetext": text}
    return Markup(element("div", drawing, class_="meter", **described))
