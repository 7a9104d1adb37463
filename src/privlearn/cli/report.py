"""`privlearn report`: papers to go with a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privlearn.cli.options import ChargedDataset, Force, ModelFile, check_writable
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.ledger.statement import Statement
    from privlearn.report import Facts


def report(
    model: ModelFile,
    paper: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="PAPER",
            help="model-card, privacy-label, registry, checklist or ethics.",
            show_default="all",
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="md, html or json.")] = "md",
    evaluation: Annotated[
        Path | None, typer.Option(help="An evaluation of this model, for its accuracy.", show_default=False)
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="The data set's ledger; with --publish-budget.", show_default=False
        ),
    ] = None,
    dataset: ChargedDataset = None,
    publish_budget: Annotated[
        bool,
        typer.Option(
            "--publish-budget", help="State the ledger's total and what was spent: the holder decides."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write to this file, or all papers to this folder, instead of the terminal.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write papers from a release: model card, privacy label, registry entry, evaluator's list, a page for a board.

    No row is read. What no file says is marked, for the holder to fill in.

    \b
    Example:
      privlearn report income.privlearn --as ethics --format html --out board.html
      privlearn report income.privlearn --evaluation income.evaluation --out papers
      privlearn report income.privlearn --ledger budgets.db --dataset people --publish-budget --out papers
    """
    from privlearn.evaluation import Evaluation
    from privlearn.release.artifact import Release
    from privlearn.report import Facts, write_paper

    if (ledger is not None) != publish_budget:
        raise InvalidParameter(
            "a ledger is the holder's: --ledger and --publish-budget go together, to state its total and what was spent"
        )
    if dataset is not None and ledger is None:
        raise InvalidParameter("--dataset names a budget: give --ledger PATH and --publish-budget with it")
    release = Release.load(model)
    found = None if evaluation is None else Evaluation.load(evaluation)
    facts = Facts(release, found)
    if ledger is not None:
        facts = Facts(release, found, _statement(ledger, dataset, facts))
    if paper is None:
        _write_all(facts, form, out, force)
    elif out is None:
        typer.echo(write_paper(facts, paper, form), nl=False)
    else:
        _write(out, write_paper(facts, paper, form), force)


def _statement(ledger: str, dataset: str | None, facts: Facts) -> Statement:
    from privlearn.ledger import Ledger

    if dataset is None and facts.schema is None:
        raise InvalidParameter("this model names no data set: give its name in the ledger, --dataset")
    return Ledger.open(ledger, dataset or facts.dataset).statement()


def _write_all(facts: Facts, form: str, out: Path | None, force: bool) -> None:
    from privlearn.report import FORMATS, PAPERS, write_paper

    if out is None:
        raise InvalidParameter(
            f"name one paper, --as {' or '.join(PAPERS)}, or a folder for all of them: --out papers"
        )
    texts = {name: write_paper(facts, name, form) for name in PAPERS}
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        _write(out / f"{name}{FORMATS[form]}", text, force)


def _write(path: Path, text: str, force: bool) -> None:
    from privlearn.release.files import write_atomically

    check_writable(path, force)
    write_atomically(path, text.encode())
    typer.echo(f"Wrote {path}.")
