"""What an experiment returns, whichever paper it is from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


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
    table: tuple[Mapping[str, Any], ...]
    figure: Callable[[Any], Any]
    agreement: str
