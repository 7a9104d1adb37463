"""A description as an HTML page: bars with intervals for each column, and correlations."""

from __future__ import annotations

from html import escape

from privlearn.release.html import BLUE, GREY, ORANGE, element, html_table, svg, svg_text, table
from privlearn.statistics.description.cross_table import format_count
from privlearn.statistics.description.description import (
    ColumnDescription,
    Description,
    format_correlation,
    format_share,
)
from privlearn.statistics.description.hypotheses import HypothesisTest
from privlearn.statistics.intervals import Estimate
from privlearn.statistics.page import MAX_SHOWN, omission_note, whole_page

_WIDTH, _HEIGHT, _SQUARE = 260, 14, 34


def write_page(description: Description) -> str:
    """Return the whole page as HTML."""
    return whole_page(
        description,
        f"Description of {description.about['dataset']}",
        page_part(description),
        command="describe",
        intervals="Intervals cover this table's own value with probability 0.95; they account for the noise.",
    )


def page_part(description: Description) -> str:
    """Return the numbers and figures alone, which the server's pages show too."""
    columns = "".join(map(_column, description.columns.values()))
    whom = f"{description.whom}{description.weighted_by}"
    return (
        f"<p>About {description.records:,.0f} {whom}.</p>{columns}{_correlations(description)}"
        f"{_crosses(description)}{_tests(description)}"
    )


def _column(column: ColumnDescription) -> str:
    is_list = column.type in ("category", "ordinal")
    unlisted = f", not listed {format_share(column.unlisted)}" if is_list else ""
    quantiles = column.shown_quantiles.items()
    quantile_table = table(("quantile", "value, 95 % interval"), quantiles) if quantiles else ""
    return (
        f"<h2>{escape(column.name)}</h2>"
        f"<p>{escape(column.type.capitalize())}, missing {format_share(column.missing)}{unlisted}.</p>"
        f"{quantile_table}{omission_note(column.name, len(column.counts))}{_bars(column)}"
    )


def _bars(column: ColumnDescription) -> str:
    """Return one bar per value or bin, with its interval; counts that are too noisy have no bar."""
    shown = list(zip(column.labels, column.counts, strict=True))[:MAX_SHOWN]
    longest = max([count.upper for _, count in shown] + [1.0])
    rows = [(escape(label), _bar(count, longest), escape(format_count(count))) for label, count in shown]
    return html_table((column.name, "bar", "approximate count, 95 % interval"), rows)


def _bar(count: Estimate, longest: float) -> str:
    is_noisy = format_count(count).startswith("too noisy")
    low, value, high = (_WIDTH * number / longest for number in (count.lower, count.value, count.upper))
    y = _HEIGHT / 2
    line = element("line", x1=low, x2=high, y1=y, y2=y, stroke=GREY)
    bar = "" if is_noisy else element("rect", width=value, height=_HEIGHT, fill=BLUE)
    return svg(_WIDTH, _HEIGHT, bar + line)


def _correlations(description: Description) -> str:
    if not description.correlations:
        return ""
    rows = [
        (f"{one}, {other}", format_correlation(estimate))
        for (one, other), estimate in description.correlations.items()
    ]
    correlations = table(("columns", "correlation, 95 % interval"), rows)
    return f"<h2>Correlations</h2>{_squares(description)}{correlations}"


def _crosses(description: Description) -> str:
    if not description.crosses:
        return ""
    tables = "".join(cross.to_html() for cross in description.crosses.values())
    return f"<h2>Cross tables</h2><p>Approximate counts, 95 % interval, share of the row.</p>{tables}"


def _tests(description: Description) -> str:
    if not description.tests:
        return ""
    rows = [(test.method, " and ".join(test.columns), *_test_cells(test)) for test in description.tests]
    return (
        f"<h2>Tests of association</h2>{table(('test', 'columns', 'estimate, 95 % interval', 'p-value'), rows)}"
        "<p>P-values and these intervals account for sampling and for the noise.</p>"
    )


def _test_cells(test: HypothesisTest) -> tuple[str, str]:
    shown = str(test).removesuffix(f", {test.p_text}").partition(": ")[2] if test.statistic else ""
    return shown, test.p_text.removeprefix("p = ").removeprefix("p ")


def _squares(description: Description) -> str:
    """Return the correlation matrix as squares: blue for positive, orange for negative, darker if stronger."""
    rows = [
        (escape(name), svg(_SQUARE * len(values), _SQUARE, "".join(map(_square, range(len(values)), values))))
        for name, values in zip(description.ordered, description.correlation.tolist(), strict=True)
    ]
    return html_table(("column", "with each column, in the order of the rows"), rows)


def _square(index: int, value: float) -> str:
    """Return one square of a row: at its index, coloured by the correlation, with the correlation as text."""
    x, side = _SQUARE * index, _SQUARE - 2
    fill = {"fill": BLUE if value >= 0 else ORANGE, "fill_opacity": f"{abs(value):.2f}", "stroke": GREY}
    square = element("rect", x=x + 1, y=1, width=side, height=side, **fill)
    return square + svg_text(x + _SQUARE / 2, 21, f"{value:.1f}", "middle")
