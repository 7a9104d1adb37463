"""The command line: one file per command, or per group of commands that belong together.

Commands parse their options, call the library, and print. They import what they need when they run, so that --help is
fast. May import everything. Start with `options.py` (shared options, the number parser), `charging.py` (ledgers) and
`terminal.py` (tables, progress, errors); `split.py` is a short complete command.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

from privlearn._version import __version__
from privlearn.cli.ask import ask
from privlearn.cli.audit import audit
from privlearn.cli.budget import budget
from privlearn.cli.charging import with_options
from privlearn.cli.demo import demo
from privlearn.cli.effects import curvature, explain
from privlearn.cli.estimate import estimate
from privlearn.cli.inspect import inspect
from privlearn.cli.keys import keys
from privlearn.cli.log import log
from privlearn.cli.measure import describe, evaluate, threshold
from privlearn.cli.plan import plan
from privlearn.cli.predict import predict
from privlearn.cli.refine import refine, regress
from privlearn.cli.report import export, report
from privlearn.cli.schema import check, discover, schema
from privlearn.cli.serve import restored, serve, upgrade
from privlearn.cli.several_holders import coordinate, identity, party, simulate
from privlearn.cli.split import split
from privlearn.cli.studies import bounds, compare, reproduce
from privlearn.cli.terminal import end_on_sigterm, explain_errors
from privlearn.cli.train.train import train
from privlearn.cli.verify import verify
from privlearn.errors import NothingRecorded
from privlearn.imports import load_extensions

__all__ = ["main"]

# Pretty tracebacks are off: the local variables they show hold private rows.
app = typer.Typer(
    name="privlearn",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    suggest_commands=False,  # click suggests too, and the suggestion would be printed twice
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"privlearn {__version__}")
        raise typer.Exit


@app.callback()
def introduce(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    extension: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE",
            help="A module that registers losses, kernels, relations or mechanisms; may be repeated.",
        ),
    ] = None,
) -> None:
    """Train on private records and release only differentially private results.

    Start with: privlearn demo

    \b
    Exit codes:
      0  success
      1  refused because of the data, the ledger or the release
      2  wrong command line
      3  (verify) the release is consistent, but not private
    """
    load_extensions(extension or ())


for command in (
    schema, check, discover, describe, estimate, split, train, predict, export, report, explain, evaluate,
    threshold, curvature, verify, inspect, refine, regress, audit, upgrade, restored, identity, coordinate,
    party, simulate, compare, bounds, reproduce, serve, demo,
):  # fmt: skip
    app.command()(with_options(command))
app.add_typer(plan, name="plan")
app.add_typer(budget, name="budget")
app.add_typer(ask, name="ask")
app.add_typer(keys, name="keys")
app.add_typer(log, name="log")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; ``arguments`` default to those of the process."""
    warnings.simplefilter("ignore", NothingRecorded)  # the commands print their own reminder
    end_on_sigterm()
    with explain_errors():
        app(args=None if arguments is None else list(arguments), prog_name="privlearn")
