"""CMS11 Tables 1 and 2: error against Lambda at epsilon 0.1, on Adult and on KDDCup99."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from privlearn.papers import reporting
from privlearn.papers.cms11_study import (
    ADULT,
    KDDCUP,
    LOSSES,
    OURS,
    PLAIN,
    Effort,
    Errors,
    Study,
    learners,
    quick_warning,
)
from privlearn.papers.learners import DEFAULT, DEFAULT_DELTA
from privlearn.papers.reporting import tally
from privlearn.release import html

EPSILON = 0.1
_LOOKS = {
    f"{PLAIN}, printed": reporting.Look(reporting.BLACK, "x", ""),
    f"{PLAIN}": reporting.Look(reporting.BLACK, "o"),
    "output, printed": reporting.Look(html.ORANGE, "x", ""),
    "output": reporting.Look(html.ORANGE, "s"),
    "objective, printed": reporting.Look(html.BLUE, "x", ""),
    "objective": reporting.Look(html.BLUE, "D"),
    DEFAULT: reporting.Look(html.GREEN, "", "--", wide=True),
    DEFAULT_DELTA: reporting.Look(html.SKY, "", "-.", wide=True),
}


def cms11_table1(quick: bool, seed: int, track: reporting.Track = iter) -> reporting.Result:
    """Reproduce the table on Adult: all 45,222 rows, ten folds."""
    effort = Effort(3000, 2, 1, slice(-3, None)) if quick else Effort(None, 10, 10, slice(None))
    return run_table("CMS11 Table 1", ADULT, effort, seed, track)


def cms11_table2(quick: bool, seed: int, track: reporting.Track = iter) -> reporting.Result:
    """Reproduce the table on KDDCup99: 70,000 rows drawn from the ten per cent file, ten folds."""
    effort = Effort(4000, 2, 1, slice(-3, None)) if quick else Effort(70_000, 10, 10, slice(None))
    return run_table("CMS11 Table 2", KDDCUP, effort, seed, track)


def run_table(name: str, study: Study, effort: Effort, seed: int, track: reporting.Track) -> reporting.Result:
    """Return the result of one table."""
    errors = _measure(study, effort, seed, track)
    table = tuple(_rows(study, effort, errors))
    title = f"{name}: {study.title}, epsilon = {EPSILON:g}"
    agreement = quick_warning(effort.rows, study.rows) + _agreement(study, table) + study.caveat
    return reporting.Result(title, table, lambda matplotlib: _draw(matplotlib, title, table), agreement)


def _measure(study: Study, effort: Effort, seed: int, track: reporting.Track) -> Errors:
    errors: Errors = defaultdict(list)
    for loss, fold, learner in learners(study, effort, seed, track):
        computed: dict[Any, list[float]] = {}
        for exponent in study.exponents[effort.columns]:
            errors[loss, PLAIN, exponent].append(learner.split.error(learner.plain(10.0**exponent)))
            for method in ("output", "objective"):
                mechanism = learner.calibrate(method, EPSILON, 10.0**exponent)
                # objective perturbation raises every small Lambda to the same
                key = method, mechanism.effective_regularization
                if key not in computed:
                    computed[key] = list(learner.errors(mechanism, effort.runs, [seed, fold]))
                errors[loss, method, exponent] += computed[key]
        for method in OURS:
            mechanism = learner.calibrate(method, EPSILON)
            errors[loss, method, None] += learner.errors(mechanism, effort.runs, [seed, fold])
    return errors


def _rows(study: Study, effort: Effort, errors: Errors) -> Iterator[reporting.Row]:
    for (loss, algorithm), printed in study.printed.items():
        for exponent, paper in list(zip(study.exponents, printed, strict=True))[effort.columns]:
            measured = reporting.mean_error(errors[loss, algorithm, exponent])
            yield {"loss": loss, "algorithm": algorithm, "log10_lambda": exponent, "paper": paper} | measured
    for loss in LOSSES:
        for algorithm in OURS:
            measured = reporting.mean_error(errors[loss, algorithm, None])
            yield {"loss": loss, "algorithm": algorithm, "log10_lambda": None, "paper": None} | measured


def _draw(matplotlib: Any, title: str, table: tuple[reporting.Row, ...]) -> Any:
    def panel(loss: str) -> reporting.Panel:
        measured = [row for row in table if row["loss"] == loss]
        printed = [
            {
                "algorithm": f"{row['algorithm']}, printed",
                "log10_lambda": row["log10_lambda"],
                "error": row["paper"],
            }
            for row in measured
            if row["paper"] is not None
        ]
        return reporting.Panel(loss, "log10 of Lambda", [*measured, *printed], "log10_lambda", evenly=True)

    return reporting.draw_panels(matplotlib, title, [[panel(loss) for loss in LOSSES]], _LOOKS)


def _agreement(study: Study, table: tuple[reporting.Row, ...]) -> str:
    private = [row for row in table if row["algorithm"] in ("output", "objective")]
    useful = [row for row in private if row["paper"] < study.constant]
    lost = [row for row in private if row["paper"] >= study.constant]
    plain = [row for row in table if row["algorithm"] == PLAIN]
    credible = [row for row in private if not _is_slip(row, plain)]
    same_best = [
        _best(table, loss, method)["log10_lambda"] == study.best(loss, method)
        for loss in LOSSES
        for method in ("output", "objective")
    ]
    ahead = [
        _best(table, loss, "objective")["error"] < _best(table, loss, "output")["error"] for loss in LOSSES
    ]
    gained = [
        f"{_best(table, loss, OURS[0])['error']:.4f} and {_best(table, loss, OURS[1])['error']:.4f} ({loss})"
        for loss in LOSSES
    ]
    return (
        f"Where a private row prints less than a constant classifier's {study.constant:g}, ours differs by "
        f"{_gaps(useful)}; without privacy by {_gaps(plain)}; where the noise has drowned the data by {_gaps(lost)}. "
        f"{_far_apart([*credible, *plain])}"
        f"The paper's claims: objective perturbation's best is below output perturbation's, {tally(ahead)} losses; the "
        f"best Lambda is the printed one for {tally(same_best)} private rows. "
        f"{_slip(lost, plain)}The default, untuned, on the same rows "
        f"gets {' and '.join(gained)} without and with delta."
    )


def _slip(lost: list[reporting.Row], plain: list[reporting.Row]) -> str:
    """Return a sentence about printed errors so large that the opposite classifier would be too good."""
    best = min(row["paper"] for row in plain)
    beyond = sorted({row["paper"] for row in lost if _is_slip(row, plain)})
    if not beyond:
        return ""
    errors = " and ".join(f"{error:g}" for error in beyond)
    return (
        f"The printed {errors} cannot be right: predicting the opposite would then beat the best error without "
        f"privacy, {best:g}. "
    )


def _is_slip(row: reporting.Row, plain: list[reporting.Row]) -> bool:
    """Return whether the opposite of a printed classifier would beat the best one without privacy."""
    return bool(1.0 - row["paper"] < min(other["paper"] for other in plain))


def _best(table: tuple[reporting.Row, ...], loss: str, algorithm: str) -> reporting.Row:
    return min(
        (row for row in table if row["loss"] == loss and row["algorithm"] == algorithm),
        key=lambda row: float(row["error"]),
    )


def _gaps(rows: list[reporting.Row]) -> str:
    if not rows:
        return "nothing (no such cell was run)"
    gaps = np.abs([row["error"] - row["paper"] for row in rows])
    return f"{np.median(gaps):.4f} in the median and {np.max(gaps):.4f} at most ({len(rows)} cells)"


def _far_apart(rows: list[reporting.Row]) -> str:
    """Return how many cells lie more than three of our standard errors from the print, which states none itself."""
    apart = [
        (row["error"] - row["paper"]) / row["standard_error"] for row in rows if row.get("standard_error")
    ]
    sides = {"above": sorted(z for z in apart if z > 3.0), "below": sorted(-z for z in apart if z < -3.0)}
    parts = [
        f"{len(distances)} lie {distances[0]:.1f} to {distances[-1]:.1f} of our standard errors {side} the print"
        for side, distances in sides.items()
        if distances
    ]
    return f"Of {len(apart)} cells that can be right {', '.join(parts)}. " if parts else ""
