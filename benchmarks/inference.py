"""Coverage, p-values and widths of `estimate` on simulated tables; CI runs a small version.

    python -m benchmarks.inference --tables 500 --seed 1 --store results --page docs/benchmarks-inference.md

It measures all settings in turn, a few tables each, until all have their number of tables or the time (``--minutes``)
is over; the next run goes on where this one stopped. Then it writes the table of the page.

Variables are correlated (0.5 between neighbours): two thirds are normal or lognormal, one third has two values. Every
second coefficient is 0, so that its p-values must be uniform. The linear predictor has deviation 1 (0.5 for counts).
A person has 1 to 4 rows that share a part of the residual. Widths are compared with the sandwich intervals of the
maximum likelihood fit to the same rows, robust against clusters of persons. Ordinal outcomes have four levels.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
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
from privlearn.release.archive import write_atomically
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
    family: str, size: int, terms: int, settings: Sequence[Setting], *, tables: int, seed: int, first: int = 0
) -> dict[Setting, Results | None]:
    """Return what was estimated in each setting of one family and size; None where `estimate` refuses.

    All settings see the same tables, the ``first`` one on. What is public is computed once per setting; then the same
    functions run as in `estimate`, without a ledger.
    """
    formula = "y ~ " + " + ".join(f"x{index}" for index in range(terms))
    results: dict[Setting, Results | None] = {}
    prepared = []
    for setting in settings:
        schema = Schema.from_dict(schema_of(family, terms, setting.persons, setting.generosity))
        request = read_request(formula, schema, family, None)
        guarantee = Guarantee(setting.epsilon, 1e-6, setting.neighbours)
        prepared.append((setting, schema, request, guarantee))
    for table_seed in range(first, first + tables):
        for persons in sorted({setting.persons for setting in settings}):
            generator = np.random.default_rng([seed, table_seed, size, terms, persons])
            table, variables, effects = simulate(family, size, terms, persons, generator)
            value, error = fit_plainly(family, variables, table["y"], table["person"])
            if family in ("logistic", "ordinal"):
                table["y"] = table["y"].astype(int)
            cells: dict[float, Any] = {}
            for setting, schema, request, guarantee in prepared:
                if setting.persons != persons or results.get(setting, 0) is None:
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
                found.lower.append(np.array([row.lower for row in coefficients]))
                found.upper.append(np.array([row.upper for row in coefficients]))
                found.p_values.append(np.array([row.p_value for row in coefficients]))
                found.plain.append(value[1:])
                found.plain_errors.append(error[1:])
    return results


def measure_more(settings: Sequence[Setting], store: Path, *, tables: int, seed: int) -> bool:
    """Add some tables to the stored results of one family and size; return whether there are enough now."""
    one = settings[0]
    counts = [
        json.loads(file.read_text())["tables"]
        for file in map(store.joinpath, map(file_of, settings))
        if file.exists()
    ]
    first = min(counts) if len(counts) == len(settings) else 0
    more = min(tables - first, max(1, CHUNK // (one.size * one.terms)))
    if more <= 0:
        return True
    results = measure(one.family, one.size, one.terms, settings, tables=more, seed=seed, first=first)
    for setting, found in results.items():
        file = store / file_of(setting)
        record = {"setting": setting.__dict__, "tables": first + more, "arrays": None}
        if found is not None:
            before = json.loads(file.read_text())["arrays"] if first else {}
            record["arrays"] = {
                name: [*before.get(name, [])[:first], *(row.tolist() for row in rows)]
                for name, rows in found.__dict__.items()
            }
        write_atomically(file, json.dumps(record).encode())
    return all(found is None for found in results.values())


def file_of(setting: Setting) -> str:
    """Return the name of the file with the results of a setting."""
    return "-".join(map(str, setting.__dict__.values())) + ".json"


def table_of(store: Path) -> str:
    """Return the stored results as a table of Markdown: a row for each model, size and epsilon.

    Settings with fewer tables than `MIN_TABLES` are left out.
    """
    rows: dict[tuple[Any, ...], dict[tuple[Any, ...], str]] = {}
    tables: dict[tuple[Any, ...], int] = {}
    for file in store.glob("*.json"):
        record = json.loads(file.read_text())
        if record["arrays"] is not None and record["tables"] < MIN_TABLES:
            continue
        setting = Setting(**record["setting"])
        key = (
            setting.neighbours != "zero_out",
            FAMILIES.index(setting.family),
            setting.size,
            setting.terms,
            setting.epsilon,
        )
        rows.setdefault(key, {})[setting.generosity, setting.persons] = _cell(record)
        if record["arrays"] is not None:
            tables[key] = min(record["tables"], tables.get(key, record["tables"]))
    lines = [
        "| family | records | terms | epsilon | tables | as is | bounds x 10 | persons | persons, bounds x 10 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for key, cells in sorted(rows.items()):
        replaced, family, size, terms, epsilon = key
        name = FAMILIES[family] + (" (replace-one)" if replaced else "")
        shown = [cells.get((factor, persons), "") for persons in (False, True) for factor in (1.0, 10.0)]
        if set(shown) - {"", REFUSED}:
            lines.append(
                f"| {name} | {size:,} | {terms} | {epsilon:g} | {tables[key]} | {' | '.join(shown)} |"
            )
    return "\n".join(lines)


def _cell(record: dict[str, Any]) -> str:
    if record["arrays"] is None:
        return REFUSED
    summary = Results(**record["arrays"]).summary()
    hidden = f"; {100 * summary['not estimated']:.0f}% hidden" if summary["not estimated"] >= 0.005 else ""
    coverage = f"{100.0 * summary['coverage']:.1f}±{100.0 * summary['error of it']:.1f}"
    if record["setting"]["generosity"] == 1.0:  # wider bounds do not change the plain fit
        coverage += f" ({100.0 * summary['coverage without privacy']:.1f})"
    uniform, width = summary["p-values uniform (KS)"], summary["median width"]
    return f"{coverage}; {uniform:.2g}; {width:.2f}{hidden}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 6_000, 50_000])
    parser.add_argument("--terms", nargs="+", type=int, default=[3, 10, 30])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 4.0])
    parser.add_argument("--generosities", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--persons", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--neighbours", default="zero_out")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--store", type=Path, required=True, help="directory of the results")
    parser.add_argument("--page", type=Path, help="page whose table is replaced")
    options = parser.parse_args(arguments)
    options.store.mkdir(parents=True, exist_ok=True)
    cells = [
        [
            Setting(family, size, terms, epsilon, generosity, bool(persons), options.neighbours)
            for epsilon, generosity, persons in itertools.product(
                options.epsilons, options.generosities, options.persons
            )
        ]
        for size, terms, family in itertools.product(options.sizes, options.terms, options.families)
    ]
    end = time.monotonic() + 60.0 * options.minutes
    while cells and time.monotonic() < end:
        cells = [
            settings
            for settings in cells
            if time.monotonic() < end
            and not measure_more(settings, options.store, tables=options.tables, seed=options.seed)
        ]
    table = table_of(options.store)
    if options.page is None:
        print(table)
        return
    text = options.page.read_text()
    before, after = text.index("| family |"), text.index("\n\n", text.index("| family |"))
    options.page.write_text(text[:before] + table + text[after:])


FAMILIES = ("logistic", "linear", "poisson", "ordinal")
CHUNK = 200_000
"""Records times terms of the tables that a setting gets at a time."""
MIN_TABLES = 30
REFUSED = "refused"
NORMAL = 1.959964
if __name__ == "__main__":
    main()
