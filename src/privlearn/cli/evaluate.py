"""privlearn evaluate and threshold: how good a model is on private records, and what follows for its use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privlearn.cli.options import (
    NUMBER,
    AcceptWeakPrivacy,
    ChargedDataset,
    ChargedLedger,
    ExpectedRecords,
    Force,
    ModelFile,
    Neighbouring,
    Note,
    PartName,
    TableFile,
    check_writable,
    check_writable_apart,
    open_ledger,
    part_of,
    say_what_is_left,
)
from privlearn.cli.terminal import LateProgress, warn
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.evaluation import Evaluation
    from privlearn.ledger.ledger import Ledger

SigningKey = Annotated[
    Path | None, typer.Option(metavar="KEY.pem", help="Sign with this Ed25519 key.", show_default=False)
]


def evaluate(
    model: ModelFile,
    table: TableFile,
    epsilon: Annotated[
        float, typer.Option(**NUMBER, help="Privacy loss of all numbers together.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The evaluation's file to write.", show_default=False)],
    delta: Annotated[
        float, typer.Option(**NUMBER, help="Above 0 (say 1e-6) it helps where there are many groups.")
    ] = 0.0,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="What is public about the table: .yaml or .json.", show_default="the release's own"
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Errors for each group of this column too; may be given several times.",
            show_default=False,
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write a page with figures (.html) too.", show_default=False)
    ] = None,
    neighbours: Neighbouring = "replace_one",
    expected_records: ExpectedRecords = None,
    ledger: ChargedLedger = None,
    dataset: ChargedDataset = None,
    part: PartName = None,
    note: Note = None,
    accept_weak_privacy: AcceptWeakPrivacy = False,
    sign: SigningKey = None,
    seed: Annotated[
        int | None, typer.Option(help="For tests only: the file says 'not private'.", show_default=False)
    ] = None,
    force: Force = False,
) -> None:
    """Measure a released model on private records: accuracy, curves, groups, each with an interval.

    Scores are counted with noise, and that alone leaves: a file with a certificate
    that `privlearn verify` recomputes. The records should not be those that the
    model learnt from; if they are, both costs add up in the ledger.

    \b
    Example:
      privlearn evaluate income.privlearn test.csv --epsilon 0.5 --by sex \\
        --ledger budgets.db --out income.evaluation --page income.html
    """
    from privlearn.data.schema.schema import Schema
    from privlearn.data.sources.files import open_records
    from privlearn.data.sources.passes import watch_passes
    from privlearn.evaluation import evaluate as measure
    from privlearn.evaluation.page import write_page
    from privlearn.evaluation.subject import schema_of
    from privlearn.release.artifact import Release
    from privlearn.release.files import write_atomically
    from privlearn.release.verification import read_private_key

    check_writable_apart(out, page, force)
    release = Release.load(model)
    described = schema_of(release, None if schema is None else Schema.load(schema))
    key = None if sign is None else read_private_key(sign)
    budget = open_ledger(
        ledger, dataset, described.name, out=out, note=note, part=part_of(table, part, described)
    )
    with LateProgress(f"reading {table}") as progress, watch_passes(progress.tell("evaluating")):
        rows = open_records(table, described)
        found = measure(
            release,
            rows,
            schema=described,
            epsilon=epsilon,
            delta=delta,
            by=by,
            neighbours=neighbours,
            expected_records=expected_records,
            ledger=budget,
            accept_weak_privacy=accept_weak_privacy,
            random_state=seed,
        )
    (found if key is None else found.signed(key)).save(out, overwrite=True)
    if page is not None:
        write_atomically(page, write_page(found).encode())
    _report(found, out, page, budget)


def threshold(
    model: ModelFile,
    evaluation: Annotated[
        Path,
        typer.Argument(metavar="EVALUATION", help="What `privlearn evaluate` wrote.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="The new release file to write.", show_default=False)],
    false_positive: Annotated[
        float, typer.Option(**NUMBER, help="What a false alarm costs, in any unit.")
    ] = 1.0,
    false_negative: Annotated[
        float, typer.Option(**NUMBER, help="What a missed case costs, in the same unit.")
    ] = 1.0,
    at: Annotated[
        float | None,
        typer.Option(
            **NUMBER,
            help="Take this threshold, whatever mistakes cost.",
            show_default="where they cost least",
        ),
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Read probabilities off the calibration curve.")
    ] = False,
    sign: SigningKey = None,
    force: Force = False,
) -> None:
    """Choose a threshold from an evaluation and write it into a new release. Costs no privacy.

    The new release carries the evaluation, so that `privlearn verify` checks both
    certificates, and that the counts are of this very model.

    \b
    Example:
      privlearn threshold income.privlearn income.evaluation --false-negative 3 \\
        --calibrate --out careful.privlearn
    """
    from privlearn.evaluation import Evaluation
    from privlearn.release.artifact import Release
    from privlearn.release.verification import read_private_key

    check_writable(out, force)
    release, found = Release.load(model), Evaluation.load(evaluation)
    key = None if sign is None else read_private_key(sign)
    if at is not None and (false_positive, false_negative) != (1.0, 1.0):
        raise InvalidParameter("--at is a threshold: leave out what mistakes cost")
    chosen = at
    if chosen is None:
        chosen = found.best_threshold(false_positive=false_positive, false_negative=false_negative)
    made = release.decided_by(found.decision(threshold=chosen, calibrate=calibrate), found)
    (made if key is None else made.signed(key)).save(out, overwrite=True)
    calibrated = ", with calibrated probabilities" if calibrate else ""
    typer.echo(f"Wrote {out}: {found.classes[1]!r} is said for scores above {chosen:.4g}{calibrated}.")
    typer.echo(f"It points to the model's certificate, {release.certificate.guarantee},")
    typer.echo(f"and to the evaluation's, {found.guarantee}.")
    typer.echo(f"Next: privlearn verify {out}")


def _report(found: Evaluation, out: Path, page: Path | None, ledger: Ledger | None) -> None:
    typer.echo(f"Wrote {out}{'' if page is None else f' and {page}'}.")
    typer.echo(str(found))
    typer.echo(f"Promise: {found.guarantee}. {found.guarantee.in_words()}")
    certificate = found.certificate
    if certificate.meaning:
        typer.echo(f"Meaning: {certificate.meaning.in_words()}")
    if not certificate.is_private:
        warn("NOT PRIVATE: epsilon is infinite, or --seed makes the noise known.")
    elif certificate.weakness:
        warn(f"This promise is {certificate.weakness}.")
    say_what_is_left(ledger, promised=certificate.is_private)
    typer.echo(f"Next: privlearn verify {out}")
