"""A description as a page: bars with intervals for each column, and correlations. Needs no other file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from privlearn._version import __version__
from privlearn.description.description import ColumnDescription, Description, correlated, counted, share
from privlearn.evaluation.intervals import Estimate
from privlearn.evaluation.page import MOST_SHOWN, told_left_out
from privlearn.study.page_style import CSS as PAGE_CSS

_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#777777"
_WIDTH, _HEIGHT, _SQUARE = 260, 14, 34
_CSS = (
    ".scroll { margin-bottom: 1rem; } td svg { width: auto; display: block; } th { overflow-wrap: anywhere; }"
)


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
    quantiles = [(escape(at), escape(text)) for at, text in column.shown_quantiles.items()]
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
    rows = [(escape(label), _bar(found, most), escape(counted(found))) for label, found in shown]
    return _table((column.name, "bar", "about how many, 95 % interval"), rows)


def _bar(found: Estimate, most: float) -> str:
    noisy = counted(found).startswith("too noisy")
    low, value, high = (_WIDTH * number / most for number in (found.lower, found.value, found.upper))
    bar = "" if noisy else f'<rect width="{value:.1f}" height="{_HEIGHT}" fill="{_BLUE}"/>'
    middle = _HEIGHT / 2
    return _drawing(
        _WIDTH,
        _HEIGHT,
        f'{bar}<line x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}" stroke="{_GREY}"/>',
    )


def _drawing(width: int, height: int, shapes: str) -> str:
    """Hidden from readers of text, since the table says the same in numbers."""
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" aria-hidden="true" '
        f'font-size="11" font-family="sans-serif">{shapes}</svg>'
    )


def _correlations(description: Description) -> str:
    if not description.correlations:
        return ""
    rows = [
        (escape(f"{one}, {other}"), escape(correlated(found)))
        for (one, other), found in description.correlations.items()
    ]
    table = _table(("columns", "correlation, 95 % interval"), rows)
    return f"<h2>Correlations</h2>{_squares(description)}{table}"


def _squares(description: Description) -> str:
    """The matrix as squares: blue for positive, orange for negative, the darker the stronger."""
    rows = [
        (
            escape(name),
            _drawing(_SQUARE * len(values), _SQUARE, "".join(map(_square, range(len(values)), values))),
        )
        for name, values in zip(description.ordered, description.correlation.tolist(), strict=True)
    ]
    return _table(("column", "with each column, in the order of the rows"), rows)


def _square(place: int, value: float) -> str:
    x, side = _SQUARE * place, _SQUARE - 2
    return (
        f'<rect x="{x + 1}" y="1" width="{side}" height="{side}" fill="{_BLUE if value >= 0 else _ORANGE}" '
        f'fill-opacity="{abs(value):.2f}" stroke="{_GREY}"/>'
        f'<text x="{x + _SQUARE / 2}" y="21" text-anchor="middle">{value:.1f}</text>'
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML: a column is as wide as its longest text, however long that is."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'
        for first, *others in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
