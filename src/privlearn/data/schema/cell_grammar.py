"""The grammar of cells: which texts are numbers, dates, true or false, and gaps. docs/reference/cells.md explains it.

This module is the only definition. Readers of files and tables apply it to whole columns
(`privlearn.data.sources.read_columns`), and exports apply it to single rows; tests compare both with `CellRules.read`.
The patterns are plain data, in the common subset of Python, RE2, JavaScript and PostgreSQL, and match a whole cell.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from typing import Literal

Kind = Literal["number", "whole", "truth", "date", "text", "any"]
"""Kind of a column's cells: ``whole`` and ``truth`` are lists of whole numbers, and of true and false; ``any`` is a
column without a declared type, such as identifiers of persons."""

BLANKS = "\t\n\r \u00a0"
"""Tab, line breaks, space and no-break space: ignored around numbers, dates, true and false, and around text with
``trim: true``."""

NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""A number with a decimal point; its value is the nearest float, infinite beyond all floats."""

INFINITE = r"[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?"
NOT_A_NUMBER = r"[+-]?[nN][aA][nN]"
"""A gap, in columns of numbers."""

TRUE = r"[tT][rR][uU][eE]"
FALSE = r"[fF][aA][lL][sS][eE]"

YEAR = r"([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
DAY = f"{YEAR}-[0-9]{{2}}-[0-9]{{2}}"
TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,9})?)?"
ZONE = r"([zZ]|[+-][0-9]{2}(:?[0-9]{2})?)"
DATE = f"{DAY}([T ]{TIME}{ZONE}?)?"
"""The day must also exist in the calendar, in the years 0001 to 9999. Time and zone do not count: a date is the
written day."""

ISO_DAYS = "yyyy-mm-dd"
_WRITTEN_DAYS = {"dd.mm.yyyy": (r"\.", "."), "dd/mm/yyyy": ("/", "/"), "mm/dd/yyyy": ("/", "/")}
DAY_FORMS = (ISO_DAYS, *_WRITTEN_DAYS)
"""Forms of dates that a schema may state for its texts; texts such as 2020-01-31 are dates in every form."""

HOURS = 24.0
"""In a column of numbers with this period, a time of day such as 14:30 is its hours, 14.5."""

GAPS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)
"""Texts that are gaps in every column that does not list them as values."""

EPOCH = datetime.date(1970, 1, 1)


def number_pattern(decimal: str = ".") -> str:
    """Return the pattern of a number whose decimal sign is ``decimal``; no other sign and no blank may group digits."""
    return NUMBER.replace(r"\.", re.escape(decimal))


def parse_number(text: str, decimal: str = ".") -> float | None:
    """Return the number that a text without blanks around it spells, NaN included; None if it spells none."""
    if re.fullmatch(number_pattern(decimal), text):
        return float(text.replace(decimal, "."))
    if re.fullmatch(f"{INFINITE}|{NOT_A_NUMBER}", text):
        return float(text)
    return None


def day_steps(form: str) -> tuple[tuple[str, str], ...]:
    """Return patterns and replacements that turn texts in a form of dates into texts such as 2020-01-31.

    >>> text = "1.2.2020 10:30"
    >>> for pattern, replacement in day_steps("dd.mm.yyyy"):
    ...     text = re.sub(pattern, replacement, text)
    >>> text
    '2020-02-01 10:30'
    """
    if form == ISO_DAYS:
        return ()
    sign, plain = _WRITTEN_DAYS[form]
    one, two = r"([0-9])", r"([0-9]{2})"
    return (
        (rf"\A{one}{sign}", rf"0\1{plain}"),
        (rf"\A{two}{sign}{one}{sign}", rf"\1{plain}0\2{plain}"),
        (rf"\A{two}{sign}{two}{sign}([0-9]{{4}})", r"\3-\2-\1" if form.startswith("dd") else r"\3-\1-\2"),
    )


def parse_hours(text: str) -> float | None:
    """Return the hours of a time of day such as 14:30 or 14:30:15; None if a text is none."""
    if not re.fullmatch(TIME, text):
        return None
    hours, minutes, seconds = (*text.replace(",", ".").split(":"), "0")[:3]
    whole, _, fraction = seconds.partition(".")
    nanoseconds = (int(hours) * 3600 + int(minutes) * 60 + int(whole)) * 10**9 + int(fraction.ljust(9, "0"))
    return nanoseconds / 1e9 / 3600.0  # as for typed times, so that the floats are equal


def parse_day(text: str, form: str = ISO_DAYS) -> int | None:
    """Return the days since 1970-01-01 that a text without blanks around it spells; None if it spells no date."""
    for pattern, replacement in day_steps(form):
        text = re.sub(pattern, replacement, text)
    if not re.fullmatch(DATE, text):
        return None
    try:
        return (datetime.date.fromisoformat(text[:10]) - EPOCH).days
    except ValueError:
        return None


def parse_truth(text: str) -> bool | None:
    """Return what ``true`` or ``false`` spells, in letters of any case; None for any other text."""
    if re.fullmatch(TRUE, text):
        return True
    return False if re.fullmatch(FALSE, text) else None


def is_code(value: str | int, codes: Iterable[str], trim: bool = False) -> bool:
    """Return whether a listed value is one of the codes for gaps, compared as the cells of its column are."""
    if isinstance(value, str):
        return value in ({code.strip(BLANKS) for code in codes} if trim else set(codes))
    return float(value) in {parse_number(code.strip(BLANKS)) for code in codes}


class UnreadableCell(ValueError):
    """A text that is not a value of its column; it has no message, which could quote the cell."""


class CellRules:
    """Rules for the cells of one column, the same for all files and tables.

    Parameters
    ----------
    kind : Kind
    codes : tuple of str
        Codes for gaps that the schema states for the column.
    decimal : {".", ","}
        The decimal sign of numbers that are text.
    trim : bool
        Whether blanks around text are ignored.
    listed : tuple of str
        Texts in the column's list, which are never gaps.
    days : {"yyyy-mm-dd", "dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy"}
        A form of dates that texts may have in addition to the first.
    reads_hours : bool
        Whether a time of day is a number, its hours.

    Examples
    --------
    >>> CellRules("number", codes=("-9",)).read(" -9.0 ") is None
    True
    >>> CellRules("text", listed=("NA",)).read("NA")
    'NA'
    """

    def __init__(
        self,
        kind: Kind,
        codes: tuple[str, ...] = (),
        decimal: str = ".",
        trim: bool = False,
        listed: tuple[str, ...] = (),
        days: str = ISO_DAYS,
        reads_hours: bool = False,
    ) -> None:
        self.kind, self.codes, self.decimal, self.trim, self.listed = kind, codes, decimal, trim, listed
        self.days, self.reads_hours = days, reads_hours
        codes_without_blanks = [code.strip(BLANKS) for code in codes]
        texts = dict.fromkeys((*GAPS, *(codes_without_blanks if self.strips else codes)))
        both = {".", self.decimal}  # YAML writes numbers with a point
        numbers = {parse_number(code, sign) for code in codes_without_blanks for sign in both} - {None}
        gap_days = {parse_day(code, days) for code in codes_without_blanks} - {None}
        self.gap_texts = tuple(text for text in texts if text not in listed)
        self.gap_numbers = tuple(sorted(number for number in numbers if number is not None))
        self.gap_days = tuple(sorted(day for day in gap_days if day is not None))

    @property
    def strips(self) -> bool:
        """Return whether blanks around a text are ignored."""
        return self.trim or self.kind not in ("text", "any")

    def read(self, text: str) -> float | str | None:
        """Return the value of a cell that is text, None for a gap; dates are days since 1970-01-01, true is 1.

        Raises
        ------
        UnreadableCell
            If the text is not a value of the column: a reader then refuses the whole table.
        """
        text = text.strip(BLANKS) if self.strips else text
        if text in self.gap_texts:
            return None
        match self.kind:
            case "number" | "whole" | "truth":
                return self._parse_number(text)
            case "date":
                day = parse_day(text, self.days)
                if day is None:
                    raise UnreadableCell
                return None if day in self.gap_days else float(day)
        return text

    def _parse_number(self, text: str) -> float | None:
        truth = None if self.kind == "whole" else parse_truth(text)
        if truth is not None:
            return float(truth)
        number = parse_number(text, self.decimal)
        if number is None and self.reads_hours:
            number = parse_hours(text)
        if number is None:
            raise UnreadableCell
        return self.number(number)

    def number(self, number: float) -> float | None:
        """Return a number as the column has it, None if it is a gap.

        Raises
        ------
        UnreadableCell
            If the column lists true and false, and the number is neither 0 nor 1.
        """
        if number != number or number in self.gap_numbers:
            return None
        if self.kind == "truth" and number not in (0.0, 1.0):
            raise UnreadableCell
        return number + 0.0  # -0 is 0
