"""Membership inference against plain and private models: who was in the data? Writes docs/explanation/membership.svg.

    PRIVLEARN_DATA=... python benchmarks/membership.py               a minute or two
    PRIVLEARN_DATA=... python benchmarks/membership.py --models 64   quicker, wider bars
    python benchmarks/membership.py --redraw                         only the figure

Results are kept in benchmarks/membership.json; what is there is not measured again.

Adult through its example schema, 185 features: models of 100 people, halves of a pool of 200. Half of the models teach
the attacker, the other half are attacked.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.progress import Progress
from sklearn.linear_model import LogisticRegression
from tables import encoded, load

from privlearn import Guarantee, PrivateLogisticRegression
from privlearn.audit import advantage_ceiling, membership_attack, true_positive_ceiling

RESULTS = Path(__file__).with_name("membership.json")
FIGURE = Path(__file__).parent.parent / "docs" / "explanation" / "membership.svg"
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
POOL = 200
DELTA = 1e-5
RATES = (0.01, 0.001)
"""False positive rates at which an accusation would be believed."""


def private(epsilon: float) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        return PrivateLogisticRegression(
            epsilon=epsilon,
            delta=DELTA if math.isfinite(epsilon) else 0.0,
            norm_bound=1.0,
            classes=[0, 1],
            fit_intercept=False,
            random_state=seed,
        )

    return make


def plain(strength: float) -> Callable[[int], Any]:
    return lambda seed: LogisticRegression(C=strength, fit_intercept=False, max_iter=2000)


SUBJECTS: dict[str, Callable[[int], Any]] = {
    "scikit-learn, C = 100": plain(100.0),
    "scikit-learn, C = 1": plain(1.0),
    "privlearn, epsilon = inf": private(math.inf),
    **{f"epsilon = {epsilon:g}": private(epsilon) for epsilon in EPSILONS},
}


def measure(models: int) -> None:
    """Attack every subject that has no result yet."""
    table, schema = load("adult")
    features, labels = encoded(table.slice(0, POOL), schema)
    found = results()
    with Progress(transient=True) as bar:
        for name, make in SUBJECTS.items():
            if name in found:
                continue
            task = bar.add_task(name, total=2 * models)
            attack = membership_attack(
                make,
                features,
                labels,
                shadows=models,
                attacked=models,
                progress=lambda done, total: bar.update(task, completed=done),  # noqa: B023 - used before the next turn
            )
            found[name] = {
                "models": models,
                "advantage": attack.advantage,
                "standard_error": attack.standard_error,
                "true_positives": {str(rate): attack.true_positive_rate(rate) for rate in RATES},
            }
            print(f"{name:<26} {json.dumps(found[name])}", flush=True)
            RESULTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def results() -> dict[str, Any]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def draw(found: dict[str, Any]) -> None:
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    measured = [found[f"epsilon = {epsilon:g}"] for epsilon in EPSILONS]
    curve = np.geomspace(EPSILONS[0], EPSILONS[-1], 200)
    promises = [Guarantee(float(epsilon), DELTA) for epsilon in curve]
    left.plot(
        curve, [advantage_ceiling(promise) for promise in promises], "k--", label="ceiling for any attack"
    )
    left.errorbar(
        EPSILONS,
        [each["advantage"] for each in measured],
        yerr=[2.0 * each["standard_error"] for each in measured],
        color="#0072B2",
        marker="o",
        capsize=3,
        label="privlearn, defaults",
    )
    rate = RATES[0]
    right.plot(curve, [true_positive_ceiling(promise, rate) for promise in promises], "k--")
    right.plot(
        EPSILONS, [each["true_positives"][str(rate)] for each in measured], color="#0072B2", marker="o"
    )
    right.axhline(rate, color="#999999", lw=1.0, ls=":")
    left.axhline(0.0, color="#999999", lw=1.0, ls=":", label="guessing")
    for name, colour in zip(SUBJECTS, ("#D55E00", "#E69F00", "#CC79A7"), strict=False):
        left.axhline(found[name]["advantage"], color=colour, label=f"no privacy: {name}")
        right.axhline(found[name]["true_positives"][str(rate)], color=colour)
    left.set(ylabel="true minus false positive rate", title="Attack advantage", ylim=(-0.05, 1.02))
    right.set(ylabel="members found", title="Members found at 1 % false accusations", yscale="log")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="epsilon (replace-one, delta 1e-5)")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=256, help="to learn from, and as many to attack")
    parser.add_argument("--redraw", action="store_true", help="only the figure")
    options = parser.parse_args()
    if not options.redraw:
        measure(options.models)
    draw(results())
