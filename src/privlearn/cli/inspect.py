"""`privlearn inspect`: show what a release, another certified file or a session has in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import NUMBER, CertifiedFile, Force, check_writable
from privlearn.cli.terminal import join_values, print_table, warn

if TYPE_CHECKING:
    from privlearn.release.model import Model
    from privlearn.statistics.discovery.summed import DiscoveredSchema


def inspect(
    model: CertifiedFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PAGE.html",
            help="Write a page; of estimates also LaTeX (.tex) or CSV; of private bounds and lists the schema, .yaml.",
        ),
    ] = None,
    largest: Annotated[
        int, typer.Option(help="Number of the largest coefficients to show, noise included.", min=0)
    ] = 0,
    effects: Annotated[
        bool, typer.Option("--effects", help="Show all columns, also those below the noise.")
    ] = False,
    intervals: Annotated[
        Path | None,
        typer.Option(
            metavar="CURVATURE",
            help="Use a file of `privlearn curvature`, for narrower intervals or confidence intervals.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="Kind of intervals: privacy (noise only) or confidence (noise and sampling).",
            show_default="confidence with a curvature, privacy without",
        ),
    ] = None,
    level: Annotated[float, typer.Option(**NUMBER, help="Level of the intervals.")] = 0.95,
    force: Force = False,
) -> None:
    """Show what is in a file: for a release its certificate, its columns, and the effects above the noise.

    For an evaluation, a description or estimates: its certificate and results (--out writes
    them as a page). For bounds and lists of several holders: its certificate and these (--out
    writes the schema). For a curvature or a session: its certificate.

    \b
    Example:
      privlearn inspect income.privlearn
      privlearn inspect income.privlearn --out income.html
      privlearn inspect income.privlearn --intervals income.curvature
      privlearn inspect readmitted.estimates --out readmitted.tex --level 0.99
      privlearn inspect income.privlearn --json
    """
    from privlearn.release.artifact import Release
    from privlearn.release.certificate import Certificate
    from privlearn.release.counts_file import CountsCertificate, CountsFile
    from privlearn.release.moments_file import Moments
    from privlearn.release.verification import verify
    from privlearn.statistics.discovery.summed import DiscoveredSchema

    check_writable(out, force)
    verified = verify(model)
    certificate = verified.certificate
    if as_json:
        typer.echo(json.dumps(certificate.to_dict(), indent=2))
        return
    typer.echo(certificate)
    for name, text in verified.run.properties.items() if verified.run else ():
        typer.echo(f"  {f'run: {name}':<26}{text}")
    typer.echo(certificate.guarantee.in_words())
    if certificate.weakness:
        warn(f"This guarantee is {certificate.weakness}.")
    if isinstance(certificate, Certificate):
        from privlearn.cli.effects import show_effects

        release = Release.load(model)
        _show(release.model, largest)
        if release.refinement is not None:
            origin = f"{release.origin.digest[:12]}: {release.refinement.description}"
            typer.echo(f"\nRefined from {origin}. The following effects are those of the origin.")
        show_effects(release, intervals, kind, level, every=effects or intervals is not None, largest=largest)
    is_counts = isinstance(certificate, CountsCertificate)
    counts_kind = CountsFile.load(model).about.get("kind") if is_counts else None
    if counts_kind == DiscoveredSchema.kind:
        _show_discovered(DiscoveredSchema.load(model), out)
        return
    if counts_kind == Moments.kind:
        typer.echo(f"\nSecond moments, to predict {', '.join(Moments.load(model).targets)}.")
        typer.echo(f"Next: privlearn regress {model}")
        return
    if is_counts:
        _show_counts(model, str(counts_kind), level, out)
    elif out is not None:
        from privlearn.cli.effects import write_page

        write_page(Release.load(model), intervals, kind, level, out)


def _show_counts(path: Path, kind: str, level: float, out: Path | None) -> None:
    """Print an evaluation, a description or estimates; write their page if a file is named."""
    from privlearn.release.archive import write_atomically
    from privlearn.statistics.description import Description
    from privlearn.statistics.description.page import write_page as describing_page
    from privlearn.statistics.evaluation import Evaluation
    from privlearn.statistics.evaluation.page import write_page as evaluating_page
    from privlearn.statistics.regression import Estimates
    from privlearn.statistics.regression.layout import KIND
    from privlearn.statistics.regression.page import write_table

    if kind == KIND:
        estimates = Estimates.load(path)
        text, page = (
            estimates.summary(level),
            write_table("" if out is None else out.suffix, level)(estimates),
        )
    elif kind == "description":
        description = Description.load(path)
        text, page = str(description), describing_page(description)
    else:
        evaluation = Evaluation.load(path)
        text, page = str(evaluation), evaluating_page(evaluation)
    typer.echo(f"\n{text}")
    if out is not None:
        write_atomically(out, page.encode())
        typer.echo(f"Wrote {out}.")


def _show_discovered(result: DiscoveredSchema, out: Path | None) -> None:
    """Print the bounds and lists of several holders; write the schema if a file is named."""
    from privlearn.cli.schema import show_private_bounds

    show_private_bounds(result.draft, result.schema)
    if out is not None:
        result.schema.save(out)
        typer.echo(f"Wrote {out}.")


def _show(model: Model, largest: int) -> None:
    typer.echo("")
    for line in (*_description(model), *_decision(model)):
        typer.echo(line)
    if largest:
        typer.echo("")
        _print_coefficients(model, largest)


def _description(model: Model) -> list[str]:
    """Return lines on what the model reads: the columns of a schema, plain arrays, or objects of its kernel."""
    from privlearn.data.encoding.arrays import ArrayEncoder
    from privlearn.features.map_encoder import MapEncoder
    from privlearn.release.encoders import base_of

    base = base_of(model.encoder)
    if base is None:
        return [f"{_kernel_input(model.encoder)}; {_predictions(model)}"]
    if isinstance(base, MapEncoder):
        return [f"Rows for {base.features!r}, {_predictions(model)}"]
    if isinstance(base, ArrayEncoder):
        return [f"Plain arrays: {base.n_features} columns, {_predictions(model)}"]
    schema: Any = base.schema
    columns = [f"  {name}: {_column(column)}{_unit(column)}" for name, column in schema.columns.items()]
    target = f"{schema.target.name!r} ({_predictions(model)}){_unit(schema.target)}"
    return [f"Schema {schema.name!r}, target {target}, columns:", *columns, *_weight(schema)]


def _weight(schema: Any) -> list[str]:
    """Return a line on the column that weighs rows, if the schema has one."""
    if schema.weight is None:
        return []
    upper = schema.weight.upper
    cap = "in proportion within each person" if upper is None else f"at most {upper:g}"
    return [f"Rows are weighted by {schema.weight.column}, {cap}."]


def _decision(model: Any) -> list[str]:
    """Return lines on the threshold and the calibration that were chosen by an evaluation."""
    decision = getattr(model, "decision", None)
    if decision is None:
        return []
    scores = "scores" if model.link == "none" else "probabilities"
    threshold = f"Threshold: predicts {model.classes[1]} for {scores} above {model.threshold:.4g}"
    if not decision.scores:
        return [threshold]
    threshold += " before calibration"
    pairs = zip(decision.scores, decision.probabilities, strict=True)
    knots = [f"{score:.4g} is {probability:.4g}" for score, probability in pairs]
    return [threshold, f"Calibration, from score to probability: {join_values(knots)}"]


def _kernel_input(encoder: Any) -> str:
    if encoder.kernel.name == "precomputed":
        return f"Rows of {encoder.points} precomputed kernel values, one against each public point"
    return (
        f"Objects that the kernel {encoder.kernel.name!r} reads. To predict, pass this function: "
        "Release.load(path, kernel=...)"
    )


def _predictions(model: Model) -> str:
    """Return the classes or bounds of the predictions."""
    bounds = getattr(model, "target_bounds", None)
    if bounds is None:
        return f"classes {join_values(_labels(model))}"
    pairs = [bounds] if isinstance(bounds[0], float) else bounds
    return "numbers " + ", ".join(f"from {lower:g} to {upper:g}" for lower, upper in pairs)


def _labels(model: Any) -> Any:
    return getattr(model, "classes", ("", "the number"))


def _unit(part: Any) -> str:
    """Return the unit and the description of a column or target, if the schema has them."""
    unit = f", in {part.unit}" if part.unit else ""
    return f"{unit}: {part.description}" if part.description else unit


def _column(column: Any) -> str:
    if column.type == "number":
        return f"number from {column.lower:g} to {column.upper:g}, {column.scale} scale"
    if column.type == "category":
        return f"one of {join_values(column.values)}{', or other' if column.unknown == 'other' else ''}"
    if column.type == "ordinal":
        return f"one of {join_values(column.values)}, in this order"
    if column.type == "date":
        return f"date from {column.lower} to {column.upper}"
    return f"text in {column.features} hash buckets"


def _print_coefficients(model: Model, count: int) -> None:
    import numpy as np

    from privlearn.release.encoders import feature_names

    names = feature_names(model.encoder)
    labels = _labels(model)[1:] if len(model.coefficients) == 1 else _labels(model)
    order = np.argsort(-np.abs(model.coefficients), axis=None, kind="stable")[:count]
    scores, features = np.unravel_index(order, model.coefficients.shape)
    rows = [
        (names[feature], str(labels[score]), f"{model.coefficients[score, feature]:+.4g}")
        for score, feature in zip(scores, features, strict=True)
    ]
    headings = ("feature", "class that it favours (+) or not (-)", "coefficient")
    print_table(headings, rows, title="Largest coefficients (noise included)", right=("coefficient",))
