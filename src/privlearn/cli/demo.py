"""`privlearn demo`: the main job in one go, on people who do not exist."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
_ATTACKED = 100  # people, of whom each attacked model has learnt from half


class _Files:
    """Where the demonstration puts things."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = folder / "census.csv"
        self.template = folder / "census.template.yaml"
        self.schema = folder / "census.schema.yaml"
        self.new_rows = folder / "new.csv"
        self.ledger = folder / "budgets.db"
        self.page = folder / "income.html"

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
    """Show the whole path on a simulated census, from a schema to a model that is read, and attacked in vain.

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
    _run(context, "inspect", files.model("3"), "--out", files.page, quiet=True)
    _run(context, "budget", "--ledger", files.ledger)
    _print_errors(files, schema, truth)
    _attack(schema)
    typer.secho("\nWhat you now hold", bold=True)
    typer.echo(_HOLD.format(folder=files.folder, model=files.model("1"), page=files.page))


_HOLD = """\
{model} is a model that you may give to anybody. Whoever has it, and even
everybody else's record, finds nothing about a person more than 2.7 times likelier than if that
person's record had been another, but for one chance in a million (delta); `privlearn verify`
recomputes this from the file. Open
{page} to see what it learnt at epsilon 3, and what it could not tell from noise.
{folder}/budgets.db has written down what the private models cost together: 4.4 of the 5 that were
allowed, and a training that asks for more than the rest is refused.

Next: privlearn schema YOUR.csv > your.schema.yaml"""


def _attack(schema: Schema) -> None:
    """Whoever has a model asks: was this person in the data? Small models, which learn people by heart if they can."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from privlearn.audit.membership import advantage_ceiling, membership_attack
    from privlearn.data.datasets import simulated_census
    from privlearn.data.encode.encoder import SchemaEncoder
    from privlearn.estimators.linear import PrivateLogisticRegression
    from privlearn.guarantee import Guarantee

    people = simulated_census(_ATTACKED, _SEED + 2)
    rows, income = np.asarray(SchemaEncoder(schema).encode(people)), np.array(people["income"].to_pylist())
    promise = Guarantee(1.0, float(_DELTA))

    def private(seed: int) -> PrivateLogisticRegression:
        return PrivateLogisticRegression(
            epsilon=promise.epsilon,
            delta=promise.delta,
            norm_bound=1.0,
            classes=["low", "high"],
            random_state=seed,
        )

    table = Table(title="An attack: was this person in the data?", title_justify="left")
    for heading in ("model of 50 people", "better than guessing by", "the promise allows"):
        table.add_column(heading, justify="right")
    kinds: list[tuple[str, Any, str]] = [
        ("without privacy", lambda seed: LogisticRegression(C=100.0), "anything"),
        ("epsilon 1", private, f"{advantage_ceiling(promise):.0%}"),
    ]
    for name, make, allowed in kinds:
        found = membership_attack(make, rows, income, shadows=64, attacked=32, seed=_SEED)
        table.add_row(name, f"{found.advantage:.1%} ± {2 * found.standard_error:.1%}", allowed)
    output.print(table)
    typer.echo(
        "The attacker trains 64 models of such people, knows the record, and the model's every coefficient."
    )


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
