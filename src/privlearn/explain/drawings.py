"""SVG figures of effects, without style or script; text and axes take the colour of the page around them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from privlearn.data.schema.columns import DateColumn, NumberColumn
from privlearn.explain.bands import Band
from privlearn.release.html import BLUE, COLOURS, GREY, ORANGE, element, figure, svg_points, svg_text

if TYPE_CHECKING:
    from privlearn.explain.column_effects import ColumnEffect, Effects, PairEffect

_WIDTH, _LEFT, _RIGHT, _TOP, _PLOT = 360, 44, 12, 10, 150
_NAMES, _ROW = 150, 20
_MAP_LEFT, _LEGEND, _LETTER = 110, 76, 6.5
_LABELS = 3  # names of classes per line of a legend
MAX_VALUES = 30
"""Values of a list that fit into a figure."""


def importance_figure(effects: Effects) -> str:
    """Return a figure with the importance and error bar of each column, and of each pair above the noise.

    Bars without information are left out.
    """
    drawn: list[ColumnEffect | PairEffect] = [
        *(effect for effect in effects.columns if effects.is_informative(effect)),
        *(pair for pair in effects.pairs if pair.above_noise),
    ]
    if not drawn:
        return ""
    high = max(effect.upper for effect in drawn) or 1.0
    rows = [
        _row(
            index,
            effect.title,
            [(effect.importance, effect.lower, effect.upper)],
            0.0,
            high,
            [_colour(effect)],
        )
        for index, effect in enumerate(drawn)
    ]
    description = "; ".join(
        f"{effect.title}: {effect.importance:.2f}, from {effect.lower:.2f} to {effect.upper:.2f}"
        f"{'' if effect.above_noise else ', not above the noise'}"
        for effect in drawn
    )
    caption = (
        f"Importance: how far a column moves the score on average ({effects.unit}). Grey: not above the noise, "
        "or no larger than what other columns may cause."
    )
    return figure(caption, description, _WIDTH, *_rows(rows, 0.0, high))


def column_figure(effects: Effects, effect: ColumnEffect, limits: tuple[float, float]) -> str:
    """Return a curve for a number or a date, a row for each value of a list; with intervals."""
    column = effects.schema.columns[effect.name]
    unit = f", in {column.unit}" if column.unit else ""
    caption = f"{effect.name}{unit}: effect on the score, with {100 * effects.level:g} % intervals"
    description = "; ".join(_describe(label, band) for label, band in effect.bands.items())
    if isinstance(column, NumberColumn | DateColumn):
        return figure(caption, description, _WIDTH, *_curve(effect, limits))
    return figure(caption, description, _WIDTH, *_value_rows(effect, limits))


def limits_of(effects: Iterable[ColumnEffect]) -> tuple[float, float]:
    """Return one range of the score for all figures, so that they can be compared."""
    bands = [band for effect in effects for band in effect.bands.values()]
    low = min((float(band.lower.min()) for band in bands), default=-1.0)
    high = max((float(band.upper.max()) for band in bands), default=1.0)
    return low, high


def pair_figure(effect: PairEffect, label: Any) -> str:
    """Return a heat map of the joint effect of two columns."""
    grid = effect.grids[label]
    maximum = float(np.abs(grid).max()) or 1.0
    width, height = (_WIDTH - _MAP_LEFT - _LEGEND) / grid.shape[0], _PLOT / grid.shape[1]
    bottom = _TOP + 14 + _PLOT
    cells = [
        element(
            "rect",
            f"<title>{escape(value_name(effect.values[0][across]))}, "
            f"{escape(value_name(effect.values[1][up]))}: {value:+.2f}</title>",
            x=_MAP_LEFT + width * across,
            y=bottom - height * (up + 1),
            width=width,
            height=height,
            fill=_shade(value / maximum),
        )
        for (across, up), value in np.ndenumerate(grid)
    ]
    first, second = effect.names
    names = [svg_text(_MAP_LEFT - 5, _TOP + 8, _cut(second, _MAP_LEFT - 5), "end")]
    names += [
        svg_text(_MAP_LEFT - 5, bottom - height * (index + 0.5) + 4, _cut(name, _MAP_LEFT - 5), "end")
        for index, name in _labels(effect.values[1], every=height >= 11.0)
    ]
    names += [
        svg_text(_MAP_LEFT + width * (index + 0.5), bottom + 14, name, "middle")
        for index, name in _labels_across(effect.values[0], width)
    ]
    names.append(svg_text((_WIDTH + _MAP_LEFT - _LEGEND) / 2, bottom + 28, first, "middle"))
    about = "" if label is None else f" on {label}"
    caption = f"{first} and {second} together{about}: what they add to the sum of the two curves"
    description = f"from {grid.min():+.2f} to {grid.max():+.2f}"
    return figure(caption, description, _WIDTH, bottom + 36, "".join([*cells, *names, _legend(maximum)]))


def _labels_across(values: Sequence[Any], width: float) -> list[tuple[int, str]]:
    """Return labels below a heat map: numbers in full, values of a list cut to the width of their cells."""
    if isinstance(values[0], float | datetime.date):
        return _labels(values, every=all(len(value_name(value)) * _LETTER < width for value in values))
    every = width >= 4.0 * _LETTER
    return [(index, _cut(name, width if every else 8.0 * _LETTER)) for index, name in _labels(values, every)]


def _labels(values: Sequence[Any], every: bool) -> list[tuple[int, str]]:
    """Return every value with its index, or the first and the last."""
    indices = range(len(values)) if every else (0, len(values) - 1)
    return [(index, value_name(values[index])) for index in indices]


def _cut(name: str, width: float) -> str:
    letters = max(int(width / _LETTER), 3)
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def _legend(maximum: float) -> str:
    drawn = []
    for index, share in enumerate((1.0, 0.5, 0.0, -0.5, -1.0)):
        x, y = _WIDTH - _LEGEND + 8, _TOP + 14 + 22 * index
        drawn.append(
            element("rect", x=x, y=y, width=14, height=14, fill=_shade(share), stroke=GREY, stroke_width=0.5)
        )
        signed = "+" * (share > 0.0) + value_name(share * maximum)
        drawn.append(svg_text(x + 19, y + 11, signed, "start"))
    return "".join(drawn)


def _curve(effect: ColumnEffect, limits: tuple[float, float]) -> tuple[int, str]:
    """Return the height and the SVG of a line for each class, with its interval as a band."""
    inside = [_score_axis(limits)]
    bands = list(effect.bands.items())
    count = len(bands[0][1].names)
    across = _LEFT + (_WIDTH - _LEFT - _RIGHT) * (np.arange(count) + 0.5) / count
    for index, (_, band) in enumerate(bands):
        colour = _colour(effect, index)
        outline = [*zip(across, band.upper, strict=True), *zip(across[::-1], band.lower[::-1], strict=True)]
        inside.append(element("polygon", points=_points(outline, limits), fill=colour, opacity=0.18))
        line = _points(zip(across, band.estimate, strict=True), limits)
        dashes = {"stroke_dasharray": "5 3"} if index >= len(COLOURS) else {}  # these colours were taken
        inside.append(element("polyline", points=line, fill="none", stroke=colour, stroke_width=2, **dashes))
    for at in (0, count // 2, count - 1):
        anchor = "start" if at == 0 else "end" if at == count - 1 else "middle"
        inside.append(svg_text(across[at], _TOP + _PLOT + 15, value_name(bands[0][1].names[at]), anchor))
    height, legend = _class_legend(effect, _TOP + _PLOT + 22)
    return height, "".join([*inside, legend])


def _value_rows(effect: ColumnEffect, limits: tuple[float, float]) -> tuple[int, str]:
    """Return the height and the SVG of a row for each value, with a dot and an interval for each class."""
    bands = list(effect.bands.values())
    names = bands[0].names
    rows = [
        _row(
            index,
            value_name(value),
            [(band.estimate[index], band.lower[index], band.upper[index]) for band in bands],
            *limits,
            [_colour(effect, number) for number in range(len(bands))],
        )
        for index, value in enumerate(names[:MAX_VALUES])
    ]
    height, drawn = _rows(rows, *limits)
    below, legend = _class_legend(effect, height)
    return below, drawn + legend


def _class_legend(effect: ColumnEffect, height: int) -> tuple[int, str]:
    """Return the names of the classes in their colours, to be drawn below a figure, and the height with them."""
    labels = [str(label) for label in effect.bands if label is not None]
    drawn = []
    for number, label in enumerate(labels):
        name = f"- - {label}" if number >= len(COLOURS) else label
        x, y = 8 + (_WIDTH - 16) / _LABELS * (number % _LABELS), height + 12 + 14 * (number // _LABELS)
        drawn.append(svg_text(x, y, _cut(name, (_WIDTH - 16) / _LABELS), "start", _colour(effect, number)))
    return height + 14 * -(-len(labels) // _LABELS) + 4, "".join(drawn)


def _row(
    index: int,
    name: str,
    intervals: Sequence[tuple[float, float, float]],
    low: float,
    high: float,
    colours: Sequence[str],
) -> str:
    """Return a name, and for each class a dot with its interval."""
    middle = _TOP + _ROW * index + _ROW / 2
    drawn = [svg_text(_NAMES - 8, middle + 4, name if len(name) <= 22 else f"{name[:21]}…", "end")]
    for number, ((value, lower, upper), colour) in enumerate(zip(intervals, colours, strict=True)):
        y = middle + 4 * (number - (len(intervals) - 1) / 2)
        ends = [_across(end, low, high) for end in (lower, upper)]
        drawn += [
            element("line", x1=ends[0], x2=ends[1], y1=y, y2=y, stroke=colour, stroke_width=3, opacity=0.45),
            element("circle", cx=_across(value, low, high), cy=y, r=4, fill=colour),
        ]
    return "".join(drawn)


def _rows(rows: Sequence[str], low: float, high: float) -> tuple[int, str]:
    """Return the height and the SVG of rows above a common axis from ``low`` to ``high``."""
    bottom = _TOP + _ROW * len(rows)
    axis = [_axis_line(_NAMES, _WIDTH - _RIGHT, bottom, bottom, 0.5)]
    for tick in _ticks(low, high):
        x = _across(tick, low, high)
        axis.append(_axis_line(x, x, _TOP, bottom, 0.15))
        axis.append(svg_text(x, bottom + 14, f"{tick:g}", "middle"))
    return bottom + 20, "".join([*axis, *rows])


def _score_axis(limits: tuple[float, float]) -> str:
    lines = []
    for tick in _ticks(*limits):
        y = _down(tick, limits)
        lines.append(_axis_line(_LEFT, _WIDTH - _RIGHT, y, y, 0.5 if tick == 0.0 else 0.15))
        lines.append(svg_text(_LEFT - 5, y + 4, f"{tick:g}", "end"))
    return "".join(lines)


def _axis_line(x1: float, x2: float, y1: float, y2: float, opacity: float) -> str:
    return element("line", x1=x1, x2=x2, y1=y1, y2=y2, stroke="currentColor", opacity=opacity)


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers."""
    step = 10.0 ** np.floor(np.log10((high - low) / 3.0))
    step *= next(factor for factor in (1.0, 2.0, 5.0, 10.0) if (high - low) / (step * factor) <= 6.0)
    return [
        float(round(step * multiple, 10))
        for multiple in range(int(np.ceil(low / step)), int(high / step) + 1)
    ]


def _across(value: float, low: float, high: float) -> float:
    return float(_NAMES + (_WIDTH - _RIGHT - _NAMES) * (value - low) / (high - low))


def _down(value: float, limits: tuple[float, float]) -> float:
    low, high = limits
    return float(_TOP + _PLOT * (high - value) / (high - low))


def _points(corners: Iterable[tuple[float, float]], limits: tuple[float, float]) -> str:
    return svg_points((x, _down(y, limits)) for x, y in corners)


def _shade(share: float) -> str:
    """Return a colour from orange over white to blue."""
    end = np.array(list(bytes.fromhex((BLUE if share > 0 else ORANGE).removeprefix("#"))))
    red, green, blue = np.rint(255 + (end - 255) * min(abs(share), 1.0)).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _colour(effect: ColumnEffect | PairEffect, index: int = 0) -> str:
    return COLOURS[index % len(COLOURS)] if effect.above_noise else GREY


def value_name(value: Any) -> str:
    """Return a value as text, numbers with three digits."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return f"{float(f'{value:.3g}'):,.10g}" if isinstance(value, float) else str(value)


def _describe(label: Any, band: Band) -> str:
    about = "" if label is None else f"{label}: "
    return about + ", ".join(
        f"{value:+.2f} at {value_name(name)}" for name, value in zip(band.names, band.estimate, strict=True)
    )
