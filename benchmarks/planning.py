"""How well `privlearn plan` foretells: its noise, margins and verdicts against what fits on real tables show.

    PRIVLEARN_DATA=... python benchmarks/planning.py [adult bank ...] [--models logistic svm] [--seeds 4]

Each cell trains on the same random rows with several seeds of noise, once without noise at the same regularization, and
once without privacy. "noise": root mean square over test rows of the predictions' standard deviation over the seeds.
"margin": standard deviation of the noiseless predictions over test rows. "lost": the share of what the plain model
gains over the most frequent class (or, for a number, over the median) that the private one does not. All of it looks at
the rows, and is not private; a plan does not.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import tables
from sklearn.datasets import load_breast_cancer

from privlearn import PrivateLogisticRegression, PrivateRegressor, PrivateSVC, Schema, plan
from privlearn.data.datasets import census_schema, data_directory, simulated_census

MODELS = {"logistic": PrivateLogisticRegression, "svm": PrivateSVC, "regression": PrivateRegressor}
RECORDS = (1_000, 6_000, 36_000)
EPSILONS = (0.1, 0.5, 1.0, 4.0)
DELTA = 1e-6
TEST_ROWS = 4_000
HELD_OUT = ("breast_cancer", "housing")
"""As encoded here, not looked at when stand-in rows and verdicts were chosen (docs/theory/planning.md)."""
HEADINGS = (
    *("data", "model", "records", "epsilon", "noise: plan", "seen", "margin: plan", "seen"),
    *("ratio: plan", "seen", "verdict", "plain error", "error", "lost"),
)


@dataclass
class Data:
    """A table with its schema, or an array with what is declared about it."""

    rows: Any
    answers: np.ndarray
    declared: dict[str, Any]

    def take(self, places: np.ndarray) -> tuple[Any, np.ndarray]:
        rows = self.rows.take(places) if isinstance(self.rows, pa.Table) else self.rows[places]
        return rows, self.answers[places]

    @property
    def columns(self) -> int | None:
        return None if isinstance(self.rows, pa.Table) else self.rows.shape[1]


def described(table: pa.Table, schema: Schema) -> Data:
    assert schema.target is not None
    return Data(table, np.array(table[schema.target.name].to_pylist()), {"schema": schema})


def breast_cancer() -> Data:
    """As a plain array of standardised columns, which no private table could have: for the plan by columns."""
    features, labels = load_breast_cancer(return_X_y=True)
    rows = (features - features.mean(axis=0)) / features.std(axis=0)
    return Data(rows, labels, {"norm_bound": math.sqrt(rows.shape[1]), "classes": [0, 1]})


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
    return described(table, Schema.from_dict({"name": "housing", "columns": columns, "target": target}))


DATA: dict[str, Callable[[], Data]] = {
    "census": lambda: described(simulated_census(45_000, seed=5), census_schema()),
    "adult": lambda: described(*tables.load("adult")),
    "bank": lambda: described(*tables.load("bank_marketing")),
    "kddcup99": lambda: described(*tables.load("kddcup99")),
    "covertype": lambda: described(*tables.load("covertype")),
    "breast_cancer": breast_cancer,
    "housing": housing,
}


@dataclass
class Cell:
    """What was foretold and what was seen."""

    name: str
    model: str
    records: int
    epsilon: float
    plan: Any
    noise: float
    margin: float
    plain_error: float
    error: float
    lost: float

    def line(self) -> str:
        foretold = self.plan
        fields = (
            *(self.name, self.model, f"{self.records:,}", f"{self.epsilon:g}"),
            *(f"{foretold.noise:.3g}", f"{self.noise:.3g}", f"{foretold.margin:.3g}", f"{self.margin:.3g}"),
            *(f"{foretold.ratio:.2f}", f"{self.ratio:.2f}", foretold.verdict),
            *(f"{self.plain_error:.3f}", f"{self.error:.3f}", f"{self.lost:.2f}"),
        )
        return f"| {' | '.join(fields)} |"

    @property
    def ratio(self) -> float:
        return self.noise / self.margin


def scores(model: Any, rows: Any) -> np.ndarray:
    return model.predict(rows) if isinstance(model, PrivateRegressor) else model.decision_function(rows)


def error(model: Any, predicted: np.ndarray, truth: np.ndarray) -> float:
    """Share of wrong answers, or mean absolute error."""
    wrong = abs(predicted - truth) if isinstance(model, PrivateRegressor) else predicted != truth
    return float(np.mean(wrong))


def measured(data: Data, name: str, model: str, records: int, epsilon: float, seeds: int) -> Cell:
    order = np.random.default_rng(0).permutation(len(data.answers))
    test, train = np.split(order, [min(TEST_ROWS, len(order) // 5)])
    (known, truth), training = data.take(test), data.take(train[:records])

    def fitted(**settings: Any) -> Any:
        return MODELS[model](**data.declared, **settings).fit(*training)

    private = [fitted(epsilon=epsilon, delta=DELTA, random_state=seed) for seed in range(seeds)]
    regularization = private[0].certificate_.mechanism.effective_regularization
    quiet, plain = fitted(epsilon=math.inf, regularization=regularization), fitted(epsilon=math.inf)
    noise = np.sqrt(np.mean(np.var([scores(one, known) for one in private], axis=0, ddof=1)))
    errors = [error(one, one.predict(known), truth) for one in private]
    best = error(plain, plain.predict(known), truth)
    guess = np.median(training[1]) if model == "regression" else max(set(truth), key=list(truth).count)
    guessed = error(plain, np.full(len(truth), guess), truth)
    return Cell(
        name,
        model,
        len(training[1]),
        epsilon,
        plan(MODELS[model](epsilon=epsilon, delta=DELTA, **data.declared), len(training[1]), data.columns),
        float(noise),
        float(np.std(scores(quiet, known))),
        best,
        float(np.mean(errors)),
        (float(np.mean(errors)) - best) / (guessed - best),
    )


def cells(names: list[str], models: list[str], seeds: int) -> Iterator[Cell]:
    for name in names:
        data = DATA[name]()
        for model in ["regression"] if name == "housing" else models:
            sizes = sorted({min(records, int(0.8 * len(data.answers))) for records in RECORDS})
            for records in sizes:
                for epsilon in EPSILONS:
                    yield measured(data, name, model, records, epsilon, seeds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="*", help=f"of {', '.join(DATA)}; all if none is named")
    parser.add_argument("--models", nargs="+", default=["logistic", "svm"], choices=["logistic", "svm"])
    parser.add_argument("--seeds", type=int, default=4)
    arguments = parser.parse_args()
    print(f"| {' | '.join(HEADINGS)} |")
    print("|" + "---|" * len(HEADINGS))
    found = []
    for cell in cells(arguments.data or list(DATA), arguments.models, arguments.seeds):
        found.append(cell)
        print(cell.line(), flush=True)
    for label, kept in (("seen while the plan was made", False), ("held out", True)):
        if group := [cell for cell in found if (cell.name in HELD_OUT) == kept]:
            print(f"\n{label}: {len(group)} cells")
            summarise(group)


def summarise(found: list[Cell]) -> None:
    """How far off, and what each verdict meant."""
    off = {
        "noise": [cell.plan.noise / cell.noise for cell in found],
        "margin": [cell.plan.margin / cell.margin for cell in found],
        "ratio": [cell.plan.ratio / cell.ratio for cell in found],
    }
    for what, factors in off.items():
        within = [np.mean(np.abs(np.log(factors)) <= math.log(factor)) for factor in (1.5, 2.0, 3.0)]
        shares = ", ".join(
            f"{share:.0%} within {factor}" for share, factor in zip(within, (1.5, 2, 3), strict=True)
        )
        print(f"{what}: plan / seen has median {np.median(factors):.2f}; {shares}")
    for verdict in ("clear", "noisy", "drowned"):
        lost = [cell.lost for cell in found if cell.plan.verdict == verdict]
        if lost:
            low, middle, high = np.quantile(lost, [0.1, 0.5, 0.9])
            print(
                f"{verdict}: {len(lost)} cells, lost {middle:.2f} (median), {low:.2f} to {high:.2f} (80 % of cells)"
            )


if __name__ == "__main__":
    main()
