"""Draws the README's picture from real results: PRIVLEARN_DATA=... python tools/readme_picture.py

What a private model of Adult learnt at epsilon 1 (`privlearn.effects`), and what an attacker gets of models with and
without privacy (`benchmarks/membership.json`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from privlearn import PrivateLogisticRegression, Schema, effects
from privlearn.data.datasets import load_adult
from privlearn.explain.column_effects import Effects
from privlearn.papers.study.figures import STYLE, image_of, require_matplotlib
from privlearn.release.html import COLOURS, GREY

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "what-you-get.svg"
SHOWN = {
    "scikit-learn, C = 100": "without privacy",
    "epsilon = 10": "epsilon 10",
    "epsilon = 3": "epsilon 3",
    "epsilon = 1": "epsilon 1",
    "epsilon = 0.1": "epsilon 0.1",
}


def main() -> None:
    schema = Schema.load(ROOT / "examples" / "adult.schema.yaml")
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, schema=schema, random_state=0)
    found = effects(model.fit(load_adult()).release_)
    matplotlib = require_matplotlib()
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "readme"}):
        figure = matplotlib.figure.Figure(figsize=(11.0, 3.3), layout="constrained", facecolor="white")
        importance, curve, attack = figure.subplots(1, 3)
        _importance(importance, found)
        _curve(curve, found)
        _attack(attack)
        PICTURE.write_bytes(image_of(figure, "svg"))


def _importance(axes: Any, found: Effects) -> None:
    columns = found.columns[::-1]
    places, colours = range(len(columns)), [COLOURS[0] if effect.above_noise else GREY for effect in columns]
    ends = [effect.lower for effect in columns], [effect.upper for effect in columns]
    axes.hlines(places, *ends, colors=colours, linewidth=3, alpha=0.45)
    axes.scatter([effect.importance for effect in columns], places, color=colours, s=20, zorder=3)
    axes.set_yticks(places, [effect.name for effect in columns], fontsize=8)
    axes.set_title("what matters, and what noise hides (grey)", fontsize=10)
    axes.set_xlabel("importance (log-odds), all bars hold with 95 %", fontsize=8)


def _curve(axes: Any, found: Effects) -> None:
    band = found["education-num"].bands[None]
    axes.fill_between(band.names, band.lower, band.upper, color=COLOURS[0], alpha=0.18)
    axes.plot(band.names, band.estimate, color=COLOURS[0], linewidth=2)
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.set_title("years of education: effect on income", fontsize=10)
    axes.set_xlabel("education-num; log-odds of more than 50K", fontsize=8)


def _attack(axes: Any) -> None:
    kept = json.loads((ROOT / "benchmarks" / "membership.json").read_text())
    values = [100.0 * max(kept[name]["advantage"], 0.0) for name in SHOWN]
    axes.barh(range(len(values)), values, color=[GREY, *[COLOURS[0]] * (len(values) - 1)], height=0.6)
    axes.set_yticks(range(len(values)), list(SHOWN.values()), fontsize=8)
    for place, value in enumerate(values):
        axes.text(value + 0.5, place, f"{value:.0f} %", va="center", fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 36)
    axes.set_title("an attacker asks: was this person in it?", fontsize=10)
    axes.set_xlabel("better than guessing by, in per cent", fontsize=8)


if __name__ == "__main__":
    main()
