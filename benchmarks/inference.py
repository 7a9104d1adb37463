"""Coverage, p-values and widths of `estimate` on simulated tables; CI runs a small version.

    python -m benchmarks.inference --tables 500 --seed 1 --sizes 1000 6000 --terms 3 10 --out inference.csv

Variables are correlated (0.5 between neighbours): two thirds are normal or lognormal, one third has two values. Every
second coefficient is 0, so that its p-values must be uniform. The linear predictor has deviation 1 (0.5 for counts).
A person has 1 to 4 rows that share a part of the residual. Widths are compared with the sandwich intervals of the
maximum likelihood fit to the same rows, robust against clusters of persons. Ordinal outcomes have four levels.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import expit

from privlearn import Schema
from privlearn.arrays import Array
from privlearn.guarantee import Guarantee
from privlearn.randomness import randomness_from
from privlearn.statistics.regression.layout import is_readable, read_request, regression_layout
from privlearn.statistics.regression.measuring import measure as measure_rows
from privlearn.statistics.regression.rows import read_cells

INTERCEPTS = {"logistic": -1.0, "ordinal": 0.0, "linear": 0.0, "poisson": 0.5}
DEVIATIONS = {"logistic": 1.0, "ordinal": 1.0, "linear": 1.0, "poisson": 0.5}
THRESHOLDS = np.array([-1.5, 0.0, 2.0])
"""Of the four levels of an ordinal outcome."""
MAX_COUNT = 200


def simulate(
    family: str, size: int, terms: int, persons: bool, generator: np.random.Generator
) -> tuple[dict[str, Any], Array, Array]:
    """Return a table, its variables as an array, and the true coefficients without the intercept."""
    correlation = 0.5 ** np.abs(np.subtract.outer(np.arange(terms), np.arange(terms)))
    person = np.repeat(np.arange(size), generator.integers(1, 5, size))[:size] if persons else np.arange(size)
    variables = generator.standard_normal((size, terms)) @ np.linalg.cholesky(correlation).T
    if persons:  # a person's rows share half of the variance of every variable
        own = generator.standard_normal((size, terms))[person] @ np.linalg.cholesky(correlation).T
        variables = (variables + own) / np.sqrt(2.0)
    for index in range(terms):
        if index % 3 == 1:
            variables[:, index] = variables[:, index] > 0.5
        elif index % 5 == 2:
            variables[:, index] = np.exp(0.6 * variables[:, index])
    effects = np.zeros(terms)
    effects[::2] = generator.choice([-1.0, 1.0], len(effects[::2]))
    scores = (variables - variables.mean(axis=0)) @ (effects / variables.std(axis=0))
    effects *= DEVIATIONS[family] / scores.std() / variables.std(axis=0)
    predictor = INTERCEPTS[family] + (variables - variables.mean(axis=0)) @ effects
    shared = generator.standard_normal(size)[person] if persons else np.zeros(size)
    outcome = _draw(family, predictor, shared, persons, generator)
    table: dict[str, Any] = {f"x{index}": variables[:, index] for index in range(terms)}
    table |= {"y": outcome, "person": person}
    return table, variables, effects


def _draw(
    family: str, predictor: Array, shared: Array, persons: bool, generator: np.random.Generator
) -> Array:
    """Return outcomes whose mean given the variables is that of the model, also where persons share a part."""
    size = len(predictor)
    if family == "linear":
        own = generator.standard_normal(size)
        return np.asarray(predictor + ((own + shared) / np.sqrt(2.0) if persons else own))
    # a shared quantile keeps the margins exactly
    quantile = stats.norm.cdf((generator.standard_normal(size) + shared) / np.sqrt(2.0)) if persons else None
    uniform = generator.random(size) if quantile is None else quantile
    if family == "logistic":
        return np.asarray((uniform < expit(predictor)).astype(float))
    if family == "ordinal":
        chances = expit(predictor[:, np.newaxis] - THRESHOLDS)
        return np.asarray((uniform[:, np.newaxis] < chances).sum(axis=1).astype(float))
    return np.asarray(np.minimum(stats.poisson.ppf(uniform, np.exp(predictor)), MAX_COUNT))


def fit_plainly(family: str, variables: Array, outcome: Array, person: Any) -> tuple[Array, Array]:
    """Return coefficients and standard errors of the fit without privacy; each person's rows are averaged.

    An ordinal outcome is compared with every threshold, and each comparison is a row.
    """
    if family == "ordinal":
        count = len(THRESHOLDS)
        above = (outcome[:, np.newaxis] > np.arange(count)).astype(float).ravel()
        others = np.tile(np.eye(count)[:, 1:], (len(outcome), 1))
        repeated = np.hstack([np.repeat(variables, count, axis=0), others])
        value, error = fit_plainly("logistic", repeated, above, np.repeat(person, count))
        return value[: 1 - count], error[: 1 - count]
    rows = np.column_stack([np.ones(len(outcome)), variables])
    counts = np.bincount(person)
    weights = 1.0 / counts[person]
    value = np.zeros(rows.shape[1])
    value[0] = np.log(outcome.mean()) if family == "poisson" else 0.0
    step = np.ones(len(value))
    while np.abs(step).max() > 1e-8:
        predictor = rows @ value
        mean = np.asarray(predictor)
        if family != "linear":
            mean = expit(predictor) if family == "logistic" else np.exp(predictor)
        information = {"logistic": mean * (1.0 - mean), "linear": np.ones(len(mean)), "poisson": mean}[family]
        inverse = np.linalg.inv(rows.T @ (rows * (weights * information)[:, np.newaxis]))
        scores = rows * (weights * (outcome - mean))[:, np.newaxis]
        step = inverse @ scores.sum(axis=0)
        value = value + step
    sums = np.column_stack([np.bincount(person, column) for column in scores.T])
    return value, np.sqrt(np.diag(inverse @ sums.T @ sums @ inverse))


def schema_of(family: str, terms: int, persons: bool, generosity: float) -> dict[str, Any]:
    """Return a schema with bounds of the largest size of a number, or ten times as wide."""
    columns: dict[str, Any] = {}
    for index in range(terms):
        is_number = index % 3 != 1
        bound = (20.0 if index % 5 == 2 else 6.0) * generosity
        lower = 0.0 if index % 5 == 2 else -bound
        columns[f"x{index}"] = (
            {"type": "number", "lower": lower, "upper": bound}
            if is_number
            else {"type": "category", "values": [0, 1]}
        )
    target: dict[str, Any] = {"name": "y"}
    if family in ("logistic", "ordinal"):
        target["classes"] = [0, 1] if family == "logistic" else [0, 1, 2, 3]
    else:
        bound = MAX_COUNT * 1.0 if family == "poisson" else 9.0
        target |= {"lower": 0.0 if family == "poisson" else -bound * generosity, "upper": bound * generosity}
    person: dict[str, Any] = {"person": "person"} if persons else {"one_row_per_person": True}
    return {"name": "simulated", "columns": columns, "target": target, **person}


@dataclass(frozen=True)
class Setting:
    """One cell of the benchmark."""

    family: str
    size: int
    terms: int
    epsilon: float
    generosity: float = 1.0
    persons: bool = False
    neighbours: str = "zero_out"


@dataclass
class Results:
    """What was estimated in the tables of one setting: a row for each table, a column for each coefficient."""

    effects: list[Array] = field(default_factory=list)
    estimates: list[Array] = field(default_factory=list)
    lower: list[Array] = field(default_factory=list)
    upper: list[Array] = field(default_factory=list)
    p_values: list[Array] = field(default_factory=list)
    plain: list[Array] = field(default_factory=list)
    plain_errors: list[Array] = field(default_factory=list)

    def arrays(self) -> dict[str, Array]:
        return {name: np.array(values) for name, values in self.__dict__.items()}

    def summary(self) -> dict[str, Any]:
        """Return coverage with its binomial error, the p-values' test of uniformity, and the widths."""
        found = self.arrays()
        truth, estimated = found["effects"], np.isfinite(found["lower"])
        covered = (found["lower"] <= truth) & (truth <= found["upper"])
        widths = (found["upper"] - found["lower"]) / (2.0 * NORMAL * found["plain_errors"])
        plain = (found["plain"] - truth) / found["plain_errors"]
        null = found["p_values"][estimated & (truth == 0.0)]
        by_table = [
            float(np.mean(row[is_known]))
            for row, is_known in zip(covered, estimated, strict=True)
            if is_known.any()
        ]
        return {
            "coverage": round(float(np.mean(covered[estimated])), 4),
            "error of it": round(float(np.std(by_table) / np.sqrt(len(by_table))), 4),
            "coverage without privacy": round(float(np.mean(np.abs(plain) <= NORMAL)), 4),
            "p-values uniform (KS)": round(float(stats.kstest(null, "uniform").pvalue), 4),
            "not estimated": round(1.0 - float(np.mean(estimated)), 4),
            "median width": round(float(np.median(widths[estimated])), 3),
        }


def measure(
    family: str, size: int, terms: int, settings: Sequence[Setting], *, tables: int, seed: int
) -> dict[Setting, Results | None]:
    """Return what was estimated in each setting of one family and size; None where `estimate` refuses.

    All settings see the same tables. What is public is computed once per setting; then the same functions run as in
    `estimate`, without a ledger.
    """
    formula = "y ~ " + " + ".join(f"x{index}" for index in range(terms))
    results: dict[Setting, Results | None] = {}
    prepared = []
    for setting in settings:
        schema = Schema.from_dict(schema_of(family, terms, setting.persons, setting.generosity))
        request = read_request(formula, schema, family, None)
        guarantee = Guarantee(setting.epsilon, 1e-6, setting.neighbours)
        prepared.append((setting, schema, request, guarantee))
    for table_seed in range(tables):
        for persons in sorted({setting.persons for setting in settings}):
            generator = np.random.default_rng([seed, table_seed, size, terms, persons])
            table, variables, effects = simulate(family, size, terms, persons, generator)
            value, error = fit_plainly(family, variables, table["y"], table["person"])
            if family in ("logistic", "ordinal"):
                table["y"] = table["y"].astype(int)
            cells: dict[float, Any] = {}
            for setting, schema, request, guarantee in prepared:
                if setting.persons != persons or (table_seed and results.get(setting) is None):
                    continue
                rows = cells.get(setting.generosity) or read_cells(table, schema, request)
                cells[setting.generosity] = rows
                layout = regression_layout(request, schema, guarantee, rows.total)
                if not is_readable(layout):
                    results[setting] = None
                    continue
                estimates = measure_rows(layout, schema, rows, randomness_from(generator))
                found = results.setdefault(setting, Results())
                assert found is not None
                coefficients = estimates.coefficients()[estimates.intercepts :]
                found.effects.append(effects)
                found.estimates.append(np.array([row.estimate for row in coefficients]))
                found.lower.append(np.array([row.lower for row in coefficients]))
                found.upper.append(np.array([row.upper for row in coefficients]))
                found.p_values.append(np.array([row.p_value for row in coefficients]))
                found.plain.append(value[1:])
                found.plain_errors.append(error[1:])
    return results


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", nargs="+", default=["logistic", "ordinal", "linear", "poisson"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 6_000, 50_000])
    parser.add_argument("--terms", nargs="+", type=int, default=[3, 10, 30])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 4.0])
    parser.add_argument("--generosities", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--persons", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--neighbours", default="zero_out")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--arrays", type=Path, help="directory for the estimates of every table")
    options = parser.parse_args(arguments)
    stream = options.out.open("w") if options.out else sys.stdout
    writer = csv.DictWriter(stream, fieldnames=[*SETTINGS, *RESULTS])
    writer.writeheader()
    for family, size, terms in itertools.product(options.families, options.sizes, options.terms):
        settings = [
            Setting(family, size, terms, epsilon, generosity, bool(persons), options.neighbours)
            for epsilon, generosity, persons in itertools.product(
                options.epsilons, options.generosities, options.persons
            )
        ]
        start = time.perf_counter()
        results = measure(family, size, terms, settings, tables=options.tables, seed=options.seed)
        seconds = round((time.perf_counter() - start) / options.tables / len(settings), 3)
        for setting, found in results.items():
            shown: dict[str, Any] = {"coverage": "refused"} if found is None else found.summary()
            count = options.tables
            writer.writerow(setting.__dict__ | {"tables": count, "seconds per table": seconds} | shown)
            if options.arrays and found is not None:
                name = "-".join(map(str, setting.__dict__.values()))
                np.savez_compressed(options.arrays / f"{name}.npz", **found.arrays())  # type: ignore[arg-type]
        stream.flush()


NORMAL = 1.959964
SETTINGS = (*Setting.__dataclass_fields__, "tables")
RESULTS = (
    "coverage",
    "error of it",
    "coverage without privacy",
    "p-values uniform (KS)",
    "not estimated",
    "median width",
    "seconds per table",
)

if __name__ == "__main__":
    main()
