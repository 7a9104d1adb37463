"""`privlearn ask`: requests that cost nothing, from the list of data sets to approvals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer

from privlearn.cli.ask.caller import (
    DataSetName,
    Delta,
    Epsilon,
    Learner,
    OutCsv,
    client_of,
    options_of,
    show,
    show_list,
    write_csv,
)
from privlearn.cli.options import Force, check_writable
from privlearn.cli.terminal import LateProgress


def datasets(context: typer.Context) -> None:
    """List the data sets that your key gives access to.

    \b
    Example:
      privlearn ask datasets
    """
    columns = ("name", "records", "learners", "budget")
    show_list(context, client_of(context).datasets(), columns, "This key gives access to no data set.")


def dataset(context: typer.Context, name: DataSetName) -> None:
    """Show the public description of a data set, as YAML: schema, number of records, learners.

    \b
    Example:
      privlearn ask dataset census
    """
    import yaml

    record = client_of(context).dataset(name)
    show(context, record, [yaml.safe_dump(record, sort_keys=False, allow_unicode=True).rstrip()])


def budget(context: typer.Context, name: DataSetName) -> None:
    """Show what is spent, reserved and left, of the whole and of your share.

    \b
    Example:
      privlearn ask budget census
    """
    record = client_of(context).budget(name)
    show(context, record, _balance(name, record))


def estimate(
    context: typer.Context, name: DataSetName, epsilon: Epsilon, delta: Delta = 0.0, learner: Learner = None
) -> None:
    """Estimate what a training would cost and how noisy its result would be. Free.

    \b
    Example:
      privlearn ask estimate census --epsilon 0.5 --delta 1e-6
    """
    with LateProgress("estimating"):
        record = client_of(context).estimate(name, epsilon=epsilon, delta=delta, learner=learner)
    show(context, record, _describe_estimate(record))


def _describe_estimate(record: dict[str, Any]) -> Iterator[str]:
    """Yield what an estimate means, in words; numbers that a kind of job does not have are left out."""
    costs = record["guarantee"]
    features = f", {record['features']:,} features" if record.get("features") else ""
    yield f"costs epsilon {costs['epsilon']:g}, delta {costs['delta']:g}; {record['rows']:,} records{features}"
    if record.get("weakness"):
        yield f"this guarantee is {record['weakness']}"
    if record.get("noise_scale"):
        kind = str(record["noise_kind"]).replace("_", "-")
        yield f"mechanism {record['mechanism']}, {kind} noise of scale {record['noise_scale']:.3g}"
    if record.get("noise") and record.get("margin"):
        at_worst = f", at worst {record['worst_case']:.2g}" if record.get("worst_case") else ""
        yield f"noise in a prediction {record['noise']:.2g}{at_worst}; margin without noise {record['margin']:.2g}"
    if (lost := record.get("lost")) is not None:
        yield f"privacy costs about {lost:.0%} of what a model gains over a constant prediction"
    if quality := record.get("quality"):
        low, high = quality["range"]
        yield (
            f"expected {quality['measure']} {quality['expected']:.2f} ({low:.2f} to {high:.2f}), "
            f"{quality['without_privacy']:.2f} without privacy"
        )
    if record.get("verdict"):
        yield f"verdict: {record['verdict']}"
    for change, rest in (record.get("levers") or {}).items():
        yield f"with {change}: {rest:.0%} of the gain lost"
    for verdict in ("clear", "noisy"):
        rows, loss = (record.get(name, {}).get(verdict) for name in ("smallest_rows", "smallest_epsilon"))
        levers = [f"{rows:,} records"] * (rows is not None) + [f"epsilon {loss:.2g}"] * (loss is not None)
        if levers:
            yield f"{verdict} from {' or '.join(levers)}"


def synthetic(
    context: typer.Context,
    name: DataSetName,
    rows: Annotated[int, typer.Option(min=1, help="Number of rows.")] = 100,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same rows.")] = None,
    out: OutCsv = None,
    force: Force = False,
) -> None:
    """Draw made-up rows from the schema alone, as CSV: about no real person, free, to try things out.

    \b
    Example:
      privlearn ask synthetic census --rows 500 --out made-up.csv
    """
    check_writable(out, force)
    write_csv(client_of(context).synthetic(name, rows, seed), out, "made-up rows")


def kinds(context: typer.Context) -> None:
    """List the kinds of job that the server runs, and the fields of each.

    \b
    Example:
      privlearn ask kinds
    """
    records = client_of(context).kinds()
    if not options_of(context).as_json:
        records = [record | {"fields": ", ".join(record["fields"]["properties"])} for record in records]
    show_list(context, records, ("name", "about", "fields"), "The server runs no kind of job.")


def jobs(context: typer.Context) -> None:
    """List your jobs, running and past.

    \b
    Example:
      privlearn ask jobs
    """
    columns = ("id", "dataset", "kind", "guarantee", "state", "trial", "created")
    show_list(context, client_of(context).jobs(), columns, "You have no jobs.")


def cancel(
    context: typer.Context,
    job: Annotated[str, typer.Argument(metavar="JOB", help="Its id, as `jobs` shows it.")],
) -> None:
    """End a job that waits or runs. Its reserved cost stays spent.

    \b
    Example:
      privlearn ask cancel 5f0c21b7a9d3e864
    """
    typer.echo(f"Job {job} has ended: {client_of(context).cancel(job)['failure']}.")


def events(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="Number of lines, newest first.")] = 100,
) -> None:
    """Show the audit log. Needs the holder's or an auditor's key.

    \b
    Example:
      privlearn ask events --limit 20
    """
    columns = ("time", "actor", "action", "dataset", "details")
    show_list(context, client_of(context).events(limit), columns, "The log is empty.")


Request = Annotated[str, typer.Argument(metavar="JOB", help="Its id, as `approvals` shows it.")]


def approvals(context: typer.Context) -> None:
    """List the requests that wait for approval. Needs the key of an approver, an auditor or the holder.

    \b
    Example:
      privlearn ask approvals
    """
    columns = ("id", "analyst", "dataset", "kind", "guarantee", "purpose", "legal_basis", "created")
    show_list(context, client_of(context).approvals(), columns, "No request waits for approval.")


def approve(
    context: typer.Context,
    job: Request,
    reason: Annotated[str, typer.Option(help="For the analyst and the log.")] = "",
) -> None:
    """Approve another person's request: it joins the queue, and is charged when it starts. Needs an approver's key.

    \b
    Example:
      privlearn ask approve 5f0c21b7a9d3e864 --reason "as agreed by the board"
    """
    _decide(context, job, "approve", reason)


def decline(
    context: typer.Context,
    job: Request,
    reason: Annotated[str, typer.Option(help="For the analyst and the log.")],
) -> None:
    """Decline another person's request: it ends without a charge. Needs an approver's key.

    \b
    Example:
      privlearn ask decline 5f0c21b7a9d3e864 --reason "half of this epsilon is enough for a pilot"
    """
    _decide(context, job, "decline", reason)


def _decide(context: typer.Context, job: str, decision: Literal["approve", "decline"], reason: str) -> None:
    record = client_of(context).decide(job, decision, reason)
    done = {"approve": "approved", "decline": "declined"}[decision]
    show(context, record, [f"Job {job} of {record['analyst']} is {done}."])


def _balance(name: str, record: dict[str, Any]) -> list[str]:
    share = record.get("share")
    return [f"{name}: {_amounts(record)}", *([f"your share: {_amounts(share)}"] if share else [])]


def _amounts(record: dict[str, Any]) -> str:
    parts = ("total", "spent", "reserved", "left")
    return "; ".join(
        f"{part} epsilon {record[part]['epsilon']:g}, delta {record[part]['delta']:g}" for part in parts
    )


COMMANDS = (
    datasets, dataset, budget, estimate, synthetic, kinds, jobs, cancel, events, approvals, approve, decline,
)  # fmt: skip
