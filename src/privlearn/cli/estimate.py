"""`privlearn estimate`: a regression table with intervals and p-values; `privlearn plan estimate`: their widths."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.charging import RelatedCharging
from privlearn.cli.measure import save_counts
from privlearn.cli.options import (
    NUMBER,
    Neighbouring,
    SchemaFile,
    SigningKey,
    TableFile,
    check_writable_apart,
    read_signing_key,
)
from privlearn.cli.plan import plan

ModelFormula = Annotated[
    str,
    typer.Option(
        help='Outcome and terms: "readmitted ~ age + sex + age:smoker + I(age^2)".', show_default=False
    ),
]
EpsilonOfTable = Annotated[
    float, typer.Option(**NUMBER, help="Privacy loss of the whole table.", show_default=False)
]
DeltaOfTable = Annotated[
    float, typer.Option(**NUMBER, help="Above 0 and well below 1/n, say 1e-6.", show_default=False)
]
FamilyName = Annotated[
    str | None,
    typer.Option(
        help="logistic, ordinal, linear or poisson.",
        show_default="logistic for two classes, ordinal for ordered values, linear for numbers",
    ),
]
ExposureColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="For counts: the column of the time or population at risk.", show_default=False
    ),
]


def estimate(
    table: TableFile,
    schema: SchemaFile,
    formula: ModelFormula,
    epsilon: EpsilonOfTable,
    delta: DeltaOfTable,
    out: Annotated[Path, typer.Option(help="The file to write.", show_default=False)],
    family: FamilyName = None,
    exposure: ExposureColumn = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the table as a page (.html), LaTeX (.tex) or CSV.",
            show_default=False,
        ),
    ] = None,
    sign: SigningKey = None,
    *,
    charging: RelatedCharging,
) -> None:
    """Estimate a regression model for reading: odds ratios or coefficients, intervals, p-values.

    Only noisy sums are released, in a file with a certificate that `privlearn verify`
    recomputes. One charge covers the whole table. Before it, `privlearn plan estimate`
    forecasts how wide the intervals will be.

    \b
    Example:
      privlearn estimate clinic.csv --schema clinic.schema.yaml \\
        --formula "readmitted ~ age + sex + age:smoker" --epsilon 1 --delta 1e-6 \\
        --ledger budgets.db --out readmitted.estimates --page readmitted.html
    """
    from privlearn.data.schema.schema import Schema
    from privlearn.statistics.regression import Estimates
    from privlearn.statistics.regression import estimate as measure
    from privlearn.statistics.regression.page import write_table

    check_writable_apart(out, page, charging.force)
    description = Schema.load(schema)
    key = read_signing_key(sign)
    with charging.open_rows(table, description, "summing", out) as (rows, settings):
        result: Estimates = measure(
            rows,
            description,
            formula,
            epsilon=epsilon,
            delta=delta,
            family=family,
            exposure=exposure,
            **settings,
        )
    write = write_table("" if page is None else page.suffix)
    save_counts(result if key is None else result.signed(key), write, out, page, settings["ledger"])


@plan.command("estimate")
def plan_estimate(
    schema: SchemaFile,
    formula: ModelFormula,
    rows: Annotated[int, typer.Option(help="Number of records, or of persons.", show_default=False)],
    epsilon: EpsilonOfTable,
    delta: DeltaOfTable,
    family: FamilyName = None,
    exposure: ExposureColumn = None,
    neighbours: Neighbouring = "replace_one",
    rate: Annotated[
        float | None,
        typer.Option(
            **NUMBER,
            help="Approximate share of the outcome's second class, from public knowledge.",
            show_default="the schema's rate, else 0.2",
        ),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            **NUMBER,
            help="Half width of an interval: also print the records (or persons) and the epsilon for it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Forecast how wide the intervals of `privlearn estimate` will be. Reads no data.

    \b
    Example:
      privlearn plan estimate --schema clinic.schema.yaml --formula "readmitted ~ age + sex" \\
        --rows 6000 --epsilon 1 --delta 1e-6 --width 0.1
    """
    from privlearn.statistics.regression import forecast_widths

    forecast = forecast_widths(
        formula,
        schema,
        rows,
        epsilon=epsilon,
        delta=delta,
        family=family,
        exposure=exposure,
        neighbours=neighbours,
        rate=rate,
    )
    typer.echo(str(forecast))
    if width is not None:
        noun = forecast.schema.count_noun
        typer.echo(f"For +-{width:g}: about {forecast.records_for(width):,} {noun} at epsilon = {epsilon:g},")
        typer.echo(f"or epsilon = {forecast.epsilon_for(width):g} with {rows:,} {noun}.")
