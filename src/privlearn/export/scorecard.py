"""Scorecards: a model as tables and curves that any program can add up. Every export is written from one.

    C_k = intercept_k + sum of the coarse pieces' scores k        Q = constant_square + sum of their squares
    F_k = sum of the fine pieces' scores k                        R = sum of their squares
    scale = sqrt(share) / max(sqrt(Q), least), or 0 where Q is 0
    length = sqrt(share [Q > 0] + R), or 1 where that is 0
    score_k = factor (scale C_k + F_k) / length + constant_k

A piece whose column is missing adds 0. With ``centring`` there is one more score than the model has, m, for the mean;
constants are omitted above, and

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
    """An immutable part of a scorecard that refuses unknown fields."""

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
    codes: Annotated[tuple[str, ...], Field(description="Codes that count as missing.")] = ()
    missing: Rule
    description: str | None = None
    unit: str | None = None


class ListInput(Part):
    """A column of listed values. With ``unknown: other`` all other values count as one more value."""

    type: Literal["list"] = "list"
    name: str
    values: tuple[Value, ...]
    codes: Annotated[tuple[str, ...], Field(description="Codes that count as missing.")] = ()
    missing: Rule
    unknown: Rule | Literal["other"]
    description: str | None = None
    unit: str | None = None


class Words(Part):
    """A column of text, and the scores of the n buckets into which its words are hashed.

    A word is two or more letters, digits or underscores of the text in lower case. Its hash h is the signed 32-bit
    MurmurHash3 of its UTF-8 bytes with seed 0; it counts 1 in bucket |h| mod n, or -1 where h is negative. The counts
    are divided by the root of the sum of their squares, if that is not 0, and 1 is added to the square.
    """

    name: str
    codes: Annotated[tuple[str, ...], Field(description="Codes that count as missing.")] = ()
    missing: Rule
    scores: tuple[Numbers, ...] = Field(description="One row per bucket, one number per score.")
    description: str | None = None


class Table(Part):
    """The scores and squares that each value of a list adds."""

    type: Literal["table"] = "table"
    column: str
    scores: tuple[Numbers, ...] = Field(description="One row per value, one number per score.")
    squares: Numbers


class Curve(Part):
    """The scores that a position p adds: linear between equally spaced knots, plus a line, plus waves.

    Let there be K knots. Let t = p (K - 1) and i = floor(t), at most K - 2; for a cyclic curve t = p K and i at most
    K - 1. Let f = t - i. The curve adds to the scores:

    - (1 - f) hats_i + f hats_(i+1), with knots counted modulo K;
    - (2 p - 1) line, if there is a line;
    - sin(2 pi p) waves_1 + cos(2 pi p) waves_2, if there are waves.

    It adds to the square: (1 - f)^2 + f^2 for the knots, (2 p - 1)^2 for the line, and ``square`` always.
    """

    type: Literal["curve"] = "curve"
    column: str
    cyclic: bool
    hats: Annotated[tuple[Numbers, ...], Field(description="One row per knot, one number per score.")] = ()
    line: Numbers = ()
    waves: tuple[Numbers, ...] = ()
    square: float


class Slope(Part):
    """The scores that an unbounded number x adds: x times ``scores``; to the square, x^2 times ``square``."""

    type: Literal["slope"] = "slope"
    column: str
    scores: Numbers
    square: float


class Axis(Part):
    """The bin of a cell: ``bins[value]`` for a list; for a number, that of the last start at or below it.

    Numbers below all starts have the first of ``bins``, which has one entry more than ``starts``.
    """

    column: str
    size: int
    starts: Numbers = ()
    bins: tuple[int, ...]


class Grid(Part):
    """The scores of a bin, or of a pair of two columns' bins with the index ``first * size of second + second``."""

    axes: tuple[Axis, ...]
    scores: tuple[Numbers, ...] = Field(description="One row per cell, one number per score.")
    square: float


class Centring(Part):
    offsets: Numbers
    mean_square: float
    radius: float
    stretch: float


class Map(Part):
    """A piecewise linear function through knots, constant beyond the outer ones."""

    x: Numbers
    y: Numbers


class Classes(Part):
    """Classes. Two classes share one score: the second one is predicted above the threshold. Of more, the largest wins.

    The probability of the second of two classes is logistic(score). With ``log_odds`` it is logistic(log_odds(score)).
    With ``calibration`` it is the calibration's value at logistic(score), or at the score if the link is none. More
    than two classes have the softmax of their scores; with the link logistic, each class has logistic(score) divided by
    the sum over the classes. There are no probabilities if the link is none and there is neither map.
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
    """The format of CSV files of rows, and of cells that are text."""

    delimiter: str = ","
    decimal: Literal[".", ","] = "."
    dates: Annotated[
        Literal["yyyy-mm-dd", "dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy"],
        Field(description="A form of dates that texts may have in addition to the first."),
    ] = "yyyy-mm-dd"
    encoding: str = "utf-8"
    names: Annotated[tuple[str, ...], Field(description="Of files without a line of names.")] = ()
    trim: Annotated[bool, Field(description="Whether blanks around text are ignored.")] = False
    line_breaks: Annotated[bool, Field(description="Whether quoted cells may hold line breaks.")] = False


class Scorecard(Part):
    """Everything that a release needs to predict, and its origin."""

    format: Literal["privlearn scorecard 1"] = "privlearn scorecard 1"
    about: dict[str, Any] = Field(
        description="Data set, target, guarantee, digests of release and certificate."
    )
    inputs: tuple[Annotated[NumberInput | ListInput, Field(discriminator="type")], ...]
    texts: Annotated[tuple[Words, ...], Field(description="Coarse pieces too; the others read inputs.")] = ()
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
