"""`privlearn report` writes reports about a release, `privlearn export` writes it in another language."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import ChargedDataset, Force, ModelFile, OptionalOut, check_writable
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.budget.statement import Statement
    from privlearn.export.report import EstimatesProperties, ReleaseProperties


def report(
    model: Annotated[Path, typer.Argument(metavar="FILE", help="A release, or a table of estimates.")],
    name: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="REPORT",
            help="model-card, privacy-label, registry, checklist, ethics, sacro or edpb.",
            show_default="all",
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="md, html or json.",
            show_default="the ending of --out; else md, or json for sacro",
        ),
    ] = None,
    evaluation: Annotated[
        Path | None, typer.Option(help="An evaluation of this model, for its accuracy.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="PATH", help="The data set's ledger; with --publish-budget.")
    ] = None,
    dataset: ChargedDataset = None,
    publish_budget: Annotated[
        bool,
        typer.Option(
            "--publish-budget", help="State the ledger's total and what was spent. The holder decides this."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write to this file, or all reports to this directory, instead of the terminal."),
    ] = None,
    force: Force = False,
) -> None:
    """Write reports about a release: model card, privacy label, registry entry, checklist, pages for those who decide.

    Reads no row. Information that the files do not contain is marked for the holder to fill in. A table of estimates
    has one report, the page for those who decide, with the table and its forest plot.

    \b
    Example:
      privlearn report income.privlearn --as ethics --out board.html
      privlearn report income.privlearn --as sacro --out report.json
      privlearn report readmitted.estimates --out board.html
      privlearn report income.privlearn --evaluation income.evaluation --out reports
      privlearn report income.privlearn --ledger budgets.db --dataset people --publish-budget --out reports
    """
    from privlearn.export.report import FORMATS, ReleaseProperties, write_report
    from privlearn.release.archive import format_of
    from privlearn.release.artifact import Release
    from privlearn.release.counts_file import CountsFile
    from privlearn.statistics.evaluation import Evaluation

    if (ledger is not None) != publish_budget:
        raise InvalidParameter(
            "--ledger and --publish-budget go together, because they publish the budget. Give both or neither."
        )
    if dataset is not None and ledger is None:
        raise InvalidParameter("--dataset names a budget. Add --ledger PATH and --publish-budget.")
    if form is None and out is not None:
        form = next((known for known, ending in FORMATS.items() if out.suffix == ending), None)
    if format_of(model.read_bytes()) == CountsFile.format:
        if name not in (None, "ethics") or evaluation is not None:
            raise InvalidParameter("estimates have one report. Leave out --as and --evaluation.")
        _report_estimates(model, form, ledger, dataset, out, force)
        return
    release = Release.load(model)
    evaluated = None if evaluation is None else Evaluation.load(evaluation)
    properties = ReleaseProperties(release, evaluated)
    if ledger is not None:
        properties = ReleaseProperties(release, evaluated, _statement(ledger, dataset, properties))
    if name is None:
        _write_all(properties, form, out, force)
    elif out is None:
        typer.echo(write_report(properties, name, form), nl=False)
    else:
        _write(out, write_report(properties, name, form), force)


def _report_estimates(
    path: Path, form: str | None, ledger: str | None, dataset: str | None, out: Path | None, force: bool
) -> None:
    from privlearn.export.report import EstimatesPage, EstimatesProperties, render_report
    from privlearn.statistics.regression import Estimates

    properties = EstimatesProperties(Estimates.load(path))
    if ledger is not None:
        properties = EstimatesProperties(properties.estimates, _statement(ledger, dataset, properties))
    text = render_report(EstimatesPage(), properties, form)
    if out is None:
        typer.echo(text, nl=False)
    else:
        _write(out, text, force)


def _statement(
    ledger: str, dataset: str | None, properties: ReleaseProperties | EstimatesProperties
) -> Statement:
    from privlearn.budget.ledger import Ledger
    from privlearn.export.report import OPEN

    if dataset is None and properties.dataset == OPEN:
        raise InvalidParameter("this model names no data set. Give its name in the ledger with --dataset.")
    return Ledger.open(ledger, dataset or properties.dataset).statement()


def _write_all(properties: ReleaseProperties, form: str | None, out: Path | None, force: bool) -> None:
    from privlearn.export.report import FORMATS, REPORTS, write_report

    if out is None:
        raise InvalidParameter(
            f"name one report (--as {' or '.join(REPORTS)}), or a directory for all of them (--out reports)"
        )
    texts = {name: write_report(properties, name, form) for name in REPORTS}
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        _write(out / f"{name}{FORMATS[form or REPORTS[name].default_format]}", text, force)


def _write(path: Path, text: str, force: bool) -> None:
    from privlearn.release.archive import write_atomically

    check_writable(path, force)
    write_atomically(path, text.encode())
    typer.echo(f"Wrote {path}.")


def export(
    model: ModelFile,
    to: Annotated[str, typer.Option(help="onnx, sql, json, python or html-calculator.")],
    out: OptionalOut = None,
    table: Annotated[
        str | None, typer.Option(help="SQL: the table to read; by default the data set's name.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="SQL: a column to return with the prediction, such as an identifier; may be repeated.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a release in another language: raw columns in, predictions out, the encoding included.

    Reads no rows and costs nothing. For linear models; with text columns to python and json only.

    \b
    Example:
      privlearn export income.privlearn --to sql --table people --keep id --out income.sql
      privlearn export income.privlearn --to html-calculator --out income.html
    """
    from privlearn.export import TARGETS, export_release
    from privlearn.release.archive import write_atomically
    from privlearn.release.artifact import Release

    check_writable(out, force)
    options: dict[str, Any] = {"table": table, "keep": keep}
    settings = {name: value for name, value in options.items() if value}
    content = export_release(Release.load(model), to, **settings)
    if out is not None:
        write_atomically(out, content)
        typer.echo(f"Wrote {out}: {len(content):,} bytes.")
    elif not TARGETS[to].is_text:
        raise InvalidParameter(f"{to} is a binary format. Name a file: --out model{TARGETS[to].suffix}")
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
