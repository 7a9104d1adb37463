"""Predict with an exported model. Needs Python 3.10 or newer, and nothing else.

    python THIS_FILE new_rows.csv > predictions.csv
    predict({"age": 41, "sex": "female"})                 in Python, where its columns are age and sex

A cell is missing if it is None, NaN, an empty text or a code for missing cells. Text is read as in a file.
A row that the model does not accept raises a ValueError.
"""

from __future__ import annotations

import bisect
import csv
import datetime
import gzip
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from privlearn.data.schema.cell_grammar import BLANKS, HOURS, CellRules, UnreadableCell

MODEL: dict[str, Any] = json.loads("null")

_EPOCH = datetime.date(1970, 1, 1).toordinal()


def predict(row: dict[str, Any], model: dict[str, Any] = MODEL) -> dict[str, Any]:
    """Return the prediction for one row of raw cells; for classes also scores and, if available, probabilities."""
    scores = decision_scores(row, model)
    outcome = model["outcome"]
    if outcome["type"] == "numbers":
        numbers = [_from_unit(score, *ends) for score, ends in zip(scores, outcome["bounds"], strict=True)]
        return {"prediction": numbers[0] if len(numbers) == 1 else numbers}
    labels = outcome["labels"]
    index = int(scores[0] > outcome["threshold"]) if len(labels) == 2 else scores.index(max(scores))
    result = {"prediction": labels[index], "scores": scores}
    shares = probabilities(scores, outcome)
    return result if shares is None else {**result, "probabilities": dict(zip(labels, shares, strict=True))}


def decision_scores(row: dict[str, Any], model: dict[str, Any] = MODEL) -> list[float]:
    """Return the scores of a row: one number for two classes, otherwise one per class or predicted number."""
    inputs = {column["name"]: column for column in model["inputs"]}
    cells = {name: read_cell(row.get(name), column, model["file"]) for name, column in inputs.items()}
    coarse, square = list(model["intercept"]), model["constant_square"]
    for piece in model["texts"]:
        text = read_cell(row.get(piece["name"]), {"type": "text", **piece}, model["file"])
        scores, own = _words(piece["scores"], text or "")
        coarse, square = _add(coarse, scores), square + own
    for piece in model["coarse"]:
        cell = cells[piece["column"]]
        if cell is not None:
            scores, own = _coarse(piece, cell, inputs[piece["column"]])
            coarse, square = _add(coarse, scores), square + own
    fine, fine_square = [0.0] * len(coarse), 0.0
    for grid in model["fine"]:
        index = _grid_index(grid["axes"], cells)
        if index is not None:
            fine, fine_square = _add(fine, grid["scores"][index]), fine_square + grid["square"]

    share = model["share"] if square > 0.0 else 0.0
    scale = math.sqrt(share) / max(math.sqrt(square), model["least"]) if square > 0.0 else 0.0
    length = math.sqrt(share + fine_square) or 1.0
    scores = [
        model["factor"] * (scale * one + other) / length for one, other in zip(coarse, fine, strict=True)
    ]
    if model["centring"] is not None:
        inside = (model["factor"] * scale) ** 2 * (square - model["constant_square"])
        scores = _centre(scores, inside, model["centring"])
    return _add(scores, model["constant"])


def _centre(scores: list[float], inside: float, centring: dict[str, Any]) -> list[float]:
    *scores, mean = scores
    distance = math.sqrt(max(inside - 2.0 * mean + centring["mean_square"], 0.0))
    stretch = centring["stretch"] / max(distance, centring["radius"])
    return [stretch * (score - offset) for score, offset in zip(scores, centring["offsets"], strict=True)]


def _add(one: list[float], other: list[float]) -> list[float]:
    return [a + b for a, b in zip(one, other, strict=True)]


def read_cell(cell: Any, column: dict[str, Any], form: dict[str, Any]) -> Any:
    """Return a number, or the index of a listed value; None where the cell is missing or its value is ignored."""
    name, rules = column["name"], rules_of(column, form)
    try:
        value = rules.read(cell) if isinstance(cell, str) else _read_typed(cell, rules)
        str(value).encode()  # text that is not Unicode is refused
    except (UnreadableCell, UnicodeEncodeError):
        raise ValueError(f"column {name!r} holds a cell that is not {_NAMES[rules.kind]}") from None
    if value is None:
        return _ignore(f"column {name!r} has no cell", column["missing"])
    if column["type"] != "list":
        return value
    if value in column["values"]:
        return column["values"].index(value)
    if column["unknown"] == "other":
        return len(column["values"])
    return _ignore(f"column {name!r} has a value that the model does not list", column["unknown"])


_NAMES = {
    "number": "a number",
    "whole": "a whole number",
    "truth": "true or false",
    "date": "a date such as 2020-01-31",
    "text": "text",
}


def rules_of(column: dict[str, Any], form: dict[str, Any]) -> CellRules:
    """Return the rules that read the cells of one of the model's columns."""
    kind, values = column["type"], tuple(column.get("values", ()))
    if values:
        kind = "text" if isinstance(values[0], str) else "truth" if isinstance(values[0], bool) else "whole"
    texts = values if kind == "text" else ()
    hours = column.get("period") == HOURS
    return CellRules(kind, tuple(column["codes"]), form["decimal"], form["trim"], texts, form["dates"], hours)


def _read_typed(cell: Any, rules: CellRules) -> Any:
    """Return the value of a cell that is not text: None, a number, true or false, or a date."""
    if cell is None or cell != cell:
        return None
    if isinstance(cell, datetime.date) and rules.kind == "date":
        day = cell.toordinal() - _EPOCH
        return None if day in rules.gap_days else float(day)
    if isinstance(cell, datetime.time) and rules.reads_hours:
        return rules.read(cell.replace(tzinfo=None).isoformat())
    if isinstance(cell, bool) and rules.kind in ("number", "truth"):
        return float(cell)
    if rules.kind not in ("number", "whole", "truth") or isinstance(cell, bool | datetime.date):
        raise UnreadableCell
    return rules.number(_as_float(cell))


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf
    except (TypeError, ValueError):
        raise UnreadableCell from None


def _ignore(what: str, rule: str) -> None:
    """Raise a ValueError if the model does not accept such cells."""
    if rule == "refuse":
        raise ValueError(f"{what}, which the model does not accept. Fill it in, or leave out the row")


def _coarse(piece: dict[str, Any], cell: Any, column: dict[str, Any]) -> tuple[list[float], float]:
    if piece["type"] == "table":
        return piece["scores"][cell], piece["squares"][cell]
    if piece["type"] == "slope":
        return [cell * score for score in piece["scores"]], piece["square"] * cell * cell
    return _curve(piece, position(cell, column))


def position(number: float, column: dict[str, Any]) -> float:
    """Return the position of a number between the ends of its column, from 0 to 1."""
    lower, upper = float(column["lower"]), float(column["upper"])
    period: float | None = column["period"]
    above = min(max(number, lower), upper) - lower
    if period is not None:
        return above / period if above / period < 1.0 else 0.0
    if column["scale"] == "log":
        return math.log1p(above) / math.log1p(upper - lower)
    return above / (upper - lower)


def _words(scores: list[list[float]], text: str) -> tuple[list[float], float]:
    counts: dict[int, int] = {}
    for word in re.findall(r"\b\w\w+\b", text.lower()):
        number = hash_word(word.encode())
        bucket = abs(number) % len(scores)
        counts[bucket] = counts.get(bucket, 0) + (1 if number >= 0 else -1)
    length = math.sqrt(sum(count * count for count in counts.values()))
    if length == 0.0:
        return [0.0] * len(scores[0]), 0.0
    weighted_rows = [(count / length, scores[bucket]) for bucket, count in counts.items()]
    return [sum(share * row[k] for share, row in weighted_rows) for k in range(len(scores[0]))], 1.0


def hash_word(word: bytes) -> int:
    """Return the signed 32-bit MurmurHash3 with seed 0."""
    number, whole = 0, len(word) // 4 * 4
    for start in range(0, len(word), 4):
        part = int.from_bytes(word[start : start + 4], "little") * 0xCC9E2D51 & 0xFFFFFFFF
        number ^= _rotate(part, 15) * 0x1B873593 & 0xFFFFFFFF
        if start < whole:
            number = (_rotate(number, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    number ^= len(word)
    number = (number ^ number >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    number = (number ^ number >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    number ^= number >> 16
    return number - (number >> 31 << 32)


def _rotate(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & 0xFFFFFFFF


def _curve(piece: dict[str, Any], along: float) -> tuple[list[float], float]:
    square, hats = piece["square"], piece["hats"]
    terms: list[tuple[float, list[float]]] = []
    if hats:
        intervals = len(hats) if piece["cyclic"] else len(hats) - 1
        left = min(int(along * intervals), intervals - 1)
        part = along * intervals - left
        terms += [(1.0 - part, hats[left]), (part, hats[(left + 1) % len(hats)])]
        square += (1.0 - part) ** 2 + part**2
    if piece["line"]:
        terms.append((2.0 * along - 1.0, piece["line"]))
        square += (2.0 * along - 1.0) ** 2
    if piece["waves"]:
        angle = 2.0 * math.pi * along
        terms += [(math.sin(angle), piece["waves"][0]), (math.cos(angle), piece["waves"][1])]
    scores = [sum(factor * row[k] for factor, row in terms) for k in range(len(terms[0][1]))]
    return scores, square


def _grid_index(axes: list[dict[str, Any]], cells: dict[str, Any]) -> int | None:
    """Return the index of a grid's cell; None if one of its columns is missing."""
    index = 0
    for axis in axes:
        cell = cells[axis["column"]]
        if cell is None:
            return None
        step = cell if isinstance(cell, int) else bisect.bisect_right(axis["starts"], cell)
        index = index * axis["size"] + axis["bins"][step]
    return index


def probabilities(scores: list[float], outcome: dict[str, Any]) -> list[float] | None:
    """Return the probabilities of the classes, in the order of the labels; None if the model has none."""
    if outcome["calibration"] is not None:
        score = scores[0] if outcome["link"] == "none" else logistic(scores[0])
        share = interpolate(score, outcome["calibration"])
        return [1.0 - share, share]
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
    """Return the value of a piecewise linear function through corners, constant beyond the outer ones."""
    right = bisect.bisect_right(corners["x"], x)
    if right == 0 or right == len(corners["x"]):
        return corners["y"][0 if right == 0 else -1]
    (a, b), (c, d) = corners["x"][right - 1 : right + 1], corners["y"][right - 1 : right + 1]
    return c + (d - c) * (x - a) / (b - a)


def _from_unit(score: float, lower: float, upper: float) -> float:
    share = (min(max(score, -1.0), 1.0) + 1.0) / 2.0
    return min(max(lower + (upper - lower) * share, lower), upper)


def main(path: str, model: dict[str, Any] = MODEL) -> None:
    """Read a CSV file in the format of the schema, and print predictions as CSV."""
    writer = None
    for line, row in read_rows(path, model):
        try:
            result = predict(row, model)
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from None
        shares = result.get("probabilities", {}).items()
        cells = {"prediction": result["prediction"]} | {f"probability_{label}": one for label, one in shares}
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(cells), lineterminator="\n")
            writer.writeheader()
        writer.writerow(cells)


def read_rows(path: str, model: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a CSV file, unpacked if its name ends in .gz, with the number of the line where each ends."""
    form = model["file"]
    is_utf8 = form["encoding"].lower().replace("_", "-") in ("utf-8", "utf8")
    opened = gzip.open if str(path).lower().endswith(".gz") else open
    with opened(path, "rt", newline="", encoding="utf-8-sig" if is_utf8 else form["encoding"]) as file:
        records = _records(_lines(file), form)
        names = form["names"] or [
            name.strip(BLANKS) if form["trim"] else name for name in next(records, (0, []))[1]
        ]
        for column in [*model["inputs"], *model["texts"]]:
            if names.count(column["name"]) != 1:
                raise ValueError(f"the model reads column {column['name']!r}, which the file must have once")
        for number, cells in records:
            if not cells and len(names) > 1:
                continue  # an empty line
            if len(cells or [""]) != len(names):
                raise ValueError(f"line {number}: it needs as many cells as there are names")
            yield number, dict(zip(names, cells or [""], strict=True))


def _lines(file: TextIO) -> Iterator[str]:
    """Yield lines without their ends; all ends must be of one kind, or a cell could hide other records."""
    alone = None
    for number, line in enumerate(file, start=1):
        text = line.rstrip("\r\n")
        if alone is None and text != line:
            alone = line.endswith("\r")
        if "\r" in text or (text != line and line.endswith("\r") != alone) or len(line) - len(text) > 2:
            raise ValueError(f"line {number}: the file has several kinds of line ends")
        yield text


def _records(lines: Iterable[str], form: dict[str, Any]) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each record; one record is one line, unless the format allows line breaks in cells."""
    wrong = (
        "line {}: a cell that begins with a quote must end with one, and a quote inside it is written twice"
    )
    if form["line_breaks"]:
        reader = csv.reader((f"{line}\n" for line in lines), delimiter=form["delimiter"], strict=True)
        try:
            yield from ((reader.line_num, cells) for cells in reader)
        except csv.Error:
            raise ValueError(wrong.format(reader.line_num)) from None
        return
    delimiter = re.escape(form["delimiter"])
    plain = '(?![ \\t\u00a0]+")' if form["trim"] else ""
    cell = rf'(?:"(?:[^"]|"")*"|{plain}[^"{delimiter}][^{delimiter}]*|)'
    record = re.compile(f"{cell}(?:{delimiter}{cell})*")
    for number, line in enumerate(lines, start=1):
        if '"' in line and not record.fullmatch(line):
            raise ValueError(wrong.format(number))
        yield number, next(csv.reader([line], delimiter=form["delimiter"], strict=True), [])


if __name__ == "__main__":
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        sys.exit()
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does: discard the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except UnicodeError:
        sys.exit(f"{sys.argv[1]}: the file holds text that is not in {MODEL['file']['encoding']}")
    except (OSError, EOFError, ValueError, csv.Error) as problem:
        sys.exit(f"{sys.argv[1]}: {problem}")
