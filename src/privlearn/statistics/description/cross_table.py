"""A cross table of two columns: noisy counts of each pair of values, with intervals, and shares of rows."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from privlearn.release.html import html_table
from privlearn.statistics.intervals import Estimate

_TOO_NOISY = 0.5  # largest half width of an interval, relative to its count


@dataclass(frozen=True, eq=False)
class CrossTable:
    """Counts of the records, or persons, with each pair of values.

    Attributes
    ----------
    columns : tuple of str
        The column whose values are the rows, and the one whose values are the columns.
    row_labels, column_labels : list of str
    counts : list of list of Estimate
        One list for each row.

    Examples
    --------
    >>> counts = [[Estimate(300.0, 290.0, 310.0), Estimate(100.0, 90.0, 110.0)]]
    >>> print(CrossTable(("sex", "ill"), ["female"], ["no", "yes"], counts))
    sex by ill, approximate counts and shares of each row:
      female: no 300 (290 to 310), 75.0 %; yes 100 (90 to 110), 25.0 %
    """

    columns: tuple[str, str]
    row_labels: list[str]
    column_labels: list[str]
    counts: list[list[Estimate]]

    @property
    def cells(self) -> list[list[str]]:
        """Return each count with its interval, and its share of the row, as text."""
        return [[_cell(count, sum(one.value for one in row)) for count in row] for row in self.counts]

    def __str__(self) -> str:
        lines = [f"{' by '.join(self.columns)}, approximate counts and shares of each row:"]
        for label, cells in zip(self.row_labels, self.cells, strict=True):
            named = zip(self.column_labels, cells, strict=True)
            lines.append(f"  {label}: {'; '.join(f'{name} {cell}' for name, cell in named)}")
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return the table with its caption as HTML."""
        header = (f"{self.columns[0]} \\ {self.columns[1]}", *self.column_labels)
        rows = [
            (escape(label), *map(escape, cells))
            for label, cells in zip(self.row_labels, self.cells, strict=True)
        ]
        return f"<h3>{escape(' by '.join(self.columns))}</h3>{html_table(header, rows)}"


def format_count(estimate: Estimate) -> str:
    """Return a count and its interval as text."""
    if estimate.upper - estimate.value > _TOO_NOISY * estimate.value:
        return f"too noisy: below about {estimate.upper:,.0f}"
    return f"{estimate.value:,.0f} ({estimate.lower:,.0f} to {estimate.upper:,.0f})"


def _cell(count: Estimate, total: float) -> str:
    text = format_count(count)
    has_share = total > 0.0 and not text.startswith("too noisy")
    return f"{text}, {100.0 * count.value / total:.1f} %" if has_share else text
