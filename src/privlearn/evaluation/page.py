"""An evaluation as a page: numbers, curves and groups. Figures are plain SVG without style or script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from privlearn._version import __version__
from privlearn.evaluation.evaluation import Evaluation, GroupResult
from privlearn.study.page_style import CSS as PAGE_CSS

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A7A00", "#56B4E9", "#E69F00")
_LEFT, _TOP, _SIDE = 46, 10, 280
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
_CSS = "figure { margin: 0; max-width: 24rem; } figcaption { color: #444; font-size: .9rem; }"

Points = Sequence[tuple[float, float]]

MOST_SHOWN = 50
"""Groups of a column, or values, that a page has room for."""


def write_page(evaluation: Evaluation) -> str:
    """The whole page as HTML; it needs no other file."""
    title = f"Evaluation of {escape(evaluation.about['of'])} on {escape(evaluation.about['dataset'])}"
    meaning = evaluation.certificate.meaning
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{PAGE_CSS}{_CSS}</style></head><body>
<h1>{title}</h1>{_warning(evaluation)}{page_part(evaluation)}
<h2>What is promised</h2><p>{escape(str(evaluation.guarantee))}. {escape(evaluation.guarantee.in_words())}</p>
<p>{escape("" if meaning is None else meaning.in_words())}</p>
<p>{escape(evaluation.certificate.to_dict()["covers"])}</p>
<footer>Made by <code>privlearn evaluate</code>, version {__version__}, from noisy counts alone. Intervals cover the
population's value with probability 0.95: noise and sampling are both in them.</footer>
</body></html>
"""


def page_part(evaluation: Evaluation) -> str:
    """What a page of the server shows too."""
    parts = [_numbers(evaluation), _per_class(evaluation), _confusion(evaluation), _figures(evaluation)]
    return "".join([*parts, _residuals(evaluation), _groups(evaluation)])


def _warning(evaluation: Evaluation) -> str:
    certificate = evaluation.certificate
    if certificate.is_private and not certificate.weakness:
        return ""
    reason = certificate.weakness or "the noise was seeded, or there is none (epsilon = inf)"
    return f'<div class="warning" role="note"><strong>Not private:</strong> {escape(reason)}.</div>'


def _numbers(evaluation: Evaluation) -> str:
    rows = [(name, str(found)) for name, found in evaluation.numbers.items()]
    return _table(f"{evaluation.records:,} {evaluation.whom}", ("measure", "value, 95 % interval"), rows)


def _per_class(evaluation: Evaluation) -> str:
    told = evaluation.per_class
    if not told:
        return ""
    names = list(next(iter(told.values())))
    rows = [(label, *(str(found[name]) for name in names)) for label, found in told.items()]
    return _table("Each class against the others", ("class", *names), rows)


def _confusion(evaluation: Evaluation) -> str:
    if not evaluation.classes:
        return ""
    labels = [str(label) for label in evaluation.classes]
    rows = [
        (f"is {label}", *map(str, cells)) for label, cells in zip(labels, evaluation.confusion, strict=True)
    ]
    return _table(
        f"Confusion: shares of all {evaluation.whom}", ("", *(f"said {label}" for label in labels)), rows
    )


def _residuals(evaluation: Evaluation) -> str:
    rows = [(f"{at:.0%}", str(found)) for at, found in evaluation.residual_quantiles.items()]
    return (
        _table("Prediction less truth", ("quantile", "value, 95 % interval (5th and 95th: about 90 %)"), rows)
        if rows
        else ""
    )


def _groups(evaluation: Evaluation) -> str:
    results = evaluation.groups
    if not results:
        return ""
    names = list(results[0].rates)
    columns = [list(found) for _, found in groupby(results, key=lambda result: result.column)]
    shown = [result for found in columns for result in found[:MOST_SHOWN]]
    rows = [
        (
            f"{result.column} = {result.group}",
            f"{max(result.records, 0):,.0f}",
            *_rates(result, names, evaluation.whom),
        )
        for result in shown
    ]
    left_out = "".join(told_left_out(found[0].column, len(found)) for found in columns)
    known = [result for result in shown if not result.too_noisy and result.rates[names[0]].is_known]
    figure = _group_figure(known, names[0]) if evaluation.classes and known else ""
    return _table("Groups", ("group", f"about {evaluation.whom}", *names), rows) + left_out + figure


def told_left_out(column: str, values: int) -> str:
    """A sentence, if a page does not show all values of a column."""
    if values <= MOST_SHOWN:
        return ""
    return (
        f"<p>The first {MOST_SHOWN} of {values:,} values of {escape(column)}: the file has all of them.</p>"
    )


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
        for label, told in evaluation.curves.items()
        for pairs in [list(zip(told["false positive rate"], told["recall"], strict=True))]
    ]
    drawn = [_figure("ROC curve", "false positive rate", "recall", curves)]
    known = [(score, found) for score, found in evaluation.calibration if found.is_known]
    if known and evaluation.about["scale"] == "probability":
        line = Line("share that was so", [(score, found.value) for score, found in known])
        bars = [(score, found.lower, found.upper) for score, found in known]
        drawn.append(_figure("Calibration", "predicted probability", "share", [line], bars))
    return f'<h2>Curves</h2><div class="models">{"".join(drawn)}</div>'


@dataclass(frozen=True)
class Line:
    """A line through points of the unit square."""

    name: str
    points: Points


def _figure(
    title: str, x_label: str, y_label: str, lines: Sequence[Line], bars: Iterable[tuple[float, ...]] = ()
) -> str:
    """Lines in the unit square beside its diagonal, with intervals as bars; names stand in the lower right corner."""
    inside = [_frame(x_label, y_label), _polyline([(0.0, 0.0), (1.0, 1.0)], "#777777", dashes=True)]
    for x, lower, upper in bars:
        inside.append(_polyline([(x, lower), (x, upper)], "#777777"))
    for place, line in enumerate(lines):
        colour, down = _COLOURS[place % len(_COLOURS)], _TOP + _SIDE - 12 - 15 * (len(lines) - 1 - place)
        inside.append(_polyline(line.points, colour))
        inside.append(f'<rect x="{_LEFT + 150}" y="{down - 5}" width="14" height="3" fill="{colour}"/>')
        inside.append(f'<text x="{_LEFT + 170}" y="{down}">{escape(line.name)}</text>')
    said = "; ".join(f"{line.name}: {_in_words(line.points)}" for line in lines)
    return _drawn(title, f"{title}. {said}", 340, "".join(inside))


def _drawn(caption: str, description: str, height: int, inside: str) -> str:
    """A figure that can be read aloud; its size is that of the viewBox unless a style sheet says more."""
    return (
        f'<figure><svg width="350" viewBox="0 0 350 {height}" role="img" aria-label="{escape(description)}" '
        f'font-size="11" font-family="sans-serif">{inside}</svg><figcaption>{escape(caption)}</figcaption></figure>'
    )


def _group_figure(results: Sequence[GroupResult], name: str) -> str:
    """One bar per group, from the lower to the upper end of its interval."""
    high = max(max(result.rates[name].upper for result in results), 0.01)
    rows = []
    for place, result in enumerate(results):
        found, y = result.rates[name], 20 + 26 * place
        low, middle, top = (160 + 170 * value / high for value in (found.lower, found.value, found.upper))
        rows.append(
            f'<text x="150" y="{y + 4}" text-anchor="end">{escape(f"{result.column} = {result.group}")}</text>'
            f'<line x1="{low:.1f}" x2="{top:.1f}" y1="{y}" y2="{y}" stroke="{_COLOURS[0]}" stroke-width="3"/>'
            f'<circle cx="{middle:.1f}" cy="{y}" r="4" fill="{_COLOURS[0]}"/>'
        )
    bottom = 20 + 26 * len(results)
    axis = f'<line x1="160" x2="330" y1="{bottom}" y2="{bottom}" stroke="#333333"/>' + "".join(
        f'<text x="{160 + 170 * part:.0f}" y="{bottom + 14}" text-anchor="middle">{part * high:.2f}</text>'
        for part in (0.0, 0.5, 1.0)
    )
    said = "; ".join(f"{result.column} = {result.group}: {result.rates[name]}" for result in results)
    caption = f"{name.capitalize()} by group, with 95 % intervals"
    return _drawn(caption, f"{caption}. {said}", bottom + 20, "".join(rows) + axis)


def _frame(x_label: str, y_label: str) -> str:
    lines = [
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="#333333"/>',
        f'<text x="{_LEFT + _SIDE / 2}" y="{_TOP + _SIDE + 34}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text x="12" y="{_TOP + _SIDE / 2}" text-anchor="middle" '
        f'transform="rotate(-90 12 {_TOP + _SIDE / 2})">{escape(y_label)}</text>',
    ]
    for tick in _TICKS:
        across, down = _place(tick, tick)
        lines.append(f'<text x="{across:.1f}" y="{_TOP + _SIDE + 16}" text-anchor="middle">{tick:g}</text>')
        lines.append(f'<text x="{_LEFT - 5}" y="{down + 4:.1f}" text-anchor="end">{tick:g}</text>')
    return "".join(lines)


def _polyline(points: Points, colour: str, *, dashes: bool = False) -> str:
    path = " ".join("{:.1f},{:.1f}".format(*_place(x, y)) for x, y in points)
    style = ' stroke-dasharray="4 4"' if dashes else ' stroke-width="2"'
    return f'<polyline points="{path}" fill="none" stroke="{colour}"{style}/>'


def _place(x: float, y: float) -> tuple[float, float]:
    return _LEFT + _SIDE * min(max(x, 0.0), 1.0), _TOP + _SIDE * (1.0 - min(max(y, 0.0), 1.0))


def _in_words(points: Points) -> str:
    return ", ".join(f"{y:.2f} at {x:.2f}" for x, y in sorted(points))


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
        for first, *cells in rows
    )
    return (
        f'<h2>{escape(title)}</h2><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
