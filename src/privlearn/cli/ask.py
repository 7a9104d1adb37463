"""`privlearn ask`: the service's verbs from the shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.asking import Asking, asking, client_of
from privlearn.cli.options import Force, check_writable
from privlearn.cli.terminal import LateProgress

if TYPE_CHECKING:
    import pyarrow as pa

ask = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

DataSetName = Annotated[
    str, typer.Argument(metavar="DATASET", help="Its name on the server.", show_default=False)
]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.", show_default=False)]
Epsilon = Annotated[float, typer.Option(help="What it may cost.", show_default=False)]
Delta = Annotated[float, typer.Option(help="Delta of that cost.")]
Learner = Annotated[str | None, typer.Option(help="One of those on offer.", show_default="the first")]
Points = Annotated[
    Path | None,
    typer.Option(
        help="Public points that you bring: .csv or .parquet. They are in the release.", show_default=False
    ),
]
Trial = Annotated[bool, typer.Option("--trial", help="On made-up rows, for nothing: to try the call.")]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        help="Any text of yours: the same request with the same text is paid once. Give it to be able to come back.",
        show_default="a new one",
    ),
]
OutCsv = Annotated[
    Path | None,
    typer.Option("--out", help="Write to this .csv file instead of the terminal.", show_default=False),
]


@ask.callback()
def describe(
    context: typer.Context,
    server: Annotated[
        str, typer.Option(envvar="PRIVLEARN_SERVER", metavar="URL", help="The server's address.")
    ] = "http://127.0.0.1:8383",
    key_file: Annotated[
        Path | None,
        typer.Option(
            help="A file that holds your key, and that only you may read.", show_default="$PRIVLEARN_KEY"
        ),
    ] = None,
    ca: Annotated[
        Path | None, typer.Option(help="Certificate (PEM) of a private authority.", show_default=False)
    ] = None,
    plain_http: Annotated[
        bool,
        typer.Option("--plain-http", help="Allow http:// to another machine, if something else encrypts it."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")] = False,
) -> None:
    """Ask a server that `privlearn serve` runs: predictions, models, what is left of the budget.

    Your key is in the environment (PRIVLEARN_KEY) or in a file, never on the command line, where others could see it.

    \b
    Example:
      export PRIVLEARN_KEY=pl_...
      privlearn ask --server https://learner.example datasets
    """
    context.obj = Asking(server, key_file, ca, plain_http, as_json)


@ask.command()
def datasets(context: typer.Context) -> None:
    """List the data sets that your key may ask about.

    \b
    Example:
      privlearn ask datasets
    """
    asked = asking(context)
    asked.show_list(
        client_of(context).datasets(),
        ("name", "records", "learners", "budget"),
        "There is no data set for this key.",
    )


@ask.command()
def dataset(context: typer.Context, name: DataSetName) -> None:
    """Show a data set's public side, as YAML: its schema, number of records, learners.

    \b
    Example:
      privlearn ask dataset census
    """
    import yaml

    asked = asking(context)
    record = client_of(context).dataset(name)
    asked.show(record, [yaml.safe_dump(record, sort_keys=False, allow_unicode=True).rstrip()])


@ask.command()
def budget(context: typer.Context, name: DataSetName) -> None:
    """Show what is spent, reserved and left, of the whole and of your share.

    \b
    Example:
      privlearn ask budget census
    """
    asked = asking(context)
    record = client_of(context).budget(name)
    asked.show(record, _balance(name, record))


@ask.command()
def estimate(
    context: typer.Context, name: DataSetName, epsilon: Epsilon, delta: Delta = 0.0, learner: Learner = None
) -> None:
    """Tell what a training would cost and how noisy it would be. Free.

    \b
    Example:
      privlearn ask estimate census --epsilon 0.5 --delta 1e-6
    """
    asked = asking(context)
    record = client_of(context).estimate(name, epsilon=epsilon, delta=delta, learner=learner)
    shown = {key: value for key, value in record.items() if not isinstance(value, list)}  # not the curve
    asked.show(record, [f"{key.replace('_', ' ')}: {_in_words(value)}" for key, value in shown.items()])


@ask.command()
def synthetic(
    context: typer.Context,
    name: DataSetName,
    rows: Annotated[int, typer.Option(min=1, help="How many.")] = 100,
    seed: Annotated[int | None, typer.Option(help="For the same rows again.", show_default=False)] = None,
    out: OutCsv = None,
    force: Force = False,
) -> None:
    """Draw rows from the schema alone, as CSV: about nobody, free, for trying things.

    \b
    Example:
      privlearn ask synthetic census --rows 500 --out made-up.csv
    """
    _refuse_taken(out, force)
    _write(client_of(context).synthetic(name, rows, seed), out, "made-up rows")


@ask.command()
def release(
    context: typer.Context,
    name: DataSetName,
    epsilon: Epsilon,
    out: Annotated[Path, typer.Option(help="The release file to write.", show_default=False)],
    delta: Delta = 0.0,
    learner: Learner = None,
    points: Points = None,
    trial: Trial = False,
    idempotency_key: IdempotencyKey = None,
    force: Force = False,
) -> None:
    """Train, wait, and fetch the released model, verified. Costs epsilon and delta.

    \b
    Example:
      privlearn ask release census --epsilon 0.5 --delta 1e-6 --out income.privlearn
      privlearn ask release census --epsilon 0.5 --points public.csv --out income.privlearn
    """
    check_writable(out, force)
    brought = _read_points(points)
    with LateProgress("asking") as progress:
        made = client_of(context).release(
            name, epsilon=epsilon, delta=delta, learner=learner, public_points=brought, trial=trial,
            idempotency_key=idempotency_key, progress=progress.describe,
        )  # fmt: skip
    made.save(out)
    typer.echo(
        f"Wrote {out}: {made.certificate.guarantee}." + (" A trial: on made-up rows." if trial else "")
    )
    typer.echo(f"Next: privlearn predict {out} FILE")


@ask.command()
def session(
    context: typer.Context,
    name: DataSetName,
    epsilon: Epsilon,
    delta: Delta = 0.0,
    learner: Learner = None,
    mechanism: Annotated[
        str, typer.Option(help="model (any number of answers), function_release or pinp.")
    ] = "model",
    points: Points = None,
    trial: Trial = False,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Train, wait, and open a session that answers under one promise. Costs epsilon and delta, once.

    \b
    Example:
      privlearn ask session census --epsilon 0.5 --delta 1e-6
    """
    asked = asking(context)
    brought = _read_points(points)
    with LateProgress("asking") as progress:
        opened = client_of(context).open_session(
            name, epsilon=epsilon, delta=delta, learner=learner, mechanism=mechanism, public_points=brought,
            trial=trial, idempotency_key=idempotency_key, progress=progress.describe,
        )  # fmt: skip
    about = f"Session {opened.id} is open: {opened.guarantee}." + (
        " A trial: on made-up rows." if trial else ""
    )
    asked.show(opened.record, [about, f"Next: privlearn ask predict {opened.id} FILE"])


@ask.command()
def predict(
    context: typer.Context,
    session: SessionId,
    table: Annotated[
        Path, typer.Argument(metavar="FILE", help="The rows: .csv, .csv.gz or .parquet.", show_default=False)
    ],
    out: OutCsv = None,
    scores: Annotated[bool, typer.Option("--scores", help="Add scores and where answers come from.")] = False,
    force: Force = False,
) -> None:
    """Ask a session about each row of a table; the answers come as CSV. Costs nothing more.

    \b
    Example:
      privlearn ask predict 5f0c21b7a9d3e864 new.csv --out predictions.csv
    """
    from privlearn.data import read_table

    _refuse_taken(out, force)
    opened = client_of(context).session(session)
    rows = read_table(table)
    with LateProgress(f"asking about {rows.num_rows} rows"):
        answers = opened.decide(rows)
    _write(answers if scores else answers.select(["prediction"]), out, "predictions")


@ask.command()
def sessions(context: typer.Context) -> None:
    """List your sessions.

    \b
    Example:
      privlearn ask sessions
    """
    asked = asking(context)
    columns = ("id", "dataset", "mechanism", "guarantee", "state", "trial", "created")
    asked.show_list(client_of(context).sessions(), columns, "There are no sessions.")


@ask.command()
def certificate(
    context: typer.Context,
    session: SessionId,
    out: Annotated[Path, typer.Option(help="The .json file to write.", show_default=False)],
    force: Force = False,
) -> None:
    """Fetch a session's certificate, from which anybody can recompute its promise.

    \b
    Example:
      privlearn ask certificate 5f0c21b7a9d3e864 --out session.json
    """
    import json

    from privlearn.release.atomic import write_atomically

    check_writable(out, force)
    fetched = client_of(context).session(session).certificate
    write_atomically(out, (json.dumps(fetched.to_dict(), indent=1) + "\n").encode())
    typer.echo(f"Wrote {out}: {fetched.guarantee}.")


@ask.command()
def close(context: typer.Context, session: SessionId) -> None:
    """End a session, for good. Its cost stays spent.

    \b
    Example:
      privlearn ask close 5f0c21b7a9d3e864
    """
    client_of(context).session(session).close()
    typer.echo(f"Session {session} is closed.")


@ask.command()
def releases(context: typer.Context) -> None:
    """List the models that were released to you.

    \b
    Example:
      privlearn ask releases
    """
    asked = asking(context)
    columns = ("id", "dataset", "learner", "guarantee", "trial", "created")
    asked.show_list(client_of(context).releases(), columns, "There are no releases.")


@ask.command()
def download(
    context: typer.Context,
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The release's id.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The release file to write.", show_default=False)],
    force: Force = False,
) -> None:
    """Fetch a released model, verified.

    \b
    Example:
      privlearn ask download 5f0c21b7a9d3e864 --out income.privlearn
    """
    check_writable(out, force)
    fetched = client_of(context).download(release)
    fetched.save(out)
    typer.echo(f"Wrote {out}: {fetched.certificate.guarantee}.")


@ask.command()
def jobs(context: typer.Context) -> None:
    """List your trainings, running and past.

    \b
    Example:
      privlearn ask jobs
    """
    asked = asking(context)
    columns = ("id", "dataset", "kind", "guarantee", "state", "trial", "created")
    asked.show_list(client_of(context).jobs(), columns, "There are no trainings.")


@ask.command()
def events(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 100,
) -> None:
    """Show the audit log. For the holder's key.

    \b
    Example:
      privlearn ask events --limit 20
    """
    asked = asking(context)
    asked.show_list(
        client_of(context).events(limit), ("time", "actor", "action", "dataset", "details"), "Nothing yet."
    )


def _balance(name: str, record: dict[str, Any]) -> list[str]:
    whole = [f"{name}: {_amounts(record)}"]
    share = record.get("share")
    return whole + ([f"your share: {_amounts(share)}"] if share else [])


def _amounts(record: dict[str, Any]) -> str:
    parts = ("total", "spent", "reserved", "left")
    return "; ".join(
        f"{part} epsilon {record[part]['epsilon']:g}, delta {record[part]['delta']:g}" for part in parts
    )


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(part)}" for name, part in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _read_points(path: Path | None) -> pa.Table | None:
    from privlearn.data import read_table

    return None if path is None else read_table(path)


def _refuse_taken(out: Path | None, force: bool) -> None:
    if out is not None:
        check_writable(out, force)


def _write(table: pa.Table, out: Path | None, what: str) -> None:
    import io
    import sys

    import pyarrow.csv as arrow_csv

    from privlearn.release.atomic import write_atomically

    text = io.BytesIO()
    arrow_csv.write_csv(table, text)
    if out is None:
        sys.stdout.buffer.write(text.getvalue())
        sys.stdout.flush()
        return
    write_atomically(out, text.getvalue())
    typer.echo(f"Wrote {out}: {table.num_rows} {what}.")
