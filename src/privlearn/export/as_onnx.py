"""Write an ONNX model in double precision, for `onnxruntime` and other ONNX runtimes; it needs privlearn[onnx].

One input per column, of shape (rows, 1): text for lists of text, where an empty text is missing; otherwise doubles,
where NaN is missing, true and false are 1 and 0, and dates are days since 1970-01-01. Outputs: ``prediction``, then
``probabilities`` or else ``scores`` of classes; and ``refused``, true for rows that the model does not accept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.schema.cell_grammar import CellRules
from privlearn.errors import InvalidParameter
from privlearn.export.scorecard import (
    Amounts,
    Axis,
    Classes,
    Curve,
    Grid,
    ListInput,
    Map,
    NumberInput,
    Scorecard,
    Slope,
    Table,
)
from privlearn.export.standalone import rules_of
from privlearn.export.target import ExportTarget, comment_lines, register_target

OPSET, LISTS_OPSET, FORMAT = 18, 2, 9
_UNKNOWN, _MISSING = -1, -2


@register_target
class OnnxTarget(ExportTarget):
    name = "onnx"
    suffix = ".onnx"
    is_text = False

    def write(self, card: Scorecard) -> bytes:
        onnx = _require_onnx()
        graph = _Graph(onnx)
        outputs = _outputs(graph, card)
        model = onnx.helper.make_model(
            onnx.helper.make_graph(graph.nodes, "privlearn", graph.inputs, outputs, graph.constants),
            opset_imports=[
                onnx.helper.make_opsetid("", OPSET),
                onnx.helper.make_opsetid("ai.onnx.ml", LISTS_OPSET),
            ],
            ir_version=FORMAT,
            producer_name="privlearn",
            doc_string="\n".join(comment_lines(card)),
        )
        onnx.helper.set_model_props(model, {name: str(value) for name, value in card.about.items()})
        onnx.checker.check_model(model)
        content: bytes = model.SerializeToString()
        return content


def _require_onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise InvalidParameter("an export to ONNX needs an extra: pip install 'privlearn[onnx]'") from None
    return onnx


class _Graph:
    """The nodes of a model; methods add nodes and return the names of their results."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, kind: Any = np.float64) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(np.asarray(value, dtype=kind), name))
        return name

    def call(
        self, operator: str, *operands: Any, to: str | None = None, domain: str = "", **settings: Any
    ) -> str:
        """Add a node and return the name of its result; operands are names, or numbers that become constants."""
        names = [one if isinstance(one, str) else self.constant(one) for one in operands]
        result = to or f"value_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(operator, names, [result], domain=domain, **settings))
        return result

    def value(self, kind: str, name: str, width: int) -> Any:
        return self._onnx.helper.make_tensor_value_info(
            name, getattr(self._onnx.TensorProto, kind), ["rows", width]
        )

    def cast(self, value: str, kind: str) -> str:
        result = f"value_{len(self.nodes)}"
        number = getattr(self._onnx.TensorProto, kind)
        self.nodes.append(self._onnx.helper.make_node("Cast", [value], [result], to=number))
        return result

    def pick(self, table: Any, index: str, kind: Any = np.float64) -> str:
        """Return the rows of a constant table at indices of shape (rows, 1)."""
        flat = self.call("Reshape", index, self.constant([-1], np.int64))
        return self.call("Gather", self.constant(table, kind), flat, axis=0)

    def total(self, terms: Sequence[str]) -> str:
        return terms[0] if len(terms) == 1 else self.call("Sum", *terms)

    def count_from(self, value: str, starts: Sequence[float]) -> str:
        """Return the number of starts at or below the value."""
        reached = self.cast(self.call("GreaterOrEqual", value, self.constant([list(starts)])), "INT64")
        return self.call("ReduceSum", reached, self.constant([1], np.int64), keepdims=1)


class _Cell:
    """A column: its numbers or indices of values, which cells are present, and which are refused."""

    def __init__(self, graph: _Graph, column: NumberInput | ListInput, rules: CellRules) -> None:
        self.column, self._rules = column, rules
        reads_text = isinstance(column, ListInput) and isinstance(column.values[0], str)
        graph.inputs.append(graph.value("STRING" if reads_text else "DOUBLE", column.name, 1))
        read = self._read_list if isinstance(column, ListInput) else self._read_number
        self.refused: list[str] = []
        self.value, self.present = read(graph, column)  # type: ignore[arg-type]
        self.weight = graph.cast(self.present, "DOUBLE")

    def _read_number(self, graph: _Graph, column: NumberInput) -> tuple[str, str]:
        present = self._present(graph)
        if column.missing == "refuse":
            self.refused.append(graph.call("Not", present))
        return graph.call(
            "Where", present, column.name, 0.0 if column.lower is None else column.lower
        ), present

    def _present(self, graph: _Graph) -> str:
        """Return which numbers are neither NaN nor a code for a gap."""
        present = graph.call("Equal", self.column.name, self.column.name)
        rules = self._rules
        for gap in rules.gap_days if rules.kind == "date" else rules.gap_numbers:
            is_gap = graph.call("Equal", self.column.name, float(gap))
            present = graph.call("And", present, graph.call("Not", is_gap))
        return present

    def _read_list(self, graph: _Graph, column: ListInput) -> tuple[str, str]:
        index = self._value_indices(graph, column)
        for rule, mark in ((column.missing, _MISSING), (column.unknown, _UNKNOWN)):
            if rule == "refuse":
                self.refused.append(graph.call("Equal", index, graph.constant([[mark]], np.int64)))
        if column.unknown == "other":
            unknown = graph.call("Equal", index, graph.constant([[_UNKNOWN]], np.int64))
            index = graph.call("Where", unknown, graph.constant([[len(column.values)]], np.int64), index)
        zero = graph.constant([[0]], np.int64)
        present = graph.call("GreaterOrEqual", index, zero)
        return graph.call("Where", present, index, zero), present

    def _value_indices(self, graph: _Graph, column: ListInput) -> str:
        if isinstance(column.values[0], str):
            gaps = self._rules.gap_texts
            settings: dict[str, Any] = {
                "keys_strings": [*column.values, *gaps],
                "values_int64s": [*range(len(column.values)), *[_MISSING] * len(gaps)],
                "default_int64": _UNKNOWN,
            }
            return graph.call("LabelEncoder", column.name, domain="ai.onnx.ml", **settings)
        equal = graph.call("Equal", column.name, graph.constant([[float(value) for value in column.values]]))
        numbers = graph.constant([[index + 1 for index in range(len(column.values))]], np.int64)
        hits = graph.call("Mul", graph.cast(equal, "INT64"), numbers)
        found = graph.call("ReduceSum", hits, graph.constant([1], np.int64), keepdims=1)
        found = graph.call("Add", found, graph.constant([[_UNKNOWN]], np.int64))
        return graph.call("Where", self._present(graph), found, graph.constant([[_MISSING]], np.int64))


def _outputs(graph: _Graph, card: Scorecard) -> list[Any]:
    """Add the formula of `scorecard.py`, whose C, Q, F and R are the sums and squares here; return the outputs."""
    form = card.file.model_dump()
    cells = {column.name: _Cell(graph, column, rules_of(column.model_dump(), form)) for column in card.inputs}
    first = graph.call("Mul", cells[card.inputs[0].name].weight, 0.0)  # zeros, as many as there are rows
    zero = graph.call("Add", first, graph.constant([[0.0]]))
    coarse = [_coarse(graph, piece, cells[piece.column]) for piece in card.coarse]
    fine = [_fine(graph, grid, cells) for grid in card.fine]
    square = graph.total([graph.call("Add", zero, card.constant_square), *(square for _, square in coarse)])
    fine_square = graph.total([zero, *(square for _, square in fine)])
    sums = graph.total(
        [graph.call("Add", zero, graph.constant([card.intercept])), *(scores for scores, _ in coarse)]
    )
    fine_sums = graph.total([zero, *(scores for scores, _ in fine)])
    some = graph.call("Greater", square, 0.0)
    root = graph.call("Max", graph.call("Sqrt", graph.call("Where", some, square, 1.0)), card.least)
    scale = graph.call("Where", some, graph.call("Div", math.sqrt(card.share), root), 0.0)
    whole = graph.call("Add", graph.call("Where", some, card.share, 0.0), fine_square)
    length = graph.call("Sqrt", graph.call("Where", graph.call("Greater", whole, 0.0), whole, 1.0))
    inner = graph.call("Add", graph.call("Mul", scale, sums), fine_sums)
    scores = graph.call("Mul", card.factor, graph.call("Div", inner, length))
    if card.centring is not None:
        scores = _centre(graph, card, scores, scale, square)
    scores = graph.call("Add", scores, graph.constant([card.constant]))
    refused = [mark for cell in cells.values() for mark in cell.refused]
    return _results(graph, card, scores, _any_refused(graph, refused, zero))


def _any_refused(graph: _Graph, marks: Sequence[str], zero: str) -> str:
    found = graph.call("Greater", zero, 0.0)
    for mark in marks:
        found = graph.call("Or", found, mark)
    return graph.call("Identity", found, to="refused")


def _coarse(graph: _Graph, piece: Table | Curve | Slope, cell: _Cell) -> tuple[str, str]:
    """Return scores of shape (rows, outputs) and squares of shape (rows, 1)."""
    if isinstance(piece, Table):
        squares = np.array(piece.squares)[:, np.newaxis]
        scores, square = graph.pick(piece.scores, cell.value), graph.pick(squares, cell.value)
    elif isinstance(piece, Slope):
        scores = graph.call("Mul", cell.value, graph.constant([piece.scores]))
        square = graph.call("Mul", graph.call("Mul", cell.value, cell.value), piece.square)
    else:
        scores, square = _curve(graph, piece, _position(graph, cell))
    return graph.call("Mul", cell.weight, scores), graph.call("Mul", cell.weight, square)


def _position(graph: _Graph, cell: _Cell) -> str:
    column: Any = cell.column
    inside = graph.call("Min", graph.call("Max", cell.value, column.lower), column.upper)
    above = graph.call("Sub", inside, column.lower)
    if column.period is not None:
        share = graph.call("Div", above, column.period)
        return graph.call("Where", graph.call("Less", share, 1.0), share, 0.0)
    if column.scale == "log":
        return graph.call(
            "Div", graph.call("Log", graph.call("Add", above, 1.0)), math.log1p(column.upper - column.lower)
        )
    return graph.call("Div", above, column.upper - column.lower)


def _curve(graph: _Graph, piece: Curve, position: str) -> tuple[str, str]:
    scores, squares = [], [graph.call("Add", graph.call("Mul", position, 0.0), piece.square)]
    if piece.hats:
        hats = np.array(piece.hats)
        intervals = len(hats) - (not piece.cyclic)
        on = graph.call("Mul", position, float(intervals))
        left = graph.call("Min", graph.call("Floor", on), float(intervals - 1))
        knot, part = graph.cast(left, "INT64"), graph.call("Sub", on, left)
        rest = graph.call("Sub", 1.0, part)
        for share, table in ((rest, hats), (part, np.roll(hats, -1, axis=0))):
            scores.append(graph.call("Mul", share, graph.pick(table, knot)))
            squares.append(graph.call("Mul", share, share))
    if piece.line:
        along = graph.call("Sub", graph.call("Mul", position, 2.0), 1.0)
        scores.append(graph.call("Mul", along, graph.constant([piece.line])))
        squares.append(graph.call("Mul", along, along))
    # A cosine is a sine shifted by a quarter turn.
    for turn, wave in zip((0.0, math.pi / 2.0), piece.waves, strict=False):
        angle = graph.call("Add", graph.call("Mul", position, 2.0 * math.pi), turn)
        scores.append(graph.call("Mul", graph.call("Sin", angle), graph.constant([wave])))
    return graph.total(scores), graph.total(squares)


def _fine(graph: _Graph, grid: Grid, cells: dict[str, _Cell]) -> tuple[str, str]:
    index, weight = "", ""
    for axis in grid.axes:
        step, present = _bin(graph, axis, cells[axis.column]), cells[axis.column].weight
        if index:
            row = graph.call("Mul", index, graph.constant([[axis.size]], np.int64))
            index, weight = graph.call("Add", row, step), graph.call("Mul", weight, present)
        else:
            index, weight = step, present
    return graph.call("Mul", weight, graph.pick(grid.scores, index)), graph.call("Mul", weight, grid.square)


def _bin(graph: _Graph, axis: Axis, cell: _Cell) -> str:
    step = cell.value if isinstance(cell.column, ListInput) else graph.count_from(cell.value, axis.starts)
    return graph.pick([[index] for index in axis.bins], step, np.int64)


def _centre(graph: _Graph, card: Scorecard, scores: str, scale: str, square: str) -> str:
    centring: Any = card.centring
    count = len(card.constant)
    ends = [graph.constant([index], np.int64) for index in (0, count, count + 1, 1)]
    own = graph.call("Slice", scores, ends[0], ends[1], ends[3])
    mean = graph.call("Slice", scores, ends[1], ends[2], ends[3])
    by = graph.call("Mul", scale, card.factor)
    inside = graph.call("Mul", graph.call("Mul", by, by), graph.call("Sub", square, card.constant_square))
    distance = graph.call(
        "Add", graph.call("Sub", inside, graph.call("Mul", mean, 2.0)), centring.mean_square
    )
    longest = graph.call("Max", graph.call("Sqrt", graph.call("Max", distance, 0.0)), centring.radius)
    moved = graph.call("Sub", own, graph.constant([centring.offsets]))
    return graph.call("Div", graph.call("Mul", moved, centring.stretch), longest)


def _results(graph: _Graph, card: Scorecard, scores: str, refused: str) -> list[Any]:
    outcome = card.outcome
    if isinstance(outcome, Amounts):
        lower, upper = (graph.constant([ends]) for ends in zip(*outcome.bounds, strict=True))
        unit = graph.call("Min", graph.call("Max", scores, -1.0), 1.0)
        share = graph.call("Div", graph.call("Add", unit, 1.0), 2.0)
        number = graph.call("Add", lower, graph.call("Mul", graph.call("Sub", upper, lower), share))
        number = graph.call("Min", graph.call("Max", number, lower), upper)
        graph.call("Where", refused, math.nan, number, to="prediction")
        results = [graph.value("DOUBLE", "prediction", len(outcome.bounds))]
    else:
        results = _classes(graph, outcome, scores, refused)
    return [*results, graph.value("BOOL", "refused", 1)]


def _classes(graph: _Graph, outcome: Classes, scores: str, refused: str) -> list[Any]:
    labels = outcome.labels
    if len(labels) == 2:
        chosen = graph.cast(graph.call("Greater", scores, outcome.threshold), "INT64")
    else:
        chosen = graph.call("ArgMax", scores, axis=1, keepdims=1)
    kinds: dict[type, tuple[Any, str]] = {
        str: (object, "STRING"),
        int: (np.int64, "INT64"),
        bool: (np.bool_, "BOOL"),
    }
    kind, called = kinds[type(labels[0])]
    shape = graph.constant([-1, 1], np.int64)
    graph.call("Reshape", graph.pick(labels, chosen, kind), shape, to="prediction")
    likely = _two(graph, outcome, scores) if len(labels) == 2 else _several(graph, outcome, scores)
    name = "scores" if likely is None else "probabilities"
    graph.call("Where", refused, math.nan, likely or scores, to=name)
    width = len(labels) if likely is not None or len(labels) > 2 else 1
    return [graph.value(called, "prediction", 1), graph.value("DOUBLE", name, width)]


def _two(graph: _Graph, outcome: Classes, score: str) -> str | None:
    if outcome.calibration is not None:
        own = score if outcome.link == "none" else graph.call("Sigmoid", score)
        likely = _interpolate(graph, own, outcome.calibration)
        return graph.call("Concat", graph.call("Sub", 1.0, likely), likely, axis=1)
    if outcome.log_odds is not None:
        score = _interpolate(graph, score, outcome.log_odds)
    elif outcome.link == "none":
        return None
    return graph.call("Sigmoid", graph.call("Concat", graph.call("Neg", score), score, axis=1))


def _several(graph: _Graph, outcome: Classes, scores: str) -> str | None:
    if outcome.link == "none":
        return None
    if outcome.link == "softmax":
        return graph.call("Softmax", scores, axis=1)
    odds = graph.call("Add", graph.call("Sigmoid", scores), np.finfo(float).tiny)
    return graph.call("Div", odds, graph.call("ReduceSum", odds, graph.constant([1], np.int64), keepdims=1))


def _interpolate(graph: _Graph, x: str, corners: Map) -> str:
    """Return the value at x of a piecewise linear function: the knot to the left, and the slope from there."""
    at, value = np.array(corners.x), np.array(corners.y)
    widths = np.diff(at)
    slopes = np.divide(np.diff(value), widths, out=np.zeros(len(widths)), where=widths > 0.0)
    tables: list[Array] = [np.r_[at[:1], at], np.r_[value[:1], value], np.r_[0.0, slopes, 0.0]]
    index = graph.count_from(x, corners.x)
    start, height, slope = (graph.pick(table[:, np.newaxis], index) for table in tables)
    return graph.call("Add", height, graph.call("Mul", slope, graph.call("Sub", x, start)))
