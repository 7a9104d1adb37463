"""What an experiment is given and what it returns, whichever paper it is from."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

Row = Mapping[str, Any]
Item = TypeVar("Item")

Track = Callable[[Sequence[Any]], Iterable[Any]]
"""Goes through the parts of the work, and may show how far it is; `iter` shows nothing."""


@dataclass(frozen=True)
class Result:
    """One table or figure of a paper, run again.

    Attributes
    ----------
    title : str
        Paper, figure or table, and setting.
    table : tuple of dict
        One row a measured number, with the same keys in every row.
    figure : callable
        Given the module matplotlib, returns a `matplotlib.figure.Figure` with the paper's axes.
    agreement : str
        In a sentence or two: what of the paper's claims was seen again, and what the paper leaves open.
    """

    title: str
    table: tuple[Row, ...]
    figure: Callable[[Any], Any]
    agreement: str

    def csv(self) -> str:
        """The table for other programs, with every digit."""
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(self.table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.table)
        return text.getvalue()

    def lines(self) -> list[str]:
        """The table for people."""
        cells = [list(self.table[0]), *([_written(value) for value in row.values()] for row in self.table)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return ["  ".join(map(str.rjust, line, widths)) for line in cells]


def averaged(errors: Sequence[float]) -> dict[str, Any]:
    """Mean and standard error, as every table has them; a single error does not tell how sure it is."""
    single = len(errors) == 1
    spread = None if single else float(np.std(errors, ddof=1) / np.sqrt(len(errors)))
    return {"error": float(np.mean(errors)), "standard_error": spread}


def held(claims: Sequence[bool]) -> str:
    """How often a claim of the paper was seen again."""
    return f"{sum(map(bool, claims))} of {len(claims)}"


def _written(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
