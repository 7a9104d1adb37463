"""Options that several commands share, and what follows from them: numbers, output files, ledgers and tables."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.terminal import LateProgress, say, warn
from privlearn.errors import BudgetExceeded, InvalidParameter
from privlearn.guarantee import Guarantee

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from privlearn.budget.ledger import Ledger
    from privlearn.data.parts import Part
    from privlearn.data.schema.schema import Schema
    from privlearn.data.sources.row_source import RowSource
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


TableFile = Annotated[
    str,
    typer.Argument(
        parser=_parse_address,
        metavar="FILE",
        help="The table: .csv, .tsv, .txt, .data or .dat (also .gz, .bz2 and .zst) or .parquet; a directory of such "
        "files or a quoted 'data/*.parquet', here or in storage (s3://bucket/data/). With the extra files: .xlsx, "
        ".xlsm, .sav, .zsav, .dta, .sas7bdat or .xpt.",
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
SchemaFile = Annotated[
    Path, typer.Option("--schema", help="Public description of the table: .yaml or .json.")
]
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The parties' plan: .toml or .json.")]
OptionalOut = Annotated[
    Path | None, typer.Option("--out", help="Write to this file instead of the terminal.")
]
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


ChargedLedger = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PATH",
        help="Charge the budget in this file, or in postgresql://user@host/database.",
    ),
]
ChargedDataset = Annotated[
    str | None,
    typer.Option("--dataset", help="The data set's name in the ledger.", show_default="the schema's name"),
]
Note = Annotated[
    str | None,
    typer.Option("--note", help="A line for the ledger that states the purpose. Do not write private data."),
]
PartName = Annotated[
    str | None,
    typer.Option(
        "--part",
        help="The table is this part of a split, train or test. Only its people are charged.",
        show_default="the whole",
    ),
]
Neighbouring = Annotated[
    str,
    typer.Option(
        "--neighbours",
        help="Neighbouring data sets: replace_one (one person's record is replaced), zero_out (it is left out) or "
        "add_remove (it is left out, and the number of records is private).",
    ),
]
ExpectedRecords = Annotated[
    int | None,
    typer.Option(
        "--expected-records",
        metavar="NUMBER",
        help="With add_remove: the approximate number of records, from public knowledge.",
    ),
]
AcceptWeakPrivacy = Annotated[
    bool,
    typer.Option(
        "--accept-weak-privacy",
        help="Allow an epsilon above 20 or a delta of at least 1/n, which hardly protect anyone.",
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", help="For tests only: the result is marked 'not private'.")
]
SigningKey = Annotated[
    Path | None, typer.Option("--sign", metavar="KEY.pem", help="Sign with this Ed25519 key.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
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


def open_ledger(
    store: str | None,
    dataset: str | None,
    schema_name: str,
    *,
    out: Path | None = None,
    note: str | None = None,
    part: Part | None = None,
) -> Ledger | None:
    """Return the ledger of the data set, by default that of the schema's name; None without --ledger.

    Each entry of the ledger will contain the name of the file ``out`` and the note.
    """
    if store is None:
        for option, value in {"--dataset": dataset, "--note": note, "--part": part}.items():
            if value is not None:
                raise InvalidParameter(f"{option} needs a ledger. Add --ledger PATH.")
        return None
    from privlearn.budget.ledger import Ledger

    ledger = Ledger.open(store, schema_name if dataset is None else dataset)
    if part is not None:
        ledger = ledger.of_part(part)
    return ledger.with_note(note or "", file_name="" if out is None else out.name)


def part_of(table: str, name: str | None, schema: Schema) -> Part | None:
    """Return the part of a split that a table is, from the file that `privlearn split` wrote next to it."""
    if name is None:
        return None
    from privlearn.data.parts import Part

    part = Part.of_table(table, name)
    part.check(schema)
    return part


def open_part(table: str, schema: Schema, part: Part | None) -> RowSource[Any]:
    """Open a table as a part of a split, which is compared with the part that the ledger charges."""
    from privlearn.data.parts import PartRows
    from privlearn.data.sources.files import open_records

    rows = open_records(table, schema)
    return rows if part is None else PartRows(rows, part)


@contextmanager
def open_with_progress(
    table: str, schema: Schema, activity: str, part: Part | None = None
) -> Iterator[RowSource[Any]]:
    """Open a table, and show progress while its rows are read."""
    from privlearn.data.sources.passes import watch_passes

    with LateProgress(f"reading {table}") as progress, watch_passes(progress.follow(activity)):
        yield open_part(table, schema, part)


def check_budget(ledger: Ledger | None, total: Guarantee) -> None:
    """Refuse, before the first stage of a pipeline, a total that exceeds the budget.

    Stages of a Renyi ledger do not simply add up, so it is checked at each stage instead.
    """
    if ledger is None:
        return
    from privlearn.budget.composition import delta_hint

    statement = ledger.statement()
    left = statement.left
    if statement.composition == "basic" and (total.epsilon > left.epsilon or total.delta > left.delta):
        raise BudgetExceeded(
            f"the budget of data set {ledger.dataset!r} has {left} left, less than {total}. Request less"
            f"{delta_hint(total, left)}"
        )


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


def print_balance(ledger: Ledger | None, *, is_private: bool = True) -> None:
    """Print what is left of the budget; without a ledger, a reminder that the cost was not recorded."""
    if ledger is None and is_private:
        say("No cost was recorded. Use --ledger PATH, so that all releases about these people are added up.")
    if ledger is not None:
        statement = ledger.statement()
        part = f", part {ledger.part_name!r}" if ledger.part else ""
        typer.echo(f"Budget of {ledger.dataset!r}{part}: spent {statement.spent}; left {statement.left}.")
