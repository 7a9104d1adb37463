"""Arguments that several commands share, and the check of where they write."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from privlearn.errors import InvalidParameter

TableFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The table: .csv, .csv.gz or .parquet.", show_default=False)
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A release file.", show_default=False)]
CertifiedFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A release, or the certificate of a session (.json).", show_default=False
    ),
]
SchemaFile = Annotated[
    Path, typer.Option("--schema", help="What is public about the table: .yaml or .json.", show_default=False)
]
PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="The parties' plan: .toml or .json.", show_default=False)
]
LedgerStore = Annotated[
    str,
    typer.Option(
        "--ledger",
        metavar="PATH",
        help="File with the budgets, or postgresql://user@host/database.",
        show_default=False,
    ),
]
AcceptWeakPrivacy = Annotated[
    bool,
    typer.Option(
        "--accept-weak-privacy",
        help="Go on with an epsilon above 20 or a delta of at least 1/n, which hardly protect anybody.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
Neighbouring = Annotated[
    str,
    typer.Option(
        "--neighbours",
        help="Who is indistinguishable: replace_one (a person's record is exchanged) or zero_out (left out).",
    ),
]


def check_writable(path: Path, force: bool) -> None:
    """Refuse a path that cannot be written, or must not be, before anything is paid for."""
    if path.is_dir():
        raise InvalidParameter(f"{path} is a folder: give the name of a file")
    if path.exists() and not force:
        raise InvalidParameter(f"{path} exists: give another name, or --force to replace it")
    try:  # the same folder and the same length of name as the later atomic write
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"):
            pass
    except OSError as error:
        raise InvalidParameter(f"cannot write {path}: {error.strerror}") from None
