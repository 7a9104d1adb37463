"""Options that only `privlearn train` has: for a private search, and for rows on an existing Dask cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import number_or_word
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.data.parts import Part
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
            raise InvalidParameter(f"--search {text} has the wrong form or a name twice. Write {_EXAMPLE}.")
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
    properties = certificate.describe_search()
    typer.echo(f"Selected {properties['chosen']}: {certificate.mechanism.search.title}.")
    typer.echo(f"The model's own share: {properties['its own guarantee']}.")
    if "error shown" in properties:
        typer.echo(f"Its error, part of the release: {properties['error shown']}.")


ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="tls://HOST:PORT of a Dask scheduler whose workers keep the rows and return sums (how-to/cluster.md).",
    ),
]


def _pem(name: str, what: str) -> Any:
    return Annotated[Path | None, typer.Option(f"--cluster-{name}", metavar="PEM", help=what)]


ClusterCa = _pem("ca", "The authority that signed the cluster's certificates.")
ClusterCertificate = _pem("cert", "Your certificate for the cluster.")
ClusterKey = _pem("key", "Its key.")


PemFiles = tuple[Path | None, Path | None, Path | None]


def check_cluster(address: str | None, files: PemFiles, *, only_trained: bool) -> None:
    """Refuse certificates without a cluster, and searches or unfinished schemas on a cluster."""
    if address is None and any(files):
        raise InvalidParameter(
            "--cluster-ca, --cluster-cert and --cluster-key need a cluster. Add --cluster tls://HOST:PORT."
        )
    if address is not None and not only_trained:
        raise InvalidParameter(
            "--cluster trains one model. Omit --search, and complete the schema first (privlearn discover)."
        )


@contextmanager
def rows_on(address: str, files: PemFiles, table: str, part: Part | None) -> Iterator[Any]:
    """Open the table on the cluster's workers, as a part of a split."""
    from privlearn.estimators.cluster.rows import Cluster

    ca, certificate, key = files
    with Cluster(address, ca=ca, certificate=certificate, key=key) as cluster:
        rows = cluster.open_records(table)
        rows.part = part
        yield rows
