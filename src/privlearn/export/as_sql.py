"""Write one SELECT for SQLite, PostgreSQL and DuckDB: nested CASE expressions, in steps.

Each step is a MATERIALIZED part of a WITH clause, or a planner would copy an expression wherever it is used.
Functions: floor, sqrt, exp, ln, sin, cos, which SQLite has unless it was built without them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from privlearn.errors import InvalidParameter
from privlearn.export import scorecard
from privlearn.export.sql_cells import UNREADABLE, SqlCell
from privlearn.export.sql_expressions import (
    between,
    double,
    exp,
    identifier,
    interpolate,
    literal,
    logistic,
    number,
    sum_of,
    tree,
)
from privlearn.export.standalone import rules_of
from privlearn.export.target import ExportTarget, comment_lines, register_target

_STEPS = (
    "pl_texts", "pl_forms", "pl_values", "pl_cells", "pl_positions", "pl_sums", "pl_lengths", "pl_scores",
)  # fmt: skip


@register_target
@dataclass(frozen=True)
class SqlTarget(ExportTarget):
    """
    Parameters
    ----------
    table : str, optional
        Table to read; by default the data set's name.
    keep : sequence of str
        Columns to return with the prediction, such as an identifier; by default those that the model reads.
    """

    name = "sql"
    suffix = ".sql"

    table: str | None = None
    keep: Sequence[str] = ()

    def write(self, card: scorecard.Scorecard) -> bytes:
        source = self.table or card.about["dataset"]
        if source is None:
            raise InvalidParameter("a model of plain arrays names no data set. Pass table=.")
        kept = ", ".join(map(identifier, self.keep or [column.name for column in card.inputs]))
        steps = _Steps(card, kept)
        parts = ",\n".join(
            f"{name} AS MATERIALIZED (\n  SELECT {columns}\n  FROM {before or identifier(source)}\n)"
            for name, columns, before in steps
        )
        heading = "".join(f"-- {line}\n" for line in comment_lines(card))
        return f"{heading}WITH {parts}\nSELECT {kept}, {steps.outcome()}\nFROM pl_scores\n".encode()


class _Steps:
    """The steps of the query; each reads the columns of the previous one."""

    def __init__(self, card: scorecard.Scorecard, kept: str) -> None:
        self._card, self._kept = card, kept
        self._cell = {column.name: f"pl_c{index}" for index, column in enumerate(card.inputs)}
        self._readers = {
            column.name: SqlCell(column, rules_of(column.model_dump(), card.file.model_dump()), f"pl_{index}")
            for index, column in enumerate(card.inputs)
        }
        self._input = {column.name: column for column in card.inputs}
        self._outputs = range(len(card.intercept))
        self._bins = {(axis.column, axis.size): axis for grid in card.fine for axis in grid.axes}

    def __iter__(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield the name, the columns and the source of each step."""
        before = None
        for name in _STEPS:
            columns = getattr(self, name.removeprefix("pl_"))()
            yield (
                name,
                ",\n    ".join([self._kept, *(f"{value} AS {label}" for label, value in columns.items())]),
                before,
            )
            before = name

    def texts(self) -> dict[str, str]:
        return {label: value for reader in self._readers.values() for label, value in reader.texts().items()}

    def forms(self) -> dict[str, str]:
        return {label: value for reader in self._readers.values() for label, value in reader.forms().items()}

    def values(self) -> dict[str, str]:
        return {label: value for reader in self._readers.values() for label, value in reader.values().items()}

    def cells(self) -> dict[str, str]:
        read = {self._cell[name]: reader.cell() for name, reader in self._readers.items()}
        numbers = [column.name for column in self._card.inputs if isinstance(column, scorecard.NumberInput)]
        return read | {f"{self._cell[name]}m": self._readers[name].is_missing() for name in numbers}

    def positions(self) -> dict[str, str]:
        refused = [_is_refused(self._cell[column.name], column) for column in self._card.inputs]
        found = {"pl_refused": _any(refused)}
        found |= {label: label for label in self._cell.values()}
        for column in self._card.inputs:
            if isinstance(column, scorecard.NumberInput) and column.lower is not None:
                found[f"{self._cell[column.name]}p"] = _position(self._cell[column.name], column)
        for (name, size), axis in self._bins.items():
            found[f"{self._cell[name]}b{size}"] = self._bin(axis)
        return found

    def _bin(self, axis: scorecard.Axis) -> str:
        cell = self._cell[axis.column]
        leaves = [str(index) for index in axis.bins]
        thresholds: Sequence[float] = axis.starts
        if isinstance(self._input[axis.column], scorecard.ListInput):
            thresholds = range(1, len(leaves))
        return f"CASE WHEN {self._is_there(axis.column)} THEN {tree(cell, thresholds, leaves)} END"

    def _is_there(self, name: str) -> str:
        test = "IS NOT NULL" if isinstance(self._input[name], scorecard.NumberInput) else ">= 0"
        return f"{self._cell[name]} {test}"

    def sums(self) -> dict[str, str]:
        card = self._card
        found = {"pl_refused": "pl_refused"}
        for k in self._outputs:
            coarse = [self._coarse(piece, k) for piece in card.coarse]
            found[f"pl_coarse{k}"] = double(sum_of([number(card.intercept[k]), *coarse]))
            found[f"pl_fine{k}"] = double(sum_of([number(0.0), *(self._fine(grid, k) for grid in card.fine)]))
        squares = [self._square(piece) for piece in card.coarse]
        found["pl_square"] = double(sum_of([number(card.constant_square), *squares]))
        filled = [
            f"CASE WHEN {self._is_filled(grid)} THEN {number(grid.square)} ELSE {number(0.0)} END"
            for grid in card.fine
        ]
        return found | {"pl_fine_square": double(sum_of([number(0.0), *filled]))}

    def _coarse(self, piece: scorecard.Table | scorecard.Curve | scorecard.Slope, k: int) -> str:
        cell = self._cell[piece.column]
        if isinstance(piece, scorecard.Table):
            value = tree(cell, range(1, len(piece.scores)), [number(row[k]) for row in piece.scores])
        elif isinstance(piece, scorecard.Slope):
            value = f"{cell} * {number(piece.scores[k])}"
        else:
            value = sum_of(list(_curve(f"{cell}p", piece, k)))
        return f"CASE WHEN {self._is_there(piece.column)} THEN {value} ELSE {number(0.0)} END"

    def _square(self, piece: scorecard.Table | scorecard.Curve | scorecard.Slope) -> str:
        cell = self._cell[piece.column]
        if isinstance(piece, scorecard.Table):
            value = tree(cell, range(1, len(piece.squares)), [number(square) for square in piece.squares])
        elif isinstance(piece, scorecard.Slope):
            value = f"{cell} * {cell} * {number(piece.square)}"
        else:
            value = sum_of(list(_curve_squares(f"{cell}p", piece)))
        return f"CASE WHEN {self._is_there(piece.column)} THEN {value} ELSE {number(0.0)} END"

    def _is_filled(self, grid: scorecard.Grid) -> str:
        return " AND ".join(self._is_there(axis.column) for axis in grid.axes)

    def _fine(self, grid: scorecard.Grid, k: int) -> str:
        index = "0"
        for axis in grid.axes:
            index = f"({index} * {axis.size} + {self._cell[axis.column]}b{axis.size})"
        value = tree(index, range(1, len(grid.scores)), [number(row[k]) for row in grid.scores])
        return f"CASE WHEN {self._is_filled(grid)} THEN {value} ELSE {number(0.0)} END"

    def lengths(self) -> dict[str, str]:
        card = self._card
        parts = [f"pl_{part}{k}" for k in self._outputs for part in ("coarse", "fine")]
        passed = ["pl_refused", "pl_square", *parts]
        root = f"sqrt({number(card.share)} / pl_square)"
        if card.least > 0.0:
            limit = number(math.sqrt(card.share) / card.least)
            root = f"CASE WHEN pl_square < {number(card.least**2)} THEN {limit} ELSE {root} END"
        whole = f"{number(card.share)} + pl_fine_square"
        return {label: label for label in passed} | {
            "pl_scale": double(f"CASE WHEN pl_square > 0 THEN {root} ELSE {number(0.0)} END"),
            "pl_length": double(
                f"CASE WHEN pl_square > 0 THEN sqrt({whole}) WHEN pl_fine_square > 0 THEN sqrt(pl_fine_square) "
                f"ELSE {number(1.0)} END"
            ),
        }

    def scores(self) -> dict[str, str]:
        card = self._card
        sums = {
            k: f"{number(card.factor)} * (pl_scale * pl_coarse{k} + pl_fine{k}) / pl_length"
            for k in self._outputs
        }
        centring = card.centring
        scores = [*sums.values()]
        if centring is not None:
            *scores, mean = scores
            inside = f"{number(card.factor**2)} * pl_scale * pl_scale * (pl_square - {number(card.constant_square)})"
            square = f"{inside} - {number(2.0)} * {mean} + {number(centring.mean_square)}"
            near = f"{square} < {number(centring.radius**2)}"
            by = f"CASE WHEN {near} THEN {number(centring.radius)} ELSE sqrt({square}) END"
            scores = [
                f"{number(centring.stretch)} * ({score} - {number(offset)}) / ({by})"
                for score, offset in zip(scores, centring.offsets, strict=True)
            ]
        return {
            f"pl_score{k}": f"CASE WHEN pl_refused THEN NULL ELSE {score} + {number(constant)} END"
            for k, (score, constant) in enumerate(zip(scores, card.constant, strict=True))
        }

    def outcome(self) -> str:
        outcome, scores = self._card.outcome, [f"pl_score{k}" for k in range(len(self._card.constant))]
        columns = (
            _amounts(outcome, scores) if isinstance(outcome, scorecard.Amounts) else _classes(outcome, scores)
        )
        return ",\n  ".join(f"{value} AS {identifier(name)}" for name, value in columns.items())


def _is_refused(cell: str, column: scorecard.NumberInput | scorecard.ListInput) -> str:
    conditions = [f"{cell} IS NULL"] if column.missing == "refuse" else []
    if isinstance(column, scorecard.NumberInput):
        conditions.append(f"({cell} IS NULL AND NOT {cell}m)")
    else:
        conditions.append(f"{cell} = {UNREADABLE}")
        conditions += [f"{cell} = -1"] if column.unknown == "refuse" else []
    return " OR ".join(conditions)


def _any(conditions: Sequence[str]) -> str:
    return f"COALESCE({' OR '.join(conditions)}, FALSE)" if conditions else "FALSE"


def _position(cell: str, column: scorecard.NumberInput) -> str:
    assert column.lower is not None
    assert column.upper is not None
    lower, upper = number(column.lower), number(column.upper)
    above = f"(CASE WHEN {cell} < {lower} THEN {lower} WHEN {cell} > {upper} THEN {upper} ELSE {cell} END - {lower})"
    if column.period is not None:
        share = f"{above} / {number(column.period)}"
        return double(f"CASE WHEN {share} < 1 THEN {share} ELSE {number(0.0)} END")
    width = f"({upper} - {lower})"
    if column.scale == "log":
        return double(f"ln(1 + {above}) / ln(1 + {width})")
    return double(f"{above} / {width}")


def _curve(position: str, piece: scorecard.Curve, k: int) -> Iterable[str]:
    if piece.hats:
        along, last = _along(position, piece)
        heights = [number(knot[k]) for knot in (*piece.hats, piece.hats[0])]
        leaves = [
            f"(({i + 1} - {along}) * {heights[i]} + ({along} - {i}) * {heights[i + 1]})"
            for i in range(last + 1)
        ]
        yield tree(along, range(1, last + 1), leaves)
    if piece.line:
        yield f"(2 * {position} - 1) * {number(piece.line[k])}"
    if piece.waves:
        angle = f"{number(2.0 * math.pi)} * {position}"
        yield f"sin({angle}) * {number(piece.waves[0][k])} + cos({angle}) * {number(piece.waves[1][k])}"


def _curve_squares(position: str, piece: scorecard.Curve) -> Iterable[str]:
    yield number(piece.square)
    if piece.hats:
        along, last = _along(position, piece)
        part = f"({along} - CASE WHEN {along} >= {last} THEN {last} ELSE floor({along}) END)"
        yield f"(1 - {part}) * (1 - {part}) + {part} * {part}"
    if piece.line:
        yield f"(2 * {position} - 1) * (2 * {position} - 1)"


def _along(position: str, piece: scorecard.Curve) -> tuple[str, int]:
    """Return the position in units of knots, and the index of the last interval."""
    intervals = len(piece.hats) - (not piece.cyclic)
    return f"({position} * {intervals})", intervals - 1


def _amounts(outcome: scorecard.Amounts, scores: Sequence[str]) -> dict[str, str]:
    names = ["prediction"] if len(scores) == 1 else [f"prediction_{k}" for k in range(len(scores))]
    return {
        name: between(
            f"{number(lower)} + {number(upper - lower)} * (({between(score, -1.0, 1.0)}) + 1) / 2",
            lower,
            upper,
        )
        for name, score, (lower, upper) in zip(names, scores, outcome.bounds, strict=True)
    }


def _classes(outcome: scorecard.Classes, scores: Sequence[str]) -> dict[str, str]:
    labels = [literal(label) for label in outcome.labels]
    names = [f"probability_{label}" for label in outcome.labels]
    if len(labels) == 2:
        (score,) = scores
        chosen = f"WHEN {score} > {number(outcome.threshold)} THEN {labels[1]} ELSE {labels[0]}"
        likely = _second(outcome, score)
        shares = [] if likely is None else [f"1 - ({likely})", likely]
    else:
        wins = [
            " AND ".join(f"{one} >= {other}" for other in scores[k:]) for k, one in enumerate(scores[:-1], 1)
        ]
        cases = " ".join(f"WHEN {win} THEN {label}" for win, label in zip(wins, labels, strict=False))
        chosen, shares = f"{cases} ELSE {labels[-1]}", _several(outcome, scores)
    found = {"prediction": f"CASE WHEN {scores[0]} IS NULL THEN NULL {chosen} END"}
    if shares:
        return found | dict(zip(names, shares, strict=True))
    if len(labels) == 2:
        return found | {"score": scores[0]}
    return found | {f"score_{label}": score for label, score in zip(outcome.labels, scores, strict=True)}


def _second(outcome: scorecard.Classes, score: str) -> str | None:
    """Return the probability of the second class; None if the model has none."""
    if outcome.calibration is not None:
        return interpolate(score if outcome.link == "none" else logistic(score), outcome.calibration)
    if outcome.log_odds is not None:
        return logistic(f"({interpolate(score, outcome.log_odds)})")
    return None if outcome.link == "none" else logistic(score)


def _several(outcome: scorecard.Classes, scores: Sequence[str]) -> list[str]:
    if outcome.link == "none":
        return []
    if outcome.link == "softmax":
        # exp(s - s_k) summed over s is what 1 is divided by: no score need be the largest
        return [f"1 / ({sum_of([exp(f'({other} - {one})') for other in scores])})" for one in scores]
    odds = [logistic(score) for score in scores]
    return [f"{one} / ({sum_of(odds)})" for one in odds]
