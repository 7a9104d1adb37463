"""Options that several commands share, and what follows from them: numbers, output files, ledgers and tables."""

from __future__ import annotations

import math
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.terminal import warn
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from privlearn.release.base_certificate import BaseCertificate

NOT_PRIVATE_SEED = "NOT PRIVATE: --seed makes the noise predictable. Omit it for data about people."


def parse_number(text: str | float) -> float:
    """Return a number; refuse underscores (Python reads 1_0 as 10) and decimal commas."""
    try:
        if "_" not in str(text):
            return float(text)
    except ValueError:
        pass
    with_point = str(text).replace(",", ".")
    example = with_point if re.fullmatch(r"[0-9]+[.][0-9]+", with_point) else "0.5, 10 or 1e-6"
    raise typer.BadParameter(f"{str(text)!r} is not a valid number. Write it like {example}.")


def _parse_non_negative(text: str | float) -> float:
    number = parse_number(text)
    if number < 0:
        raise typer.BadParameter(f"{text} is below 0. Use 0 or more.")
    return number


def number_or_word(text: str) -> str | float:
    """Return a number, or a word such as auto, which the estimator checks."""
    return parse_number(text) if text[:1] in set("+-.0123456789") else text


NUMBER: dict[str, Any] = {"parser": parse_number, "metavar": "FLOAT"}
"""Settings of every option that takes a number with decimals."""

NOT_NEGATIVE: dict[str, Any] = NUMBER | {"parser": _parse_non_negative}


def _parse_address(text: str) -> str:
    """Return a path or an address as typed; refuse one with a key in it before anything prints it."""
    from privlearn.data.sources.addresses import table_path

    table_path(text)
    return text


_TABLE = (
    "The table: .csv, .tsv, .txt, .data or .dat (also .gz, .bz2 and .zst) or .parquet; a directory of such "
    "files or a quoted 'data/*.parquet', here or in storage (s3://bucket/data/). With the extra files: .xlsx, "
    ".xlsm, .sav, .zsav, .dta, .sas7bdat or .xpt."
)
TableFile = Annotated[str, typer.Argument(parser=_parse_address, metavar="FILE", help=_TABLE)]
RowsFile = Annotated[
    str,
    typer.Argument(
        parser=_parse_address,
        metavar="FILE",
        help=f"{_TABLE} For a public feature map: .npz with the array X and, to train, y.",
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A release file.")]
CertifiedFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A release, an evaluation, a description, estimates, a curvature, or a session's certificate (.json).",
    ),
]
SchemaFile = Annotated[Path, typer.Option("--schema", help="The table's public description: .yaml or .json.")]
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The parties' plan: .toml or .json.")]
OptionalOut = Annotated[Path | None, typer.Option("--out", help="Write to this file, not to the terminal.")]
LedgerStore = Annotated[
    str,
    typer.Option(
        "--ledger",
        metavar="PATH",
        help="File with the budgets, postgresql://user@host/database, or the holder's file OWNER.toml.",
    ),
]


def locate_ledger(ledger: str) -> str:
    """Return the store that a path, an address or the holder's file names."""
    if not ledger.endswith(".toml"):
        return ledger
    from privlearn.server.holder.settings import Owner

    return Owner.load(ledger).server.store


ChargedDataset = Annotated[
    str | None,
    typer.Option("--dataset", help="The data set's name in the ledger.", show_default="the schema's name"),
]
Neighbouring = Annotated[
    str,
    typer.Option(
        "--neighbours",
        help="Neighbouring data sets: replace_one (one person's record is replaced), zero_out (it is left out) or "
        "add_remove (it is left out, and the number of records is private).",
    ),
]
SigningKey = Annotated[
    Path | None, typer.Option("--sign", metavar="KEY.pem", help="Sign with this Ed25519 key.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        **NUMBER,
        help="Probability mass beyond epsilon, well below one over the number of records; 1e-6 means Gaussian noise, "
        "and less of it for most models. 0: none. Needed unless epsilon is inf.",
        show_default=False,
    ),
]


def require_delta(delta: float | None, epsilon: float) -> float:
    """Return delta; refuse to assume one, since it is part of the guarantee."""
    if delta is None and math.isfinite(epsilon):
        raise InvalidParameter(
            "--delta is missing. Add --delta 1e-6 (Gaussian noise, less of it for most models; delta must be well "
            "below one over the number of records), or --delta 0 for a guarantee without exceptions."
        )
    return delta or 0.0


ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="logistic, svm or regression.",
        show_default="regression if the target is a number, else logistic",
    ),
]
LossName = Annotated[
    str | None,
    typer.Option(
        "--loss",
        help="logistic, multinomial; svm: huber_hinge, smoothed_hinge, hinge; regression: huber, clipped_square.",
        show_default="the first",
    ),
]
KernelName = Annotated[str, typer.Option("--kernel", help="linear, rbf, laplacian, cauchy or polynomial.")]
Gamma = Annotated[
    str,
    typer.Option(
        "--gamma", help="Width parameter of the kernel, as in scikit-learn; auto computes it from the schema."
    ),
]


def check_writable(path: Path | None, force: bool) -> None:
    """Refuse a path that cannot or must not be written, before anything is charged; None is the terminal."""
    if path is None:
        return
    if path.is_dir():
        raise InvalidParameter(f"{path} is a directory. Give the name of a file.")
    if path.exists() and not force:
        raise InvalidParameter(f"{path} exists. Give another name, or --force to replace it.")
    try:  # the same directory and the same length of name as the later atomic write
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"):
            pass
    except OSError as error:
        raise InvalidParameter(f"cannot write {path}: {error.strerror}") from None


def check_writable_apart(out: Path, page: Path | None, force: bool) -> None:
    """Refuse a file and its page that cannot be written, or that would replace each other."""
    check_writable(out, force)
    check_writable(page, force)
    if page is not None and out.resolve() == page.resolve():
        raise InvalidParameter(f"--out and --page are both {out}. Give the page another name.")


def read_signing_key(path: Path | None) -> Ed25519PrivateKey | None:
    """Return the key of --sign, read before anything is charged; None without the option."""
    if path is None:
        return None
    from privlearn.release.signatures import read_private_key

    return read_private_key(path)


def print_guarantee(certificate: BaseCertificate) -> None:
    """Print what a certificate guarantees, and warn if that is weak or nothing."""
    guarantee = certificate.guarantee
    typer.echo(f"Guarantee: {guarantee}. {guarantee.in_words()}")
    if guarantee.is_private and not certificate.secure:
        warn(NOT_PRIVATE_SEED)
    elif not certificate.is_private:
        warn("NOT PRIVATE: epsilon is infinite. Do not share this file.")
    elif certificate.weakness:
        warn(f"This guarantee is {certificate.weakness}.")
