"""`privlearn ask`: what there is, what is left, what it would cost. All of it is free."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from privlearn.cli.ask.caller import (
    DataSetName,
    Delta,
    Epsilon,
    Learner,
    OutCsv,
    asking,
    check_out,
    client_of,
    write_csv,
)
from privlearn.cli.options import Force


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


def budget(context: typer.Context, name: DataSetName) -> None:
    """Show what is spent, reserved and left, of the whole and of your share.

    \b
    Example:
      privlearn ask budget census
    """
    asked = asking(context)
    record = client_of(context).budget(name)
    asked.show(record, _balance(name, record))


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
    check_out(out, force)
    write_csv(client_of(context).synthetic(name, rows, seed), out, "made-up rows")


def kinds(context: typer.Context) -> None:
    """List the kinds of job that the server does, and what each is asked with.

    \b
    Example:
      privlearn ask kinds
    """
    asked = asking(context)
    records = client_of(context).kinds()
    shown = [record | {"fields": ", ".join(record["fields"]["properties"])} for record in records]
    asked.show_list(records if asked.as_json else shown, ("name", "about", "fields"), "There are no kinds.")


def jobs(context: typer.Context) -> None:
    """List your trainings, running and past.

    \b
    Example:
      privlearn ask jobs
    """
    asked = asking(context)
    columns = ("id", "dataset", "kind", "guarantee", "state", "trial", "created")
    asked.show_list(client_of(context).jobs(), columns, "There are no trainings.")


def cancel(
    context: typer.Context,
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="Its id, as `jobs` shows it.", show_default=False)
    ],
) -> None:
    """End a job that waits or runs. What it had reserved stays spent.

    \b
    Example:
      privlearn ask cancel 5f0c21b7a9d3e864
    """
    ended = client_of(context).cancel(job)
    typer.echo(f"Job {job} has ended: {ended['failure']}.")


def events(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 100,
) -> None:
    """Show the audit log. For the holder's or an auditor's key.

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


VERBS = (datasets, dataset, budget, estimate, synthetic, kinds, jobs, cancel, events)
