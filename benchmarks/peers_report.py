"""The page and the plot of benchmarks/peers.py, from the lines it kept."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

from matplotlib.figure import Figure

RESULTS = Path(__file__).with_name("peers.jsonl")
DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- measured: begin (python benchmarks/peers.py) -->", "<!-- measured: end -->"
EPSILONS = (0.1, 0.5, 1.0, 4.0)
TITLES = {
    "breast_cancer": "Breast cancer",
    "adult": "Adult",
    "bank_marketing": "Bank marketing",
    "covertype": "CoverType",
    "kddcup99": "KDDCup99",
}
NAMES = {
    "privlearn": "privlearn",
    "diffprivlib": "diffprivlib",
    "opacus": "Opacus",
    "interpret": "DP-EBM",
    "scikit-learn": "scikit-learn",
}
PROMISES = {
    "replace_one": "replace-one",
    "zero_out": "zero-out",
    "add_remove": "add/remove",
    "none": "no privacy",
}


class Kind(NamedTuple):
    """A line of a table: who, on which vectors, promising what."""

    library: str
    encoding: str
    neighbours: str
    delta: float


Errors = dict[int, float]
"""Test error of each seed."""

OURS = {
    "replace_one": Kind("privlearn", "schema", "replace_one", 1e-5),
    "zero_out": Kind("privlearn", "schema", "zero_out", 1e-5),
}
MEASURED_BY = {"diffprivlib": OURS["replace_one"], "opacus": OURS["zero_out"], "interpret": OURS["zero_out"]}
"""Ours under the neighbours of a peer; leaving a record out is what zero-out does with the number of records public."""


def results() -> list[dict[str, Any]]:
    """All fits that were made."""
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


class Measured:
    """Errors, times and memory on one data set."""

    def __init__(self, lines: Iterable[dict[str, Any]], settings: Mapping[str, int]) -> None:
        self.lines = list(lines)
        self.settings = settings
        self.errors: dict[tuple[Kind, float | None], dict[str, Errors]] = defaultdict(
            lambda: defaultdict(dict)
        )
        for line in self.lines:
            errors = self.errors[_kind(line), line["epsilon"]][json.dumps(line["settings"])]
            if "error" in line:
                errors[line["seed"]] = line["error"]

    def kinds(self, library: str | None = None) -> list[Kind]:
        found = dict.fromkeys(kind for kind, _ in self.errors if library in (None, kind.library))
        return sorted(found, key=lambda kind: (list(NAMES).index(kind.library), kind[1:]))

    def default(self, kind: Kind, epsilon: float | None) -> Errors:
        """With the library's own settings."""
        return {
            line["seed"]: line["error"]
            for line in self.lines
            if line["default"] and "error" in line and _kind(line) == kind and line["epsilon"] == epsilon
        }

    def hinge(self, kind: Kind, epsilon: float | None) -> Errors:
        """Of our other classifier, with its own defaults."""
        return dict(self.errors[kind, epsilon][json.dumps({"model": "PrivateSVC"})])

    def tuned(self, kind: Kind, epsilon: float | None) -> Errors:
        """With those that turned out best on the test rows, over the seeds that all of them had."""
        settings = [errors for errors in self.errors[kind, epsilon].values() if errors]
        if len(settings) < self.settings[kind.library]:
            return {}
        return _lowest(settings, set.intersection(*(set(errors) for errors in settings)))

    def best(self, library: str, epsilon: float | None) -> Errors:
        """In hindsight, over encodings and settings, on splits that all of these have been tried on."""
        kinds = self.kinds(library)
        tuned = [errors for kind in kinds if (errors := self.tuned(kind, epsilon))]
        found = tuned + [errors for kind in kinds if (errors := self.default(kind, epsilon))]
        return _lowest(found, _most_splits(tuned or found))

    def best_default(self, library: str, epsilon: float | None) -> Errors:
        """With the library's own settings, in the encoding that turned out better."""
        found = [errors for kind in self.kinds(library) if (errors := self.default(kind, epsilon))]
        return _lowest(found, _most_splits(found))

    def cost(self, kind: Kind, what: str) -> float | None:
        """Median over the fits with default settings."""
        values = [
            line[what] for line in self.lines if line["default"] and what in line and _kind(line) == kind
        ]
        return median(values) if values else None


Pick = Callable[[Measured, Kind, float | None], Errors]
PickOfAll = Callable[[Measured, str, float | None], Errors]


def _most_splits(found: list[Errors]) -> set[int]:
    return max((set(errors) for errors in found), key=len, default=set())


def _lowest(found: list[Errors], seeds: set[int]) -> Errors:
    """That with the least mean error on these splits, among those that have them all."""
    candidates = [
        {seed: errors[seed] for seed in seeds} for errors in found if seeds and seeds <= set(errors)
    ]
    return min(candidates, key=lambda errors: fmean(errors.values()), default={})


def _kind(line: dict[str, Any]) -> Kind:
    return Kind(line["library"], line["encoding"], line["neighbours"], line["delta"])


def write_report(settings: Mapping[str, int]) -> None:
    """Put the tables between the marks of the page, and draw the plot; ``settings``: how many each library has."""
    by_data: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in results():
        by_data[line["data"]].append(line)
    measured = {name: Measured(by_data[name], settings) for name in TITLES if by_data[name]}
    page = DOCS / "benchmarks.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    tables = "\n".join([*_duels(measured), *_tables(measured)])
    page.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    draw(measured)


def _duels(measured: dict[str, Measured]) -> Iterator[str]:
    """Ours untuned against each peer's best, on the seeds that the peer has; then in words where ours is behind."""
    yield (
        "| data | peer, best in hindsight | "
        + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS)
        + " |"
    )
    yield "|---" * (2 + len(EPSILONS)) + "|"
    for name, data in measured.items():
        for library, ours in MEASURED_BY.items():
            cells = []
            for epsilon in EPSILONS:
                tuned = any(data.tuned(kind, epsilon) for kind in data.kinds(library))
                apart = _apart(data.default(ours, epsilon), data.best(library, epsilon))
                cells.append(_duel(apart, tuned))
            yield f"| {TITLES[name]} | {NAMES[library]} | " + " | ".join(cells) + " |"
    yield ""
    yield _behind(measured, "Ours untuned against theirs in hindsight", Measured.default, Measured.best)
    yield _behind(measured, "`PrivateSVC` untuned against theirs in hindsight", Measured.hinge, Measured.best)
    yield _behind(measured, "Both untuned", Measured.default, Measured.best_default)
    yield _behind(measured, "Both in hindsight", Measured.tuned, Measured.best)
    yield ""


def _apart(mine: Errors, theirs: Errors) -> list[tuple[float, float]]:
    """Errors on the splits that both have."""
    return [(mine[seed], theirs[seed]) for seed in sorted(set(theirs) & set(mine))]


def _duel(apart: list[tuple[float, float]], tuned: bool) -> str:
    if not apart:
        return "not measured yet"
    ours, peer = (fmean(errors) for errors in zip(*apart, strict=True))
    said = f"{ours:.3f} : {peer:.3f} [{len(apart)}]"
    return said + " (not tuned yet)" * (not tuned) + " **behind**" * (ours > peer)


def _behind(measured: dict[str, Measured], what: str, my: Pick, their: PickOfAll) -> str:
    """Each cell where a peer's mean error is below ours: by how much, and the standard error over the splits."""
    behind, compared = [], 0
    for (name, data), (library, ours), epsilon in product(measured.items(), MEASURED_BY.items(), EPSILONS):
        gaps = [
            mine - theirs for mine, theirs in _apart(my(data, ours, epsilon), their(data, library, epsilon))
        ]
        compared += bool(gaps)
        if gaps and fmean(gaps) > 0:
            spread = f" ± {stdev(gaps) / math.sqrt(len(gaps)):.4f}" if len(gaps) > 1 else ""
            behind.append(f"{TITLES[name]} at {epsilon:g} ({NAMES[library]}) by {fmean(gaps):.4f}{spread}")
    return (
        f"- {what}: ours is behind in {len(behind)} of {compared} cells"
        + ": " * bool(behind)
        + ", ".join(behind)
        + "."
    )


def _tables(measured: dict[str, Measured]) -> Iterator[str]:
    for name, data in measured.items():
        seeds = len({line["seed"] for line in data.lines})
        yield f"## {TITLES[name]}\n"
        splits = f"up to {seeds} splits" if seeds > 1 else "one split"
        yield f"Mean test error over {splits}; each cell: default, then tuned in hindsight.\n"
        yield (
            "| library | vectors | promise | " + " | ".join(f"{e:g}" for e in EPSILONS) + " | time | memory |"
        )
        yield "|---" * (5 + len(EPSILONS)) + "|"
        for kind in data.kinds():
            yield _line(data, kind)
        yield ""


def _line(data: Measured, kind: Kind) -> str:
    epsilons: tuple[float | None, ...] = EPSILONS if kind.neighbours != "none" else (None,) * len(EPSILONS)
    cells = [
        " / ".join(f"{fmean(e.values()):.3f}" for e in (data.default(kind, x), data.tuned(kind, x)) if e)
        or "not measured yet"
        for x in epsilons
    ]
    promise = PROMISES[kind.neighbours] + (
        ", delta 0" if kind.neighbours == "replace_one" and not kind.delta else ""
    )
    costs = [
        _ratio(data.cost(kind, what), data.cost(OURS["replace_one"], what)) for what in ("seconds", "peak_mb")
    ]
    return f"| {NAMES[kind.library]} | {kind.encoding} | {promise} | " + " | ".join([*cells, *costs]) + " |"


def _ratio(value: float | None, ours: float | None) -> str:
    return "-" if value is None or not ours else f"{value / ours:.2g}x"


def draw(measured: dict[str, Measured]) -> None:
    """Ours with defaults; of each peer the best in hindsight of what was measured."""
    looks = {"diffprivlib": ("#E69F00", "s"), "opacus": ("#D55E00", "D"), "interpret": ("#009E73", "v")}
    figure = Figure(figsize=(9.6, 6.4), layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    for axes, (name, data) in zip(panels, measured.items(), strict=False):
        for neighbours, style in (("replace_one", "o-"), ("zero_out", "^-")):
            points = [(e, data.default(OURS[neighbours], e)) for e in EPSILONS]
            _plot(axes, points, style, "#0072B2", f"privlearn, defaults, {PROMISES[neighbours]}")
        for library, (colour, marker) in looks.items():
            points = [(e, data.best(library, e)) for e in EPSILONS]
            promise = "replace-one" if library == "diffprivlib" else "add/remove"
            _plot(
                axes,
                points,
                f"{marker}--",
                colour,
                f"{NAMES[library]}, best of its settings measured, {promise}",
            )
        floor = data.best("scikit-learn", None)
        if floor:
            axes.axhline(fmean(floor.values()), color="k", lw=1.0, ls=":", label="scikit-learn, no privacy")
        axes.set(title=TITLES[name], xscale="log", xlabel="epsilon", ylabel="test error")
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.minorticks_off()
    for axes in panels[len(measured) :]:
        axes.axis("off")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(DOCS / "benchmarks.svg", metadata={"Date": None})


def _plot(axes: Any, points: list[tuple[float, Errors]], style: str, colour: str, label: str) -> None:
    there = [(epsilon, fmean(errors.values())) for epsilon, errors in points if errors]
    axes.plot(*zip(*there, strict=True) if there else ([], []), style, color=colour, label=label, ms=4)
