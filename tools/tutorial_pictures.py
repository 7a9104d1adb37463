"""Draw the pictures of the tutorials from real results: python tools/tutorial_pictures.py

Seeds make the pictures repeatable; a release made with a seed is not private, and these are not published.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from privlearn import PrivateGLM, PrivateLogisticRegression, evaluate
from privlearn.data.datasets import census_schema, simulated_census
from privlearn.features import ScatteringFeatures
from privlearn.papers.study.figures import STYLE, image_of, require_matplotlib
from privlearn.release.html import COLOURS, GREY

PAGES = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
FORMULA = "income ~ age + education_years + hours + sex"


def main() -> None:
    matplotlib = require_matplotlib()
    pictures = {"inference": draw_inference, "evaluation": draw_evaluation, "images": draw_images}
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "tutorials"}):
        for name, draw in pictures.items():
            figure = matplotlib.figure.Figure(figsize=(7.5, 3.0), layout="constrained", facecolor="white")
            draw(figure)
            (PAGES / f"{name}.svg").write_bytes(image_of(figure, "svg"))


def draw_inference(figure: Any) -> None:
    """Draw a forest plot of one regression at two prices."""
    axes = figure.subplots()
    people, schema = simulated_census(20_000, seed=1), census_schema()
    for row, (epsilon, colour) in enumerate({0.5: COLOURS[1], 2.0: COLOURS[0]}.items()):
        model = PrivateGLM(FORMULA, epsilon=epsilon, delta=1e-6, schema=schema, random_state=0).fit(people)
        table = model.to_frame().iloc[1:]
        positions = np.arange(len(table)) + 0.2 * row - 0.1
        axes.hlines(positions, table["lower"], table["upper"], color=colour, linewidth=3, alpha=0.5)
        axes.scatter(table["estimate"], positions, color=colour, s=18, zorder=3, label=f"epsilon {epsilon:g}")
        axes.set_yticks(np.arange(len(table)), list(table.index), fontsize=8)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set_xlabel("log-odds of a high income, 95 % intervals (sampling and privacy)", fontsize=8)
    axes.legend(fontsize=8, frameon=False, loc="center right")


def draw_evaluation(figure: Any) -> None:
    """Draw the ROC curve and the errors of groups, from noisy counts."""
    curve, groups = figure.subplots(1, 2)
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=census_schema(), random_state=0)
    release = model.fit(simulated_census(20_000, seed=1)).release_
    by = ["sex", "region"]
    found = evaluate(release, simulated_census(9_000, seed=2), epsilon=1.0, by=by, random_state=0)
    points = found.curves["high"]
    axes_of_curve = [[rate.value for rate in points[name]] for name in ("false positive rate", "recall")]
    curve.plot(*axes_of_curve, color=COLOURS[0], linewidth=2)
    curve.plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
    curve.set_title(f"ROC from noisy counts, AUC {found['auc'].value:.2f}", fontsize=9)
    rates = {f"{group.column}: {group.group}": group.rates["error"] for group in found.groups}
    lower, upper = [rate.lower for rate in rates.values()], [rate.upper for rate in rates.values()]
    groups.hlines(range(len(rates)), lower, upper, color=COLOURS[0], linewidth=3, alpha=0.5)
    groups.scatter([rate.value for rate in rates.values()], range(len(rates)), color=COLOURS[0], s=18)
    groups.set_yticks(range(len(rates)), list(rates), fontsize=8)
    groups.set_title("error by group, 95 % intervals", fontsize=9)


def draw_images(figure: Any) -> None:
    """Draw digits with their private predictions."""
    digits = load_digits()
    model = PrivateLogisticRegression(
        features=ScatteringFeatures((8, 8), value_bounds=(0, 16)),
        epsilon=3,
        delta=1e-5,
        neighbours="zero_out",
        classes=range(10),
        random_state=0,
    ).fit(digits.images[:1500], digits.target[:1500])
    shown = slice(1500, 1516)
    predicted = model.predict(digits.images[shown])
    for axes, image, label, truth in zip(
        figure.subplots(2, 8).flat, digits.images[shown], predicted, digits.target[shown], strict=True
    ):
        axes.imshow(image, cmap="Greys")
        axes.set_title(str(label), fontsize=9, color="black" if label == truth else COLOURS[1])
        axes.set_axis_off()


if __name__ == "__main__":
    main()
