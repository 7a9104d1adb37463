"""Commands that read a release: verify checks it, inspect shows what is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from privlearn.cli.options import NUMBER, CertifiedFile, Force, check_writable
from privlearn.cli.terminal import listed, output, warn
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.discovery.summed import DiscoveredSchema
    from privlearn.release.model import Model
    from privlearn.release.signatures import PublicKey


_NOT_PRIVATE = 3


def verify(
    model: CertifiedFile,
    signer: Annotated[
        Path | None,
        typer.Option(metavar="PUB.pem", help="Require this holder's signature.", show_default=False),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL|PUB.pem",
            help="Require the signature of this server; its key is asked for there, or in a file that you kept.",
            show_default=False,
        ),
    ] = None,
    origin: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", help="Require that it was refined from this release.", show_default=False
        ),
    ] = None,
) -> None:
    """Check a file with a certificate, and recompute its guarantee from the certificate's constants alone.

    \b
    Exit codes:
      0  consistent and private; if the promise is hardly private, the last line says why
      1  it contradicts itself, or lacks the asked signature
      3  consistent, but not private: made with --seed or an infinite epsilon

    \b
    Example:
      privlearn verify income.privlearn --signer holder.pub.pem
      privlearn verify income.privlearn --server https://learner.example
      privlearn verify session.json
    """
    from privlearn.release.verification import read_public_key
    from privlearn.release.verification import verify as check

    if signer is not None and server is not None:
        raise InvalidParameter("a file has one signature: give --signer or --server")
    key = _key_of(server) if server is not None else None if signer is None else read_public_key(signer)
    proven = check(model, key, origin)
    for name, fact in proven.facts.items():
        typer.echo(f"{name:<12}{fact}")
    if proven.is_private and not proven.weakness:
        typer.echo(f"{model} is {proven.verdict}.")
        return
    warn(f"{model} is {proven.verdict}.")
    if not proven.is_private:
        raise typer.Exit(_NOT_PRIVATE)


def _key_of(server: str) -> PublicKey:
    from privlearn.client.server_key import server_key
    from privlearn.release.verification import read_public_key

    return server_key(server) if "://" in server else read_public_key(server)


def inspect(
    model: CertifiedFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PAGE.html",
            help="Write a page: effects of columns as curves. Of bought bounds and lists: the schema, .yaml.",
            show_default=False,
        ),
    ] = None,
    largest: Annotated[
        int, typer.Option(help="Show so many of the largest coefficients, noise included.", min=0)
    ] = 0,
    effects: Annotated[
        bool, typer.Option("--effects", help="Show all columns, also those not above the noise.")
    ] = False,
    intervals: Annotated[
        Path | None,
        typer.Option(
            metavar="CURVATURE",
            help="The same with intervals from what `curvature` bought: narrower, or confidence intervals.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="Of intervals: privacy, what the noise does; confidence, what sampling does too.",
            show_default="confidence with a curvature, privacy without",
        ),
    ] = None,
    level: Annotated[float, typer.Option(**NUMBER, help="Of intervals.")] = 0.95,
    force: Force = False,
) -> None:
    """Show what is in a file: of a release its certificate, what it reads and what is above the noise.

    Of an evaluation or a description its certificate and what was measured; of bounds
    and lists that several holders bought its certificate and these (--out writes the
    schema); of a curvature or a session its certificate.

    \b
    Example:
      privlearn inspect income.privlearn
      privlearn inspect income.privlearn --out income.html
      privlearn inspect income.privlearn --intervals income.curvature
      privlearn inspect income.privlearn --json
    """
    from privlearn.description import Description
    from privlearn.discovery.summed import DiscoveredSchema
    from privlearn.evaluation import Evaluation
    from privlearn.release.artifact import Release
    from privlearn.release.certificate import Certificate
    from privlearn.release.counts_file import CountsCertificate, CountsFile
    from privlearn.release.moments_file import Moments
    from privlearn.release.verification import verify

    if out is not None:
        check_writable(out, force)
    proven = verify(model)
    certificate = proven.certificate
    if as_json:
        typer.echo(json.dumps(certificate.to_dict(), indent=2))
        return
    typer.echo(certificate)
    for name, fact in proven.run.facts.items() if proven.run else ():
        typer.echo(f"  {f'run: {name}':<26}{fact}")
    typer.echo(certificate.guarantee.in_words())
    if certificate.weakness:
        warn(f"This promise is {certificate.weakness}.")
    if isinstance(certificate, Certificate):
        from privlearn.cli.effects import show_effects

        release = Release.load(model)
        _show(release.model, largest)
        if release.refinement is not None:
            typer.echo(
                f"\nRefined from {release.origin.digest[:12]}: {release.refinement.told}. What follows is told of it."
            )
        show_effects(release, intervals, kind, level, every=effects or intervals is not None, largest=largest)
    counted = CountsFile.load(model).about.get("kind") if isinstance(certificate, CountsCertificate) else None
    if counted == DiscoveredSchema.kind:
        _show_bought(DiscoveredSchema.load(model), out)
        return
    if counted == Moments.kind:
        typer.echo(f"\nSecond moments, to predict {', '.join(Moments.load(model).targets)}.")
        typer.echo(f"Next: privlearn regress {model}")
        return
    if out is not None:
        from privlearn.cli.effects import write_page

        write_page(Release.load(model), intervals, kind, level, out)
    if counted is not None:
        typer.echo(f"\n{(Description if counted == 'description' else Evaluation).load(model)}")


def _show_bought(found: DiscoveredSchema, out: Path | None) -> None:
    """What several holders bought of a schema; and the schema, if a file is named for it."""
    from privlearn.cli.schema import show_purchase

    show_purchase(found.draft, found.schema)
    if out is not None:
        found.schema.save(out)
        typer.echo(f"Wrote {out}.")


def _show(model: Model, largest: int) -> None:
    typer.echo("")
    for line in (*_description(model), *_decision(model)):
        typer.echo(line)
    if largest:
        typer.echo("")
        output.print(_coefficients(model, largest))


def _description(model: Model) -> list[str]:
    """What the model reads: the schema, one line per column; plain arrays; or what only its kernel reads."""
    from privlearn.data.encode.arrays import ArrayEncoder
    from privlearn.release.encoders import base_of

    base = base_of(model.encoder)
    if base is None:
        return [f"{_read_by_kernel(model.encoder)}; {_answers(model)}"]
    if isinstance(base, ArrayEncoder):
        return [f"Plain arrays: {base.n_features} columns, {_answers(model)}"]
    schema: Any = base.schema
    columns = [f"  {name}: {_column(column)}{_about(column)}" for name, column in schema.columns.items()]
    target = f"{schema.target.name!r} ({_answers(model)}){_about(schema.target)}"
    return [f"Schema {schema.name!r}, target {target}, columns:", *columns]


def _decision(model: Any) -> list[str]:
    """What an evaluation chose for the model: its threshold, and a map from scores to probabilities."""
    decision = getattr(model, "decision", None)
    if decision is None:
        return []
    chosen = [f"Threshold: {model.classes[1]} is said for scores above {model.threshold:.4g}"]
    if not decision.scores:
        return chosen
    pairs = zip(decision.scores, decision.probabilities, strict=True)
    corners = [f"{score:.4g} is {chance:.4g}" for score, chance in pairs]
    return [*chosen, f"Calibration, from score to probability: {listed(corners)}"]


def _read_by_kernel(encoder: Any) -> str:
    if encoder.kernel.name == "precomputed":
        return f"Rows of {encoder.points} precomputed kernel values, one against each public point"
    return (
        f"Objects that the kernel {encoder.kernel.name!r} reads, a function to be given again: "
        "Release.load(path, kernel=...)"
    )


def _answers(model: Model) -> str:
    """What the model predicts."""
    bounds = getattr(model, "target_bounds", None)
    if bounds is None:
        return f"classes {listed(_labels(model))}"
    pairs = [bounds] if isinstance(bounds[0], float) else bounds
    return "numbers " + ", ".join(f"from {lower:g} to {upper:g}" for lower, upper in pairs)


def _labels(model: Any) -> Any:
    return getattr(model, "classes", ("", "the number"))


def _about(part: Any) -> str:
    """What a column or target is measured in, and what it is, if the schema says so."""
    unit = f", in {part.unit}" if part.unit else ""
    return f"{unit}: {part.description}" if part.description else unit


def _column(column: Any) -> str:
    if column.type == "number":
        return f"number from {column.lower:g} to {column.upper:g}, {column.scale} scale"
    if column.type == "category":
        return f"one of {listed(column.values)}{', or other' if column.unknown == 'other' else ''}"
    if column.type == "ordinal":
        return f"one of {listed(column.values)}, in this order"
    if column.type == "date":
        return f"date from {column.lower} to {column.upper}"
    return f"text in {column.features} hash buckets"


def _coefficients(model: Model, count: int) -> Table:
    import numpy as np

    from privlearn.release.encoders import feature_names

    names = feature_names(model.encoder)
    labels = _labels(model)[1:] if len(model.coefficients) == 1 else _labels(model)
    order = np.argsort(-np.abs(model.coefficients), axis=None, kind="stable")[:count]
    rows, places = np.unravel_index(order, model.coefficients.shape)
    table = Table(title="Largest coefficients (noise included)", title_justify="left")
    table.add_column("feature")
    table.add_column("class it speaks for (+) or against (-)")
    table.add_column("coefficient", justify="right")
    for row, place in zip(rows, places, strict=True):
        cells = (names[place], str(labels[row]), f"{model.coefficients[row, place]:+.4g}")
        table.add_row(*map(Text, cells))  # as Text, since rich would read brackets as markup
    return table
