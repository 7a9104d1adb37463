"""Private linear regression beside four peers, written anew after papers and public code, on six tables.

    PRIVLEARN_DATA=... python benchmarks/regression.py [housing ...] [--epsilon 0.1 0.5 1 4] [--splits 5]

The same rows for all: columns scaled to [-1, 1] by public bounds, flags 0 and 1, target to [-1, 1]. delta 1e-5.
Neighbours: one record is there or not (AdaSSP, BoostedAdaSSP and TukeyEM say add/remove, IHM and we zero-out; the
sensitivities are the same). Where a paper's accounting is loose ours takes its place, in the peer's favour: Gaussian
noises compose by their exact curve. Predictions of all are clamped to the target's bounds. Prints R^2 on a fifth of
the rows, mean of the splits, as a Markdown table.

AdaSSP: Wang 2018, Algorithm 2. BoostedAdaSSP: Tang et al. 2023, Algorithm 1, 100 rounds. TukeyEM: Amin et al. 2022,
Algorithm 4, 1000 models (or as many as have d rows each). IHM: Iterative Hessian Mixing, Lev et al. 2026, 3 rounds.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import os
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from sklearn.linear_model import LinearRegression
from tables import load

from privlearn import PrivateRegressor
from privlearn.accounting import gaussian_ratio
from privlearn.data.datasets import load_covertype

DELTA = 1e-5
Generator = np.random.Generator


class Numbers(NamedTuple):
    """Rows of norm at most sqrt(columns), targets in [-1, 1]."""

    rows: np.ndarray
    targets: np.ndarray


def scaled(values: np.ndarray, lower: float, upper: float) -> np.ndarray:
    found: np.ndarray = 2.0 * (np.clip(values, lower, upper) - lower) / (upper - lower) - 1.0
    return found


def flags(values: np.ndarray, categories: list[str]) -> np.ndarray:
    found: np.ndarray = (values[:, np.newaxis] == np.array(categories)).astype(float)
    return found


def housing() -> Numbers:
    """California's house values."""
    data = np.loadtxt(_folder() / "california_housing" / "cal_housing.data.gz", delimiter=",").T
    bounds = [(-125, -114), (32, 42), (0, 60), (0, 40_000), (0, 7_000), (0, 40_000), (0, 7_000), (0, 16)]
    columns = [
        scaled(np.log1p(values), 0.0, math.log1p(upper)) if upper > 1000 else scaled(values, lower, upper)
        for values, (lower, upper) in zip(data, bounds, strict=False)
    ]
    return Numbers(np.stack(columns, axis=1), scaled(data[-1], 0.0, 500_001.0))


def hours() -> Numbers:
    """Working hours per week in Adult."""
    table, schema = load("adult")
    columns = []
    for name, facts in schema.to_dict()["columns"].items():
        if name == "hours-per-week":
            continue
        values = table[name].to_numpy()
        if facts["type"] == "category":
            columns.append(flags(values, facts["values"]))
        else:
            columns.append(scaled(values.astype(float), facts["lower"], facts["upper"])[:, np.newaxis])
    return Numbers(np.hstack(columns), scaled(table["hours-per-week"].to_numpy().astype(float), 1.0, 99.0))


def hospital() -> Numbers:
    """Days in hospital, diabetes130, the first stay of each patient."""
    with zipfile.ZipFile(_folder() / "diabetes130" / "dataset_diabetes.zip") as archive:
        text = archive.read("dataset_diabetes/diabetic_data.csv").decode()
    first: dict[str, dict[str, str]] = {}
    for record in csv.DictReader(io.StringIO(text)):
        first.setdefault(record["patient_nbr"], record)
    bounds = {
        "num_lab_procedures": 132, "num_procedures": 6, "num_medications": 81, "number_outpatient": 42,
        "number_emergency": 76, "number_inpatient": 21, "number_diagnoses": 16,
    }  # fmt: skip
    choices = {
        "age": [f"[{age}-{age + 10})" for age in range(0, 100, 10)], "gender": ["Female", "Male"],
        "A1Cresult": ["None", "Norm", ">7", ">8"], "insulin": ["No", "Steady", "Up", "Down"], "change": ["No", "Ch"],
        "diabetesMed": ["No", "Yes"], "admission_type_id": [str(kind) for kind in range(1, 9)],
    }  # fmt: skip
    records = list(first.values())
    columns = [
        scaled(np.array([float(record[name]) for record in records]), 0.0, upper)[:, np.newaxis]
        for name, upper in bounds.items()
    ]
    columns += [
        flags(np.array([record[name] for record in records]), kinds) for name, kinds in choices.items()
    ]
    days = np.array([float(record["time_in_hospital"]) for record in records])
    return Numbers(np.hstack(columns), scaled(days, 1.0, 14.0))


def elevation() -> Numbers:
    """Height of 50,000 places of CoverType from the other columns."""
    features, _ = load_covertype()
    chosen = features[np.random.default_rng(0).permutation(len(features))[:62_500]].astype(float)
    bounds = [(0, 360), (0, 66), (0, 1400), (-180, 610), (0, 7200), (0, 255), (0, 255), (0, 255), (0, 7200)]
    columns = [scaled(chosen[:, place + 1], *ends)[:, np.newaxis] for place, ends in enumerate(bounds)]
    return Numbers(np.hstack([*columns, chosen[:, 10:]]), scaled(chosen[:, 0], 1800.0, 3900.0))


def heavy_tails() -> Numbers:
    """Simulated: 10,000 rows, 10 columns that share a mean, noise of Student's law with 2 degrees of freedom."""
    rng = np.random.default_rng(1)
    rows = np.clip(0.5 + 0.15 * rng.normal(size=(10_000, 10)), -1.0, 1.0)
    targets = (rows - 0.5) @ rng.normal(size=10) / 1.5 + 0.1 * rng.standard_t(2.0, size=10_000)
    return Numbers(rows, np.clip(targets, -1.0, 1.0))


def many_columns() -> Numbers:
    """Simulated: 2,000 rows, 100 columns, coefficients that fall like 1/j."""
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1.0, 1.0, size=(2_000, 100))
    targets = rows @ (rng.choice([-1.0, 1.0], 100) / np.arange(1, 101)) / 2.0 + 0.1 * rng.normal(size=2_000)
    return Numbers(rows, np.clip(targets, -1.0, 1.0))


def _folder() -> Path:
    return Path(os.environ["PRIVLEARN_DATA"])


TABLES: dict[str, Callable[[], Numbers]] = {
    "housing": housing,
    "hours": hours,
    "hospital": hospital,
    "elevation": elevation,
    "heavy_tails": heavy_tails,
    "many_columns": many_columns,
}

Predicts = Callable[[np.ndarray], np.ndarray]


def with_constant(rows: np.ndarray) -> np.ndarray:
    """As the peers take them: a constant beside the columns, norm at most 1."""
    return np.hstack([rows, np.ones((len(rows), 1))]) / math.sqrt(rows.shape[1] + 1.0)


def linear(coefficients: np.ndarray) -> Predicts:
    return lambda rows: np.clip(with_constant(rows) @ coefficients, -1.0, 1.0)


def symmetric_noise(size: int, rng: Generator) -> np.ndarray:
    upper = np.triu(rng.normal(size=(size, size)))
    return upper + np.triu(upper, 1).T


def noisy_gram(rows: np.ndarray, scale: float, rng: Generator) -> np.ndarray:
    """Second moments with noise, and the ridge of AdaSSP: what the noise may take from the smallest eigenvalue."""
    gram, size = rows.T @ rows, rows.shape[1]
    smallest = np.linalg.eigvalsh(gram)[0] + scale * rng.normal() - scale * math.sqrt(math.log(6.0 / DELTA))
    ridge = scale * math.sqrt(size * math.log(2.0 * size**2 / 0.05)) - max(smallest, 0.0)
    noisy: np.ndarray = gram + scale * symmetric_noise(size, rng) + max(ridge, 0.0) * np.eye(size)
    return noisy


def adassp(train: Numbers, epsilon: float, rng: Generator) -> Predicts:
    rows = with_constant(train.rows)
    scale = math.sqrt(3.0) / gaussian_ratio(epsilon, DELTA)  # eigenvalue, moments, products: a third each
    products = rows.T @ train.targets + scale * rng.normal(size=rows.shape[1])
    return linear(np.linalg.solve(noisy_gram(rows, scale, rng), products))


def boosted_adassp(train: Numbers, epsilon: float, rng: Generator, rounds: int = 100) -> Predicts:
    rows = with_constant(train.rows)
    scale = math.sqrt(3.0) / gaussian_ratio(epsilon, DELTA)
    inverse = np.linalg.inv(noisy_gram(rows, scale, rng))
    found = np.zeros(rows.shape[1])
    for _ in range(rounds):
        residuals = np.clip(train.targets - rows @ found, -1.0, 1.0)
        noise = scale * math.sqrt(rounds) * rng.normal(size=found.shape)
        found = found + inverse @ (rows.T @ residuals + noise)
    return linear(found)


def sketch_ridge(epsilon: float, delta: float, length: int, rounds: int) -> float:
    """The smallest eigenvalue, of X'X and noise, with which ``rounds`` sketches of so many rows keep a promise.

    One row of norm 1 takes at most 1/ridge of it along its direction: Renyi divergences of two centred normal laws.
    The eigenvalue itself is released with noise ridge / sqrt(length).
    """

    def spent(ridge: float) -> float:
        def at(order: float) -> float:
            fall = order * math.log1p(-1.0 / ridge) - math.log1p(-order / ridge)
            renyi = rounds * length * fall / (2.0 * (order - 1.0)) + order * length / (2.0 * ridge**2)
            return renyi + math.log1p(-1.0 / order) - math.log(delta * order) / (order - 1.0)

        highest = ridge * (1.0 - 1e-9)
        found = minimize_scalar(
            lambda place: at(1.0 + (highest - 1.0) * math.exp(place)), bounds=(-25.0, 0.0), method="bounded"
        )
        return float(found.fun)

    return float(brentq(lambda power: spent(math.exp(power)) - epsilon, math.log(2.0), math.log(1e9)))


def hessian_mixing(train: Numbers, epsilon: float, rng: Generator, rounds: int = 3) -> Predicts:
    """IHM: Newton steps, each with a new noisy sketch of the Hessian and noisy products with clipped residuals."""
    rows = with_constant(train.rows)
    gram, size = rows.T @ rows, rows.shape[1]
    rare = DELTA / 10.0
    length = int(6 * max(size, math.log(4.0 * rounds / rare)))
    ridge = sketch_ridge(epsilon / 2.0, DELTA / 2.0, length, rounds)
    spread, deviations = ridge / math.sqrt(length), math.sqrt(2.0 * math.log(4.0 / rare))
    smallest = max(np.linalg.eigvalsh(gram)[0] - spread * (deviations - rng.normal()), 0.0)
    root = np.linalg.cholesky(gram + (max(ridge - smallest, 0.0) + 1e-9) * np.eye(size))
    scale = math.sqrt(rounds) / gaussian_ratio(epsilon / 2.0, DELTA / 4.0)
    found = np.zeros(size)
    for _ in range(rounds):
        sketch = rng.normal(size=(length, size)) @ root.T  # the law of S X + noise, S normal
        residuals = np.clip(train.targets - rows @ found, -1.0, 1.0)
        products = rows.T @ residuals + scale * rng.normal(size=size)
        found = found + np.linalg.solve(sketch.T @ sketch / length, products)
    return linear(found)


def tukey_em(train: Numbers, epsilon: float, rng: Generator) -> Predicts:
    """Models of disjoint parts; one is drawn by its depth among them, if a test finds that safe."""
    rows = with_constant(train.rows)
    models = min(1000, len(rows) // rows.shape[1])
    parts = np.array_split(rng.permutation(len(rows)), models)
    fits = np.array([np.linalg.lstsq(rows[part], train.targets[part], rcond=None)[0] for part in parts])
    ordered = np.sort(fits + 1e-10 * rng.uniform(size=fits.shape), axis=0)
    half, restricted = models // 2, models // 4
    widths = ordered[::-1][:half] - ordered[:half]  # of the box of depth i + 1, in each direction
    volumes = np.log(np.maximum(widths, 1e-300)).sum(axis=1)
    share = epsilon / 2.0
    noisy = _distance_to_unsafety(volumes, share, restricted) + rng.laplace(scale=1.0 / share)
    if noisy <= math.log(1.0 / (2.0 * DELTA)) / share:
        return lambda rows: np.zeros(len(rows))
    inner = np.append(volumes[1:], -np.inf)
    shells = volumes + np.log1p(-np.exp(np.minimum(inner - volumes, -1e-12))) + share * np.arange(1, half + 1)
    depth = restricted + int(np.argmax(shells[restricted:] + rng.gumbel(size=half - restricted)))
    return linear(_in_shell(ordered, depth, rng))


def _distance_to_unsafety(volumes: np.ndarray, epsilon: float, restricted: int) -> int:
    """The most records that can change before boxes around the restricted depth grow too fast; -1 if none."""
    limit = math.log(DELTA / 8.0) - epsilon
    for moved in range(restricted - 2, -1, -1):
        deeper = volumes[restricted + moved + 1 :]
        falls = volumes[restricted - moved - 2] - deeper - epsilon / 2.0 * np.arange(1, len(deeper) + 1)
        if len(deeper) and falls.min() <= limit:
            return moved
    return -1


def _in_shell(ordered: np.ndarray, depth: int, rng: Generator) -> np.ndarray:
    """Uniform in the box of that depth (from 0), outside of the next box, by the first direction that leaves it."""
    low, high = ordered[depth], ordered[-1 - depth]
    point: np.ndarray = rng.uniform(low, high)
    if depth + 1 >= len(ordered) // 2:
        return point
    inner_low, inner_high = ordered[depth + 1], ordered[-2 - depth]
    inside = np.clip((inner_high - inner_low) / (high - low), 0.0, 1.0)
    before = np.concatenate([[1.0], np.cumprod(inside)[:-1]])
    chances = before * (1.0 - inside)
    leaves = rng.choice(len(low), p=chances / chances.sum())
    point[:leaves] = rng.uniform(inner_low, inner_high)[:leaves]
    left, right = inner_low[leaves] - low[leaves], high[leaves] - inner_high[leaves]
    step = rng.uniform(0.0, left + right)
    point[leaves] = low[leaves] + step if step < left else inner_high[leaves] + step - left
    return point


def ours(train: Numbers, epsilon: float, rng: Generator, centre: str | bool = "auto") -> Predicts:
    model = PrivateRegressor(
        epsilon=epsilon,
        delta=DELTA,
        neighbours="zero_out",
        norm_bound=math.sqrt(train.rows.shape[1]),
        target_bounds=(-1.0, 1.0),
        centre=centre,
        random_state=rng,
    )
    predict: Predicts = model.fit(train.rows, train.targets).predict
    return predict


def not_centred(train: Numbers, epsilon: float, rng: Generator) -> Predicts:
    return ours(train, epsilon, rng, centre=False)


METHODS: dict[str, Callable[[Numbers, float, Generator], Predicts]] = {
    "privlearn": ours,
    "privlearn, centre=False": not_centred,
    "AdaSSP": adassp,
    "BoostedAdaSSP": boosted_adassp,
    "TukeyEM": tukey_em,
    "IHM": hessian_mixing,
}


def r_squared(truth: np.ndarray, found: np.ndarray) -> float:
    return 1.0 - float(np.sum((truth - found) ** 2) / np.sum((truth - truth.mean()) ** 2))


def divided(data: Numbers, seed: int) -> tuple[Numbers, Numbers]:
    """Four fifths to learn from, a fifth to test on."""
    order = np.random.default_rng(seed).permutation(len(data.rows))
    test, train = np.split(order, [len(order) // 5])
    return Numbers(data.rows[train], data.targets[train]), Numbers(data.rows[test], data.targets[test])


def plain(splits: list[tuple[Numbers, Numbers]]) -> float:
    scores = []
    for train, test in splits:
        model = LinearRegression().fit(train.rows, train.targets)
        scores.append(r_squared(test.targets, np.clip(model.predict(test.rows), -1.0, 1.0)))
    return float(np.mean(scores))


def report(name: str, epsilons: list[float], splits: int) -> None:
    data = TABLES[name]()
    parts = [divided(data, seed) for seed in range(splits)]
    rows, columns = parts[0][0].rows.shape
    title = f"{name} ({rows:,} x {columns}; least squares {plain(parts):.3f})"
    for label, method in METHODS.items():
        cells = []
        for epsilon in epsilons:
            scores = [
                r_squared(test.targets, method(train, epsilon, np.random.default_rng(seed))(test.rows))
                for seed, (train, test) in enumerate(parts)
            ]
            cells.append(f"{np.mean(scores):.3f}")
        print(f"| {title} | {label} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 0.5, 1.0, 4.0])
    parser.add_argument("--splits", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # privlearn says that there is no ledger, and that a seed is not private
    print("| data | method | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in asked.epsilon) + " |")
    print("|---|---|" + "---|" * len(asked.epsilon))
    for name in asked.tables:
        report(name, asked.epsilon, asked.splits)


if __name__ == "__main__":
    main()
