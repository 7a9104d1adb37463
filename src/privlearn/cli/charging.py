"""The options of commands that charge a budget, as one parameter of a command; and helpers that open the ledger.

`with_options` turns a parameter that is such a value into one option for each of its fields. For example,
`def curvature(model: ModelFile, *, charging: Charging)` has the options --ledger, --dataset, --part and so on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from privlearn.cli.options import ChargedDataset, Force, Neighbouring
from privlearn.cli.terminal import LateProgress, say
from privlearn.errors import BudgetExceeded, InvalidParameter

if TYPE_CHECKING:
    from privlearn.budget.ledger import Ledger
    from privlearn.data.parts import Part
    from privlearn.data.schema.schema import Schema
    from privlearn.data.sources.row_source import RowSource
    from privlearn.guarantee import Guarantee


@dataclass(frozen=True)
class Charging:
    """Options of every command that charges a budget: whose budget, for which purpose, with which safeguards."""

    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Charge the budget in this file, or in postgresql://user@host/database."
        ),
    ] = None
    dataset: ChargedDataset = None
    part: Annotated[
        str | None,
        typer.Option(
            help="The table is this part of a split, train or test. Only its people are charged.",
            show_default="the whole",
        ),
    ] = None
    note: Annotated[
        str | None,
        typer.Option(help="A line for the ledger that states the purpose. Do not write private data."),
    ] = None
    accept_weak_privacy: Annotated[
        bool,
        typer.Option(
            "--accept-weak-privacy",
            help="Allow an epsilon above 20 or a delta of at least 1/n, which hardly protect anyone.",
        ),
    ] = False
    seed: Annotated[int | None, typer.Option(help="For tests only: the result is marked 'not private'.")] = (
        None
    )
    force: Force = False

    def open_budget(self, table: str, schema: Schema, out: Path) -> tuple[Ledger | None, Part | None]:
        """Return the ledger to charge, and the part of a split of the table; each may be None."""
        part = self._part_of(table, schema)
        return open_ledger(self.ledger, self.dataset, schema.name, out=out, note=self.note, part=part), part

    @contextmanager
    def open_rows(
        self, table: str, schema: Schema, activity: str, out: Path
    ) -> Iterator[tuple[RowSource[Any], dict[str, Any]]]:
        """Open the table, and show progress while it is read; also return the settings that each statistic takes."""
        from privlearn.data.sources.passes import watch_passes

        ledger, part = self.open_budget(table, schema, out)
        with LateProgress(f"reading {table}") as progress, watch_passes(progress.follow(activity)):
            yield open_part(table, schema, part), {"ledger": ledger} | self.safeguards

    @property
    def safeguards(self) -> dict[str, Any]:
        """Return the settings of estimators and statistics that these options set."""
        return {"accept_weak_privacy": self.accept_weak_privacy, "random_state": self.seed}

    def _part_of(self, table: str, schema: Schema) -> Part | None:
        """Return the part of a split that a table is, from the file that `privlearn split` wrote next to it."""
        if self.part is None:
            return None
        from privlearn.data.parts import Part

        part = Part.of_table(table, self.part)
        part.check(schema)
        return part


@dataclass(frozen=True)
class RelatedCharging(Charging):
    """`Charging` and the relation of neighbours. A command about a release takes `Charging`: it states the relation."""

    neighbours: Neighbouring = "replace_one"
    expected_records: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="With add_remove: the approximate number of records, from public knowledge.",
        ),
    ] = None

    @property
    def safeguards(self) -> dict[str, Any]:
        return super().safeguards | {"neighbours": self.neighbours, "expected_records": self.expected_records}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for typer, in which each parameter that is a dataclass becomes one option per field."""
    hints = get_type_hints(command, include_extras=True)
    bundles: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    if not bundles:
        return command
    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in bundles:
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        options = inspect.signature(bundles[name]).parameters.values()
        types = get_type_hints(bundles[name], include_extras=True)
        parameters += [
            option.replace(annotation=types[option.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for option in options
        ]

    @wraps(command)
    def run(**values: Any) -> None:
        for name, kind in bundles.items():
            values[name] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
        command(**values)

    # typer reads these two instead of the signature of `run`
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


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


def open_part(table: str, schema: Schema, part: Part | None) -> RowSource[Any]:
    """Open a table as a part of a split, which is compared with the part that the ledger charges."""
    from privlearn.data.parts import PartRows
    from privlearn.data.sources.files import open_records

    rows = open_records(table, schema)
    return rows if part is None else PartRows(rows, part)


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


def print_balance(ledger: Ledger | None, *, is_private: bool = True) -> None:
    """Print what is left of the budget; without a ledger, a reminder that the cost was not recorded."""
    if ledger is None and is_private:
        say("No cost was recorded. Use --ledger PATH, so that all releases about these people are added up.")
    if ledger is not None:
        statement = ledger.statement()
        part = f", part {ledger.part_name!r}" if ledger.part else ""
        typer.echo(f"Budget of {ledger.dataset!r}{part}: spent {statement.spent}; left {statement.left}.")
