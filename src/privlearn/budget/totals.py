"""The rule and the running totals of a budget: what it allows, and what is reserved and committed after each entry.

Reading a budget takes constant time: an entry writes one row of totals for its data set and, if it has an account, one
for the account (table ``sums``). They are exact, rows are only added, and the entries alone decide what is right:
`TotalsCheck` adds them up again and compares every row.

A split data set has totals by part: what concerns everyone counts for the people of each part, in addition to what
concerns their part alone. So 0.3 for all and 0.2 for "train" count as 0.5 in "train" and 0.3 in "test".
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row, and_, func, insert, select

from privlearn.budget.composition import Amount, Balance, BasicComposition, Composition, RenyiComposition, Sum
from privlearn.budget.tables import State, budgets, entries, sums
from privlearn.data.schema.public import PARTS
from privlearn.errors import InvalidParameter, LedgerError
from privlearn.guarantee import Guarantee

WHOLE = ""
"""Stands for all accounts together, and for the people of all parts."""

_NOTHING = Sum()


@dataclass(frozen=True)
class PartTotals:
    """The budget in use at a moment: the sums of reserved and of committed costs."""

    reserved: Sum = _NOTHING
    committed: Sum = _NOTHING

    def after(self, state: State, amount: Amount) -> PartTotals:
        """Return the totals with one more reservation, or with one that is settled now."""
        change = Sum.of(amount)
        if state == "reserved":
            return PartTotals(self.reserved + change, self.committed)
        committed = self.committed + change if state == "committed" else self.committed
        return PartTotals(self.reserved - change, committed)

    def __add__(self, other: PartTotals) -> PartTotals:
        return PartTotals(self.reserved + other.reserved, self.committed + other.committed)


Totals = Mapping[str, PartTotals]
"""By part; `WHOLE` has what concerns the people of all parts."""


def totals_for_part(totals: Totals, part: str) -> list[PartTotals]:
    """Return what already counts for the people of each part that a request concerns."""
    names = [part] if part else sorted(name for name in totals if name) or [WHOLE]
    nothing = PartTotals()
    of_all = totals.get(WHOLE, nothing)
    return [of_all + totals.get(name, nothing) if name else of_all for name in names]


def balance_of(composition: Composition, totals: Totals, part: str = "") -> Balance:
    """Return the balance of the people of a part; for the whole, of those who have the least left."""
    parts = totals_for_part(totals, part)
    return composition.tightest([composition.balance(one.committed, one.reserved) for one in parts])


def read_totals(connection: Connection, dataset: str, account: str = WHOLE) -> dict[str, PartTotals]:
    """Return the present totals, of all accounts or of one.

    Raises
    ------
    LedgerError
        If an entry is missing from the totals: then nothing may rely on them.
    """
    latest = [_latest(connection, dataset, account, part) for part in (WHOLE, *PARTS)]
    rows = [row for row in latest if row is not None]
    known = max((row.entry for row in rows), default=None)
    # An entry that another program wrote would be missing here: then the balance would be too large.
    if account == WHOLE and known != _last_entry(connection, dataset):
        raise LedgerError(_DIFFER.format(dataset=dataset))
    return {row.part: totals_from_row(row) for row in rows}


def add_totals(
    connection: Connection, entry: int, dataset: str, account: str, part: str, state: State, amount: Amount
) -> None:
    """Write the totals after the entry of this number, which reserves or settles the amount."""
    for owner in sorted({WHOLE, account}):
        before = _latest(connection, dataset, owner, part)
        number = 1 if before is None else before.number + 1
        after = (PartTotals() if before is None else totals_from_row(before)).after(state, amount)
        key = {"dataset": dataset, "account": owner, "part": part, "number": number, "entry": entry}
        connection.execute(insert(sums).values(**key, **totals_to_columns(after)))


def history(connection: Connection, dataset: str, account: str, limit: int) -> list[tuple[str, Totals]]:
    """Return times and totals after each entry, or after at most ``limit`` entries per part; oldest first."""
    rows: list[Row[Any]] = []
    for part in (WHOLE, *PARTS):
        last = _latest(connection, dataset, account, part)
        if last is not None:
            steps = min(last.number, limit)
            numbers = [round(last.number * step / steps) for step in range(1, steps + 1)]
            query = select(sums, entries.c.time).join(entries, entries.c.id == sums.c.entry)
            query = query.where(_of(dataset, account, part), sums.c.number.in_(numbers))
            rows += connection.execute(query).all()
    moments: list[tuple[str, Totals]] = []
    totals: dict[str, PartTotals] = {}
    for row in sorted(rows, key=lambda row: int(row.entry)):
        totals = {**totals, row.part: totals_from_row(row)}
        moments.append((str(row.time), totals))
    return moments


class TotalsCheck:
    """Add up the entries of a data set again, and compare every row of totals ever written.

    It works in pieces, each in its own transaction, so that writers do not have to wait: rows are only ever added.
    """

    def __init__(self, dataset: str) -> None:
        self._dataset = dataset
        self._last = 0
        self._open: dict[str, Row[Any]] = {}
        self._totals: dict[tuple[str, str], tuple[int, PartTotals]] = {}
        self.count = 0

    def check_more(self, connection: Connection) -> bool:
        """Check the next entries; return False if none were left, and everything agrees."""
        later = (
            (entries.c.dataset == self._dataset) & (entries.c.kind != "opened") & (entries.c.id > self._last)
        )
        rows = connection.execute(select(entries).where(later).order_by(entries.c.id).limit(_PIECE)).all()
        if not rows:
            # Rows that belong to no entry were compared with nothing so far; their number gives them away.
            written = select(func.count()).select_from(sums).where(sums.c.dataset == self._dataset)
            self._require(connection.scalar(written) == sum(number for number, _ in self._totals.values()))
            return False
        before, self._last = self._last, rows[-1].id
        of_these = (sums.c.dataset == self._dataset) & sums.c.entry.between(before + 1, self._last)
        stored = {
            (row.entry, row.account, row.part): (row.number, totals_from_row(row))
            for row in connection.execute(select(sums).where(of_these))
        }
        self._require(stored == {key: value for row in rows for key, value in self._totals_after(row)})
        self.count += len(rows)
        return True

    def _totals_after(self, row: Row[Any]) -> Iterator[tuple[tuple[int, str, str], tuple[int, PartTotals]]]:
        """Yield the rows of totals that an entry must have written."""
        reserved = self._open.setdefault(row.reservation, row)
        if row.kind != "reserved":
            del self._open[row.reservation]
        amount = Amount(reserved.epsilon, reserved.delta, reserved.renyi)
        # A committed or cancelled entry has no amount of its own: the reserved row states it once.
        for owner in sorted({WHOLE, reserved.account}):
            key = (owner, reserved.part or WHOLE)
            number, totals = self._totals.get(key, (0, PartTotals()))
            self._totals[key] = number + 1, totals.after(row.kind, amount)
            yield (row.id, *key), self._totals[key]

    def _require(self, fits: bool) -> None:
        if not fits:
            raise LedgerError(_DIFFER.format(dataset=self._dataset))


_PIECE = 2000  # entries that are checked in one transaction


def _of(dataset: str, account: str, part: str) -> Any:
    return and_(sums.c.dataset == dataset, sums.c.account == account, sums.c.part == part)


def _latest(connection: Connection, dataset: str, account: str, part: str) -> Row[Any] | None:
    newest = select(sums).where(_of(dataset, account, part)).order_by(sums.c.number.desc()).limit(1)
    return connection.execute(newest).one_or_none()


def _last_entry(connection: Connection, dataset: str) -> int | None:
    of_this = (entries.c.dataset == dataset) & (entries.c.kind != "opened")
    return connection.scalar(select(entries.c.id).where(of_this).order_by(entries.c.id.desc()).limit(1))


_NAMES = [(state, name) for state in ("reserved", "committed") for name in ("epsilon", "delta", "renyi")]


def totals_from_row(row: Row[Any]) -> PartTotals:
    """Return the totals in a row of the table ``sums``."""
    numbers = [row._mapping[f"{state}_{name}"] for state, name in _NAMES]
    decimals = [None if number is None else Decimal(number) for number in numbers]
    return PartTotals(Sum(*decimals[:3]), Sum(*decimals[3:]))  # type: ignore[arg-type]


def totals_to_columns(totals: PartTotals) -> dict[str, str | None]:
    """Return the columns of the table ``sums``: decimals as text, without rounding."""
    values = {(state, name): getattr(getattr(totals, state), name) for state, name in _NAMES}
    return {f"{state}_{name}": None if v is None else str(v) for (state, name), v in values.items()}


_DIFFER = (
    "the running totals of data set {dataset!r} do not match its entries: the ledger was changed by other means. "
    "Restore a backup and settle it (docs/how-to/backup.md)."
)


def read_composition(connection: Connection, store: str, dataset: str) -> Composition:
    """Return the budget's total and its composition."""
    row = connection.execute(select(budgets).where(budgets.c.dataset == dataset)).one_or_none()
    if row is None:
        where = f"{shlex.quote(dataset)} --ledger {shlex.quote(store)}"
        names = list(connection.scalars(select(budgets.c.dataset).order_by(budgets.c.dataset)))
        others = f"it has {', '.join(map(repr, names))}. For other people than theirs, " if names else ""
        raise LedgerError(
            f"data set {dataset!r} has no budget in the ledger at {store}: {others}"
            f"create it with `privlearn budget create {where} --epsilon 1 --delta 1e-6`"
        )
    try:
        total = Guarantee(row.epsilon, row.delta, row.neighbours)
    except InvalidParameter as error:
        raise LedgerError(f"the budget of data set {dataset!r} at {store} cannot be read: {error}") from error
    if row.composition == "renyi":
        return RenyiComposition(total, row.renyi_order, row.renyi_limit)
    return BasicComposition(total)
