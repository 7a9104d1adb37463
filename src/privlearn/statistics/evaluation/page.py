"""An evaluation as an HTML page: numbers, curves and groups. Figures are plain SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from privlearn.release.html import BLUE, COLOURS, GREY, element, figure, svg_points, svg_text, table
from privlearn.statistics.evaluation.evaluation import Evaluation, GroupResult
from privlearn.statistics.page import MAX_SHOWN, omission_note, whole_page

_WIDTH, _LEFT, _TOP, _SIDE, _BOTTOM = 350, 46, 10, 280, 345
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)

Points = Sequence[tuple[float, float]]


def write_page(evaluation: Evaluation) -> str:
    """Return the whole page as HTML."""
    return whole_page(
        evaluation,
        f"Evaluation of {evaluation.about['of']} on {evaluation.about['dataset']}",
        page_part(evaluation),
        command="evaluate",
        intervals="Intervals cover the population's value with probability 0.95; they account for noise and sampling.",
    )


def page_part(evaluation: Evaluation) -> str:
    """Return the numbers and figures alone, which the server's pages show too."""
    parts = (_numbers, _per_class, _confusion, _figures, _residuals, _groups)
    return "".join(part(evaluation) for part in parts)


def _numbers(evaluation: Evaluation) -> str:
    rows = [(name, str(estimate)) for name, estimate in evaluation.numbers_with_baseline.items()]
    title = f"{evaluation.records:,} {evaluation.whom}{evaluation.weighted_by}"
    return table(("measure", "value, 95 % interval"), rows, title)


def _per_class(evaluation: Evaluation) -> str:
    results = evaluation.per_class
    if not results:
        return ""
    names = list(next(iter(results.values())))
    rows = [(label, *(str(rates[name]) for name in names)) for label, rates in results.items()]
    return table(("class", *names), rows, "Each class against the others")


def _confusion(evaluation: Evaluation) -> str:
    if not evaluation.classes:
        return ""
    labels = [str(label) for label in evaluation.classes]
    rows = [
        (f"is {label}", *map(str, cells)) for label, cells in zip(labels, evaluation.confusion, strict=True)
    ]
    headings = ("", *(f"predicted {label}" for label in labels))
    return table(headings, rows, f"Confusion: shares of all {evaluation.whom}")


def _residuals(evaluation: Evaluation) -> str:
    rows = [(f"{at:.0%}", str(estimate)) for at, estimate in evaluation.residual_quantiles.items()]
    headings = ("quantile", "value, 95 % interval (5th and 95th: about 90 %)")
    return table(headings, rows, "Prediction less truth") if rows else ""


def _groups(evaluation: Evaluation) -> str:
    results = evaluation.groups
    if not results:
        return ""
    names = list(results[0].rates)
    columns = [list(groups) for _, groups in groupby(results, key=lambda result: result.column)]
    results_in_table = [result for groups in columns for result in groups[:MAX_SHOWN]]
    rows = [
        (
            f"{result.column} = {result.group}",
            f"{max(result.records, 0):,.0f}",
            *_rates(result, names, evaluation.whom),
        )
        for result in results_in_table
    ]
    notes = "".join(omission_note(groups[0].column, len(groups)) for groups in columns)
    known = [
        result for result in results_in_table if not result.too_noisy and result.rates[names[0]].is_known
    ]
    figure = _group_figure(known, names[0]) if evaluation.classes and known else ""
    return table(("group", f"about {evaluation.whom}", *names), rows, "Groups") + notes + figure


def _rates(result: GroupResult, names: Sequence[str], whom: str) -> Iterable[str]:
    if result.too_noisy:
        reason = f"too noisy: noise of ±{result.deviation:.0f} in the count of {whom}"
        return [reason, *[""] * (len(names) - 1)]
    return [str(result.rates[name]) for name in names]


def _figures(evaluation: Evaluation) -> str:
    if not evaluation.classes:
        return ""
    curves = [
        Line(label, [(x.value, y.value) for x, y in pairs if x.is_known and y.is_known])
        for label, rates in evaluation.curves.items()
        for pairs in [list(zip(rates["false positive rate"], rates["recall"], strict=True))]
    ]
    has_curve = any(len(curve.points) > 1 for curve in curves)
    figures = [
        _figure("ROC curve", "false positive rate", "recall", curves)
        if has_curve
        else "<p>ROC curve: too noisy. A larger test part, or more epsilon, would show it.</p>"
    ]
    known = [(score, estimate) for score, estimate in evaluation.calibration if estimate.is_known]
    if known and evaluation.about["scale"] == "probability":
        line = Line("observed share", [(score, estimate.value) for score, estimate in known])
        bars = [(score, estimate.lower, estimate.upper) for score, estimate in known]
        figures.append(_figure("Calibration", "predicted probability", "share", [line], bars))
    return f'<h2>Curves</h2><div class="figures">{"".join(figures)}</div>'


@dataclass(frozen=True)
class Line:
    """A line through points of the unit square."""

    name: str
    points: Points


def _figure(
    title: str, x_label: str, y_label: str, lines: Sequence[Line], bars: Iterable[tuple[float, ...]] = ()
) -> str:
    """Return lines in the unit square, with its diagonal, intervals as bars, and a legend below."""
    shapes = [_frame(x_label, y_label), _polyline([(0.0, 0.0), (1.0, 1.0)], GREY, dashes=True)]
    for x, lower, upper in bars:
        shapes.append(_polyline([(x, lower), (x, upper)], GREY))
    down = _BOTTOM
    for index, line in enumerate(lines):
        if len(line.points) < 2:  # too noisy
            continue
        colour, is_dashed = COLOURS[index % len(COLOURS)], index >= len(COLOURS)
        shapes.append(_polyline(line.points, colour, dashes=is_dashed))
        for x in (0, 8) if is_dashed else (0, 5):
            shapes.append(
                element("rect", x=_LEFT + x, y=down - 5, width=6 if is_dashed else 9, height=3, fill=colour)
            )
        shapes.append(svg_text(_LEFT + 20, down, line.name if len(line.name) <= 45 else f"{line.name[:44]}…"))
        down += 15
    description = "; ".join(f"{line.name}: {_read_aloud(line.points)}" for line in lines)
    return figure(title, description, _WIDTH, down, "".join(shapes))


def _group_figure(results: Sequence[GroupResult], name: str) -> str:
    """Return one bar per group, from the lower to the upper end of its interval."""
    high = max(max(result.rates[name].upper for result in results), 0.01)
    shapes = []
    for index, result in enumerate(results):
        rate, y = result.rates[name], 20 + 26 * index
        low, middle, top = (160 + 170 * value / high for value in (rate.lower, rate.value, rate.upper))
        shapes += [
            svg_text(150, y + 4, f"{result.column} = {result.group}", "end"),
            element("line", x1=low, x2=top, y1=y, y2=y, stroke=BLUE, stroke_width=3),
            element("circle", cx=middle, cy=y, r=4, fill=BLUE),
        ]
    bottom = 20 + 26 * len(results)
    shapes.append(element("line", x1=160, x2=330, y1=bottom, y2=bottom, stroke="currentColor"))
    for part in (0.0, 0.5, 1.0):
        shapes.append(svg_text(160 + 170 * part, bottom + 14, f"{part * high:.2f}", "middle"))
    description = "; ".join(f"{result.column} = {result.group}: {result.rates[name]}" for result in results)
    caption = f"{name.capitalize()} by group, with 95 % intervals"
    return figure(caption, description, _WIDTH, bottom + 20, "".join(shapes))


def _frame(x_label: str, y_label: str) -> str:
    middle = _TOP + _SIDE / 2
    shapes = [
        element("rect", x=_LEFT, y=_TOP, width=_SIDE, height=_SIDE, fill="none", stroke="currentColor"),
        svg_text(_LEFT + _SIDE / 2, _TOP + _SIDE + 34, x_label, "middle"),
        element("g", svg_text(12, middle, y_label, "middle"), transform=f"rotate(-90 12 {middle:g})"),
    ]
    for tick in _TICKS:
        across, down = _position(tick, tick)
        shapes.append(svg_text(across, _TOP + _SIDE + 16, f"{tick:g}", "middle"))
        shapes.append(svg_text(_LEFT - 5, down + 4, f"{tick:g}", "end"))
    return "".join(shapes)


def _polyline(points: Points, colour: str, *, dashes: bool = False) -> str:
    style: dict[str, object] = {"stroke_dasharray": "4 4"} if dashes else {"stroke_width": 2}
    path = svg_points(_position(x, y) for x, y in points)
    return element("polyline", points=path, fill="none", stroke=colour, **style)


def _position(x: float, y: float) -> tuple[float, float]:
    return _LEFT + _SIDE * min(max(x, 0.0), 1.0), _TOP + _SIDE * (1.0 - min(max(y, 0.0), 1.0))


def _read_aloud(points: Points) -> str:
    return ", ".join(f"{y:.2f} at {x:.2f}" for x, y in sorted(points))
