"""RA12's Figures 1 and 2 as drawings: number of parties above, skew below, an epsilon a column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_PANELS = {"parties": "number of parties", "skew": "skew (3: one party has 1 %)"}
_LOOKS = {
    "PSGD": ("#D55E00", "s"),
    "GOP": ("#E69F00", "D"),
    "LA": ("#000000", "o"),
    "LA weighted, delta = 0": ("#56B4E9", "v"),
    "LA weighted": ("#0072B2", "^"),
    "default": ("#009E73", "P"),
}


def draw(matplotlib: Any, title: str, table: Iterable[Mapping[str, Any]]) -> Any:
    """A matplotlib figure; bars are standard errors."""
    rows = list(table)
    epsilons = sorted({row["epsilon"] for row in rows})
    figure = matplotlib.figure.Figure(figsize=(9.6, 8.0), layout="constrained")
    grid = figure.subplots(len(_PANELS), len(epsilons), sharey=True, squeeze=False)
    for line, (panel, label) in zip(grid, _PANELS.items(), strict=True):
        for axes, epsilon in zip(line, epsilons, strict=True):
            chosen = [row for row in rows if row["panel"] == panel and row["epsilon"] == epsilon]
            _draw_panel(axes, chosen)
            axes.set(xlabel=label, title=f"epsilon = {epsilon:g}", ylim=(0.0, 0.6))
            axes.set_xticks(sorted({row["value"] for row in chosen}))
    for line in grid:
        line[0].set_ylabel("test error")
    figure.suptitle(title)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_panel(axes: Any, rows: list[Mapping[str, Any]]) -> None:
    for name, (colour, marker) in _LOOKS.items():
        points = [row for row in rows if row["algorithm"] == name]
        axes.errorbar(
            [row["value"] for row in points],
            [row["error"] for row in points],
            yerr=[row["standard_error"] for row in points],
            color=colour,
            marker=marker,
            label=name,
        )
