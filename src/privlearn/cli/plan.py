"""`privlearn plan`: will the signal survive the noise, and is it worth it for me? Asked before any budget is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from privlearn.cli.options import (
    NUMBER,
    Force,
    Gamma,
    KernelName,
    LossName,
    ModelName,
    Neighbouring,
    PlanFile,
    check_writable,
    number_or_word,
)
from privlearn.cli.terminal import LateProgress, output
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.planning.planner import Plan

_STYLES = {"clear": "bold green", "noisy": "bold yellow", "drowned": "bold red", "weak": "bold red"}


class _WithoutTables(TyperGroup):
    """Whoever gives a table to `plan` is told that it needs none."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None:
            raise InvalidParameter(
                f"plan reads no table, so leave out {args[0]!r}: describe the rows with --schema FILE --rows NUMBER "
                "--epsilon NUMBER (privlearn schema makes a schema of a table; privlearn plan check reads the plan of "
                "several holders)"
            )
        return super().resolve_command(ctx, args)


plan = typer.Typer(cls=_WithoutTables, rich_markup_mode="rich")


@plan.callback(invoke_without_command=True)
def forecast(
    context: typer.Context,
    rows: Annotated[
        int | None, typer.Option(help="Records to train on, or persons.", show_default=False)
    ] = None,
    epsilon: Annotated[float | None, typer.Option(**NUMBER, help="Privacy loss.", show_default=False)] = None,
    schema: Annotated[
        Path | None,
        typer.Option(help="What is public about the table: .yaml or .json.", show_default=False),
    ] = None,
    columns: Annotated[
        int | None,
        typer.Option(help="Instead of a schema: columns of numbers in a plain array.", show_default=False),
    ] = None,
    classes: Annotated[int, typer.Option(help="With --columns: number of classes.", min=2)] = 2,
    delta: Annotated[float, typer.Option(**NUMBER, help="Above 0 (say 1e-6) it buys Gaussian noise.")] = 0.0,
    model: ModelName = None,
    loss: LossName = None,
    kernel: KernelName = "linear",
    gamma: Gamma = "auto",
    neighbours: Neighbouring = "replace_one",
    parties: Annotated[
        Path | None,
        typer.Option(
            metavar="PLAN",
            help="Instead of all these: the plan of several holders. Tells what each gains over training alone.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also draw: .svg, .png or .pdf.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    force: Force = False,
) -> None:
    """Tell what training would be worth, before any budget is spent.

    Compares the noise in a prediction with the size of typical margins, warns of a
    signal that would drown, and names the smallest number of records and the smallest
    epsilon that would help. Reads no data: the schema, or the number of columns, is enough.

    \b
    Example:
      privlearn plan --schema census.schema.yaml --rows 30000 --epsilon 1 --delta 1e-6
      privlearn plan --columns 20 --rows 5000 --epsilon 0.5 --delta 1e-6 --out plan.svg
      privlearn plan --parties plan.toml
    """
    if context.invoked_subcommand is not None:
        return
    if parties is not None:
        if rows is not None or epsilon is not None or schema is not None or columns is not None:
            raise InvalidParameter("the parties' plan says it all: give --parties alone")
        _tell_gains(parties, as_json)
        return
    if rows is None or epsilon is None:
        raise InvalidParameter("say how many records and how much privacy: --rows NUMBER --epsilon NUMBER")
    from privlearn.estimators.by_name import make_estimator, model_for
    from privlearn.planning.planner import plan as make_plan

    settings: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "loss": loss}
    settings |= _described(schema, columns, classes, model)
    chosen = model_for(settings.get("schema")) if model is None else model
    estimator = make_estimator(chosen, settings | {"kernel": kernel, "gamma": number_or_word(gamma)})
    with LateProgress("planning"):
        made = make_plan(estimator, rows, columns)
        if out is not None:
            _draw(made, out, force)
        told = json.dumps(made.to_dict(), indent=2) if as_json else str(made)
    if as_json:
        typer.echo(told)
        return
    for line in told.splitlines():
        output.print(Text(line, style=_STYLES.get(line.split(":")[0].lower(), "")), soft_wrap=True)
    if out is not None:
        typer.echo(f"Wrote {out}.")


@plan.command()
def check(plan: PlanFile) -> None:
    """Check a plan of several holders, offline, and show what to compare by telephone.

    Says what taking part costs, who could learn what, and the plan's fingerprint in
    eight made-up words of 16 bits each: all parties and the coordinator must read the same
    ones to each other. Needs neither keys nor rows, and connects to nobody.

    \b
    Example:
      privlearn plan check plan.toml
    """
    from privlearn.evaluation.together import load_plan
    from privlearn.multiparty.run.checked_plan import checked

    for name, fact in checked(load_plan(plan)).items():
        output.print(Text(f"{name:<12}{fact}", style="bold" if name == "fingerprint" else ""), soft_wrap=True)


def _tell_gains(parties: Path, as_json: bool) -> None:
    from privlearn.multiparty.run.gains import expected_gains
    from privlearn.multiparty.run.plan import MultipartyPlan

    agreed = MultipartyPlan.load(parties)
    with LateProgress("planning"):
        gains = expected_gains(agreed)
    typer.echo(json.dumps(gains.to_dict(), indent=2) if as_json else str(gains))


def _described(schema: Path | None, columns: int | None, classes: int, model: str | None) -> dict[str, Any]:
    """What the estimator is told about the rows."""
    if (schema is None) == (columns is None):
        raise InvalidParameter("describe the rows in one way: --schema FILE, or --columns NUMBER")
    if schema is not None:
        from privlearn.data.schema.schema import Schema

        return {"schema": Schema.load(schema)}
    declared = {"target_bounds": (-1.0, 1.0)} if model == "regression" else {"classes": list(range(classes))}
    return {"norm_bound": 1.0, **declared}


def _draw(made: Plan, out: Path, force: bool) -> None:
    from privlearn.release.files import write_atomically
    from privlearn.study.drawing import kind_of_image
    from privlearn.study.plan_figure import draw_plan

    kind = kind_of_image(out)
    check_writable(out, force)
    write_atomically(out, draw_plan(made, kind))
