"""How often intervals hold what they are about: data sets drawn again and again from one simulated population.

    python benchmarks/intervals.py [--runs 500] [--sizes 4000 12000 36000] [--epsilons 0.5 2] [--model logistic]
                                   [--persons]

Each line is one number of records, one epsilon and one mechanism: the share of 95 % intervals, over all data sets and
all coefficients, points of effect curves or new rows, that hold the truth, for privacy intervals (the minimiser on the
same records without noise) and confidence intervals (the population's minimiser), both with the release's
regularization, offsets and units. With `--persons` a record is a person with 1 to 40 rows, which share a ward and a
deviation of their own.
"""

from __future__ import annotations

import argparse
import zlib
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from privlearn import (
    Intervals,
    InvalidParameter,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Release,
    Schema,
    curvature,
    intervals,
)
from privlearn.arrays import Array
from privlearn.mechanisms import ReleaseMechanism
from privlearn.release.score_map import MAX_TARGET
from privlearn.solvers import Problem, minimise, minimise_multinomial

Held = dict[tuple[str, str], NDArray[np.bool_]]

DELTA = 1e-6
POPULATION = 20_000
NEW_ROWS = 10
KINDS: tuple[Literal["privacy"], Literal["confidence"]] = ("privacy", "confidence")
PARTS = ("coefficients", "effects", "predictions")
MODELS: dict[str, Any] = {
    "logistic": PrivateLogisticRegression,
    "softmax": PrivateLogisticRegression,
    "svm": PrivateSVC,
    "regression": PrivateRegressor,
}
COLUMNS = {
    "age": {"type": "number", "lower": 20, "upper": 80, "encoding": "linear", "bins": "none"},
    "dose": {"type": "number", "lower": 0, "upper": 10, "knots": 4, "bins": "none"},
    "ward": {"type": "category", "values": ["a", "b", "c"]},
}


MAX_ROWS = 40


def schema_of(model: str, persons: bool = False) -> Schema:
    target: dict[str, Any] = {"classes": ["no", "maybe", "yes"] if model == "softmax" else ["no", "yes"]}
    if model == "regression":
        target = {"lower": -4, "upper": 4}
    described = {"name": "clinic", "columns": COLUMNS, "target": {"name": "answer"} | target, "pairs": "none"}
    return Schema.from_dict(described | ({"person": "who"} if persons else {}))


def population(model: str, records: int, random: np.random.Generator, persons: bool = False) -> pa.Table:
    """Age acts as a line, dose as a curve, wards differ; each answer has noise of its own."""
    counts = np.minimum(random.geometric(0.2, records), MAX_ROWS) if persons else np.ones(records, np.int64)
    who, rows = np.repeat(np.arange(records), counts), int(counts.sum())
    age, dose = random.uniform(20, 80, rows), random.uniform(0, 10, rows)
    ward = random.choice(3, records, p=[0.5, 0.3, 0.2])[who]
    score = (age - 50) / 25 + 1.5 * np.sin(dose / 2) + np.array([0.0, 0.5, -0.5])[ward]
    if persons:
        score = score + random.normal(size=records)[who]
    if model == "regression":
        answer: Any = np.clip(0.8 * score + 0.7 * random.normal(size=rows), -4, 4)
    else:
        noisy = score + random.logistic(size=rows)
        words, cuts = (["no", "maybe", "yes"], [-1, 1]) if model == "softmax" else (["no", "yes"], [0])
        answer = np.array(words)[np.searchsorted(cuts, noisy)]
    columns = {"age": age, "dose": dose, "ward": np.array(["a", "b", "c"])[ward], "answer": answer}
    return pa.table(columns | ({"who": who} if persons else {}))


def draw(people: pa.Table, records: int, random: np.random.Generator) -> pa.Table:
    """Return records, or persons with all their rows, drawn with replacement."""
    if "who" not in people.column_names:
        return people.take(random.integers(0, people.num_rows, records))
    who = people["who"].to_numpy()
    starts, counts = np.flatnonzero(np.diff(who, prepend=-1)), np.bincount(who)
    chosen = random.integers(0, len(counts), records)
    owner = np.repeat(np.arange(records), counts[chosen])
    inside = np.arange(len(owner)) - np.repeat(np.cumsum(counts[chosen]) - counts[chosen], counts[chosen])
    table = people.take(starts[chosen][owner] + inside)
    return table.set_column(table.column_names.index("who"), "who", pa.array(owner))


def row_weights(table: pa.Table) -> tuple[Array | None, int]:
    """Return the weight of each row and the number of records or persons."""
    if "who" not in table.column_names:
        return None, table.num_rows
    counts = np.bincount(table["who"].to_numpy())
    return 1.0 / counts[table["who"].to_numpy()], len(counts)


def without_noise(release: Release, table: pa.Table) -> Array:
    """The minimiser on these rows: the same features, loss, regularization, offsets and units of scores, no noise."""
    model, mechanism = release.model, cast(ReleaseMechanism, release.certificate.mechanism)
    features: Any = model.encoder.encode(table.drop_columns("answer"))
    weights, total = row_weights(table)
    strength = mechanism.effective_regularization
    answers = table["answer"].to_numpy(zero_copy_only=False)
    loss: Any = mechanism.task.loss
    if loss.argument == "classes":
        labels = np.searchsorted(["maybe", "no", "yes"], answers.astype(str))
        labels = np.array([1, 0, 2])[labels]
        return minimise_multinomial(
            features,
            labels,
            3,
            regularization=strength,
            total=total,
            row_weights=weights,
            offsets=model.constants,
            tolerance=1e-8,
        ).coefficients.ravel()
    if loss.argument == "residual":
        signs = np.ones(len(answers))
        offsets = np.clip((answers / 4.0 - model.constants) / model.stretches, -MAX_TARGET, MAX_TARGET)
    else:
        signs = np.where(answers == "yes", 1.0, -1.0)
        offsets = -model.constants * signs
    problem = Problem(features, signs, loss, strength, total, weights, offsets=offsets)
    return minimise(problem, tolerance=1e-8).coefficients


def functions(found: Intervals, new: pa.Table) -> dict[str, Array]:
    """Linear functions of the coefficients: each of them, each point of each curve, each new row's score."""
    model = found.release.model
    label = "yes" if len(model.coefficients) > 1 else None
    rows = sparse.csr_array(model.encoder.encode(new)).toarray()
    curves = [found.effect_functions(column, label)[1] for column in COLUMNS]
    return {
        "coefficients": np.eye(model.coefficients.size),
        "effects": np.vstack(curves),
        "predictions": found.of_class(rows, label),
    }


def one_run(
    model: str, people: pa.Table, records: int, epsilon: float, mechanism: str, price: float, seed: int
) -> Held | None:
    """Whether each interval holds the truth; None if no interval was given."""
    random = np.random.default_rng(seed)
    table = draw(people, records, random)
    new = population(model, NEW_ROWS, np.random.default_rng(2)).drop_columns("answer")
    estimator = MODELS[model](
        epsilon=epsilon,
        delta=DELTA,
        schema=schema_of(model, "who" in people.column_names),
        mechanism=mechanism,
        random_state=seed,
    )
    release = estimator.fit(table).release_
    bought = curvature(release, table, epsilon=price, delta=DELTA, random_state=seed + 10**6)
    truths = (without_noise(release, table), without_noise(release, people))
    try:
        found = [intervals(release, bought, kind=kind) for kind in KINDS]
    except InvalidParameter:
        return None
    wanted = functions(found[0], new)
    everything = np.vstack(list(wanted.values()))
    borders = np.cumsum([len(part) for part in wanted.values()])[:-1]
    held: Held = {}
    for given, truth in zip(found, truths, strict=True):
        band = given.linear(everything, range(len(everything)))
        inside = np.abs(band.estimate - everything @ truth) <= (band.upper - band.lower) / 2.0
        parts = zip(wanted, np.split(inside, borders), strict=True)
        held |= {(given.kind, part): each for part, each in parts}
    return held


def _seeds(runs: int, *setting: object) -> list[int]:
    """Of their own for every setting."""
    start = zlib.crc32(repr(setting).encode()) % 10**6
    return list(range(start, start + runs))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4000, 12000, 36000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 2.0])
    parser.add_argument("--mechanisms", nargs="+", default=["objective", "output"])
    parser.add_argument("--model", choices=MODELS, default="logistic")
    parser.add_argument("--price", type=float, help="epsilon of the curvature; that of the model by default")
    parser.add_argument("--persons", action="store_true", help="persons with 1 to 40 rows")
    arguments = parser.parse_args()
    people = population(arguments.model, POPULATION, np.random.default_rng(1), arguments.persons)
    print(f"{arguments.model}, {arguments.runs} data sets")
    print("records epsilon mechanism given", *(f"{kind}:{part}" for kind in KINDS for part in PARTS))
    for records in arguments.sizes:
        for epsilon in arguments.epsilons:
            for mechanism in arguments.mechanisms:
                price = arguments.price or epsilon
                runs = [
                    one_run(arguments.model, people, records, epsilon, mechanism, price, seed)
                    for seed in _seeds(arguments.runs, records, epsilon, mechanism)
                ]
                given = [run for run in runs if run is not None]
                shares = [
                    f"{np.mean([run[kind, part] for run in given]):.3f}" if given else "-"
                    for kind in KINDS
                    for part in PARTS
                ]
                print(
                    records, f"{epsilon:g}", mechanism, f"{len(given) / len(runs):.2f}", *shares, flush=True
                )


if __name__ == "__main__":
    main()
