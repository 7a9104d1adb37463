"""CMS11 Tables 1 and 2: error against Lambda at epsilon 0.1, on Adult and on KDDCup99."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from privlearn.reproduce import reporting
from privlearn.reproduce.cms11_study import (
    ADULT,
    KDDCUP,
    LOSSES,
    OURS,
    PLAIN,
    Effort,
    Errors,
    Study,
    learners,
    shortened,
)
from privlearn.reproduce.learners import DEFAULT, DEFAULT_DELTA
from privlearn.reproduce.reporting import held

EPSILON = 0.1
_LOOKS = {
    f"{PLAIN}, printed": reporting.Look(reporting.BLACK, "x", ""),
    f"{PLAIN}": reporting.Look(reporting.BLACK, "o"),
    "output, printed": reporting.Look(reporting.ORANGE, "x", ""),
    "output": reporting.Look(reporting.ORANGE, "s"),
    "objective, printed": reporting.Look(reporting.BLUE, "x", ""),
    "objective": reporting.Look(reporting.BLUE, "D"),
    DEFAULT: reporting.Look(reporting.GREEN, "", "--", wide=True),
    DEFAULT_DELTA: reporting.Look(reporting.SKY, "", "-.", wide=True),
}


def cms11_table1(quick: bool, seed: int, track: reporting.Track = iter) -> reporting.Result:
    """Adult: all 45,222 rows, ten folds."""
    effort = Effort(3000, 2, 1, slice(-3, None)) if quick else Effort(None, 10, 10, slice(None))
    return run_table("CMS11 Table 1", ADULT, effort, seed, track)


def cms11_table2(quick: bool, seed: int, track: reporting.Track = iter) -> reporting.Result:
    """KDDCup99: 70,000 rows drawn from the ten per cent file, ten folds."""
    effort = Effort(4000, 2, 1, slice(-3, None)) if quick else Effort(70_000, 10, 10, slice(None))
    return run_table("CMS11 Table 2", KDDCUP, effort, seed, track)


def run_table(name: str, study: Study, effort: Effort, seed: int, track: reporting.Track) -> reporting.Result:
    errors = _measure(study, effort, seed, track)
    table = tuple(_rows(study, effort, errors))
    title = f"{name}: {study.title}, epsilon = {EPSILON:g}"
    agreement = shortened(effort.rows, study.rows) + _agreement(study, table) + study.caveat
    return reporting.Result(title, table, lambda matplotlib: _draw(matplotlib, title, table), agreement)


def _measure(study: Study, effort: Effort, seed: int, track: reporting.Track) -> Errors:
    errors: Errors = defaultdict(list)
    for loss, place, learner in learners(study, effort, seed, track):
        known: dict[Any, list[float]] = {}
        for exponent in study.exponents[effort.columns]:
            errors[loss, PLAIN, exponent].append(learner.split.error(learner.plain(10.0**exponent)))
            for method in ("output", "objective"):
                plan = learner.plan(method, EPSILON, 10.0**exponent)
                # objective perturbation raises every small Lambda to the same
                key = method, plan.effective_regularization
                if key not in known:
                    known[key] = list(learner.errors(plan, effort.runs, [seed, place]))
                errors[loss, method, exponent] += known[key]
        for method in OURS:
            plan = learner.plan(method, EPSILON)
            errors[loss, method, None] += learner.errors(plan, effort.runs, [seed, place])
    return errors


def _rows(study: Study, effort: Effort, errors: Errors) -> Iterator[reporting.Row]:
    for (loss, algorithm), printed in study.printed.items():
        for exponent, paper in list(zip(study.exponents, printed, strict=True))[effort.columns]:
            found = reporting.averaged(errors[loss, algorithm, exponent])
            yield {"loss": loss, "algorithm": algorithm, "log10_lambda": exponent, "paper": paper} | found
    for loss in LOSSES:
        for algorithm in OURS:
            found = reporting.averaged(errors[loss, algorithm, None])
            yield {"loss": loss, "algorithm": algorithm, "log10_lambda": None, "paper": None} | found


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
        f"The paper's claims: objective perturbation's best is below output perturbation's, {held(ahead)} losses; the "
        f"best Lambda is the printed one for {held(same_best)} private rows. "
        f"{_slip(lost, plain)}The default, untuned, on the same rows "
        f"gets {' and '.join(gained)} without and with delta."
    )


def _slip(lost: list[reporting.Row], plain: list[reporting.Row]) -> str:
    """Printed errors so far above a half that the opposite classifier would be too good."""
    best = min(row["paper"] for row in plain)
    beyond = sorted({row["paper"] for row in lost if 1.0 - row["paper"] < best})
    if not beyond:
        return ""
    told = " and ".join(f"{error:g}" for error in beyond)
    return (
        f"The printed {told} cannot be right: predicting the opposite would then beat the best error without privacy, "
        f"{best:g}. "
    )


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
