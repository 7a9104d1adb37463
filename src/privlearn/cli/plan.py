"""`privlearn plan`: forecast the noise of a training before any budget is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from privlearn.cli.arrays import MapOptions
from privlearn.cli.charging import with_options
from privlearn.cli.options import (
    NUMBER,
    Delta,
    Force,
    Gamma,
    KernelName,
    LossName,
    ModelName,
    Neighbouring,
    PlanFile,
    check_writable,
    number_or_word,
    require_delta,
)
from privlearn.cli.terminal import LateProgress, output
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.estimators.forecast.fit_forecast import Plan

_STYLES = {"clear": "bold green", "noisy": "bold yellow", "drowned": "bold red", "weak": "bold red"}


class _WithoutTables(TyperGroup):
    """Refuses a table as an argument, with a message on what to type instead."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None:
            raise InvalidParameter(
                f"plan reads no table, so omit {args[0]!r}. Describe the rows with --schema FILE --rows NUMBER "
                "--epsilon NUMBER (privlearn schema writes a schema for a table; privlearn plan check reads the plan "
                "of several holders)."
            )
        return super().resolve_command(ctx, args)


plan = typer.Typer(cls=_WithoutTables, rich_markup_mode="rich")


@plan.callback(invoke_without_command=True)
@with_options
def forecast(
    context: typer.Context,
    rows: Annotated[int | None, typer.Option(help="Number of records, or of persons.")] = None,
    epsilon: Annotated[float | None, typer.Option(**NUMBER, help="Privacy loss.")] = None,
    schema: Annotated[
        Path | None, typer.Option(help="Public description of the table: .yaml or .json.")
    ] = None,
    columns: Annotated[
        int | None, typer.Option(help="Instead of a schema: number of columns of a plain array.")
    ] = None,
    classes: Annotated[int, typer.Option(help="With --columns or --features: number of classes.", min=2)] = 2,
    delta: Delta = None,
    rate: Annotated[
        float | None,
        typer.Option(**NUMBER, help="Share of one of two classes, if public.", show_default="the schema's"),
    ] = None,
    model: ModelName = None,
    loss: LossName = None,
    kernel: KernelName = "linear",
    gamma: Gamma = "auto",
    neighbours: Neighbouring = "replace_one",
    parties: Annotated[
        Path | None,
        typer.Option(
            metavar="PLAN",
            help="Instead of all these: the plan of several holders. Shows what each gains over training alone.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also draw a figure: .svg, .png or .pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    force: Force = False,
    *,
    arrays: MapOptions,
) -> None:
    """Forecast how noisy a training would be, before any budget is spent.

    Estimates which share of a model's gain over a constant prediction privacy costs, and
    the AUC or R2 to expect; names the smallest number of records and the smallest epsilon
    that would help. Reads no data: a schema, or the number of columns, is enough.

    \b
    Example:
      privlearn plan --schema census.schema.yaml --rows 30000 --epsilon 1 --delta 1e-6
      privlearn plan --columns 20 --rows 5000 --epsilon 0.5 --delta 1e-6 --out plan.svg
      privlearn plan --parties plan.toml
    """
    if context.invoked_subcommand is not None:
        return
    if parties is not None:
        if any(each is not None for each in (rows, epsilon, schema, columns, arrays.features)):
            raise InvalidParameter("--parties names a plan with all numbers. Omit the other options.")
        _print_gains(parties, as_json)
        return
    if rows is None or epsilon is None:
        raise InvalidParameter("--rows or --epsilon is missing. Give --rows NUMBER --epsilon NUMBER.")
    from privlearn.estimators.by_name import make_estimator, model_for
    from privlearn.estimators.forecast.fit_forecast import plan as make_forecast

    settings: dict[str, Any] = {"epsilon": epsilon, "delta": require_delta(delta, epsilon)}
    settings |= {"neighbours": neighbours, "loss": loss}
    settings |= _row_settings(schema, columns, arrays, classes, model)
    name = model_for(settings.get("schema")) if model is None else model
    estimator = make_estimator(name, settings | {"kernel": kernel, "gamma": number_or_word(gamma)})
    with LateProgress("planning"):
        result = make_forecast(estimator, rows, columns, rate)
        if out is not None:
            _draw(result, out, force)
        text = json.dumps(result.to_dict(), indent=2) if as_json else str(result)
    if as_json:
        typer.echo(text)
        return
    for line in text.splitlines():
        output.print(Text(line, style=_STYLES.get(line.split(":")[0].lower(), "")), soft_wrap=True)
    if out is not None:
        typer.echo(f"Wrote {out}.")


@plan.command()
def check(plan: PlanFile) -> None:
    """Check a plan of several holders, offline, and show the fingerprint to compare by telephone.

    Prints what taking part costs, who could learn what, and the plan's fingerprint as
    twelve words of 16 bits each, which must be the same for all parties and the
    coordinator. Needs neither keys nor rows nor a network.

    \b
    Example:
      privlearn plan check plan.toml
    """
    from privlearn.parties.run.joint_evaluation import load_agreement

    for name, text in load_agreement(plan).summary().items():
        output.print(Text(f"{name:<12}{text}", style="bold" if name == "fingerprint" else ""), soft_wrap=True)


def _print_gains(parties: Path, as_json: bool) -> None:
    from privlearn.parties.run.gains import expected_gains
    from privlearn.parties.run.joint_training import JointTraining

    with LateProgress("planning"):
        gains = expected_gains(JointTraining.load(parties))
    typer.echo(json.dumps(gains.to_dict(), indent=2) if as_json else str(gains))


def _row_settings(
    schema: Path | None, columns: int | None, arrays: MapOptions, classes: int, model: str | None
) -> dict[str, Any]:
    """Return the estimator's settings that describe the rows."""
    if sum(each is not None for each in (schema, columns, arrays.features)) != 1:
        raise InvalidParameter(
            "describe the rows in one way. Give either --schema FILE, --columns NUMBER or --features MAP."
        )
    if arrays.features is None and (arrays.image_shape or arrays.value_range):
        raise InvalidParameter("--image-shape and --value-range are for --features scattering. Omit them.")
    if schema is not None:
        from privlearn.data.schema.schema import Schema

        return {"schema": Schema.load(schema)}
    declared = {"target_bounds": (-1.0, 1.0)} if model == "regression" else {"classes": list(range(classes))}
    described = {"norm_bound": 1.0} if arrays.features is None else {"features": arrays.feature_map()}
    return described | declared


def _draw(result: Plan, out: Path, force: bool) -> None:
    from privlearn.papers.study.figures import draw_forecast, kind_of_image
    from privlearn.release.archive import write_atomically

    kind = kind_of_image(out)
    check_writable(out, force)
    write_atomically(out, draw_forecast(result, kind))
