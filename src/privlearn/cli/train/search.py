"""Options of `privlearn train` for a private search, and the search that they describe."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import number_or_word
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.data.schema.schema import Schema
    from privlearn.release.certificate import Certificate

_EXAMPLE = "--search regularization=0.001,0.01,0.1"

SearchGrid = Annotated[
    list[str] | None,
    typer.Option(
        "--search",
        metavar="NAME=A,B,...",
        help="Values to choose from privately; may be repeated. Tuning costs accuracy: see docs/how-to/tuning.md.",
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
        help="Public rows with the target: --search then uses them, free of charge.",
    ),
]


def read_grid(options: list[str] | None, public_validation: str | None) -> dict[str, list[Any]]:
    """Return the values of each searched parameter; empty without --search."""
    if not options and public_validation is not None:
        raise InvalidParameter(f"--public-validation needs a search. Add for example {_EXAMPLE}.")
    grid: dict[str, list[Any]] = {}
    for text in options or []:
        name, equals, values = text.partition("=")
        if not (name and equals) or name in grid:
            raise InvalidParameter(
                f"--search {text} has the wrong form, or repeats a name. Write {_EXAMPLE}."
            )
        grid[name.replace("-", "_")] = [parse_value(part) for part in values.split(",") if part]
    return grid


def parse_value(text: str) -> Any:
    """Return a number, True, False or None, or a word that the estimator checks.

    >>> [parse_value(text) for text in ("10", "0.5", "inf", "true", "auto")]
    [10, 0.5, inf, True, 'auto']
    """
    words = {"true": True, "false": False, "none": None, "inf": float("inf"), "nan": float("nan")}
    if text in words:
        return words[text]
    return int(text) if re.fullmatch("[+-]?[0-9]+", text) else number_or_word(text)


def check_search(estimator: Any, grid: dict[str, list[Any]], method: str) -> None:
    """Refuse an invalid search before anything is read or charged."""
    if grid:
        from privlearn.estimators.selection.candidates import candidates_of
        from privlearn.estimators.selection.search import check_method

        check_method(method)
        candidates_of(_without_ledger(estimator), grid)


def as_search(
    estimator: Any, grid: dict[str, list[Any]], method: str, public_validation: str | None, schema: Schema
) -> Any:
    """Return the estimator itself, or a search around it that is charged instead."""
    if not grid:
        return estimator
    from privlearn.data.sources.files import read_table
    from privlearn.estimators.selection import PrivateGridSearch
    from privlearn.estimators.selection.candidates import SEARCH_PARAMETERS

    public = None if public_validation is None else read_table(public_validation, schema)
    parameters = estimator.get_params(deep=False)
    charged = {name: parameters[name] for name in SEARCH_PARAMETERS}
    return PrivateGridSearch(
        _without_ledger(estimator), grid, method=method, public_validation=public, **charged
    )


def _without_ledger(estimator: Any) -> Any:
    return type(estimator)(**estimator.get_params(deep=False) | {"ledger": None, "random_state": None})


def print_selection(certificate: Certificate) -> None:
    """Print the selected candidate and its share of the budget, if there was a search."""
    from privlearn.release.certificate import SearchCertificate

    if not isinstance(certificate, SearchCertificate):
        return
    properties = certificate.in_search()
    typer.echo(f"Selected {properties['chosen']}: {certificate.mechanism.search.title}.")
    typer.echo(f"The model's own share: {properties['its own guarantee']}.")
    if "error shown" in properties:
        typer.echo(f"Its error, part of the release: {properties['error shown']}.")
