"""How well `privlearn plan` forecasts: its verdicts and its AUC or R^2 against fits on real and simulated tables.

    PRIVLEARN_DATA=... python benchmarks/planning.py [adult bank ...] [--seeds 3] [--store cells.jsonl]

Each cell fits the same random rows with several seeds of noise, and without privacy with the best of three
regularizations in hindsight. "lost": the share of what that model gains over the best constant that the private ones do
not, in log-loss or in squared error, on up to 10,000 other rows; nan if it gains less than 1 %. The plan gets the
schema, the number of records and the rate of the rarer class, to one digit. CLEAR is wrong where more than a quarter is
lost, DROWNED where less than a half is. ``shape-K`` are random tables of `shapes.py`, for any number K. Cells in
``--store`` are not fitted again, so that a changed forecast is compared within a minute. This reads the rows, and is
not private; a plan does not.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import newcomer
import numpy as np
import persons
import pyarrow as pa
import shapes
import tables
from sklearn.metrics import log_loss, roc_auc_score

from privlearn import PrivateLogisticRegression, PrivateRegressor, Schema, plan
from privlearn.data.datasets import data_directory

RECORDS = (1_000, 6_000, 36_000)
EPSILONS = (0.1, 0.5, 1.0, 4.0)
DELTA = 1e-6
TEST_ROWS = 10_000
PLAIN_STRENGTHS = (0.25, 2.0, 16.0)
HEADINGS = (
    *("data", "records", "epsilon", "verdict", "lost: plan", "seen"),
    *("AUC or R2: plan", "range", "seen", "without privacy"),
)


class Data(NamedTuple):
    """A table with its schema; ``people`` are the indices of persons, where some have several rows."""

    rows: pa.Table
    schema: Schema
    people: np.ndarray | None = None


def housing() -> Data:
    """California's house values; bounds as a person might write them down."""
    rows = np.loadtxt(data_directory() / "california_housing" / "cal_housing.data.gz", delimiter=",")
    bounds = {
        "longitude": (-125, -114), "latitude": (32, 42), "age": (0, 60), "rooms": (0, 40_000), "bedrooms": (0, 7_000),
        "people": (0, 40_000), "households": (0, 7_000), "income": (0, 16),
    }  # fmt: skip
    columns = {
        name: {"type": "number", "lower": low, "upper": high, "scale": "log" if high > 1000 else "linear"}
        for name, (low, high) in bounds.items()
    }
    target = {"name": "value", "lower": 0, "upper": 500_001}
    table = pa.table(dict(zip([*bounds, "value"], rows.T, strict=True)))
    return Data(table, Schema.from_dict({"name": "housing", "columns": columns, "target": target}))


def diabetes() -> Data:
    table = persons.stays()
    _, people = np.unique(table["patient_nbr"].to_numpy(), return_inverse=True)
    return Data(table, Schema.from_dict(persons.CONTENT), people)


def complications() -> Data:
    table = newcomer.complications(np.random.default_rng(11))
    people = table.rows["patient"].to_numpy()
    return Data(
        pa.Table.from_pandas(table.rows, preserve_index=False), Schema.from_dict(table.schema), people
    )


def simulated(make: Callable[..., newcomer.Table]) -> Callable[[], Data]:
    def load() -> Data:
        table = make(np.random.default_rng(11))
        return Data(pa.Table.from_pandas(table.rows, preserve_index=False), Schema.from_dict(table.schema))

    return load


DATA: dict[str, Callable[[], Data]] = {
    "adult": lambda: Data(*tables.load("adult")),
    "bank": lambda: Data(*tables.load("bank_marketing")),
    "kddcup99": lambda: Data(*tables.load("kddcup99")),
    "covertype": lambda: Data(*tables.load("covertype")),
    "breast_cancer": lambda: Data(*tables.load("breast_cancer")),
    "diabetes130": diabetes,
    "housing": housing,
    "clinic": simulated(newcomer.clinic),
    "fraud": simulated(newcomer.frauds),
    "trial": simulated(newcomer.trial),
    "emergency": simulated(newcomer.emergency),
    "cost": simulated(newcomer.costs),
    "visits": simulated(newcomer.visits),
    "complications": complications,
}


def load(name: str) -> Data:
    if name.startswith("shape-"):
        table = shapes.random_table(int(name.removeprefix("shape-")))
        return Data(pa.table(table.cells), Schema.from_dict(table.schema))
    return DATA[name]()


class Measured(NamedTuple):
    """What fits showed."""

    data: str
    records: int
    epsilon: float
    rate: float | None
    lost: float
    qualities: list[float]
    """AUC or R^2 of each seed's fit."""
    plain_quality: float


def fits(name: str, data: Data, records: int, seeds: int) -> Iterator[Measured]:
    """Fit all cells of one size. Every person weighs as much as another."""
    target, unit = data.schema.target, data.people
    assert target is not None
    unit = np.arange(len(data.rows)) if unit is None else unit
    held, train = np.split(
        np.random.default_rng(0).permutation(unit.max() + 1), [min(TEST_ROWS, (unit.max() + 1) // 5)]
    )
    inside = [np.isin(unit, part) for part in (held, train[:records])]
    test, rows = (data.rows.filter(pa.array(part)) for part in inside)
    weights, known_weights = (1.0 / np.bincount(unit[part])[unit[part]] for part in inside)
    answers, known = (np.array(part[target.name].to_pylist()) for part in (test, rows))
    is_number = target.bounds is not None
    if is_number:
        guessed = float(np.mean((answers - np.mean(known)) ** 2))
    else:  # merged labels as their class
        kinds = dict(zip(target.labels, target.class_indices, strict=True))
        answers, known = (np.array([kinds[each] for each in part.tolist()]) for part in (answers, known))
        shares = np.bincount(known, known_weights, 2) / known_weights.sum()
        guessed = log_loss(answers, np.tile(shares, (len(answers), 1)), sample_weight=weights)

    def measure(epsilon: float, **settings: Any) -> tuple[float, float]:
        kind: Any = PrivateRegressor if is_number else PrivateLogisticRegression
        model = kind(epsilon=epsilon, delta=DELTA, schema=data.schema, **settings).fit(rows)
        if is_number:
            squares = float(np.mean((model.predict(test) - answers) ** 2))
            return squares, 1.0 - squares / float(np.var(answers))
        likely = np.clip(model.predict_proba(test), 1e-12, 1.0)
        loss = float(log_loss(answers, likely, sample_weight=weights))
        return loss, float(roc_auc_score(answers, likely[:, 1], sample_weight=weights))

    best, plain_quality = min(measure(math.inf, regularization=k / records) for k in PLAIN_STRENGTHS)
    rate = None if is_number else float(f"{min(shares):.1g}")
    for epsilon in EPSILONS:
        losses, qualities = zip(*(measure(epsilon, random_state=seed) for seed in range(seeds)), strict=True)
        lost = float((np.mean(losses) - best) / (guessed - best)) if best < 0.99 * guessed else math.nan
        yield Measured(name, min(records, len(train)), epsilon, rate, lost, list(qualities), plain_quality)


def cells(names: list[str], seeds: int, store: Path | None) -> Iterator[tuple[Measured, Data]]:
    stored = (
        [Measured(*json.loads(line)) for line in store.read_text().splitlines()]
        if store and store.exists()
        else []
    )
    for name in names:
        data = load(name)
        people = len(data.rows) if data.people is None else int(data.people.max()) + 1
        for records in sorted({min(records, int(0.8 * people)) for records in RECORDS}):
            found = [cell for cell in stored if (cell.data, cell.records) == (name, records)]
            if not found:
                found = list(fits(name, data, records, seeds))
                if store is not None:
                    with store.open("a") as file:
                        file.writelines(json.dumps(cell) + "\n" for cell in found)
            for cell in found:
                yield cell, data


def line(cell: Measured, forecast: Any) -> str:
    low, high = forecast.quality_range
    fields = (
        *(cell.data, f"{cell.records:,}", f"{cell.epsilon:g}", forecast.verdict),
        *(f"{forecast.lost:.2f}", f"{cell.lost:.2f}", f"{forecast.gains[1].quality:.2f}"),
        *(f"{low:.2f} to {high:.2f}", f"{np.mean(cell.qualities):.2f}", f"{cell.plain_quality:.2f}"),
    )
    return f"| {' | '.join(fields)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="*", help=f"of {', '.join(DATA)}; all if none is named")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
    found = []
    for cell, data in cells(options.data or list(DATA), options.seeds, options.store):
        kind: Any = PrivateLogisticRegression if cell.rate is not None else PrivateRegressor
        estimator = kind(epsilon=cell.epsilon, delta=DELTA, schema=data.schema)
        forecast = plan(estimator, cell.records, rate=cell.rate)
        found.append((cell, forecast))
        print(line(cell, forecast), flush=True)
    summarise(found)


def summarise(found: list[tuple[Measured, Any]]) -> None:
    for verdict, wrong in (
        ("clear", lambda lost: lost > 0.25),
        ("noisy", None),
        ("drowned", lambda lost: lost < 0.5),
    ):
        lost = [
            cell.lost for cell, forecast in found if forecast.verdict == verdict and cell.lost == cell.lost
        ]
        if lost:
            low, middle, high = np.quantile(lost, [0.1, 0.5, 0.9])
            print(
                f"{verdict}: {len(lost)} cells, lost {middle:.2f} (median), {low:.2f} to {high:.2f} (80 % of cells)"
            )
            if wrong is not None:
                print(f"  wrong in {sum(map(wrong, lost))}")
    inside = [
        low <= max(quality, 0.0) <= high
        for cell, forecast in found
        for low, high in [forecast.quality_range]
        for quality in cell.qualities
    ]
    print(f"AUC or R2 (at least 0) of a fit within its range: {np.mean(inside):.1%} of {len(inside)} fits")


if __name__ == "__main__":
    main()
