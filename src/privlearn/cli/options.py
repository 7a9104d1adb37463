"""Options that several commands have, and the ledgers that they name."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.terminal import say
from privlearn.errors import BudgetExceeded, InvalidParameter
from privlearn.guarantee import Guarantee

if TYPE_CHECKING:
    from privlearn.data.parts import Part
    from privlearn.data.schema.schema import Schema
    from privlearn.ledger.ledger import Ledger


def plain_number(text: str | float) -> float:
    """A number as people write it: Python would take 1_0 for ten."""
    try:
        if "_" not in str(text):
            return float(text)
    except ValueError:
        pass
    pointed = str(text).replace(",", ".")
    example = pointed if re.fullmatch(r"[0-9]+[.][0-9]+", pointed) else "0.5, 10 or 1e-6"
    raise typer.BadParameter(f"{str(text)!r} is not a valid float: write it like {example}.")


def _not_negative(text: str | float) -> float:
    number = plain_number(text)
    if number < 0:
        raise typer.BadParameter(f"{text} is below 0.")
    return number


NUMBER: dict[str, Any] = {"parser": plain_number, "metavar": "FLOAT"}
"""Of every option that takes a number with decimals."""

NOT_NEGATIVE: dict[str, Any] = NUMBER | {"parser": _not_negative}


def _address(text: str) -> str:
    """A path or an address, as it was typed; refused before anything prints it, should it hold a key."""
    from privlearn.data.sources.addresses import table_path

    table_path(text)
    return text


TableFile = Annotated[
    str,
    typer.Argument(
        parser=_address,
        metavar="FILE",
        help="The table: .csv, .tsv, .txt, .data or .dat (.gz, .bz2 and .zst too), or .parquet, a folder of such, or a "
        "quoted 'data/*.parquet', here or in storage (s3://bucket/folder/); with the extra files .xlsx, .xlsm, .xls, "
        ".ods, .sav, .zsav, .dta, .sas7bdat or .xpt.",
        show_default=False,
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A release file.", show_default=False)]
CertifiedFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A release, an evaluation, a description, a curvature, or the certificate of a session (.json).",
        show_default=False,
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
        help="Who is indistinguishable: replace_one (a person's record is exchanged), zero_out (left out) or "
        "add_remove (not there, nor counted).",
    ),
]
ExpectedRecords = Annotated[
    int | None,
    typer.Option(
        "--expected-records",
        metavar="NUMBER",
        help="With add_remove: how many records there are about, from public knowledge.",
        show_default=False,
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


def check_writable_apart(out: Path, page: Path | None, force: bool) -> None:
    """The same for a file and its page, which must not replace each other."""
    check_writable(out, force)
    if page is None:
        return
    check_writable(page, force)
    if out.resolve() == page.resolve():
        raise InvalidParameter(f"--out and --page are both {out}: the page needs a name of its own")


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
    str, typer.Option("--gamma", help="Of the kernel, as in scikit-learn; auto: from the schema alone.")
]


def number_or_word(text: str) -> str | float:
    """A number, or a word for the estimator to judge."""
    return plain_number(text) if text[:1] in set("+-.0123456789") else text


ChargedLedger = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PATH",
        help="Charge the budget in this file, or in postgresql://user@host/database.",
        show_default=False,
    ),
]
ChargedDataset = Annotated[
    str | None,
    typer.Option("--dataset", help="The data set's name in the ledger.", show_default="the schema's name"),
]


Note = Annotated[
    str | None,
    typer.Option(
        "--note", help="A line for the ledger: what this is for. Never private.", show_default=False
    ),
]


PartName = Annotated[
    str | None,
    typer.Option(
        "--part",
        help="The table is this part of a split, train or test: the ledger charges its people alone.",
        show_default="the whole",
    ),
]


def open_ledger(
    store: str | None,
    dataset: str | None,
    schema_name: str,
    *,
    out: Path | None = None,
    note: str | None = None,
    part: Part | None = None,
) -> Ledger | None:
    """The ledger asked for, under the schema's name unless another is given; entries say which file is paid for."""
    if store is None:
        given = {
            "--dataset names a budget": dataset,
            "--note is for a ledger": note,
            "--part is for a ledger": part,
        }
        for option, value in given.items():
            if value is not None:
                raise InvalidParameter(f"{option}: say where it is, with --ledger PATH")
        return None
    from privlearn.ledger.ledger import Ledger

    ledger = Ledger.open(store, schema_name if dataset is None else dataset)
    if part is not None:
        ledger = ledger.of_part(part)
    return ledger.with_note(note or "", file_name="" if out is None else out.name)


def part_of(table: str, name: str | None, schema: Schema) -> Part | None:
    """The part that a table is said to be, as `privlearn split` wrote it down beside it."""
    if name is None:
        return None
    from privlearn.data.parts import Part

    part = Part.of_table(table, name)
    part.check(schema)
    return part


def check_room(ledger: Ledger | None, total: Guarantee) -> None:
    """Refuse before a pipeline's first stage what would not fit at its last; a Renyi ledger can only tell then."""
    if ledger is None:
        return
    from privlearn.ledger.composition import only_delta_lacks

    statement = ledger.statement()
    left = statement.left
    if statement.composition == "basic" and (total.epsilon > left.epsilon or total.delta > left.delta):
        raise BudgetExceeded(
            f"the budget of data set {ledger.dataset!r} has {left} left, less than {total}: ask for less"
            f"{only_delta_lacks(total, left)}"
        )


def say_what_is_left(ledger: Ledger | None, *, promised: bool = True) -> None:
    """Where the budget stands; or, if there is none though something was promised, that nobody adds it up."""
    if ledger is None and promised:
        say(
            "Nothing was recorded: --ledger PATH charges a budget, so that releases about these people add up."
        )
    if ledger is not None:
        statement = ledger.statement()
        about = f", part {ledger.part_name!r}" if ledger.part else ""
        typer.echo(f"Budget of {ledger.dataset!r}{about}: spent {statement.spent}; left {statement.left}.")
