"""A description as a page: bars with intervals for each column, and correlations. Plain SVG, no other file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from privlearn._version import __version__
from privlearn.description.description import ColumnDescription, Description, correlated, counted, share
from privlearn.evaluation.intervals import Estimate
from privlearn.evaluation.page import MOST_SHOWN, told_left_out
from privlearn.study.comparison_page import CSS as PAGE_CSS

_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#777777"
_LEFT, _WIDTH, _ROW, _SQUARE = 150, 260, 20, 34
_CSS = "figure { margin: 0 0 1rem; max-width: 34rem; } figcaption { color: #444; font-size: .9rem; }"


def write_page(description: Description) -> str:
    """The whole page as HTML."""
    title = f"Description of {escape(description.about['dataset'])}"
    certificate = description.certificate
    meaning = certificate.meaning
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{PAGE_CSS}{_CSS}</style></head><body>
<h1>{title}</h1>{_warning(description)}{page_part(description)}
<h2>What is promised</h2><p>{escape(str(description.guarantee))}. {escape(description.guarantee.in_words())}</p>
<p>{escape("" if meaning is None else meaning.in_words())}</p><p>{escape(certificate.to_dict()["covers"])}</p>
<footer>Made by <code>privlearn describe</code>, version {__version__}, from noisy counts alone. Intervals say what the
noise may do: they cover this table's own number with probability 0.95.</footer>
</body></html>
"""


def page_part(description: Description) -> str:
    """What a page of the server shows too."""
    columns = "".join(map(_column, description.columns.values()))
    return f"<p>About {description.records:,.0f} {description.whom}.</p>{columns}{_correlations(description)}"


def _warning(description: Description) -> str:
    certificate = description.certificate
    if certificate.is_private and not certificate.weakness:
        return ""
    reason = certificate.weakness or "the noise was seeded, or there is none (epsilon = inf)"
    return f'<div class="warning" role="note"><strong>Not private:</strong> {escape(reason)}.</div>'


def _column(column: ColumnDescription) -> str:
    unlisted = f", not listed {share(column.unlisted)}" if column.type in ("category", "ordinal") else ""
    quantiles = list(column.shown_quantiles.items())
    told = _table(("quantile", "value, 95 % interval"), quantiles) if quantiles else ""
    return (
        f"<h2>{escape(column.name)}</h2>"
        f"<p>{escape(column.type.capitalize())}, missing {share(column.missing)}{unlisted}.</p>"
        f"{told}{told_left_out(column.name, len(column.counts))}{_bars(column)}"
    )


def _bars(column: ColumnDescription) -> str:
    """One bar per value or bin, with its interval; what is too noisy has no bar."""
    shown = list(zip(column.labels, column.counts, strict=True))[:MOST_SHOWN]
    most = max([found.upper for _, found in shown] + [1.0])
    rows = [_bar(place, label, found, most) for place, (label, found) in enumerate(shown)]
    said = "; ".join(f"{label}: {counted(found)}" for label, found in shown)
    height = _ROW * len(rows) + 6
    return (
        f'<figure><svg viewBox="0 0 560 {height}" role="img" aria-label="{escape(f"{column.name}. {said}")}" '
        f'font-size="11" font-family="sans-serif">{"".join(rows)}</svg>'
        f"<figcaption>About how many, with 95 % intervals</figcaption></figure>"
    )


def _bar(place: int, label: str, found: Estimate, most: float) -> str:
    y = 4 + _ROW * place
    middle = y + _ROW / 2 - 2
    noisy = counted(found).startswith("too noisy")
    low, value, high = (_WIDTH * number / most for number in (found.lower, found.value, found.upper))
    bar = (
        "" if noisy else f'<rect x="{_LEFT}" y="{y}" width="{value:.1f}" height="{_ROW - 6}" fill="{_BLUE}"/>'
    )
    return (
        f'<text x="{_LEFT - 6}" y="{middle + 4}" text-anchor="end">{escape(label)}</text>{bar}'
        f'<line x1="{_LEFT + low:.1f}" x2="{_LEFT + high:.1f}" y1="{middle}" y2="{middle}" stroke="{_GREY}"/>'
        f'<text x="{_LEFT + _WIDTH + 8}" y="{middle + 4}">{escape(counted(found))}</text>'
    )


def _correlations(description: Description) -> str:
    if not description.correlations:
        return ""
    rows = [
        (f"{one}, {other}", correlated(found)) for (one, other), found in description.correlations.items()
    ]
    table = _table(("columns", "correlation, 95 % interval"), rows)
    return f"<h2>Correlations</h2>{_squares(description)}{table}"


def _squares(description: Description) -> str:
    """The matrix as squares: blue for positive, orange for negative, the darker the stronger."""
    names, matrix = description.ordered, description.correlation
    drawn = []
    for row, name in enumerate(names):
        y = 8 + _SQUARE * row
        drawn.append(f'<text x="{_LEFT - 6}" y="{y + 20}" text-anchor="end">{escape(name)}</text>')
        for column in range(len(names)):
            value, x = float(matrix[row, column]), _LEFT + _SQUARE * column
            colour = _BLUE if value >= 0 else _ORANGE
            drawn.append(
                f'<rect x="{x}" y="{y}" width="{_SQUARE - 2}" height="{_SQUARE - 2}" fill="{colour}" '
                f'fill-opacity="{abs(value):.2f}" stroke="{_GREY}"/>'
                f'<text x="{x + _SQUARE / 2 - 1}" y="{y + 20}" text-anchor="middle">{value:.1f}</text>'
            )
    side = _LEFT + _SQUARE * len(names) + 10
    said = f"Correlations of {', '.join(names)}; the table below has each of them."
    return (
        f'<figure><svg viewBox="0 0 {side} {_SQUARE * len(names) + 16}" role="img" aria-label="{escape(said)}" '
        f'font-size="11" font-family="sans-serif">{"".join(drawn)}</svg>'
        f"<figcaption>In the order of the rows</figcaption></figure>"
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th><td>{escape(second)}</td></tr>' for first, second in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
