"""Draw the pictures of the tutorials from real results: PRIVLEARN_DATA=... python tools/tutorial_pictures.py

Seeds make the pictures repeatable; a release made with a seed is not private, and these are not published.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from privlearn import (
    Guarantee,
    InteractivePredictor,
    KernelLearner,
    PrivateGLM,
    PrivateLogisticRegression,
    PrivateSVC,
    Schema,
    evaluate,
)
from privlearn.data import open_records
from privlearn.data.datasets import census_schema, simulated_census
from privlearn.features import ScatteringFeatures
from privlearn.papers.study.figures import STYLE, image_of, require_matplotlib
from privlearn.parties import JointTraining, expected_gains
from privlearn.release.html import COLOURS, GREY

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.insert(0, str(DOCS.parent))

from tests.support.doc_pages import blocks  # noqa: E402

FORMULA = "income ~ age + education_years + hours + sex"


def main() -> None:
    matplotlib = require_matplotlib()
    pictures = {
        "tutorial": draw_importance,
        "tutorials/own-tables": draw_bank,
        "tutorials/inference": draw_inference,
        "tutorials/evaluation": draw_evaluation,
        "tutorials/images": draw_images,
        "tutorials/non-interactive": draw_disc,
        "tutorials/semi-interactive": draw_public_points,
        "tutorials/interactive": draw_answers,
        "tutorials/multiparty": draw_parties,
    }
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "tutorials"}):
        for name, draw in pictures.items():
            figure = matplotlib.figure.Figure(figsize=(7.5, 3.0), layout="constrained", facecolor="white")
            draw(figure)
            (DOCS / f"{name}.svg").write_bytes(image_of(figure, "svg"))


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


def draw_importance(figure: Any) -> None:
    """Draw which columns of the census matter at epsilon 3, and the effect of one."""
    bars, curve = figure.subplots(1, 2)
    settings: dict[str, Any] = {
        "epsilon": 3.0,
        "delta": 1e-6,
        "schema": census_schema(),
        "regularization": 5e-4,
    }
    model = PrivateLogisticRegression(**settings, random_state=0)
    found = model.fit(simulated_census(30_000, seed=1)).release_.effects()
    _draw_bars(bars, found, list(census_schema().columns))
    band = found["age"].bands[None]
    ages = [float(name) for name in band.names]
    curve.fill_between(ages, band.lower, band.upper, color=COLOURS[0], alpha=0.2, linewidth=0)
    curve.plot(ages, band.estimate, color=COLOURS[0], linewidth=2)
    curve.set_title("effect of age on the log-odds, with its band", fontsize=9)


def _draw_bars(axes: Any, found: Any, names: list[str]) -> None:
    """Draw the columns' importance with error bars."""
    columns = sorted((found[name] for name in names), key=lambda column: column.importance)
    for row, column in enumerate(columns):
        colour = COLOURS[0] if column.above_noise else GREY
        axes.hlines(row, column.lower, column.upper, color=colour, linewidth=3, alpha=0.5)
        axes.scatter(column.importance, row, color=colour, s=18)
    axes.set_yticks(range(len(columns)), [column.name for column in columns], fontsize=8)
    axes.set_title("importance at epsilon 3; grey: not above the noise", fontsize=9)


def draw_bank(figure: Any) -> None:
    """Draw which columns of bank marketing matter, with the page's own schema."""
    bars, curve = figure.subplots(1, 2)
    page = blocks(DOCS / "tutorials" / "own-tables.md")
    (text,) = [block.text for block in page if block.caption == "bank.schema.yaml"]
    with TemporaryDirectory() as directory:
        (Path(directory) / "bank.schema.yaml").write_text(text)
        schema = Schema.load(Path(directory) / "bank.schema.yaml")
    rows = open_records(
        Path(os.environ["PRIVLEARN_DATA"]) / "bank_marketing" / "bank-additional-full.csv.gz", schema
    )
    settings: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6, "schema": schema, "regularization": 5e-4}
    found = PrivateLogisticRegression(**settings, random_state=0).fit(rows).release_.effects()
    _draw_bars(bars, found, list(schema.columns))
    band = found["euribor3m"].bands[None]
    rates = [float(name) for name in band.names]
    curve.fill_between(rates, band.lower, band.upper, color=COLOURS[0], alpha=0.2, linewidth=0)
    curve.plot(rates, band.estimate, color=COLOURS[0], linewidth=2)
    curve.set_title("effect of the interest rate (euribor3m)", fontsize=9)


def draw_disc(figure: Any) -> None:
    """Draw the scores of a linear and of a kernel model for a disc that no line separates."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(10_000, 2))
    inside = (np.linalg.norm(rows, axis=1) < 0.8).astype(int)
    promise: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "norm_bound": 1.5,
        "classes": [0, 1],
        "random_state": 0,
    }
    for axes, kernel in zip(figure.subplots(1, 2), ("linear", "rbf"), strict=True):
        _draw_plane(axes, PrivateSVC(kernel=kernel, gamma=4.0, **promise).fit(rows, inside))
        axes.set_title(f'kernel="{kernel}", epsilon 1', fontsize=9)


def draw_public_points(figure: Any) -> None:
    """Draw the scores of two kernels over the same public points."""
    rng = np.random.default_rng(0)
    rows, points = rng.uniform(-1, 1, size=(10_000, 2)), rng.uniform(-1, 1, size=(60, 2))
    product = (rows.prod(axis=1) > 0).astype(int)
    promise: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "norm_bound": 1.5,
        "classes": [0, 1],
        "random_state": 0,
    }
    for axes, kernel in zip(figure.subplots(1, 2), ("rbf", "polynomial"), strict=True):
        model = PrivateSVC(kernel=kernel, public_points=points, **promise).fit(rows, product)
        _draw_plane(axes, model)
        axes.scatter(*points.T, color="black", s=6)
        axes.set_title(f'kernel="{kernel}", 60 public points', fontsize=9)


def _draw_plane(axes: Any, model: PrivateSVC) -> None:
    """Draw a model's scores over the square."""
    ticks = np.linspace(-1, 1, 40)
    plane = np.array([[x, y] for y in ticks for x in ticks])
    scores = model.decision_function(plane).reshape(40, 40)
    axes.contourf(ticks, ticks, scores, levels=np.linspace(-2, 2, 9), cmap="PuOr", extend="both")
    axes.contour(ticks, ticks, scores, levels=[0.0], colors="black", linewidths=1)
    axes.set_aspect("equal")


def draw_answers(figure: Any) -> None:
    """Draw a session's answers next to the function that they are about."""
    axes = figure.subplots()
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(4_000, 2))
    height = np.sin(3 * rows[:, 0]) * rows[:, 1] + 0.1 * rng.normal(size=4_000)
    promise = Guarantee(epsilon=1.0, delta=1e-6)
    drum = KernelLearner(gamma=2.0, norm_bound=1.5, target_bounds=(-1.5, 1.5), guarantee=promise)
    line = np.column_stack([np.linspace(-1, 1, 200), np.full(200, 0.8)])
    with TemporaryDirectory() as directory:
        state = Path(directory) / "drum.db"
        with InteractivePredictor(drum.fit(rows, height), promise, state=state) as session:
            answers = session.predict(line)
    axes.plot(line[:, 0], np.sin(3 * line[:, 0]) * 0.8, color=GREY, linewidth=2, label="the wave")
    axes.scatter(line[:, 0], answers, color=COLOURS[0], s=6, label="200 answers, epsilon 1 for all together")
    axes.legend(fontsize=8, frameon=False)


def draw_parties(figure: Any) -> None:
    """Draw what each party expects alone and together."""
    axes = figure.subplots()
    sizes = {"north": 500, "south": 2500, "west": 700, "east": 900}
    terms: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "dropouts": 1, "colluding": 1}
    gains = expected_gains(JointTraining(schema=census_schema(), parties=sizes, **terms))
    rows = np.arange(len(sizes))
    axes.barh(rows + 0.2, [100 * party.alone for party in gains], 0.35, color=GREY, label="alone")
    axes.barh(rows - 0.2, [100 * party.together for party in gains], 0.35, color=COLOURS[0], label="together")
    axes.set_yticks(rows, [f"{name}, {size:,} records" for name, size in sizes.items()], fontsize=8)
    axes.set_xlabel("expected error above that of the best model, in percentage points", fontsize=8)
    axes.legend(fontsize=8, frameon=False)


if __name__ == "__main__":
    main()
