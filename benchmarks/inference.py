"""Coverage, p-values and widths of `estimate` on simulated tables; CI runs a small version.

    python -m benchmarks.inference --tables 100 --sizes 1000 6000 --out inference.csv

Variables are correlated (0.5 between neighbours): two thirds are normal or lognormal, one third has two values. Every
second coefficient is 0, so that its p-values must be uniform. The linear predictor has deviation 1 (0.5 for counts).
A person has 1 to 4 rows that share a part of the residual. Widths are compared with the sandwich intervals of the
maximum likelihood fit to the same rows, which for persons are robust against clusters.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import expit

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.statistics.regression import estimate

INTERCEPTS = {"logistic": -1.0, "linear": 0.0, "poisson": 0.5}
DEVIATIONS = {"logistic": 1.0, "linear": 1.0, "poisson": 0.5}
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
    return np.asarray(np.minimum(stats.poisson.ppf(uniform, np.exp(predictor)), MAX_COUNT))


def fit_plainly(family: str, variables: Array, outcome: Array, person: Any) -> tuple[Array, Array]:
    """Return coefficients and standard errors of the fit without privacy; each person's rows are averaged."""
    rows = np.column_stack([np.ones(len(outcome)), variables])
    counts = np.bincount(person)
    weights = 1.0 / counts[person]
    value = np.zeros(rows.shape[1])
    value[0] = np.log(outcome.mean()) if family == "poisson" else 0.0
    for _ in range(25):
        predictor = rows @ value
        mean = np.asarray(predictor)
        if family != "linear":
            mean = expit(predictor) if family == "logistic" else np.exp(predictor)
        information = {"logistic": mean * (1.0 - mean), "linear": np.ones(len(mean)), "poisson": mean}[family]
        inverse = np.linalg.inv(rows.T @ (rows * (weights * information)[:, np.newaxis]))
        scores = rows * (weights * (outcome - mean))[:, np.newaxis]
        value = value + inverse @ scores.sum(axis=0)
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, person, scores)
    return value, np.sqrt(np.diag(inverse @ sums.T @ sums @ inverse))


def schema_of(family: str, variables: Array, persons: bool, generosity: float) -> dict[str, Any]:
    """Return a schema with bounds of the largest size of a number, or ten times as wide."""
    columns: dict[str, Any] = {}
    for index in range(variables.shape[1]):
        is_number = index % 3 != 1
        bound = (20.0 if index % 5 == 2 else 6.0) * generosity
        lower = 0.0 if index % 5 == 2 else -bound
        columns[f"x{index}"] = (
            {"type": "number", "lower": lower, "upper": bound}
            if is_number
            else {"type": "category", "values": [0, 1]}
        )
    target: dict[str, Any] = {"name": "y"}
    if family == "logistic":
        target["classes"] = [0, 1]
    else:
        bound = MAX_COUNT * 1.0 if family == "poisson" else 9.0
        target |= {"lower": 0.0 if family == "poisson" else -bound * generosity, "upper": bound * generosity}
    person: dict[str, Any] = {"person": "person"} if persons else {"one_row_per_person": True}
    return {"name": "simulated", "columns": columns, "target": target, **person}


def measure(
    family: str,
    size: int,
    terms: int,
    epsilon: float,
    *,
    tables: int,
    generosity: float = 1.0,
    persons: bool = False,
    neighbours: str = "zero_out",
    seed: int = 0,
) -> dict[str, Any]:
    """Return coverage, the p-values' test of uniformity and the widths of one setting."""
    covered, widths, p_values, plain, unknown = [], [], [], [], []
    start = time.perf_counter()
    cell: dict[str, Any] = {
        "family": family,
        "size": size,
        "terms": terms,
        "epsilon": epsilon,
        "generosity": generosity,
        "persons": persons,
        "neighbours": neighbours,
        "tables": tables,
    }
    for table_seed in range(tables):
        generator = np.random.default_rng([seed, table_seed, size, terms])
        table, variables, effects = simulate(family, size, terms, persons, generator)
        value, error = fit_plainly(family, variables, table["y"], table["person"])
        formula = "y ~ " + " + ".join(f"x{index}" for index in range(terms))
        schema = schema_of(family, variables, persons, generosity)
        try:
            result = estimate(
                table | ({"y": table["y"].astype(int)} if family == "logistic" else {}),
                schema,
                formula,
                family=family,
                epsilon=epsilon,
                delta=1e-6,
                neighbours=neighbours,
                random_state=generator,
                accept_weak_privacy=True,
            )
        except InvalidParameter:
            return cell | {"coverage": "refused"}
        for row, effect, width in zip(result.coefficients()[1:], effects, error[1:], strict=True):
            unknown.append(not row.is_estimated)
            if row.is_estimated:
                covered.append(row.lower <= effect <= row.upper)
                widths.append(row.error / width)
                p_values += [row.p_value] if effect == 0.0 else []
        plain += (np.abs(value[1:] - effects) <= 1.96 * error[1:]).tolist()
    return cell | {
        "coverage": round(float(np.mean(covered)), 4),
        "coverage without privacy": round(float(np.mean(plain)), 4),
        "p-values uniform (KS)": round(float(stats.kstest(p_values, "uniform").pvalue), 4),
        "not estimated": round(float(np.mean(unknown)), 4),
        "median width": round(float(np.median(widths)), 3),
        "seconds": round(time.perf_counter() - start, 1),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--families", nargs="+", default=["logistic", "linear", "poisson"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 6_000, 50_000])
    parser.add_argument("--terms", nargs="+", type=int, default=[3, 10, 30])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 4.0])
    parser.add_argument("--generosities", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--persons", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--neighbours", default="zero_out")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    stream = options.out.open("w") if options.out else sys.stdout
    writer = csv.DictWriter(stream, fieldnames=[*SETTINGS, *RESULTS])
    writer.writeheader()
    settings = itertools.product(
        options.families,
        options.sizes,
        options.terms,
        options.epsilons,
        options.generosities,
        options.persons,
    )
    for family, size, terms, epsilon, generosity, persons in settings:
        cell = measure(
            family,
            size,
            terms,
            epsilon,
            tables=options.tables,
            generosity=generosity,
            persons=bool(persons),
            neighbours=options.neighbours,
        )
        writer.writerow(cell)
        stream.flush()


SETTINGS = ("family", "size", "terms", "epsilon", "generosity", "persons", "neighbours", "tables")
RESULTS = (
    "coverage",
    "coverage without privacy",
    "p-values uniform (KS)",
    "not estimated",
    "median width",
    "seconds",
)

if __name__ == "__main__":
    main()
