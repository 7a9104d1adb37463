"""Running sums: what is reserved and committed after each entry, so that nobody need add up all of them.

An entry writes one row of sums for its data set and, if it has an account, one for the account. They are exact, rows
are only added, and the entries alone decide what is right: `Check` adds them up again and compares every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row, and_, func, insert, select

from privlearn.data.parts import PARTS
from privlearn.errors import LedgerError
from privlearn.ledger.composition import Amount, Balance, Composition, Sum
from privlearn.ledger.tables import State, entries, sums

WHOLE = ""
"""Stands for all accounts together, and for the people of all parts."""


_NOTHING = Sum()


@dataclass(frozen=True)
class Counted:
    """What counts at a moment: the sums of what is reserved and of what is committed."""

    reserved: Sum = _NOTHING
    committed: Sum = _NOTHING

    def after(self, state: State, amount: Amount) -> Counted:
        """With one more reservation, or with one that is settled now."""
        change = Sum.of(amount)
        if state == "reserved":
            return Counted(self.reserved + change, self.committed)
        committed = self.committed + change if state == "committed" else self.committed
        return Counted(self.reserved - change, committed)

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.reserved + other.reserved, self.committed + other.committed)


Sums = Mapping[str, Counted]
"""By part; `WHOLE` has what is about the people of all parts."""


def about(counted: Sums, part: str) -> list[Counted]:
    """What a request must fit beside, for the people of each part that it is about."""
    names = [part] if part else sorted(name for name in counted if name) or [WHOLE]
    nothing = Counted()
    of_all = counted.get(WHOLE, nothing)
    return [of_all + counted.get(name, nothing) if name else of_all for name in names]


def balance_of(rule: Composition, counted: Sums, part: str = "") -> Balance:
    """Where the people of a part stand; of the whole, where those stand who have the least left."""
    return rule.tightest([rule.balance(one.committed, one.reserved) for one in about(counted, part)])


def read_sums(connection: Connection, dataset: str, account: str = WHOLE) -> dict[str, Counted]:
    """What counts now, of all accounts or of one.

    Raises
    ------
    LedgerError
        If there is an entry that the sums do not know: then nothing may rely on them.
    """
    latest = [_latest(connection, dataset, account, part) for part in (WHOLE, *PARTS)]
    rows = [row for row in latest if row is not None]
    known = max((row.entry for row in rows), default=None)
    if account == WHOLE and known != _last_entry(connection, dataset):
        raise LedgerError(_DIFFER.format(dataset=dataset))
    return {row.part: counted_in(row) for row in rows}


def add_sums(
    connection: Connection, entry: int, dataset: str, account: str, part: str, state: State, amount: Amount
) -> None:
    """After the entry of this number, which reserves or settles the amount."""
    for whose in sorted({WHOLE, account}):
        before = _latest(connection, dataset, whose, part)
        number = 1 if before is None else before.number + 1
        after = (Counted() if before is None else counted_in(before)).after(state, amount)
        named = {"dataset": dataset, "account": whose, "part": part, "number": number, "entry": entry}
        connection.execute(insert(sums).values(**named, **columns_of(after)))


def history(connection: Connection, dataset: str, account: str, most: int) -> list[tuple[str, Sums]]:
    """What counted after each entry, or after so many of them, with its time; oldest first."""
    found: list[Row[Any]] = []
    for part in (WHOLE, *PARTS):
        last = _latest(connection, dataset, account, part)
        if last is not None:
            steps = min(last.number, most)
            numbers = [round(last.number * step / steps) for step in range(1, steps + 1)]
            query = select(sums, entries.c.time).join(entries, entries.c.id == sums.c.entry)
            chosen = query.where(_of(dataset, account, part), sums.c.number.in_(numbers))
            found += connection.execute(chosen).all()
    moments: list[tuple[str, Sums]] = []
    counted: dict[str, Counted] = {}
    for row in sorted(found, key=lambda row: int(row.entry)):
        counted = {**counted, row.part: counted_in(row)}
        moments.append((str(row.time), counted))
    return moments


class Check:
    """Adds up the entries of a data set again, and compares every sum ever written.

    In pieces, each in a transaction of its own, so that nobody who writes has to wait: rows are only ever added.
    """

    def __init__(self, dataset: str) -> None:
        self._dataset = dataset
        self._last = 0
        self._open: dict[str, Row[Any]] = {}
        self._standing: dict[tuple[str, str], tuple[int, Counted]] = {}
        self.count = 0

    def go_on(self, connection: Connection) -> bool:
        """Check some more entries; False if there were none left, and everything fits."""
        later = (
            (entries.c.dataset == self._dataset) & (entries.c.kind != "opened") & (entries.c.id > self._last)
        )
        rows = connection.execute(select(entries).where(later).order_by(entries.c.id).limit(_PIECE)).all()
        if not rows:
            written = select(func.count()).select_from(sums).where(sums.c.dataset == self._dataset)
            self._require(connection.scalar(written) == sum(number for number, _ in self._standing.values()))
            return False
        before, self._last = self._last, rows[-1].id
        of_these = (sums.c.dataset == self._dataset) & sums.c.entry.between(before + 1, self._last)
        found = connection.execute(select(sums).where(of_these))
        stored = {(row.entry, row.account, row.part): (row.number, counted_in(row)) for row in found}
        self._require(stored == {key: value for row in rows for key, value in self._added(row)})
        self.count += len(rows)
        return True

    def _added(self, row: Row[Any]) -> Iterator[tuple[tuple[int, str, str], tuple[int, Counted]]]:
        """The sums that an entry leaves behind."""
        reserved = self._open.setdefault(row.reservation, row)
        if row.kind != "reserved":
            del self._open[row.reservation]
        amount = Amount(reserved.epsilon, reserved.delta, reserved.renyi)
        for whose in sorted({WHOLE, reserved.account}):
            key = (whose, reserved.part or WHOLE)
            number, counted = self._standing.get(key, (0, Counted()))
            self._standing[key] = number + 1, counted.after(row.kind, amount)
            yield (row.id, *key), self._standing[key]

    def _require(self, fits: bool) -> None:
        if not fits:
            raise LedgerError(_DIFFER.format(dataset=self._dataset))


_PIECE = 2000


def _of(dataset: str, account: str, part: str) -> Any:
    return and_(sums.c.dataset == dataset, sums.c.account == account, sums.c.part == part)


def _latest(connection: Connection, dataset: str, account: str, part: str) -> Row[Any] | None:
    newest = select(sums).where(_of(dataset, account, part)).order_by(sums.c.number.desc()).limit(1)
    return connection.execute(newest).one_or_none()


def _last_entry(connection: Connection, dataset: str) -> int | None:
    of_this = (entries.c.dataset == dataset) & (entries.c.kind != "opened")
    return connection.scalar(select(entries.c.id).where(of_this).order_by(entries.c.id.desc()).limit(1))


_NAMES = [(state, name) for state in ("reserved", "committed") for name in ("epsilon", "delta", "renyi")]


def counted_in(row: Row[Any]) -> Counted:
    numbers = [row._mapping[f"{state}_{name}"] for state, name in _NAMES]
    decimals = [None if number is None else Decimal(number) for number in numbers]
    return Counted(Sum(*decimals[:3]), Sum(*decimals[3:]))  # type: ignore[arg-type]


def columns_of(counted: Counted) -> dict[str, str | None]:
    values = {(state, name): getattr(getattr(counted, state), name) for state, name in _NAMES}
    return {f"{state}_{name}": None if v is None else str(v) for (state, name), v in values.items()}


_DIFFER = (
    "the sums of data set {dataset!r} are not those of its entries: the ledger was changed by other means. Restore a "
    "backup and settle it (docs/how-to/backup.md)"
)
