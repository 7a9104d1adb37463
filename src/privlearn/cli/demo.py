"""`privlearn demo`: the main task from start to end, on simulated people."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import Force
from privlearn.cli.terminal import print_table
from privlearn.errors import InvalidParameter, PrivlearnError

if TYPE_CHECKING:
    from privlearn.data.schema.schema import Schema

_EPSILONS = ("0.1", "0.3", "1", "3")
_DELTA = "1e-6"
_SEED = 2024  # of the simulated people, not of any noise
_ATTACKED_PEOPLE = 100  # each attacked model is trained on half of them


class _Files:
    """The files of the demonstration."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.table = directory / "census.csv"
        self.template = directory / "census.template.yaml"
        self.schema = directory / "census.schema.yaml"
        self.new_rows = directory / "new.csv"
        self.ledger = directory / "budgets.db"
        self.page = directory / "income.html"

    def model(self, epsilon: str) -> Path:
        return self.directory / f"income-{epsilon}.privlearn"

    def predictions(self, epsilon: str) -> Path:
        return self.directory / f"predictions-{epsilon}.csv"

    def all(self) -> list[Path]:
        paths = [self.table, self.template, self.schema, self.new_rows, self.ledger, self.page]
        for epsilon in (*_EPSILONS, "inf"):
            paths += [self.model(epsilon), self.predictions(epsilon)]
        return paths


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Directory for all files.")] = Path("demo-output"),
    rows: Annotated[int, typer.Option(help="Number of simulated people.", min=100)] = 30_000,
    force: Force = False,
) -> None:
    """Run every step on a simulated census, from a schema to a model that resists an attack.

    Needs no data and no network, and takes less than a minute.
    Every command is printed as you would type it.

    \b
    Example:
      privlearn demo --out demo-output
    """
    files = _Files(out)
    _start_over(files, force)
    schema, truth = _write_data(files, rows)
    _run(context, "schema", files.table, "--out", files.template)
    typer.echo(f"(The demo includes the completed schema: {files.schema})")
    _run(context, "budget", "create", "census", "--ledger", files.ledger, "--epsilon", "5", "--delta", "1e-5")
    for epsilon in _EPSILONS:
        _train_verify_predict(context, files, epsilon, quiet=epsilon != _EPSILONS[0])
    _train_plain(context, files)
    _run(context, "inspect", files.model("3"), "--out", files.page, quiet=True)
    _run(context, "budget", "--ledger", files.ledger)
    _print_errors(files, schema, truth)
    _attack(schema)
    typer.secho("\nWhat you have now", bold=True)
    typer.echo(_SUMMARY.format(directory=files.directory, model=files.model("1"), page=files.page))


_SUMMARY = """\
{model} is a model that you may share with anyone. Even someone who knows all
other records finds no statement about a person more than 2.7 times as likely as if that person's
record had been different, except with probability one in a million (delta); `privlearn verify`
recomputes this from the file. Open
{page} to see which effects the model learnt at epsilon 3, and which are hidden by noise.
{directory}/budgets.db has recorded the total cost of the private models: 4.4 of the allowed 5.
A training that costs more than the rest is refused.

Next: privlearn schema YOUR.csv > your.schema.yaml"""


def _attack(schema: Schema) -> None:
    """Run a membership attack ("was this person in the data?") on small models, which memorise people easily.

    Prints its success with and without privacy.
    """
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from privlearn.audit.membership import advantage_ceiling, membership_attack
    from privlearn.data.datasets import simulated_census
    from privlearn.data.encoding.encoder import SchemaEncoder
    from privlearn.estimators.classifiers import PrivateLogisticRegression
    from privlearn.guarantee import Guarantee

    people = simulated_census(_ATTACKED_PEOPLE, _SEED + 2)
    rows, income = np.asarray(SchemaEncoder(schema).encode(people)), np.array(people["income"].to_pylist())
    guarantee = Guarantee(1.0, float(_DELTA))

    def private(seed: int) -> PrivateLogisticRegression:
        return PrivateLogisticRegression(
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            norm_bound=1.0,
            classes=["low", "high"],
            random_state=seed,
        )

    kinds: list[tuple[str, Any, str]] = [
        ("without privacy", lambda seed: LogisticRegression(C=100.0), "anything"),
        ("epsilon 1", private, f"{advantage_ceiling(guarantee):.0%}"),
    ]
    cells = []
    for name, make, allowed in kinds:
        result = membership_attack(make, rows, income, shadows=64, attacked=32, seed=_SEED)
        cells.append((name, f"{result.advantage:.1%} ± {2 * result.standard_error:.1%}", allowed))
    headings = ("model of 50 people", "better than guessing by", "the guarantee allows")
    print_table(headings, cells, title="An attack: was this person in the data?", right=headings)
    typer.echo("The attacker trains 64 models of such people, and knows the record and all coefficients.")


def _start_over(files: _Files, force: bool) -> None:
    """Remove the files of an earlier demonstration if --force is given, and nothing else."""
    existing = [path for path in files.all() if path.exists()]
    if existing and not force:
        raise InvalidParameter(
            f"{existing[0]} exists. Give --force to replace an earlier demo, or another --out."
        )
    for path in existing:
        path.unlink()
    files.directory.mkdir(parents=True, exist_ok=True)


def _write_data(files: _Files, rows: int) -> tuple[Schema, object]:
    """Write the census, its schema, and new people without their income; return the schema and that income."""
    from privlearn.data.datasets import census_schema, simulated_census
    from privlearn.data.sources.files import write_table

    typer.echo(f"Writing a census of {rows} simulated people to {files.table}.")
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
    """Train a model without privacy, for comparison."""
    model = files.model("inf")
    options = ("--schema", files.schema, "--epsilon", "inf", "--out", model)
    _run(context, "train", files.table, *options, quiet=True)
    _run(context, "predict", model, files.new_rows, "--out", files.predictions("inf"), quiet=True)


def _run(context: typer.Context, *arguments: object, quiet: bool = False) -> None:
    """Print a command as you would type it, and run it."""
    words = [str(argument) for argument in arguments]
    typer.secho(f"\n$ privlearn {shlex.join(words)}", bold=True)
    with contextlib.redirect_stdout(io.StringIO()) if quiet else contextlib.nullcontext():
        code = context.find_root().command.main(words, prog_name="privlearn", standalone_mode=False)
    if code:
        raise PrivlearnError(f"privlearn {words[0]} ended with code {code}")


def _print_errors(files: _Files, schema: Schema, truth: object) -> None:
    from privlearn.data.sources.files import read_table
    from privlearn.papers.study.comparison import error_rate

    def error(epsilon: str) -> float:
        return error_rate(schema, truth, read_table(files.predictions(epsilon))["prediction"])

    headings = ("epsilon", "private model", "plain model")
    rows = [(epsilon, f"{error(epsilon):.3f}", f"{error('inf'):.3f}") for epsilon in _EPSILONS]
    print_table(headings, rows, title="Error on new people", right=headings)
