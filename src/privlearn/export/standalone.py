"""Predict with an exported model. Needs Python 3.10 or newer, and nothing else.

    python THIS_FILE new_rows.csv > predictions.csv
    predict({"age": 41, "sex": "female"})                 in Python, where its columns are age and sex

A cell is missing if it is None, NaN or an empty text; in a file also if it is a code for a gap.
A row that the model does not accept is a ValueError.
"""

from __future__ import annotations

import bisect
import csv
import datetime
import gzip
import json
import math
import os
import sys
from collections.abc import Iterator
from typing import Any

MODEL: dict[str, Any] = json.loads("null")

EPOCH = datetime.date(1970, 1, 1).toordinal()


def predict(row: dict[str, Any], model: dict[str, Any] = MODEL) -> dict[str, Any]:
    """The prediction for one row of raw cells; with classes also their scores and, if there are any, probabilities."""
    scores = decision_scores(row, model)
    outcome = model["outcome"]
    if outcome["type"] == "numbers":
        numbers = [_from_unit(score, *ends) for score, ends in zip(scores, outcome["bounds"], strict=True)]
        return {"prediction": numbers[0] if len(numbers) == 1 else numbers}
    labels = outcome["labels"]
    chosen = int(scores[0] > outcome["threshold"]) if len(labels) == 2 else scores.index(max(scores))
    found = {"prediction": labels[chosen], "scores": scores}
    likely = probabilities(scores, outcome)
    return found if likely is None else {**found, "probabilities": dict(zip(labels, likely, strict=True))}


def decision_scores(row: dict[str, Any], model: dict[str, Any] = MODEL) -> list[float]:
    """What the model adds up: one number for two classes, one per class or per number otherwise."""
    inputs = {column["name"]: column for column in model["inputs"]}
    cells = {name: read_cell(row.get(name), column) for name, column in inputs.items()}
    coarse, square = list(model["intercept"]), model["constant_square"]
    for piece in model["coarse"]:
        cell = cells[piece["column"]]
        if cell is not None:
            scores, own = _coarse(piece, cell, inputs[piece["column"]])
            coarse, square = _added(coarse, scores), square + own
    fine, fine_square = [0.0] * len(coarse), 0.0
    for grid in model["fine"]:
        place = _place(grid["axes"], cells)
        if place is not None:
            fine, fine_square = _added(fine, grid["scores"][place]), fine_square + grid["square"]

    share = model["share"] if square > 0.0 else 0.0
    scale = math.sqrt(share) / max(math.sqrt(square), model["least"]) if square > 0.0 else 0.0
    length = math.sqrt(share + fine_square) or 1.0
    scores = [
        model["factor"] * (scale * one + other) / length for one, other in zip(coarse, fine, strict=True)
    ]
    if model["centring"] is not None:
        inside = (model["factor"] * scale) ** 2 * (square - model["constant_square"])
        scores = _centred(scores, inside, model["centring"])
    return _added(scores, model["constant"])


def _centred(scores: list[float], inside: float, centring: dict[str, Any]) -> list[float]:
    *scores, mean = scores
    distance = math.sqrt(max(inside - 2.0 * mean + centring["mean_square"], 0.0))
    stretch = centring["stretch"] / max(distance, centring["radius"])
    return [stretch * (score - offset) for score, offset in zip(scores, centring["offsets"], strict=True)]


def _added(one: list[float], other: list[float]) -> list[float]:
    return [a + b for a, b in zip(one, other, strict=True)]


def read_cell(cell: Any, column: dict[str, Any]) -> Any:
    """A number, or the place of a listed value; None where the column says nothing about the row."""
    name, listed = column["name"], column.get("values", ())
    if cell is None or cell != cell or (cell == "" and "" not in listed):
        return _nothing(f"column {name!r} has no cell", column["missing"])
    if column["type"] == "date":
        return _days(cell, name)
    if column["type"] == "number":
        return _number(cell, name)
    value = _like(listed[0], cell, name)
    if value in listed:
        return listed.index(value)
    if column["unknown"] == "other":
        return len(listed)
    return _nothing(f"column {name!r} has a value that the model does not list", column["unknown"])


def _nothing(what: str, rule: str) -> None:
    if rule == "refuse":
        raise ValueError(f"{what}, and the model does not accept that")


def _number(cell: Any, name: str) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise ValueError(f"column {name!r} holds a cell that is not a number") from None


def _days(cell: Any, name: str) -> float:
    try:
        day = cell if isinstance(cell, datetime.date) else datetime.date.fromisoformat(str(cell)[:10])
    except ValueError:
        raise ValueError(f"column {name!r} holds a cell that is not a date such as 2020-01-31") from None
    return float(day.toordinal() - EPOCH)


def _like(value: Any, cell: Any, name: str) -> Any:
    """A cell in the type of the listed values: a CSV file has nothing but text."""
    if isinstance(value, bool):
        return {"true": True, "1": True, "false": False, "0": False}.get(str(cell).lower())
    return _number(cell, name) if isinstance(value, int) else cell


def _coarse(piece: dict[str, Any], cell: Any, column: dict[str, Any]) -> tuple[list[float], float]:
    if piece["type"] == "table":
        return piece["scores"][cell], piece["squares"][cell]
    if piece["type"] == "slope":
        return [cell * score for score in piece["scores"]], piece["square"] * cell * cell
    return _curve(piece, position(cell, column))


def position(number: float, column: dict[str, Any]) -> float:
    """Where a number lies between the ends of its column, from 0 to 1."""
    lower, upper = float(column["lower"]), float(column["upper"])
    period: float | None = column["period"]
    above = min(max(number, lower), upper) - lower
    if period is not None:
        return above / period if above / period < 1.0 else 0.0
    if column["scale"] == "log":
        return math.log1p(above) / math.log1p(upper - lower)
    return above / (upper - lower)


def _curve(piece: dict[str, Any], place: float) -> tuple[list[float], float]:
    square, hats = piece["square"], piece["hats"]
    given: list[tuple[float, list[float]]] = []
    if hats:
        intervals = len(hats) if piece["cyclic"] else len(hats) - 1
        left = min(int(place * intervals), intervals - 1)
        part = place * intervals - left
        given += [(1.0 - part, hats[left]), (part, hats[(left + 1) % len(hats)])]
        square += (1.0 - part) ** 2 + part**2
    if piece["line"]:
        given.append((2.0 * place - 1.0, piece["line"]))
        square += (2.0 * place - 1.0) ** 2
    if piece["waves"]:
        angle = 2.0 * math.pi * place
        given += [(math.sin(angle), piece["waves"][0]), (math.cos(angle), piece["waves"][1])]
    scores = [sum(by * row[k] for by, row in given) for k in range(len(given[0][1]))]
    return scores, square


def _place(axes: list[dict[str, Any]], cells: dict[str, Any]) -> int | None:
    """The cell of a grid; None if one of its columns says nothing."""
    found = 0
    for axis in axes:
        cell = cells[axis["column"]]
        if cell is None:
            return None
        step = cell if isinstance(cell, int) else bisect.bisect_right(axis["starts"], cell)
        found = found * axis["size"] + axis["places"][step]
    return found


def probabilities(scores: list[float], outcome: dict[str, Any]) -> list[float] | None:
    """Of the classes, in the order of the labels; None if the model has none."""
    if outcome["calibration"] is not None:
        score = scores[0] if outcome["link"] == "none" else logistic(scores[0])
        likely = interpolate(score, outcome["calibration"])
        return [1.0 - likely, likely]
    if outcome["log_odds"] is not None:
        scores = [interpolate(scores[0], outcome["log_odds"])]
    elif outcome["link"] == "none":
        return None
    if len(scores) == 1:
        return [logistic(-scores[0]), logistic(scores[0])]
    if outcome["link"] == "softmax":
        odds = [math.exp(score - max(scores)) for score in scores]
    else:
        odds = [logistic(score) + sys.float_info.min for score in scores]
    return [one / sum(odds) for one in odds]


def logistic(score: float) -> float:
    return 1.0 / (1.0 + math.exp(-score)) if score > -700.0 else math.exp(score)


def interpolate(x: float, corners: dict[str, list[float]]) -> float:
    """The value of a line through corners, constant beyond the outer ones."""
    right = bisect.bisect_right(corners["x"], x)
    if right == 0 or right == len(corners["x"]):
        return corners["y"][0 if right == 0 else -1]
    (a, b), (c, d) = corners["x"][right - 1 : right + 1], corners["y"][right - 1 : right + 1]
    return c + (d - c) * (x - a) / (b - a)


def _from_unit(score: float, lower: float, upper: float) -> float:
    place = (min(max(score, -1.0), 1.0) + 1.0) / 2.0
    return min(max(lower + (upper - lower) * place, lower), upper)


def main(path: str, model: dict[str, Any] = MODEL) -> None:
    """A CSV file in, written as the schema said, predictions as CSV out."""
    writer = None
    for line, row in read_rows(path, model):
        try:
            found = predict(row, model)
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from None
        shares = found.get("probabilities", {}).items()
        cells = {"prediction": found["prediction"]} | {f"probability_{label}": one for label, one in shares}
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(cells), lineterminator="\n")
            writer.writeheader()
        writer.writerow(cells)


def read_rows(path: str, model: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a CSV file, packed if it ends in .gz, None where they have gaps, and the line where each ends."""
    form = model["file"]
    encoding = (
        "utf-8-sig" if form["encoding"].lower().replace("_", "-") in ("utf-8", "utf8") else form["encoding"]
    )
    opened = gzip.open if str(path).lower().endswith(".gz") else open
    with opened(path, "rt", newline="", encoding=encoding) as file:
        lines = csv.reader(file, delimiter=form["delimiter"], skipinitialspace=form["trim"])
        names = form["names"] or [name.strip() if form["trim"] else name for name in next(lines, [])]
        for column in model["inputs"]:
            if names.count(column["name"]) != 1:
                raise ValueError(f"the model reads column {column['name']!r}, which the file must have once")
        for cells in lines:
            if not cells and len(names) > 1:
                continue  # an empty line
            if len(cells or [""]) != len(names):
                raise ValueError(f"line {lines.line_num}: it needs as many cells as there are names")
            row = dict(zip(names, cells or [""], strict=True))
            read = {column["name"]: _text(row[column["name"]], column, form) for column in model["inputs"]}
            yield lines.line_num, {**row, **read}


def _text(cell: str, column: dict[str, Any], form: dict[str, Any]) -> str | None:
    """A file's cell, or None where it is a code for a gap."""
    cell = cell.strip() if form["trim"] else cell
    if cell in form["missing"] or cell in form["missing_in"].get(column["name"], ()):
        return None
    is_number = column["type"] == "number" or (
        column["type"] == "list" and isinstance(column["values"][0], int)
    )
    return cell.replace(form["decimal"], ".") if is_number else cell


if __name__ == "__main__":
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        sys.exit()
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has enough, as `head` has; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, EOFError, ValueError, csv.Error) as problem:
        sys.exit(f"{sys.argv[1]}: {problem}")
