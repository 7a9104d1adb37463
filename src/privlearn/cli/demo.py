"""`privlearn demo`: the main job in one go, on people who do not exist."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from privlearn.cli.options import Force
from privlearn.cli.terminal import output
from privlearn.errors import InvalidParameter, PrivlearnError

if TYPE_CHECKING:
    from privlearn.data.schema.schema import Schema

_EPSILONS = ("0.1", "0.3", "1", "3")
_DELTA = "1e-6"
_SEED = 2024  # of the simulated people, not of any noise


class _Files:
    """Where the demonstration puts things."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = folder / "census.csv"
        self.template = folder / "census.template.yaml"
        self.schema = folder / "census.schema.yaml"
        self.new_rows = folder / "new.csv"
        self.ledger = folder / "budgets.db"
        self.page = folder / "compare.html"

    def model(self, epsilon: str) -> Path:
        return self.folder / f"income-{epsilon}.privlearn"

    def predictions(self, epsilon: str) -> Path:
        return self.folder / f"predictions-{epsilon}.csv"

    def all(self) -> list[Path]:
        written = [self.table, self.template, self.schema, self.new_rows, self.ledger, self.page]
        for epsilon in (*_EPSILONS, "inf"):
            written += [self.model(epsilon), self.predictions(epsilon)]
        return written


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for everything it writes.")] = Path("demo-output"),
    rows: Annotated[int, typer.Option(help="Number of simulated people.", min=100)] = 30_000,
    force: Force = False,
) -> None:
    """Show the whole path on a simulated census, from schema to comparison.

    Needs no data and no network, and less than a minute.
    Every command is printed as you would type it.

    \b
    Example:
      privlearn demo --out demo-output
    """
    files = _Files(out)
    _start_over(files, force)
    schema, truth = _write_data(files, rows)
    _run(context, "schema", files.table, "--out", files.template)
    typer.echo(f"(The demo brings the filled-in schema: {files.schema})")
    _run(context, "budget", "create", "census", "--ledger", files.ledger, "--epsilon", "5", "--delta", "1e-5")
    for epsilon in _EPSILONS:
        _train_verify_predict(context, files, epsilon, quiet=epsilon != _EPSILONS[0])
    _train_plain(context, files)
    _run(context, "compare", files.table, "--schema", files.schema, "--seeds", "2", "--out", files.page)
    _run(context, "budget", "--ledger", files.ledger)
    _print_errors(files, schema, truth)
    typer.echo(f"Open {files.page} in a browser. Next, type:")
    typer.echo(f"  privlearn inspect {files.model('1')}")
    typer.echo("  privlearn schema YOUR.csv > your.schema.yaml")


def _start_over(files: _Files, force: bool) -> None:
    """Remove an earlier demonstration's files, if asked to; nothing else in the folder."""
    left = [path for path in files.all() if path.exists()]
    if left and not force:
        raise InvalidParameter(f"{left[0]} exists: give --force to replace an earlier demo, or another --out")
    for path in left:
        path.unlink()
    files.folder.mkdir(parents=True, exist_ok=True)


def _write_data(files: _Files, rows: int) -> tuple[Schema, object]:
    """The census, its schema, and new people whose income is kept back to measure errors."""
    from privlearn.data.datasets import census_schema, simulated_census
    from privlearn.data.sources.files import write_table

    typer.echo(f"A census of {rows} people who do not exist goes into {files.table}.")
    schema = census_schema()
    new_people = simulated_census(max(rows // 3, 100), _SEED + 1)
    write_table(simulated_census(rows, _SEED), files.table)
    write_table(new_people.drop_columns(["income"]), files.new_rows)
    schema.save(files.schema)
    return schema, new_people["income"]


def _train_verify_predict(context: typer.Context, files: _Files, epsilon: str, quiet: bool) -> None:
    model = files.model(epsilon)
    charged = ("--epsilon", epsilon, "--delta", _DELTA, "--ledger", files.ledger)
    _run(context, "train", files.table, "--schema", files.schema, *charged, "--out", model, quiet=quiet)
    _run(context, "verify", model, quiet=quiet)
    _run(context, "predict", model, files.new_rows, "--out", files.predictions(epsilon), quiet=quiet)


def _train_plain(context: typer.Context, files: _Files) -> None:
    """The model without privacy, to compare with."""
    model = files.model("inf")
    _run(
        context,
        "train",
        files.table,
        "--schema",
        files.schema,
        "--epsilon",
        "inf",
        "--out",
        model,
        quiet=True,
    )
    _run(context, "predict", model, files.new_rows, "--out", files.predictions("inf"), quiet=True)


def _run(context: typer.Context, *arguments: object, quiet: bool = False) -> None:
    """Print a command as one would type it, and run just that."""
    words = [str(argument) for argument in arguments]
    typer.secho(f"\n$ privlearn {shlex.join(words)}", bold=True)
    with contextlib.redirect_stdout(io.StringIO()) if quiet else contextlib.nullcontext():
        code = context.find_root().command.main(words, prog_name="privlearn", standalone_mode=False)
    if code:
        raise PrivlearnError(f"privlearn {words[0]} ended with code {code}")


def _print_errors(files: _Files, schema: Schema, truth: object) -> None:
    from privlearn.data.sources.files import read_table
    from privlearn.study.comparison import error_rate

    def error(epsilon: str) -> float:
        return error_rate(schema, truth, read_table(files.predictions(epsilon))["prediction"])

    table = Table(title="Error on new people", title_justify="left")
    for heading in ("epsilon", "private model", "plain model"):
        table.add_column(heading, justify="right")
    for epsilon in _EPSILONS:
        table.add_row(epsilon, f"{error(epsilon):.3f}", f"{error('inf'):.3f}")
    output.print(table)
