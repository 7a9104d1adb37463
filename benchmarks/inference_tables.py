"""Regression tables of real data by `estimate`, next to those of statsmodels (install it with pip) on the same rows.

    PRIVLEARN_DATA=... python benchmarks/inference_tables.py [adult earnings stays houses] [--epsilon 1]

adult: logistic, income. earnings: linear, weekly hours on education, age and its square, and sex, in the style of the
earnings regressions that the IRS and the Urban Institute studied. stays: logistic, readmission of diabetics, several
rows per patient, equal weight for each patient. houses: linear, the value of a house in California.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import statsmodels.api as sm  # type: ignore[import-untyped]
import statsmodels.formula.api as smf  # type: ignore[import-untyped]
from persons import CONTENT, stays
from tables import load

from privlearn import Schema
from privlearn.statistics.regression import estimate


class Example(NamedTuple):
    """Rows, their schema, the formula, and the data frame that statsmodels gets with its formula."""

    table: Any
    schema: Schema
    formula: str
    frame: pd.DataFrame
    plain: str
    is_logistic: bool


def adult() -> Example:
    table, schema = load("adult")
    frame = table.to_pandas().rename(columns=lambda name: name.replace("-", "_"))
    assert schema.target is not None
    assert schema.target.labels is not None
    frame["outcome"] = (frame["income"] == schema.target.labels[1]).astype(float)
    formula = "income ~ age + `education-num` + sex + `hours-per-week`"
    return Example(
        table, schema, formula, frame, "outcome ~ age + education_num + sex + hours_per_week", True
    )


def earnings() -> Example:
    table, schema = load("adult")
    frame = table.to_pandas().rename(columns=lambda name: name.replace("-", "_"))
    formula = "`hours-per-week` ~ `education-num` + age + I(age^2) + sex"
    return Example(
        table, schema, formula, frame, "hours_per_week ~ education_num + age + I(age**2) + sex", False
    )


def of_stays() -> Example:
    table, schema = stays(), Schema.from_dict(CONTENT)
    frame = table.to_pandas()
    frame["outcome"] = (frame["readmitted"].astype(str) != "NO").astype(float)
    for name in ("number_inpatient", "time_in_hospital", "number_diagnoses"):
        frame[name] = frame[name].astype(float)
    frame = frame[frame["gender"].isin(["Female", "Male"])]
    terms = "number_inpatient + time_in_hospital + number_diagnoses + gender + diabetesMed"
    return Example(table, schema, f"readmitted ~ {terms}", frame, f"outcome ~ {terms}", True)


def houses() -> Example:
    data = np.loadtxt(
        Path(os.environ["PRIVLEARN_DATA"]) / "california_housing" / "cal_housing.data.gz", delimiter=","
    ).T
    frame = pd.DataFrame(
        {"age": data[2], "rooms": data[3] / data[6], "income": data[7], "value": data[8] / 1000}
    )
    schema = Schema.from_dict(
        {
            "name": "houses",
            "columns": {
                "age": {"type": "number", "lower": 0, "upper": 60},
                "rooms": {"type": "number", "lower": 0, "upper": 200},
                "income": {"type": "number", "lower": 0, "upper": 16},
            },
            "target": {"name": "value", "lower": 0, "upper": 501},
            "one_row_per_person": True,
        }
    )
    formula = "value ~ age + rooms + income"
    return Example({name: frame[name].to_numpy() for name in frame}, schema, formula, frame, formula, False)


EXAMPLES: dict[str, Callable[[], Example]] = {
    "adult": adult,
    "earnings": earnings,
    "stays": of_stays,
    "houses": houses,
}


def fit_with_statsmodels(example: Example) -> Any:
    """Return statsmodels' fit, with standard errors that are robust like those of `estimate`."""
    family = sm.families.Binomial() if example.is_logistic else sm.families.Gaussian()
    if example.schema.person is None:
        return smf.glm(example.plain, example.frame, family=family).fit(cov_type="HC0")
    person = example.frame[example.schema.person]
    weights = 1.0 / person.map(person.value_counts())
    model = smf.glm(example.plain, example.frame, family=family, var_weights=weights)
    return model.fit(cov_type="cluster", cov_kwds={"groups": person.astype("category").cat.codes})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("examples", nargs="*", default=list(EXAMPLES))
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    for name in options.examples:
        example = EXAMPLES[name]()
        plain = fit_with_statsmodels(example)
        order = [0, *range(1, len(plain.params))]
        columns = {
            neighbours: estimate(
                example.table,
                example.schema,
                example.formula,
                epsilon=options.epsilon,
                delta=1e-6,
                neighbours=neighbours,
                random_state=1,
            )
            for neighbours in ("zero_out", "replace_one")
        }
        print(f"\n{example.formula}\n\n| term | zero-out | replace-one | statsmodels |\n|---|---|---|---|")
        theirs = {_key(term): index for term, index in zip(plain.params.index, order, strict=True)}
        for row, other in zip(*(result.coefficients() for result in columns.values()), strict=True):
            index = theirs[_key(row.term)]
            cells = [f"{one.estimate:.4g} ({one.error:.2g})" for one in (row, other)]
            print(
                f"| {row.term} | {' | '.join(cells)} | {plain.params.iloc[index]:.4g} ({plain.bse.iloc[index]:.2g}) |"
            )
        costs = ", ".join(f"{name} {result.privacy_cost:.2f}" for name, result in columns.items())
        print(f"\nwidth compared with the same intervals without noise: {costs}")


def _key(term: str) -> str:
    """Return a spelling of a term that both libraries share."""
    if term in ("Intercept", "(intercept)"):
        return "intercept"
    plain = term.replace("I(", "").replace(")", "").replace(" ", "").replace("**", "^").replace("-", "_")
    return plain.replace("[T.", "[").lower()


if __name__ == "__main__":
    main()
