"""A table of estimates for people: text, HTML with a forest plot, LaTeX; and for programs: CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

from privlearn.release.html import BLUE, GREY, element, figure, svg_text, table
from privlearn.statistics.intervals import LEVEL
from privlearn.statistics.page import whole_page

if TYPE_CHECKING:
    from privlearn.statistics.regression.estimates import Coefficient, Estimates

_WIDTH, _NAMES, _RIGHT, _ROW, _TOP = 560, 190, 20, 22, 8
_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "_%&#${}"}
    | {sign: f"${sign}$" for sign in "<>|"}
    | {"^": r"\^{}", "~": r"\~{}", "\\": r"\textbackslash{}"}
)


def text_table(estimates: Estimates, level: float = LEVEL) -> str:
    """Return the table as text, with a heading and notes."""
    headings, rows = _cells(estimates, level)
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (headings, *rows)
    ]
    rule = "-" * max(map(len, lines))
    return "\n".join(
        [*_heading(estimates), rule, lines[0], rule, *lines[1:], rule, *_notes(estimates, level)]
    )


def _heading(estimates: Estimates) -> list[str]:
    outcome = estimates.about["outcome"]
    event = f" ({outcome['event']} compared with {outcome['reference']})" if "event" in outcome else ""
    if "levels" in outcome:
        event = f" (a higher level of {' < '.join(outcome['levels'])})"
    return [
        f"{estimates.family} regression of {outcome['name']}{event}",
        f"{estimates.formula}; about {_complete(estimates):,.0f} complete {estimates.whom} of "
        f"{estimates.certificate.records:,}{estimates.weighted_by}",
    ]


def _complete(estimates: Estimates) -> float:
    is_public = estimates.guarantee.relation.count_is_public
    return min(estimates.complete, estimates.certificate.records) if is_public else estimates.complete


def _notes(estimates: Estimates, level: float) -> list[str]:
    notes = [
        f"{level:.0%} intervals and p-values account for sampling and for the noise; {estimates.guarantee}."
    ]
    if math.isfinite(estimates.privacy_cost):
        notes.append(f"Privacy made intervals {estimates.privacy_cost:.2f} times as wide (median).")
    if any(not row.is_estimated for row in estimates.coefficients(level)):
        notes.append(
            "Not estimated: the noise, or collinear terms, hide these coefficients. Use fewer terms or more epsilon. "
            "A rare outcome needs more records."
        )
    if references := estimates.references:
        notes.append(
            "Reference: " + ", ".join(f"{name} = {value}" for name, value in references.items()) + "."
        )
    if units := estimates.units:
        notes.append("One unit: " + ", ".join(f"{name} = {unit}" for name, unit in units.items()) + ".")
    return notes


def _cells(estimates: Estimates, level: float) -> tuple[list[str], list[list[str]]]:
    ratio = estimates.ratio_name
    headings = [
        "term",
        "estimate",
        "std. error",
        *([ratio] if ratio else []),
        f"{level:.0%} interval",
        "p-value",
    ]
    return headings, [_row(row, bool(ratio)) for row in estimates.coefficients(level)]


def _row(row: Coefficient, is_ratio: bool) -> list[str]:
    if not row.is_estimated:
        return [row.term, "not estimated", "", *([""] if is_ratio else []), "", ""]
    ratio, *ends = row.ratio if is_ratio else (row.estimate, row.lower, row.upper)
    step = (ends[1] - ends[0]) / 4.0
    interval = f"{_number(ends[0], step)} to {_number(ends[1], step)}"
    shown = [_number(ratio, step)] if is_ratio else []
    return [
        row.term,
        _number(row.estimate, row.error),
        f"{row.error:.2g}",
        *shown,
        interval,
        format_p_value(row.p_value),
    ]


def format_p_value(value: float) -> str:
    """Return a p-value as journals print it."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def _number(value: float, step: float) -> str:
    """Return a number with as many decimals as show two digits of its standard error."""
    if not 1e-8 < step < math.inf or abs(value) >= 1e8:
        return f"{value:.3g}"
    return f"{value:,.{max(1 - math.floor(math.log10(step)), 0)}f}"


def latex_table(estimates: Estimates, level: float = LEVEL) -> str:
    """Return the table as LaTeX; it needs the package booktabs."""
    headings, rows = _cells(estimates, level)
    body = "\n".join(_latex_row(row) for row in rows)
    return "\n".join(
        [
            r"\begin{tabular}{l" + "r" * (len(headings) - 1) + "}",
            r"\toprule",
            _latex_row(headings),
            r"\midrule",
            body,
            r"\bottomrule",
            r"\end{tabular}",
            *(f"% {' '.join(line.split())}" for line in (*_heading(estimates), *_notes(estimates, level))),
        ]
    )


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"


def csv_table(estimates: Estimates, level: float = LEVEL) -> str:
    """Return the table as CSV, with unrounded numbers."""
    records, stream = estimates.records(level), io.StringIO()
    writer = csv.DictWriter(stream, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return stream.getvalue()


def write_table(suffix: str, level: float = LEVEL) -> Callable[[Estimates], str]:
    """Return the function that writes a file with this suffix: .tex, .csv, or else a page."""
    write = {".tex": latex_table, ".csv": csv_table}.get(suffix, write_page)
    return lambda estimates: write(estimates, level)


def write_page(estimates: Estimates, level: float = LEVEL) -> str:
    """Return the whole page as HTML."""
    return whole_page(
        estimates,
        f"Estimates: {estimates.about['outcome']['name']} in {estimates.about['dataset']}",
        page_part(estimates, level),
        command="estimate",
        intervals=f"Intervals cover the population's coefficient with probability {level:g}, noise included.",
    )


def page_part(estimates: Estimates, level: float = LEVEL) -> str:
    """Return the table and the forest plot alone, which notebooks and the server's pages show too."""
    heading = "".join(f"<p>{escape(line)}</p>" for line in _heading(estimates))
    notes = " ".join(map(escape, _notes(estimates, level)))
    return f"{heading}{table(*_cells(estimates, level))}<p>{notes}</p>{forest_plot(estimates, level)}"


def forest_plot(estimates: Estimates, level: float = LEVEL) -> str:
    """Return an SVG figure: each estimate with its interval, ratios on a logarithmic axis; without intercepts."""
    rows = [row for row in estimates.coefficients(level)[estimates.intercepts :] if row.is_estimated]
    if not rows:
        return ""
    position = _axis(rows)
    bottom = _TOP + _ROW * len(rows)
    zero = position(0.0)
    shapes = [element("line", x1=zero, x2=zero, y1=float(_TOP), y2=float(bottom), stroke=GREY)]
    for index, row in enumerate(rows):
        y = _TOP + _ROW * (index + 0.5)
        colour = BLUE if row.p_value < 1.0 - level else GREY
        shapes += [
            svg_text(_NAMES - 8, y + 4, row.term if len(row.term) <= 30 else row.term[:29] + "…", "end"),
            element(
                "line",
                x1=position(row.lower),
                x2=position(row.upper),
                y1=y,
                y2=y,
                stroke=colour,
                stroke_width=2,
            ),
            element("circle", cx=position(row.estimate), cy=y, r=4, fill=colour),
        ]
    name = estimates.ratio_name
    low, high = min(row.lower for row in rows), max(row.upper for row in rows)
    ends = {min(low, 0.0): "start", max(high, 0.0): "end", 0.0: "middle"}  # 0 once, also where it is an end
    for end, anchor in ends.items():
        shapes.append(svg_text(position(end), bottom + 16, f"{math.exp(end) if name else end:.3g}", anchor))
    caption = (
        f"{name or 'coefficient'}, with {level:.0%} intervals; grey: the interval contains {1 if name else 0}"
    )
    described = "; ".join(" ".join(_row(row, bool(name))) for row in rows)
    return figure(caption, described, _WIDTH, bottom + 24, "".join(shapes))


def _axis(rows: Sequence[Coefficient]) -> Callable[[float], float]:
    """Return the map from coefficients to the width of the plot; 0 is always inside."""
    low = min(0.0, *(row.lower for row in rows))
    high = max(0.0, *(row.upper for row in rows))
    width = _WIDTH - _NAMES - _RIGHT
    return lambda value: _NAMES + width * (value - low) / ((high - low) or 1.0)
