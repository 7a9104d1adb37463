"""Effects as figures: plain SVG without style or script; text and axes take the colour of the page they stand in."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from privlearn.data.schema.columns import DateColumn, NumberColumn
from privlearn.explain.bands import Band
from privlearn.explain.column_effects import ColumnEffect, Effects, PairEffect

# Okabe and Ito's colours, which colour-blind people can tell apart
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A7A00", "#56B4E9", "#E69F00")
GREY = "#8a8f98"
_WIDTH, _LEFT, _RIGHT, _TOP, _PLOT = 360, 44, 12, 10, 150
_NAMES, _ROW = 150, 20
_MAP_LEFT, _LEGEND, _LETTER = 110, 76, 6.5
MOST_VALUES = 30
"""Of a list, that a figure has room for."""


def importance_figure(effects: Effects) -> str:
    """One row per column, and per pair above the noise: its importance and error bar."""
    shown: list[ColumnEffect | PairEffect] = [
        *effects.columns,
        *(pair for pair in effects.pairs if pair.above_noise),
    ]
    high = max((effect.upper for effect in shown), default=1.0) or 1.0
    rows = [
        _row(
            place,
            _title(effect),
            [(effect.importance, effect.lower, effect.upper)],
            0.0,
            high,
            [_colour(effect)],
        )
        for place, effect in enumerate(shown)
    ]
    said = "; ".join(
        f"{_title(effect)}: {effect.importance:.2f}, from {effect.lower:.2f} to {effect.upper:.2f}"
        f"{'' if effect.above_noise else ', not above the noise'}"
        for effect in shown
    )
    caption = f"Importance: how far a column moves the score on average ({effects.unit}). Grey: not above the noise."
    return _figure(caption, said, *_rows(rows, 0.0, high))


def column_figure(effects: Effects, effect: ColumnEffect, limits: tuple[float, float]) -> str:
    """A curve of a number or a date, a row for each value of a list; with its interval."""
    column = effects.schema.columns[effect.name]
    unit = f", in {column.unit}" if column.unit else ""
    caption = f"{effect.name}{unit}: effect on the score, with {100 * effects.level:g} % intervals"
    said = "; ".join(_said(label, band) for label, band in effect.bands.items())
    if isinstance(column, NumberColumn | DateColumn):
        return _figure(caption, said, *_curve(effect, limits))
    return _figure(caption, said, *_listed(effect, limits))


def limits_of(shown: Iterable[ColumnEffect]) -> tuple[float, float]:
    """One range of the score for all figures, so that they can be compared."""
    bands = [band for effect in shown for band in effect.bands.values()]
    low = min((float(band.lower.min()) for band in bands), default=-1.0)
    high = max((float(band.upper.max()) for band in bands), default=1.0)
    return low, high


def pair_figure(effect: PairEffect, label: Any) -> str:
    """A heat map: what both columns add together, beside the sum of their curves."""
    grid = effect.grids[label]
    most = float(np.abs(grid).max()) or 1.0
    width, height = (_WIDTH - _MAP_LEFT - _LEGEND) / grid.shape[0], _PLOT / grid.shape[1]
    bottom = _TOP + 14 + _PLOT
    cells = [
        f'<rect x="{_MAP_LEFT + width * across:.1f}" y="{bottom - height * (up + 1):.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" fill="{_shade(value / most)}"><title>{escape(value_name(effect.values[0][across]))}, '
        f"{escape(value_name(effect.values[1][up]))}: {value:+.2f}</title></rect>"
        for (across, up), value in np.ndenumerate(grid)
    ]
    first, second = effect.names
    names = [_text(_MAP_LEFT - 5, _TOP + 8, _cut(second, _MAP_LEFT - 5), "end")]
    names += [
        _text(_MAP_LEFT - 5, bottom - height * (place + 0.5) + 4, _cut(name, _MAP_LEFT - 5), "end")
        for place, name in _labelled(effect.values[1], every=height >= 11.0)
    ]
    names += [
        _text(_MAP_LEFT + width * (place + 0.5), bottom + 14, name, "middle")
        for place, name in _labels_across(effect.values[0], width)
    ]
    names.append(_text((_WIDTH + _MAP_LEFT - _LEGEND) / 2, bottom + 28, first, "middle"))
    about = "" if label is None else f" on {label}"
    caption = f"{first} and {second} together{about}: what they add beside the sum of the two curves"
    said = f"from {grid.min():+.2f} to {grid.max():+.2f}"
    return _figure(caption, said, bottom + 36, "".join([*cells, *names, _legend(most)]))


def _labels_across(values: Sequence[Any], width: float) -> list[tuple[int, str]]:
    """Those of numbers whole, those of listed values cut to the width of their cells."""
    if isinstance(values[0], float | datetime.date):
        return _labelled(values, every=all(len(value_name(value)) * _LETTER < width for value in values))
    every = width >= 4.0 * _LETTER
    return [
        (place, _cut(name, width if every else 8.0 * _LETTER)) for place, name in _labelled(values, every)
    ]


def _labelled(values: Sequence[Any], every: bool) -> list[tuple[int, str]]:
    """Every value with its place, or the first and the last."""
    places = range(len(values)) if every else (0, len(values) - 1)
    return [(place, value_name(values[place])) for place in places]


def _cut(name: str, room: float) -> str:
    letters = max(int(room / _LETTER), 3)
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def _legend(most: float) -> str:
    drawn = []
    for place, share in enumerate((1.0, 0.5, 0.0, -0.5, -1.0)):
        x, y = _WIDTH - _LEGEND + 8, _TOP + 14 + 22 * place
        drawn.append(
            f'<rect x="{x}" y="{y}" width="14" height="14" fill="{_shade(share)}" stroke="{GREY}" stroke-width=".5"/>'
        )
        signed = "+" * (share > 0.0) + value_name(share * most)
        drawn.append(_text(x + 19, y + 11, signed, "start"))
    return "".join(drawn)


def _curve(effect: ColumnEffect, limits: tuple[float, float]) -> tuple[int, str]:
    inside = [_score_axis(limits)]
    bands = list(effect.bands.items())
    count = len(bands[0][1].names)
    across = _LEFT + (_WIDTH - _LEFT - _RIGHT) * (np.arange(count) + 0.5) / count
    for place, (label, band) in enumerate(bands):
        colour = _colour(effect, place)
        outline = [*zip(across, band.upper, strict=True), *zip(across[::-1], band.lower[::-1], strict=True)]
        inside.append(f'<polygon points="{_points(outline, limits)}" fill="{colour}" opacity=".18"/>')
        line = _points(zip(across, band.estimate, strict=True), limits)
        inside.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if label is not None:
            inside.append(_text(_WIDTH - _RIGHT, _TOP + 12 + 13 * place, str(label), "end", colour))
    for at in (0, count // 2, count - 1):
        anchor = "start" if at == 0 else "end" if at == count - 1 else "middle"
        inside.append(_text(across[at], _TOP + _PLOT + 15, value_name(bands[0][1].names[at]), anchor))
    return _TOP + _PLOT + 22, "".join(inside)


def _listed(effect: ColumnEffect, limits: tuple[float, float]) -> tuple[int, str]:
    bands = list(effect.bands.values())
    names = bands[0].names
    rows = [
        _row(
            place,
            value_name(value),
            [(band.estimate[place], band.lower[place], band.upper[place]) for band in bands],
            *limits,
            [_colour(effect, number) for number in range(len(bands))],
        )
        for place, value in enumerate(names[:MOST_VALUES])
    ]
    return _rows(rows, *limits)


def _row(
    place: int,
    name: str,
    found: Sequence[tuple[float, float, float]],
    low: float,
    high: float,
    colours: Sequence[str],
) -> str:
    """A name, and for each class a dot with its interval."""
    middle = _TOP + _ROW * place + _ROW / 2
    drawn = [_text(_NAMES - 8, middle + 4, name if len(name) <= 22 else f"{name[:21]}…", "end")]
    for number, ((value, lower, upper), colour) in enumerate(zip(found, colours, strict=True)):
        y = middle + 4 * (number - (len(found) - 1) / 2)
        ends = [_across(end, low, high) for end in (lower, upper)]
        drawn.append(
            f'<line x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-width="3" '
            f'opacity=".45"/><circle cx="{_across(value, low, high):.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
        )
    return "".join(drawn)


def _rows(rows: Sequence[str], low: float, high: float) -> tuple[int, str]:
    bottom = _TOP + _ROW * len(rows)
    axis = [
        f'<line x1="{_NAMES}" x2="{_WIDTH - _RIGHT}" y1="{bottom}" y2="{bottom}" stroke="currentColor" opacity=".5"/>'
    ]
    for tick in _ticks(low, high):
        x = _across(tick, low, high)
        axis.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" stroke="currentColor" opacity=".15"/>'
        )
        axis.append(_text(x, bottom + 14, f"{tick:g}", "middle"))
    return bottom + 20, "".join([*axis, *rows])


def _score_axis(limits: tuple[float, float]) -> str:
    lines = []
    for tick in _ticks(*limits):
        y = _down(tick, limits)
        faint = ".5" if tick == 0.0 else ".15"
        lines.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" '
            f'opacity="{faint}"/>'
        )
        lines.append(_text(_LEFT - 5, y + 4, f"{tick:g}", "end"))
    return "".join(lines)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, about five."""
    step = 10.0 ** np.floor(np.log10((high - low) / 3.0))
    step *= next(factor for factor in (1.0, 2.0, 5.0, 10.0) if (high - low) / (step * factor) <= 6.0)
    return [float(round(step * place, 10)) for place in range(int(np.ceil(low / step)), int(high / step) + 1)]


def _across(value: float, low: float, high: float) -> float:
    return float(_NAMES + (_WIDTH - _RIGHT - _NAMES) * (value - low) / (high - low))


def _down(value: float, limits: tuple[float, float]) -> float:
    low, high = limits
    return float(_TOP + _PLOT * (high - value) / (high - low))


def _points(corners: Iterable[tuple[float, float]], limits: tuple[float, float]) -> str:
    return " ".join(f"{x:.1f},{_down(y, limits):.1f}" for x, y in corners)


def _shade(share: float) -> str:
    """From orange over white to blue."""
    end = np.array([0, 114, 178] if share > 0 else [213, 94, 0])
    red, green, blue = np.rint(255 + (end - 255) * min(abs(share), 1.0)).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _colour(effect: ColumnEffect | PairEffect, place: int = 0) -> str:
    return COLOURS[place % len(COLOURS)] if effect.above_noise else GREY


def _title(effect: ColumnEffect | PairEffect) -> str:
    return effect.name if isinstance(effect, ColumnEffect) else " x ".join(effect.names)


def value_name(value: Any) -> str:
    """For people: three digits are enough."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return f"{float(f'{value:.3g}'):,.10g}" if isinstance(value, float) else str(value)


def _said(label: Any, band: Band) -> str:
    about = "" if label is None else f"{label}: "
    return about + ", ".join(
        f"{value:+.2f} at {value_name(name)}" for name, value in zip(band.names, band.estimate, strict=True)
    )


def _text(x: float, y: float, text: str, anchor: str, colour: str = "currentColor") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _figure(caption: str, said: str, height: int, inside: str) -> str:
    """A figure that can be read aloud; its size is that of the viewBox unless a style sheet says more."""
    told = escape(f"{caption}. {said}")
    return (
        f'<figure><svg width="{_WIDTH}" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{told}" '
        f'font-size="11" font-family="sans-serif">{inside}</svg><figcaption>{escape(caption)}</figcaption></figure>'
    )
