"""Predict with an exported model. Needs Python 3.9 or newer, and nothing else.

    python THIS_FILE new_rows.csv > predictions.csv
    >>> predict({"age": 41, "sex": "female"})

A cell is missing if it is None, NaN or an empty text. A row that the model does not accept is a ValueError.
"""

import bisect
import csv
import datetime
import json
import math
import sys

MODEL = json.loads("null")

EPOCH = datetime.date(1970, 1, 1)
MISSING, UNKNOWN = "missing", "unknown"


def predict(row, model=MODEL):
    """The prediction for one row, a dict of raw cells; probabilities too if the model has any."""
    scores = decision_scores(row, model)
    outcome = model["outcome"]
    if outcome["type"] == "numbers":
        numbers = [_from_unit(score, bounds) for score, bounds in zip(scores, outcome["bounds"])]
        return {"prediction": numbers[0] if len(numbers) == 1 else numbers}
    labels = outcome["labels"]
    chosen = int(scores[0] > outcome["threshold"]) if len(labels) == 2 else scores.index(max(scores))
    likely = probabilities(scores, outcome)
    found = {"prediction": labels[chosen], "scores": scores}
    return found if likely is None else {**found, "probabilities": dict(zip(labels, likely))}


def decision_scores(row, model=MODEL):
    """What the model adds up: one number for two classes, one per class or per number otherwise."""
    parts, squares = contributions(row, model)
    count = len(model["intercept"])
    coarse = [math.fsum(column) for column in zip(model["intercept"], *parts["coarse"])]
    fine = [math.fsum(column) for column in zip([0.0] * count, *parts["fine"])]
    square = model["constant_square"] + math.fsum(squares["coarse"])
    scale, length = scales(square, math.fsum(squares["fine"]), model)
    scores = [model["factor"] * (scale * one + other) / length for one, other in zip(coarse, fine)]
    centring = model["centring"]
    if centring is not None:
        *scores, mean = scores
        inside = (model["factor"] * scale) ** 2 * (square - model["constant_square"])
        distance = math.sqrt(max(inside - 2.0 * mean + centring["mean_square"], 0.0))
        stretch = centring["stretch"] / max(distance, centring["radius"])
        scores = [stretch * (score - offset) for score, offset in zip(scores, centring["offsets"])]
    return [score + constant for score, constant in zip(scores, model["constant"])]


def scales(square, fine_square, model=MODEL):
    """What the coarse pieces are multiplied by, and the length that all are divided by."""
    share = model["share"] if square > 0.0 else 0.0
    scale = math.sqrt(share) / max(math.sqrt(square), model["least"]) if square > 0.0 else 0.0
    return scale, math.sqrt(share + fine_square) or 1.0


def contributions(row, model=MODEL):
    """What each piece gives to the scores and to the squares, in the order of the model's pieces."""
    inputs = {column["name"]: column for column in model["inputs"]}
    cells = {name: read_cell(row.get(name), column) for name, column in inputs.items()}
    nothing = [0.0] * len(model["intercept"])
    parts, squares = {"coarse": [], "fine": []}, {"coarse": [], "fine": []}
    for piece in model["coarse"]:
        cell, column = cells[piece["column"]], inputs[piece["column"]]
        scores, square = (nothing, 0.0) if cell is None else _coarse(piece, cell, column)
        parts["coarse"].append(scores)
        squares["coarse"].append(square)
    for grid in model["fine"]:
        place = 0
        for axis in grid["axes"]:
            cell = cells[axis["column"]]
            if cell is None:
                place = None
                break
            step = bisect.bisect_right(axis["starts"], cell) if axis["starts"] or inputs[axis["column"]]["type"] != "list" else cell
            place = place * axis["size"] + axis["places"][step]
        parts["fine"].append(nothing if place is None else grid["scores"][place])
        squares["fine"].append(0.0 if place is None else grid["square"])
    return parts, squares


def read_cell(cell, column):
    """A number, or the place of a listed value; None where the column says nothing about the row."""
    name = column["name"]
    if cell is None or cell == "" or cell != cell:
        return _nothing(name, MISSING, column["missing"])
    if column["type"] == "date":
        return float(_days(cell, name))
    if column["type"] == "number":
        return _number(cell, name)
    values = column["values"]
    value = _like(cell, values[0], name)
    if value in values:
        return values.index(value)
    return len(values) if column["unknown"] == "other" else _nothing(name, UNKNOWN, column["unknown"])


def _nothing(name, what, rule):
    if rule == "refuse":
        raise ValueError(f"column {name!r} has a cell that is {what}, which the model does not accept")


def _number(cell, name):
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise ValueError(f"column {name!r} holds a cell that is not a number") from None


def _like(cell, value, name):
    """A cell in the type of the listed values; a CSV file has nothing but text."""
    if isinstance(value, bool):
        return {"true": True, "1": True, "false": False, "0": False}.get(str(cell).lower(), cell)
    return _number(cell, name) if isinstance(value, int) else cell


def _days(cell, name):
    try:
        day = cell if isinstance(cell, datetime.date) else datetime.date.fromisoformat(str(cell)[:10])
    except ValueError:
        raise ValueError(f"column {name!r} holds a cell that is not a date such as 2020-01-31") from None
    return datetime.date(day.year, day.month, day.day).toordinal() - EPOCH.toordinal()


def _coarse(piece, cell, column):
    if piece["type"] == "table":
        return piece["scores"][cell], piece["squares"][cell]
    if piece["type"] == "slope":
        return [cell * score for score in piece["scores"]], piece["square"] * cell * cell
    return _curve(piece, position(cell, column))


def position(number, column):
    """Where a number lies between the ends of its column, from 0 to 1."""
    lower, upper, period = column["lower"], column["upper"], column["period"]
    above = min(max(number, lower), upper) - lower
    if period is not None:
        return above / period if above / period < 1.0 else 0.0
    if column["scale"] == "log":
        return min(math.log1p(above) / math.log1p(upper - lower), 1.0)
    return above / (upper - lower)


def _curve(piece, place):
    gives, square = [], piece["square"]
    hats = piece["hats"]
    if hats:
        intervals = len(hats) if piece["cyclic"] else len(hats) - 1
        left = min(int(place * intervals), intervals - 1)
        part = place * intervals - left
        gives += [(1.0 - part, hats[left]), (part, hats[(left + 1) % len(hats)])]
        square += (1.0 - part) ** 2 + part**2
    if piece["line"]:
        gives.append((2.0 * place - 1.0, piece["line"]))
        square += (2.0 * place - 1.0) ** 2
    if piece["waves"]:
        angle = 2.0 * math.pi * place
        gives += [(math.sin(angle), piece["waves"][0]), (math.cos(angle), piece["waves"][1])]
    return [sum(by * score for by, score in zip([by for by, _ in gives], column)) for column in zip(*(scores for _, scores in gives))], square


def probabilities(scores, outcome=None):
    """Of the classes, in the order of the labels; None if the model has none."""
    outcome = MODEL["outcome"] if outcome is None else outcome
    if outcome["calibration"] is not None:
        score = scores[0] if outcome["link"] == "none" else logistic(scores[0])
        likely = interpolate(score, outcome["calibration"])
        return [1.0 - likely, likely]
    if outcome["log_odds"] is not None:
        odds = interpolate(scores[0], outcome["log_odds"])
        return [logistic(-odds), logistic(odds)]
    if outcome["link"] == "none":
        return None
    if len(scores) == 1:
        return [logistic(-scores[0]), logistic(scores[0])]
    if outcome["link"] == "softmax":
        odds = [math.exp(score - max(scores)) for score in scores]
    else:
        odds = [logistic(score) + sys.float_info.min for score in scores]
    return [one / sum(odds) for one in odds]


def logistic(score):
    return 1.0 / (1.0 + math.exp(-score)) if score >= -700.0 else math.exp(score)


def interpolate(x, corners):
    """The value of a line through corners, constant beyond the outer ones."""
    right = bisect.bisect_right(corners["x"], x)
    if right == 0 or right == len(corners["x"]):
        return corners["y"][0 if right == 0 else -1]
    (a, b), (c, d) = corners["x"][right - 1 : right + 1], corners["y"][right - 1 : right + 1]
    return c + (d - c) * (x - a) / (b - a)


def _from_unit(score, bounds):
    lower, upper = bounds
    place = (min(max(score, -1.0), 1.0) + 1.0) / 2.0
    return min(max(lower + (upper - lower) * place, lower), upper)


def main(path):
    """A CSV file in, predictions as CSV out."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        writer = None
        for row in csv.DictReader(file):
            found = predict(row)
            cells = {"prediction": found["prediction"]}
            cells.update({f"probability_{label}": share for label, share in found.get("probabilities", {}).items()})
            if writer is None:
                writer = csv.DictWriter(sys.stdout, list(cells), lineterminator="\n")
                writer.writeheader()
            writer.writerow(cells)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
