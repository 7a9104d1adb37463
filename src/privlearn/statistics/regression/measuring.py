"""Estimate a regression model privately: read and check the rows, charge once, release sums, certify them."""

from __future__ import annotations

from typing import Any

import numpy as np

from privlearn.budget.charge import Budget
from privlearn.budget.composition import Cost
from privlearn.data.parts import part_of, without_part
from privlearn.data.schema.schema import Schema, SchemaLike, as_schema
from privlearn.guarantee import Guarantee
from privlearn.randomness import Randomness, randomness_from
from privlearn.statistics.layout import CountsLayout, CountsRequest
from privlearn.statistics.regression.estimates import Estimates
from privlearn.statistics.regression.layout import check_strength, read_request, regression_layout
from privlearn.statistics.regression.rows import RegressionCells, RegressionRows, read_cells


def estimate(
    table: Any,
    schema: SchemaLike,
    formula: str,
    *,
    epsilon: float,
    delta: float,
    family: str | None = None,
    exposure: str | None = None,
    neighbours: str = "replace_one",
    expected_records: int | None = None,
    ledger: Budget | None = None,
    accept_weak_privacy: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Estimates:
    """Return a table of coefficients with confidence intervals and p-values, for one charge.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, dict of arrays, or RowSource
        The private rows. Rows without a value in one of the model's columns are left out.
    schema : Schema
        Public lists and bounds of the table. Numbers beyond a bound count as the bound.
    formula : str
        Such as ``"readmitted ~ age + sex + age:smoker"``; see `privlearn.statistics.regression.formula`.
    epsilon, delta : float
        Privacy loss of the whole table. The noise is Gaussian, so delta must be above 0.
    family : {"logistic", "ordinal", "linear", "poisson"}, optional
        By default logistic for two classes, ordinal for ordered values and linear for a number.
    exposure : str, optional
        For counts: the column of the time or population at risk.
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
    expected_records : int, optional
        With ``add_remove``: the approximate number of records, or persons, from public knowledge.
    ledger : Ledger, optional
        Budget to charge.
    accept_weak_privacy : bool, default=False
        Required for an epsilon above 20 or a delta of at least 1/n.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure random bits. Other values are for tests; the certificate then states "not private".

    Raises
    ------
    InvalidParameter
        Before anything is charged: for a formula that the schema does not fit, and where the noise would leave
        nothing to read.
    """
    request = CountsRequest(
        Guarantee(epsilon, delta, neighbours),
        expected_records,
        ledger,
        accept_weak_privacy,
        randomness_from(random_state),
    )
    schema = as_schema(schema)
    model = read_request(formula, schema, family, exposure)
    rows = read_cells(without_part(table), schema, model)
    total = request.total(rows.total)
    layout = regression_layout(model, schema, request.guarantee, total)
    check_strength(layout, schema.count_noun, model.rate)
    cost = Cost(request.guarantee, layout.mechanism.renyi)
    charge = request.charge(cost, total, schema, part_of(table), "estimate")
    return charge.pay_for(lambda: measure(layout, schema, rows, request.randomness))


def measure(layout: CountsLayout, schema: Schema, rows: RegressionCells, randomness: Randomness) -> Estimates:
    """Touch the data: release all sums of the layout, and return the certified table."""
    released = layout.mechanism.run_in_turn(RegressionRows(rows, layout), randomness)  # type: ignore[attr-defined]
    certificate = layout.certify(
        schema, randomness, formula=layout.about["formula"], family=layout.about["family"]
    )
    return Estimates(released, layout.about, certificate)
