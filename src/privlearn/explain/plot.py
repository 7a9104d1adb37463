"""Matplotlib figures of effects, for notebooks and papers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from privlearn.data.schema.columns import DateColumn, NumberColumn
from privlearn.errors import PrivlearnError
from privlearn.explain.drawings import value_name
from privlearn.release.html import COLOURS, GREY

if TYPE_CHECKING:
    from privlearn.explain.column_effects import ColumnEffect, Effects


def plot(effects: Effects) -> Any:
    """Return a figure of the importance, then the columns above the noise, three in a row."""
    try:
        figures = importlib.import_module("matplotlib.figure")
    except ImportError:
        raise PrivlearnError("drawing needs matplotlib: pip install 'privlearn[plots]'") from None
    drawn = [effect for effect in effects.columns if effect.above_noise]
    rows = (len(drawn) + 3) // 3
    figure = figures.Figure(figsize=(12.0, 3.4 * rows), layout="constrained")
    axes = figure.subplots(rows, 3, squeeze=False).ravel()
    _importance(axes[0], effects)
    for panel, effect in zip(axes[1:], drawn, strict=False):
        _draw(panel, effects, effect)
    for empty in axes[len(drawn) + 1 :]:
        empty.remove()
    return figure


def _importance(axes: Any, effects: Effects) -> None:
    columns = effects.columns[::-1]
    values = np.array([[effect.importance, effect.lower, effect.upper] for effect in columns])
    colours = [COLOURS[0] if effect.above_noise else GREY for effect in columns]
    positions = np.arange(len(columns))
    axes.hlines(positions, values[:, 1], values[:, 2], colors=colours, linewidth=3, alpha=0.45)
    axes.scatter(values[:, 0], positions, color=colours, zorder=3)
    axes.set_yticks(positions, [effect.name for effect in columns])
    axes.set_title(f"importance ({effects.unit}); grey: not above the noise", fontsize=9)


def _draw(axes: Any, effects: Effects, effect: ColumnEffect) -> None:
    ordered = isinstance(effects.schema.columns[effect.name], NumberColumn | DateColumn)
    for (label, band), colour in zip(effect.bands.items(), COLOURS * len(effect.bands), strict=False):
        if ordered:
            positions = np.arange(len(band.names))  # evenly, as the column's own scale has them
            axes.fill_between(positions, band.lower, band.upper, color=colour, alpha=0.18)
            axes.plot(positions, band.estimate, color=colour, label=label)
            axes.set_xticks(positions[::5], [value_name(value) for value in band.names[::5]])
        else:
            positions = np.arange(len(band.names))
            axes.hlines(positions, band.lower, band.upper, colors=colour, linewidth=3, alpha=0.45)
            axes.scatter(band.estimate, positions, color=colour, label=label)
            axes.set_yticks(positions, [str(name) for name in band.names], fontsize=7)
    axes.set_title(effect.name, fontsize=10)
    if len(effect.bands) > 1:
        axes.legend(fontsize=7)
