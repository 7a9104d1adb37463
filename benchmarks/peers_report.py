"""The page and the plot of benchmarks/peers.py, from the lines it kept."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

from matplotlib.figure import Figure

RESULTS = Path(__file__).with_name("peers.jsonl")
DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- measured: begin (python benchmarks/peers.py) -->", "<!-- measured: end -->"
EVERY_CELL = (
    "# Every cell of the comparison\n\n"
    "`python benchmarks/peers.py --report` writes this page; docs/benchmarks.md explains it.\n"
)
EPSILONS = (0.1, 0.5, 1.0, 4.0)
TITLES = {
    "breast_cancer": "Breast cancer",
    "adult": "Adult",
    "bank_marketing": "Bank marketing",
    "covertype": "CoverType",
    "kddcup99": "KDDCup99",
    "mnist": "MNIST",
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
MEASURES = {"error": "error", "auc": "AUC", "log_loss": "log-loss"}
HIGHER_IS_BETTER = ("auc",)
SVC = json.dumps({"model": "PrivateSVC"})
MET_BY = {"diffprivlib": "replace_one", "opacus": "zero_out", "interpret": "zero_out"}
"""Our neighbours that meet a peer's; leaving a record out is what zero-out does with the number of records public."""


class Kind(NamedTuple):
    """A line of a table: who, on which vectors, promising what."""

    library: str
    encoding: str
    neighbours: str
    delta: float


class Gap(NamedTuple):
    """Two means on the same splits; by how much ours is behind, and the standard error of that, noise included."""

    ours: float
    theirs: float
    splits: int
    behind: float
    error: float | None

    @property
    def is_clear(self) -> bool:
        """Behind by more than one standard error; one split has none, and counts."""
        return self.behind > (self.error or 0.0)

    @property
    def spread(self) -> str:
        return "" if self.error is None else f" ± {self.error:.4f}"


Values = dict[int, float]
"""A measure on the test rows of each split, by the split's seed."""


def results() -> list[dict[str, Any]]:
    """All fits that were made."""
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


class Measured:
    """One measure on one data set."""

    def __init__(self, lines: Iterable[dict[str, Any]], measure: str) -> None:
        self.lines = list(lines)
        self.sign = -1.0 if measure in HIGHER_IS_BETTER else 1.0
        self.values: dict[tuple[Kind, float | None], dict[str, Values]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self.defaults = {line["library"]: json.dumps(line["settings"]) for line in lines if line["default"]}
        for line in self.lines:
            found = self.values[_kind(line), line["epsilon"]][json.dumps(line["settings"])]
            if measure in line:
                found[line["seed"]] = line[measure]

    def kinds(self, library: str | None = None) -> list[Kind]:
        found = dict.fromkeys(kind for kind, _ in self.values if library in (None, kind.library))
        return sorted(found, key=lambda kind: (list(NAMES).index(kind.library), kind[1:]))

    def ours(self, neighbours: str) -> Kind:
        """As we would be used: on the table, or on the pixels."""
        pixels = any(kind.encoding == "pixels" for kind in self.kinds())
        return Kind("privlearn", "pixels" if pixels else "table", neighbours, 1e-5)

    def of(self, kind: Kind, epsilon: float | None) -> dict[str, Values]:
        """By settings."""
        return self.values.get((kind, epsilon), {})

    def default(self, kind: Kind, epsilon: float | None) -> Values:
        """With the library's own settings."""
        return self.of(kind, epsilon).get(self.defaults.get(kind.library, ""), {})

    def svc(self, kind: Kind, epsilon: float | None) -> Values:
        """Of our other classifier, with its own defaults."""
        return self.of(kind, epsilon).get(SVC, {})

    def better(self, kind: Kind, epsilon: float | None) -> Values:
        """Of our two default classifiers the one that turned out better."""
        return self.best_of([self.default(kind, epsilon), self.svc(kind, epsilon)])

    def tuned(self, kind: Kind, epsilon: float | None) -> Values:
        """With the settings that turned out best on the test rows, of those that every split was tried with."""
        return self.best_of(self.of(kind, epsilon).values())

    def best(self, library: str, epsilon: float | None) -> Values:
        """In hindsight, over encodings and settings."""
        return self.best_of(self.tuned(kind, epsilon) for kind in self.kinds(library))

    def best_default(self, library: str, epsilon: float | None) -> Values:
        """With the library's own settings, in the encoding that turned out better."""
        return self.best_of(self.default(kind, epsilon) for kind in self.kinds(library))

    def best_of(self, found: Iterable[Values]) -> Values:
        """The best mean, among those with the most splits."""
        there = [values for values in found if values]
        most = max(map(len, there), default=0)
        whole = [values for values in there if len(values) == most]
        return min(whole, key=lambda values: self.sign * fmean(values.values()), default={})

    def cost(self, kind: Kind, what: str) -> float | None:
        """Median over the fits with default settings."""
        values = [
            line[what] for line in self.lines if line["default"] and what in line and _kind(line) == kind
        ]
        return median(values) if values else None


Pick = Callable[[Measured, Kind, float | None], Values]
PickOfAll = Callable[[Measured, str, float | None], Values]
All = dict[str, Measured]


def _kind(line: dict[str, Any]) -> Kind:
    return Kind(line["library"], line["encoding"], line["neighbours"], line["delta"])


def write_report() -> None:
    """Write the errors between the marks of the page, all tables to peers.md, and draw the plot."""
    by_data: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in results():
        by_data[line["data"]].append(line)
    names = [name for name in TITLES if by_data[name]]
    measured = {measure: {name: Measured(by_data[name], measure) for name in names} for measure in MEASURES}
    page = DOCS / "benchmarks.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    errors = "\n".join(_duel_table(measured["error"], Measured.better))
    page.write_text(f"{before}{BEGIN}\n\n{errors}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
    tables = "\n".join([EVERY_CELL, *_duels(measured), *_tables(measured)])
    RESULTS.with_suffix(".md").write_text(tables.rstrip() + "\n", encoding="utf-8")
    draw(measured["error"])


def _duels(measured: dict[str, All]) -> Iterator[str]:
    """Ours untuned against each peer's best, on the splits that both have; then in words where ours is behind."""
    for measure, name in MEASURES.items():
        ours, who = (
            (Measured.default, "`PrivateLogisticRegression`")
            if measure == "log_loss"
            else (Measured.better, "the better of our two default classifiers")
        )
        yield f"### By {name}\n"
        yield f"Ours: {who}.\n"
        yield from _duel_table(measured[measure], ours)
        yield ""
        yield from _counts(measured[measure], measure)
        yield ""


def _duel_table(measured: All, ours: Pick) -> Iterator[str]:
    yield "| data | peer, best in hindsight | " + " | ".join(f"epsilon {e:g}" for e in EPSILONS) + " |"
    yield "|---" * (2 + len(EPSILONS)) + "|"
    for (data, values), peer in product(measured.items(), MET_BY):
        if any(values.best(peer, epsilon) for epsilon in EPSILONS):
            cells = [_duel(values, peer, epsilon, ours) for epsilon in EPSILONS]
            yield f"| {TITLES[data]} | {NAMES[peer]} | " + " | ".join(cells) + " |"


def _counts(measured: All, measure: str) -> Iterator[str]:
    hindsight = "untuned against theirs in hindsight"
    if measure != "log_loss":
        yield _behind(measured, f"The better of our two {hindsight}", Measured.better, Measured.best)
        yield _behind(measured, f"`PrivateSVC` {hindsight}", Measured.svc, Measured.best)
    yield _behind(measured, f"`PrivateLogisticRegression` {hindsight}", Measured.default, Measured.best)
    yield _behind(
        measured, "`PrivateLogisticRegression`, both untuned", Measured.default, Measured.best_default
    )


def _gap(values: Measured, mine: Values, theirs: Values) -> Gap | None:
    """Ours and theirs on the splits that both have."""
    both = [(mine[seed], theirs[seed]) for seed in sorted(set(theirs) & set(mine))]
    if not both:
        return None
    gaps = [values.sign * (ours - other) for ours, other in both]
    error = stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else None
    means = [fmean(side) for side in zip(*both, strict=True)]
    return Gap(means[0], means[1], len(both), fmean(gaps), error)


def _duel(values: Measured, peer: str, epsilon: float, pick: Pick) -> str:
    gap = _gap(values, pick(values, values.ours(MET_BY[peer]), epsilon), values.best(peer, epsilon))
    if gap is None:
        return "not measured"
    verdict = " **behind**" if gap.is_clear else " behind" if gap.behind > 0 else ""
    return f"{gap.ours:.3f} : {gap.theirs:.3f}{gap.spread} [{gap.splits}]{verdict}"


def _behind(measured: All, what: str, my: Pick, their: PickOfAll) -> str:
    """Each cell where a peer's mean is better than ours: by how much, and the standard error over the splits."""
    cells = product(measured.items(), MET_BY.items(), EPSILONS)
    gaps = {
        f"{TITLES[name]} at {epsilon:g} ({NAMES[peer]})": gap
        for (name, values), (peer, neighbours), epsilon in cells
        if (gap := _gap(values, my(values, values.ours(neighbours), epsilon), their(values, peer, epsilon)))
    }
    behind = {cell: gap for cell, gap in gaps.items() if gap.behind > 0}
    clear = sum(gap.is_clear for gap in behind.values())
    counts = f"behind in {len(behind)} of {len(gaps)} cells, in {clear} by more than one standard error"
    listed = ", ".join(f"{cell} by {gap.behind:.4f}{gap.spread}" for cell, gap in behind.items())
    return f"- {what}: ours is {counts}" + ": " * bool(behind) + listed + "."


def _tables(measured: dict[str, All]) -> Iterator[str]:
    for name, data in measured["error"].items():
        splits = len({line["seed"] for line in data.lines})
        yield f"## {TITLES[name]}\n"
        yield f"Means over up to {splits} splits; each cell: default / tuned in hindsight, by the line's measure.\n"
        yield (
            "| library | vectors | promise | measure | "
            + " | ".join(f"{epsilon:g}" for epsilon in EPSILONS)
            + " | time | memory |"
        )
        yield "|---" * (6 + len(EPSILONS)) + "|"
        for kind in data.kinds():
            yield from _lines(name, kind, measured)
        yield ""


def _lines(name: str, kind: Kind, measured: dict[str, All]) -> Iterator[str]:
    """A line per classifier and measure; our two classifiers have lines of their own."""
    data = measured["error"][name]
    no_delta = ", delta 0" if kind.neighbours == "replace_one" and not kind.delta else ""
    promise = PROMISES[kind.neighbours] + no_delta
    ours = data.ours("replace_one")
    costs = [_ratio(data.cost(kind, what), data.cost(ours, what)) for what in ("seconds", "peak_mb")]
    picks = [Measured.default] + [Measured.tuned] * (kind.library != "privlearn")
    for measure, title in MEASURES.items():
        cells = _cells(measured[measure][name], kind, *picks)
        beside = costs if measure == "error" else ["", ""]
        row = [NAMES[kind.library], kind.encoding, promise, title, *cells, *beside]
        yield "| " + " | ".join(row) + " |"
    if kind.library == "privlearn" and kind.delta:
        for measure in ("error", "auc"):
            cells = _cells(measured[measure][name], kind, Measured.svc)
            row = ["`PrivateSVC`", kind.encoding, promise, MEASURES[measure], *cells, "", ""]
            yield "| " + " | ".join(row) + " |"


def _cells(data: Measured, kind: Kind, *picks: Pick) -> list[str]:
    epsilons: tuple[float | None, ...] = EPSILONS if kind.neighbours != "none" else (None,) * len(EPSILONS)
    found = [[pick(data, kind, epsilon) for pick in picks] for epsilon in epsilons]
    return [" / ".join(dict.fromkeys(f"{fmean(v.values()):.3f}" for v in cell if v)) or "-" for cell in found]


def _ratio(value: float | None, ours: float | None) -> str:
    return "-" if value is None or not ours else f"{value / ours:.2g}x"


def draw(measured: All) -> None:
    """Ours with defaults; of each peer the best in hindsight of what was measured."""
    looks = {"diffprivlib": ("#E69F00", "s"), "opacus": ("#D55E00", "D"), "interpret": ("#009E73", "v")}
    figure = Figure(figsize=(9.6, 6.4), layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    for axes, (name, data) in zip(panels, measured.items(), strict=False):
        for neighbours, style in (("replace_one", "o-"), ("zero_out", "^-")):
            points = [(e, data.better(data.ours(neighbours), e)) for e in EPSILONS]
            _plot(axes, points, style, "#0072B2", f"privlearn, defaults, {PROMISES[neighbours]}")
        for library, (colour, marker) in looks.items():
            points = [(e, data.best(library, e)) for e in EPSILONS]
            promise = "replace-one" if library == "diffprivlib" else "add/remove"
            label = f"{NAMES[library]}, best of its settings measured, {promise}"
            _plot(axes, points, f"{marker}--", colour, label)
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


def _plot(axes: Any, points: list[tuple[float, Values]], style: str, colour: str, label: str) -> None:
    there = [(epsilon, fmean(values.values())) for epsilon, values in points if values]
    axes.plot(*zip(*there, strict=True) if there else ([], []), style, color=colour, label=label, ms=4)
