"""Tuning from the shell: the options of a search, the search that they mean, and how it used the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.data.schema.schema import Schema
    from privlearn.release.certificate import Certificate

_FORM = "--search regularization=0.001,0.01,0.1"

Searched = Annotated[
    list[str] | None,
    typer.Option(
        "--search",
        metavar="NAME=A,B,...",
        help="Values to choose among, privately; may be repeated. Tuning costs accuracy: see docs/how-to/tuning.md.",
        show_default=False,
    ),
]
SearchMethod = Annotated[
    str,
    typer.Option(
        "--search-method", help="auto, every_candidate, random_stopping, or partition (CMS11 Algorithm 4)."
    ),
]
PublicValidation = Annotated[
    str | None,
    typer.Option(
        "--public-validation",
        metavar="FILE",
        help="Public rows with the target: --search then chooses on them, free of charge.",
        show_default=False,
    ),
]


def read_grid(searched: list[str] | None, public_validation: str | None) -> dict[str, list[Any]]:
    """The candidates' parameters as typed; empty if nothing is to be searched."""
    if not searched and public_validation is not None:
        raise InvalidParameter(f"--public-validation is for choosing: say among what, {_FORM}")
    grid: dict[str, list[Any]] = {}
    for text in searched or []:
        name, equals, values = text.partition("=")
        if not (name and equals) or name in grid:
            raise InvalidParameter(f"--search {text} cannot be read, or repeats a name: write {_FORM}")
        grid[name.replace("-", "_")] = [_value(part) for part in values.split(",") if part]
    return grid


def check_search(estimator: Any, grid: dict[str, list[Any]], method: str) -> None:
    """Refuse a search that cannot be made, before anything is read or bought for it."""
    if grid:
        from privlearn.selection.candidates import candidates_of
        from privlearn.selection.search import check_method

        check_method(method)
        candidates_of(_without_books(estimator), grid)


def as_search(
    estimator: Any, grid: dict[str, list[Any]], method: str, public_validation: str | None, schema: Schema
) -> Any:
    """The estimator itself, or a search around it that pays in its place."""
    if not grid:
        return estimator
    from privlearn.data.sources.files import read_table
    from privlearn.selection import PrivateGridSearch
    from privlearn.selection.candidates import PROMISED

    public = None if public_validation is None else read_table(public_validation, schema)
    parameters = estimator.get_params(deep=False)
    books = {name: parameters[name] for name in PROMISED}
    return PrivateGridSearch(
        _without_books(estimator), grid, method=method, public_validation=public, **books
    )


def _without_books(estimator: Any) -> Any:
    return type(estimator)(**estimator.get_params(deep=False) | {"ledger": None, "random_state": None})


def say_what_was_chosen(certificate: Certificate) -> None:
    """How the budget was used, if there was a search."""
    from privlearn.release.certificate import SearchCertificate

    if not isinstance(certificate, SearchCertificate):
        return
    facts = certificate.in_search()
    typer.echo(f"Chose {facts['chosen']}: {certificate.mechanism.search.title}.")
    typer.echo(f"The model's own share: {facts['its own promise']}.")
    if "error shown" in facts:
        typer.echo(f"Its error, part of the release: {facts['error shown']}.")


def _value(text: str) -> Any:
    """A number, or a word for the estimator to judge."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text, text)
