"""RA12's Figures 1 and 2 as drawings: number of parties above, skew below, an epsilon a column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from privlearn.reproduce.panels import BLACK, BLUE, GREEN, ORANGE, SKY, YELLOW, Look, Panel, draw_panels
from privlearn.reproduce.result import Row

_PANELS = {"parties": "number of parties", "skew": "skew (3: one party has 1 %)"}
_LOOKS = {
    "PSGD": Look(ORANGE, "s"),
    "GOP": Look(YELLOW, "D"),
    "LA": Look(BLACK, "o"),
    "LA weighted, delta = 0": Look(SKY, "v"),
    "LA weighted": Look(BLUE, "^"),
    "default": Look(GREEN, "P", wide=True),
}


def draw(matplotlib: Any, title: str, table: Iterable[Row]) -> Any:
    """A matplotlib figure; bars are standard errors."""
    rows = list(table)
    epsilons = sorted({row["epsilon"] for row in rows})

    def panel(name: str, epsilon: float) -> Panel:
        chosen = [row for row in rows if row["panel"] == name and row["epsilon"] == epsilon]
        return Panel(f"epsilon = {epsilon:g}", _PANELS[name], chosen, "value", top=0.6)

    grid = [[panel(name, epsilon) for epsilon in epsilons] for name in _PANELS]
    return draw_panels(matplotlib, title, grid, _LOOKS)
