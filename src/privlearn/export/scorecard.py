"""A model as a few tables and curves that any program can add up: what every export is written from.

    C_k = intercept_k + what the coarse pieces give to score k        Q = constant_square + what they give to the square
    F_k = what the fine pieces give to score k                        R = what they give to the square
    scale = sqrt(share) / max(sqrt(Q), least), or 0 where Q is 0
    length = sqrt(share [Q > 0] + R), or 1 where that is 0
    score_k = factor (scale C_k + F_k) / length + constant_k

A piece whose column says nothing gives nothing. With ``centring`` there is one more score than the model has, m, which
belongs to the mean; constants are left out of the above, and

    distance = sqrt((factor scale)^2 (Q - constant_square) - 2 m + mean_square)
    score_k' = stretch (score_k - offset_k) / max(distance, radius) + constant_k

The weights are folded into the pieces, so that a reader needs neither features nor their order.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from privlearn.data.schema.public import Rule, Value

Numbers = tuple[float, ...]


class Part(BaseModel):
    """Immutable, and nothing beside what is stated here."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class NumberInput(Part):
    """A column of numbers, or of dates as days since 1970-01-01.

    Its position p is that of the number, clamped to the bounds: (x - lower) / (upper - lower); with ``scale: log``,
    log1p(x - lower) / log1p(upper - lower); with a period (x - lower) / period, and 0 from 1 on.
    """

    type: Literal["number", "date"]
    name: str
    lower: float | None = Field(description="None in models of plain arrays, whose numbers have no bounds.")
    upper: float | None
    scale: Literal["linear", "log"] = "linear"
    period: float | None = None
    missing: Rule
    description: str | None = None
    unit: str | None = None


class ListInput(Part):
    """A column of listed values. Where others are of one kind (``unknown: other``) they count as one value more."""

    type: Literal["list"] = "list"
    name: str
    values: tuple[Value, ...]
    missing: Rule
    unknown: Rule | Literal["other"]
    description: str | None = None
    unit: str | None = None


class Table(Part):
    """What each value of a list gives."""

    type: Literal["table"] = "table"
    column: str
    scores: tuple[Numbers, ...] = Field(description="One row per value, one number per score.")
    squares: Numbers


class Curve(Part):
    """What a position p gives: between equally spaced knots on a line, a straight line, and waves.

    With K knots and t = p (K - 1), or t = p K where it is cyclic, i = floor(t) (at most K - 2, or K - 1) and f = t - i:
    (1 - f) hats_i + f hats_(i+1), knots counted modulo K; to the square (1 - f)^2 + f^2. Then (2 p - 1) line, whose
    square counts; sin(2 pi p) waves_1 + cos(2 pi p) waves_2; and ``square`` in any case.
    """

    type: Literal["curve"] = "curve"
    column: str
    cyclic: bool
    hats: Annotated[tuple[Numbers, ...], Field(description="One row per knot, one number per score.")] = ()
    line: Numbers = ()
    waves: tuple[Numbers, ...] = ()
    square: float


class Slope(Part):
    """What an unbounded number x gives: x times ``scores``, and x^2 times ``square``."""

    type: Literal["slope"] = "slope"
    column: str
    scores: Numbers
    square: float


class Axis(Part):
    """In which bin a cell lies: of a list, ``places[value]``; of a number, the place of the last start at or below it.

    Numbers below all starts have the first place: there is one place more than there are starts.
    """

    column: str
    size: int
    starts: Numbers = ()
    places: tuple[int, ...]


class Grid(Part):
    """What a bin gives, or the cell in which two columns' bins meet: number ``first * size of second + second``."""

    axes: tuple[Axis, ...]
    scores: tuple[Numbers, ...] = Field(description="One row per cell, one number per score.")
    square: float


class Centring(Part):
    offsets: Numbers
    mean_square: float
    radius: float
    stretch: float


class Map(Part):
    """A line through corners, constant beyond the outer ones."""

    x: Numbers
    y: Numbers


class Classes(Part):
    """Two classes have one score: above the threshold it is the second class. More have one each: the largest wins.

    Probabilities of two classes: of the second one logistic(score), with ``log_odds`` logistic(log_odds(score)); with
    ``calibration`` its value at logistic(score), or at the score itself if the link is none. Of more: by softmax, or
    each class's logistic(score) divided by their sum. None where the link is none and there is no map.
    """

    type: Literal["classes"] = "classes"
    labels: tuple[Value, ...]
    link: Literal["none", "logistic", "softmax"]
    threshold: Annotated[float, Field(description="Of two classes' score.")] = 0.0
    log_odds: Map | None = None
    calibration: Map | None = None

    @property
    def has_probabilities(self) -> bool:
        return self.link != "none" or self.log_odds is not None or self.calibration is not None


class Amounts(Part):
    """Numbers: lower + (upper - lower) (score + 1) / 2, clamped to the bounds."""

    type: Literal["numbers"] = "numbers"
    bounds: tuple[tuple[float, float], ...]


class FileForm(Part):
    """How CSV files of rows are written, and which texts are gaps in them; cells that are given count as they are."""

    delimiter: str = ","
    decimal: Literal[".", ","] = "."
    encoding: str = "utf-8"
    names: Annotated[tuple[str, ...], Field(description="Of files without a line of names.")] = ()
    trim: Annotated[bool, Field(description="Whether blanks around cells say nothing.")] = False
    missing: tuple[str, ...] = ()
    missing_in: Annotated[dict[str, tuple[str, ...]], Field(description="Of single columns, beside.")] = {}


class Scorecard(Part):
    """All that a release predicts with, and where it comes from."""

    format: Literal["privlearn scorecard 1"] = "privlearn scorecard 1"
    about: dict[str, Any] = Field(
        description="Data set, target, codes for gaps, promise, digests of release and certificate."
    )
    inputs: tuple[Annotated[NumberInput | ListInput, Field(discriminator="type")], ...]
    coarse: tuple[Annotated[Table | Curve | Slope, Field(discriminator="type")], ...]
    fine: tuple[Grid, ...]
    intercept: Numbers
    constant_square: float
    share: float
    factor: float
    least: float
    constant: Numbers
    centring: Centring | None
    outcome: Annotated[Classes | Amounts, Field(discriminator="type")]
    file: FileForm = FileForm()
