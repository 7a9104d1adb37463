"""CMS11 Tables 1 and 2: error against Lambda at epsilon 0.1, on Adult and on KDDCup99."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.datasets import load_adult, load_kddcup99
from privlearn.erm import HuberHinge, Logistic, Loss
from privlearn.reproduce.learners import DEFAULT, DEFAULT_DELTA, Learner
from privlearn.reproduce.panels import BLACK, BLUE, GREEN, ORANGE, SKY, Look, Panel, draw_panels
from privlearn.reproduce.result import Result, Row, Track, averaged, held
from privlearn.reproduce.splits import folds, paper_rows, sample

Array = NDArray[np.float64]

EPSILON = 0.1
LOSSES: dict[str, Loss] = {"logistic": Logistic(), "huber": HuberHinge(0.5)}
"""The paper's h is 0.5."""
PLAIN = "non-private"
OURS = (DEFAULT, DEFAULT_DELTA)

Printed = Mapping[tuple[str, str], tuple[float, ...]]
Errors = Mapping[tuple[str, str, float | None], list[float]]


@dataclass(frozen=True)
class Effort:
    """How much of the experiment is run: rows, folds, noise draws a fold, and columns of the table."""

    rows: int | None
    folds: int
    runs: int
    columns: slice


@dataclass(frozen=True)
class Study:
    """One of the two data sets: its rows, the printed table, and what a constant classifier gets."""

    title: str
    exponents: tuple[float, ...]
    printed: Printed
    rows: int
    constant: float
    load: Callable[[], tuple[Any, Array]]

    def best(self, loss: str, algorithm: str) -> float:
        """The Lambda printed in bold, as an exponent of ten."""
        return self.exponents[int(np.argmin(self.printed[loss, algorithm]))]


ADULT = Study(
    "Adult",
    (-10.0, -7.0, -4.0, -3.5, -3.0, -2.5, -2.0, -1.5),
    {
        ("logistic", PLAIN): (0.1540, 0.1533, 0.1654, 0.1694, 0.1758, 0.1895, 0.2322, 0.2478),
        ("logistic", "output"): (0.5318, 0.5318, 0.5175, 0.4928, 0.4310, 0.3163, 0.2395, 0.2456),
        ("logistic", "objective"): (0.8619, 0.8619, 0.8619, 0.2694, 0.2369, 0.2161, 0.2305, 0.2475),
        ("huber", PLAIN): (0.1527, 0.1521, 0.1632, 0.1669, 0.1719, 0.1793, 0.2454, 0.2478),
        ("huber", "output"): (0.5318, 0.5318, 0.5211, 0.5011, 0.4464, 0.3352, 0.2376, 0.2476),
        ("huber", "objective"): (0.2582, 0.2582, 0.2582, 0.2582, 0.2559, 0.2046, 0.2319, 0.2478),
    },
    rows=45_220,
    constant=0.25,
    load=lambda: paper_rows(load_adult(), "income", ">50K"),
)
KDDCUP = Study(
    "KDDCup99",
    (-9.0, -7.0, -5.0, -3.5, -3.0, -2.5, -2.0, -1.5),
    {
        ("logistic", PLAIN): (0.0016, 0.0016, 0.0021, 0.0038, 0.0037, 0.0037, 0.0325, 0.0594),
        ("logistic", "output"): (0.5245, 0.5245, 0.5093, 0.3518, 0.1114, 0.0359, 0.0304, 0.0678),
        ("logistic", "objective"): (0.3170, 0.3170, 0.3170, 0.0196, 0.0118, 0.0113, 0.0285, 0.0909),
        ("huber", PLAIN): (0.0013, 0.0013, 0.0013, 0.0029, 0.0051, 0.0056, 0.0061, 0.0163),
        ("huber", "output"): (0.5245, 0.5245, 0.5229, 0.4611, 0.3353, 0.0590, 0.0092, 0.0179),
        ("huber", "objective"): (0.1207, 0.1207, 0.1207, 0.2622, 0.0478, 0.0086, 0.0064, 0.0157),
    },
    rows=70_000,
    constant=0.19,
    load=lambda: paper_rows(load_kddcup99(), "attack", "no"),
)

_LOOKS = {
    f"{PLAIN}, printed": Look(BLACK, "x", ""),
    f"{PLAIN}": Look(BLACK, "o"),
    "output, printed": Look(ORANGE, "x", ""),
    "output": Look(ORANGE, "s"),
    "objective, printed": Look(BLUE, "x", ""),
    "objective": Look(BLUE, "D"),
    DEFAULT: Look(GREEN, "", "--", wide=True),
    DEFAULT_DELTA: Look(SKY, "", "-.", wide=True),
}


def cms11_table1(quick: bool, seed: int, track: Track = iter) -> Result:
    """Adult: all 45,222 rows, ten folds."""
    effort = Effort(3000, 2, 1, slice(-3, None)) if quick else Effort(None, 10, 10, slice(None))
    return run_table("CMS11 Table 1", ADULT, effort, seed, track)


def cms11_table2(quick: bool, seed: int, track: Track = iter) -> Result:
    """KDDCup99: 70,000 rows drawn from the ten per cent file, ten folds."""
    effort = Effort(4000, 2, 1, slice(-3, None)) if quick else Effort(70_000, 10, 10, slice(None))
    return run_table("CMS11 Table 2", KDDCUP, effort, seed, track)


def run_table(name: str, study: Study, effort: Effort, seed: int, track: Track) -> Result:
    errors = _measure(study, effort, seed, track)
    table = tuple(_rows(study, effort, errors))
    title = f"{name}: {study.title}, epsilon = {EPSILON:g}"
    agreement = shortened(effort.rows, study.rows) + _agreement(study, table)
    return Result(title, table, lambda matplotlib: _draw(matplotlib, title, table), agreement)


def shortened(used: int | None, papers: int) -> str:
    """Why a quick run's numbers are not the paper's."""
    if used is None or used >= papers:
        return ""
    return (
        f"QUICK RUN: {used:,} rows instead of {papers:,}, so the noise is {papers / used:.0f} times the paper's and "
        "the private numbers cannot agree. "
    )


def _measure(study: Study, effort: Effort, seed: int, track: Track) -> Errors:
    rows, signs = sample(study.load, effort.rows, [seed, 1])
    errors: dict[tuple[str, str, float | None], list[float]] = defaultdict(list)
    splits = list(enumerate(folds(rows, signs, effort.folds, np.random.default_rng([seed, 2]))))
    for loss, (place, split) in track([(loss, fold) for loss in LOSSES for fold in splits]):
        learner = Learner(split, LOSSES[loss])
        known: dict[Any, list[float]] = {}
        for exponent in study.exponents[effort.columns]:
            errors[loss, PLAIN, exponent].append(split.error(learner.plain(10.0**exponent)))
            for method in ("output", "objective"):
                plan = learner.plan(method, EPSILON, 10.0**exponent)
                # objective perturbation raises every small Lambda to the same
                key = method, plan.effective_regularization
                if key not in known:
                    known[key] = list(learner.errors(plan, effort.runs, [seed, place]))
                errors[loss, method, exponent] += known[key]
        for method in OURS:
            errors[loss, method, None] += learner.errors(
                learner.plan(method, EPSILON), effort.runs, [seed, place]
            )
    return errors


def _rows(study: Study, effort: Effort, errors: Errors) -> Iterator[Row]:
    for (loss, algorithm), printed in study.printed.items():
        for exponent, paper in list(zip(study.exponents, printed, strict=True))[effort.columns]:
            found = averaged(errors[loss, algorithm, exponent])
            yield {"loss": loss, "algorithm": algorithm, "log10_lambda": exponent, "paper": paper} | found
    for loss in LOSSES:
        for algorithm in OURS:
            found = averaged(errors[loss, algorithm, None])
            yield {"loss": loss, "algorithm": algorithm, "log10_lambda": None, "paper": None} | found


def _draw(matplotlib: Any, title: str, table: tuple[Row, ...]) -> Any:
    def panel(loss: str) -> Panel:
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
        return Panel(loss, "log10 of Lambda", [*measured, *printed], "log10_lambda", evenly=True)

    return draw_panels(matplotlib, title, [[panel(loss) for loss in LOSSES]], _LOOKS)


def _agreement(study: Study, table: tuple[Row, ...]) -> str:
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


def _slip(lost: list[Row], plain: list[Row]) -> str:
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


def _best(table: tuple[Row, ...], loss: str, algorithm: str) -> Row:
    return min(
        (row for row in table if row["loss"] == loss and row["algorithm"] == algorithm),
        key=lambda row: float(row["error"]),
    )


def _gaps(rows: list[Row]) -> str:
    if not rows:
        return "nothing (no such cell was run)"
    gaps = np.abs([row["error"] - row["paper"] for row in rows])
    return f"{np.median(gaps):.4f} in the median and {np.max(gaps):.4f} at most ({len(rows)} cells)"
