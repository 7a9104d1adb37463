"""`privlearn evaluate`, `threshold` and `describe`: measure a model or a table with noisy counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.charging import RelatedCharging, print_balance
from privlearn.cli.options import (
    NUMBER,
    Force,
    ModelFile,
    SchemaFile,
    SigningKey,
    TableFile,
    check_writable,
    check_writable_apart,
    print_guarantee,
    read_signing_key,
)
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.budget.ledger import Ledger


def evaluate(
    model: ModelFile,
    table: TableFile,
    epsilon: Annotated[float, typer.Option(**NUMBER, help="Privacy loss of the whole evaluation.")],
    out: Annotated[Path, typer.Option(help="The evaluation's file to write.")],
    delta: Annotated[
        float, typer.Option(**NUMBER, help="Above 0 (such as 1e-6) many groups are more accurate.")
    ] = 0.0,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="Public description of the table: .yaml or .json.", show_default="the release's own"
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Also report the errors of each group of this column; may be repeated."
        ),
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Also write a page with figures (.html).")] = None,
    sign: SigningKey = None,
    *,
    charging: RelatedCharging,
) -> None:
    """Measure a released model on private records: accuracy, curves, groups, each with an interval.

    Only noisy counts of scores are released, in a file with a certificate that
    `privlearn verify` recomputes. The records should not be those that the model
    was trained on; if they are, both costs add up in the ledger.

    \b
    Example:
      privlearn evaluate income.privlearn test.csv --epsilon 0.5 --by sex \\
        --ledger budgets.db --out income.evaluation --page income.html
    """
    from privlearn.data.schema.schema import Schema
    from privlearn.release.artifact import Release
    from privlearn.statistics.evaluation import evaluate as measure
    from privlearn.statistics.evaluation.page import write_page
    from privlearn.statistics.evaluation.subject import schema_of

    check_writable_apart(out, page, charging.force)
    release = Release.load(model)
    description = schema_of(release, None if schema is None else Schema.load(schema))
    key = read_signing_key(sign)
    with charging.open_rows(table, description, "evaluating", out) as (rows, settings):
        result = measure(release, rows, schema=description, epsilon=epsilon, delta=delta, by=by, **settings)
    save_counts(result if key is None else result.signed(key), write_page, out, page, settings["ledger"])


def save_counts(
    result: Any, write_page: Callable[[Any], str], out: Path, page: Path | None, ledger: Ledger | None
) -> None:
    """Write an evaluation or a description, and its page if one is requested, and print what is in it."""
    from privlearn.release.archive import write_atomically

    result.save(out, overwrite=True)
    if page is not None:
        write_atomically(page, write_page(result).encode())
    typer.echo(f"Wrote {out}{'' if page is None else f' and {page}'}.")
    typer.echo(str(result))
    print_guarantee(result.certificate)
    print_balance(ledger, is_private=result.certificate.is_private)
    typer.echo(f"Next: privlearn verify {out}")


def threshold(
    model: ModelFile,
    evaluation: Annotated[
        Path, typer.Argument(metavar="EVALUATION", help="A file that `privlearn evaluate` wrote.")
    ],
    out: Annotated[Path, typer.Option(help="The new release file to write.")],
    false_positive: Annotated[
        float, typer.Option(**NUMBER, help="Cost of a false alarm, in any unit.")
    ] = 1.0,
    false_negative: Annotated[
        float, typer.Option(**NUMBER, help="Cost of a missed case, in the same unit.")
    ] = 1.0,
    at: Annotated[
        float | None,
        typer.Option(
            **NUMBER,
            help="Use this threshold, independent of costs.",
            show_default="where mistakes cost least",
        ),
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Read probabilities off the calibration curve.")
    ] = False,
    sign: SigningKey = None,
    force: Force = False,
) -> None:
    """Choose a threshold from an evaluation and write it into a new release. Costs no privacy.

    The new release contains the evaluation, so that `privlearn verify` checks both
    certificates, and that the evaluation is of this model.

    \b
    Example:
      privlearn threshold income.privlearn income.evaluation --false-negative 3 \\
        --calibrate --out careful.privlearn
    """
    from privlearn.release.artifact import Release
    from privlearn.statistics.evaluation import Evaluation

    check_writable(out, force)
    release, evaluated = Release.load(model), Evaluation.load(evaluation)
    key = read_signing_key(sign)
    if at is not None and (false_positive, false_negative) != (1.0, 1.0):
        raise InvalidParameter("--at sets the threshold itself. Omit --false-positive and --false-negative.")
    value = at
    if value is None:
        value = evaluated.best_threshold(false_positive=false_positive, false_negative=false_negative)
    decided = release.decided_by(evaluated.decision(threshold=value, calibrate=calibrate), evaluated)
    (decided if key is None else decided.signed(key)).save(out, overwrite=True)
    scores = "scores" if getattr(decided.model, "link", "none") == "none" else "probabilities"
    before = " before calibration" if calibrate else ""
    typer.echo(f"Wrote {out}: predicts {evaluated.classes[1]!r} for {scores} above {value:.4g}{before}.")
    typer.echo(f"It contains the model's certificate, {release.certificate.guarantee},")
    typer.echo(f"and the evaluation's, {evaluated.guarantee}.")
    typer.echo(f"Next: privlearn verify {out}")


def describe(
    table: TableFile,
    schema: SchemaFile,
    epsilon: Annotated[
        float, typer.Option(**NUMBER, help="Privacy loss of the whole description; inf: no privacy.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    delta: Annotated[
        float, typer.Option(**NUMBER, help="Above 0 (such as 1e-6) many columns are far less noisy.")
    ] = 0.0,
    page: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Also write a page.")] = None,
    correlations: Annotated[
        bool, typer.Option("--correlations/--no-correlations", help="Correlations of ordered columns.")
    ] = True,
    cross: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN,COLUMN", help="Also count this cross table and test it; may be repeated."
        ),
    ] = None,
    sign: SigningKey = None,
    *,
    charging: RelatedCharging,
) -> None:
    """Count a private table's categories, numbers and missing cells, and correlate its columns.

    Only noisy counts are released, in a file with a certificate that `privlearn verify`
    recomputes. One charge covers all of it.

    \b
    Example:
      privlearn describe census.csv --schema census.schema.yaml --epsilon 0.5 \\
        --delta 1e-6 --ledger budgets.db --out census.description --page census.html
    """
    from privlearn.data.schema.schema import Schema
    from privlearn.statistics.description import describe as measure
    from privlearn.statistics.description.page import write_page

    check_writable_apart(out, page, charging.force)
    description = Schema.load(schema)
    key = read_signing_key(sign)
    with charging.open_rows(table, description, "counting", out) as (rows, settings):
        result = measure(
            rows,
            description,
            epsilon=epsilon,
            delta=delta,
            correlations=correlations,
            crosses=[_two_columns(pair) for pair in cross or ()],
            **settings,
        )
    save_counts(result if key is None else result.signed(key), write_page, out, page, settings["ledger"])


def _two_columns(text: str) -> tuple[str, str]:
    one, comma, other = text.partition(",")
    if not comma:
        raise InvalidParameter(f"a cross table has two columns, such as --cross smoker,ill, not {text!r}")
    return one.strip(), other.strip()
