"""`privlearn ask`: train models, open sessions, and use them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.ask.caller import (
    DataSetName,
    JobOptions,
    Learner,
    OutCsv,
    Points,
    client_of,
    show,
    show_list,
    trial_note,
    write_csv,
)
from privlearn.cli.options import Force, check_writable
from privlearn.cli.terminal import LateProgress, say
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee

if TYPE_CHECKING:
    import pyarrow as pa

    from privlearn.client import RemoteJob, RemoteResult

ResultFile = Annotated[Path | None, typer.Option("--out", help="Write the result's content to this file.")]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")]


def release(
    context: typer.Context,
    name: DataSetName,
    out: Annotated[Path, typer.Option(help="The release file to write.")],
    learner: Learner = None,
    points: Points = None,
    force: Force = False,
    *,
    options: JobOptions,
) -> None:
    """Train, wait, and fetch the released model, verified. Costs epsilon and delta.

    \b
    Example:
      privlearn ask release census --epsilon 0.5 --delta 1e-6 --out income.privlearn
      privlearn ask release census --epsilon 0.5 --points public.csv --out income.privlearn
    """
    check_writable(out, force)
    public_points = _read_points(points)
    client = client_of(context)
    with LateProgress("requesting") as progress:
        request = options.request(client, "release", name, learner=learner, public_points=public_points)
        fetched = client.download(_wait_for(request, progress).id)
    fetched.save(out, overwrite=True)
    typer.echo(f"Wrote {out}: {fetched.certificate.guarantee}.{trial_note(options.trial)}")
    typer.echo(f"Next: privlearn predict {out} FILE")


def session(
    context: typer.Context,
    name: DataSetName,
    learner: Learner = None,
    mechanism: Annotated[
        str, typer.Option(help="model (any number of answers), function_release or pinp.")
    ] = "model",
    points: Points = None,
    *,
    options: JobOptions,
) -> None:
    """Train, wait, and open a session whose answers share one guarantee. Costs epsilon and delta, once.

    \b
    Example:
      privlearn ask session census --epsilon 0.5 --delta 1e-6
    """
    client, public_points = client_of(context), _read_points(points)
    with LateProgress("requesting") as progress:
        settings = {"learner": learner, "mechanism": mechanism, "public_points": public_points}
        request = options.request(client, "session", name, **settings)
        opened = client.session(_wait_for(request, progress).id)
    state = f"Session {opened.id} is open: {opened.guarantee}.{trial_note(options.trial)}"
    show(context, opened.record, [state, f"Next: privlearn ask predict {opened.id} FILE"])


def job(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="One of `privlearn ask kinds`.")],
    name: DataSetName,
    field: Annotated[
        list[str] | None, typer.Option(help="A field of the kind: NAME=VALUE, as JSON or as text.")
    ] = None,
    out: ResultFile = None,
    points: Points = None,
    force: Force = False,
    *,
    options: JobOptions,
) -> None:
    """Run a job of any kind, wait, and fetch its result. Costs epsilon and delta.

    \b
    Example:
      privlearn ask job release census --epsilon 0.5 --field learner=logistic --out income.privlearn
    """
    check_writable(out, force)
    public_points, fields = _read_points(points), dict(map(_read_field, field or ()))
    with LateProgress("requesting") as progress:
        request = options.request(client_of(context), kind, name, public_points=public_points, **fields)
        finished = _wait_for(request, progress).result()
    _show_result(context, finished, out)


def result(
    context: typer.Context,
    result: Annotated[str, typer.Argument(metavar="RESULT", help="Its id.")],
    out: ResultFile = None,
    force: Force = False,
) -> None:
    """Fetch the result of a job of any kind.

    \b
    Example:
      privlearn ask result 5f0c21b7a9d3e864 --out income.privlearn
    """
    check_writable(out, force)
    _show_result(context, client_of(context).result(result), out)


def predict(
    context: typer.Context,
    session: SessionId,
    table: Annotated[Path, typer.Argument(metavar="FILE", help="The rows: .csv, .csv.gz or .parquet.")],
    out: OutCsv = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Add the scores and the source of each answer.")
    ] = False,
    force: Force = False,
) -> None:
    """Predict each row of a table with a session, as CSV. Costs nothing more.

    \b
    Example:
      privlearn ask predict 5f0c21b7a9d3e864 new.csv --out predictions.csv
    """
    from privlearn.data.sources.files import read_table

    check_writable(out, force)
    opened = client_of(context).session(session)
    rows = read_table(table)
    with LateProgress(f"predicting {rows.num_rows} rows"):
        answers = opened.decide(rows)
    write_csv(answers if scores else answers.select(["prediction"]), out, "predictions")


def sessions(context: typer.Context) -> None:
    """List your sessions.

    \b
    Example:
      privlearn ask sessions
    """
    columns = ("id", "dataset", "mechanism", "guarantee", "state", "trial", "created")
    show_list(context, client_of(context).sessions(), columns, "You have no sessions.")


def certificate(
    context: typer.Context,
    session: SessionId,
    out: Annotated[Path, typer.Option(help="The .json file to write.")],
    force: Force = False,
) -> None:
    """Fetch a session's certificate, from which anyone can recompute its guarantee.

    \b
    Example:
      privlearn ask certificate 5f0c21b7a9d3e864 --out session.json
    """
    import json

    from privlearn.release.archive import write_atomically

    check_writable(out, force)
    fetched = client_of(context).session(session).certificate
    write_atomically(out, (json.dumps(fetched.to_dict(), indent=1) + "\n").encode())
    typer.echo(f"Wrote {out}: {fetched.guarantee}.")


def close(context: typer.Context, session: SessionId) -> None:
    """Close a session permanently. Its cost stays spent.

    \b
    Example:
      privlearn ask close 5f0c21b7a9d3e864
    """
    client_of(context).session(session).close()
    typer.echo(f"Session {session} is closed.")


def releases(context: typer.Context) -> None:
    """List the models that were released to you.

    \b
    Example:
      privlearn ask releases
    """
    columns = ("id", "dataset", "learner", "guarantee", "trial", "created")
    show_list(context, client_of(context).releases(), columns, "You have no releases.")


def download(
    context: typer.Context,
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The release's id.")],
    out: Annotated[Path, typer.Option(help="The release file to write.")],
    force: Force = False,
) -> None:
    """Fetch a released model, verified.

    \b
    Example:
      privlearn ask download 5f0c21b7a9d3e864 --out income.privlearn
    """
    check_writable(out, force)
    fetched = client_of(context).download(release)
    fetched.save(out, overwrite=True)
    typer.echo(f"Wrote {out}: {fetched.certificate.guarantee}.")


def evaluate(
    context: typer.Context,
    name: DataSetName,
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The release's id.")],
    out: Annotated[Path, typer.Option(help="The evaluation's file to write.")],
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Also report the errors of each group of this column."),
    ] = None,
    force: Force = False,
    *,
    options: JobOptions,
) -> None:
    """Evaluate a release on a data set, wait, and fetch the evaluation, verified. Costs epsilon and delta.

    \b
    Example:
      privlearn ask evaluate census 5f0c21b7a9d3e864 --epsilon 0.5 --by sex --out income.evaluation
    """
    from privlearn.statistics.evaluation import Evaluation

    check_writable(out, force)
    with LateProgress("requesting") as progress:
        request = options.request(client_of(context), "evaluate", name, release=release, by=by or [])
        evaluation = Evaluation.from_bytes(_wait_for(request, progress).result().content)
    evaluation.save(out, overwrite=True)
    show(context, evaluation.to_dict(), [str(evaluation), f"Wrote {out}.{trial_note(options.trial)}"])


def _wait_for(job: RemoteJob, progress: LateProgress) -> RemoteJob:
    """Print the job's id, by which it can be found and ended from elsewhere, and return the finished job."""
    if not job.is_over:
        say(f"Job {job.id} runs on the server, and continues there if this command is stopped.")
    return job.wait(progress.describe)


def _show_result(context: typer.Context, result: RemoteResult, out: Path | None) -> None:
    from privlearn.release.archive import write_atomically

    record = result.record
    guarantee = Guarantee(**record["guarantee"])
    lines = [f"{record['kind']} {record['id']}: {guarantee}.{trial_note(record['trial'])}"]
    if out is not None:
        write_atomically(out, result.content)
        lines.append(f"Wrote {out}: {len(result.content)} bytes, {record['media_type']}.")
    show(context, record, lines)


def _read_field(text: str) -> tuple[str, Any]:
    """Return the name and the value of NAME=VALUE; a value that is not JSON is text."""
    import json

    name, equals, value = text.partition("=")
    if not (name.isidentifier() and equals):
        raise InvalidParameter(f"--field {text} is not NAME=VALUE, such as --field learner=logistic.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _read_points(path: Path | None) -> pa.Table | str | None:
    if path is None or str(path) == "schema":
        return None if path is None else "schema"
    from privlearn.data.sources.files import read_table

    return read_table(path)


COMMANDS = (
    release, session, evaluate, job, result, predict, sessions, certificate, close, releases, download,
)  # fmt: skip
