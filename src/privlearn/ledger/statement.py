"""Reading a budget: its row, its entries, where it stands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sqlalchemy import Connection, Row, func, select

from privlearn.errors import InvalidParameter, LedgerError
from privlearn.guarantee import Guarantee
from privlearn.ledger.composition import Amount, Balance, BasicComposition, Composition, RenyiComposition
from privlearn.ledger.tables import State, budgets, entries

CompositionName = Literal["basic", "renyi"]
COMPOSITIONS: tuple[str, ...] = get_args(CompositionName)


@dataclass(frozen=True)
class Entry:
    """One reservation and what became of it.

    Attributes
    ----------
    reservation : str
    state : {"reserved", "committed", "cancelled"}
        All but cancelled ones count.
    amount : Amount
    purpose, schema_digest : str
    account : str
        Who asked for it; empty if the budget is not shared out.
    part : str
        Which part of the split data set it is about; empty for the whole.
    file_name, note : str
        What it paid for and why, in the words of whoever reserved it; empty if nothing was said.
    reserved_at, settled_at : str
        UTC; ``settled_at`` is empty while reserved.
    """

    reservation: str
    state: State
    amount: Amount
    purpose: str
    schema_digest: str
    account: str
    part: str
    file_name: str
    note: str
    reserved_at: str
    settled_at: str


@dataclass(frozen=True)
class Share:
    """Where an account's part of a budget stands; in both compositions its costs add up.

    Attributes
    ----------
    account : str
    total : Guarantee
    spent, reserved, left : Amount
        They add up to the share. The data set may have less left than that.
    """

    account: str
    total: Guarantee
    spent: Amount
    reserved: Amount
    left: Amount

    def __str__(self) -> str:
        return f"share of {self.account}: {self.total}\n{_balance_lines(self)}"


@dataclass(frozen=True)
class PartStatement:
    """Where the people of one part of a split data set stand: what is about all, and what is about their part.

    Attributes
    ----------
    name : str
    spent, reserved, left : Amount
    """

    name: str
    spent: Amount
    reserved: Amount
    left: Amount

    def __str__(self) -> str:
        return f"part {self.name}\n{_balance_lines(self)}"


@dataclass(frozen=True)
class Statement:
    """Where a data set's budget stands.

    Attributes
    ----------
    dataset : str
    total : Guarantee
    composition : {"basic", "renyi"}
    spent, reserved, left : Amount
        They add up to the total. In a renyi ledger each epsilon is stated at the total's delta. Of a split data set:
        where those people stand who have the least left; of a ledger's part: its people.
    entries : tuple of Entry
        In the order of their reservation.
    renyi_order, renyi_limit : float or None
        The fixed order and the largest divergence at it; None in a basic ledger.
    share : Share or None
        That of the ledger's account, if it has one.
    parts : tuple of PartStatement
        Those of which there are entries.
    """

    dataset: str
    total: Guarantee
    composition: CompositionName
    spent: Amount
    reserved: Amount
    left: Amount
    entries: tuple[Entry, ...]
    renyi_order: float | None = None
    renyi_limit: float | None = None
    share: Share | None = None
    parts: tuple[PartStatement, ...] = ()

    def __str__(self) -> str:
        whole = f"{self.dataset}: {self.total}, {self.composition} composition\n{_balance_lines(self)}"
        beside = [*([] if self.share is None else [self.share]), *self.parts]
        return "\n".join([whole, *map(str, beside)])


def _balance_lines(balance: Statement | Share | PartStatement) -> str:
    return f"spent     {balance.spent}\nreserved  {balance.reserved}\nleft      {balance.left}"


def read_statement(
    connection: Connection, store: str, dataset: str, account: str, share: Guarantee | None, part: str = ""
) -> Statement:
    composition = read_composition(connection, store, dataset)
    history = read_entries(connection, dataset)
    balance = balance_of(composition, history, part)
    renyi = composition if isinstance(composition, RenyiComposition) else None
    return Statement(
        dataset=dataset,
        total=composition.total,
        composition="renyi" if renyi else "basic",
        spent=balance.spent,
        reserved=balance.reserved,
        left=balance.left,
        entries=tuple(history),
        renyi_order=renyi.order if renyi else None,
        renyi_limit=renyi.limit if renyi else None,
        share=None if share is None else _share(account, share, history, part),
        parts=tuple(_part(composition, history, name) for name in _parts_of(history)),
    )


def balance_of(composition: Composition, history: Sequence[Entry], part: str = "") -> Balance:
    """Where the people of a part stand; of the whole, where those stand who have the least left."""
    names = [part] if part else _parts_of(history) or [""]
    about = [[entry for entry in history if entry.part in ("", name)] for name in names]
    return composition.tightest(
        [composition.balance(amounts(own, "committed"), amounts(own, "reserved")) for own in about]
    )


def _parts_of(history: Sequence[Entry]) -> list[str]:
    return sorted({entry.part for entry in history if entry.part})


def _part(composition: Composition, history: Sequence[Entry], name: str) -> PartStatement:
    balance = balance_of(composition, history, name)
    return PartStatement(name, balance.spent, balance.reserved, balance.left)


def _share(account: str, total: Guarantee, history: Sequence[Entry], part: str) -> Share:
    own = [entry for entry in history if entry.account == account]
    balance = balance_of(BasicComposition(total), own, part)
    return Share(account, total, balance.spent, balance.reserved, balance.left)


def read_composition(connection: Connection, store: str, dataset: str) -> Composition:
    """The budget's total and rule."""
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


def read_counted(
    connection: Connection, dataset: str, account: str | None = None, part: str = ""
) -> list[list[Amount]]:
    """What a request must fit beside, one list for the people of each part that it is about.

    Of each part: every amount reserved or committed that is about it or about the whole, or those of one account.
    Equal ones are counted by the database, since writers wait for this.
    """
    of_this = entries.c.dataset == dataset
    cancelled = select(entries.c.reservation).where(of_this, entries.c.kind == "cancelled")
    if account is not None:
        of_this &= entries.c.account == account
    numbers = (entries.c.epsilon, entries.c.delta, entries.c.renyi, entries.c.part)
    rows = connection.execute(
        select(*numbers, func.count().label("times"))
        .where(of_this, entries.c.kind == "reserved", entries.c.reservation.not_in(cancelled))
        .group_by(*numbers)
    ).all()
    names = [part] if part else sorted({row.part for row in rows if row.part}) or [""]
    return [
        [
            Amount(row.epsilon, row.delta, row.renyi)
            for row in rows
            if (row.part or "") in ("", name)
            for _ in range(row.times)
        ]
        for name in names
    ]


def read_entries(connection: Connection, dataset: str) -> list[Entry]:
    rows = connection.execute(
        select(entries).where(entries.c.dataset == dataset).order_by(entries.c.id)
    ).all()
    settled = {row.reservation: row for row in rows if row.kind in ("committed", "cancelled")}
    return [_entry(row, settled.get(row.reservation)) for row in rows if row.kind == "reserved"]


def _entry(reserved: Row[Any], settled: Row[Any] | None) -> Entry:
    return Entry(
        reservation=reserved.reservation,
        state=settled.kind if settled else "reserved",
        amount=Amount(reserved.epsilon, reserved.delta, reserved.renyi),
        purpose=reserved.purpose,
        schema_digest=reserved.schema_digest,
        account=reserved.account,
        part=reserved.part or "",
        file_name=reserved.file_name or "",
        note=reserved.note or "",
        reserved_at=reserved.time,
        settled_at=settled.time if settled else "",
    )


def amounts(history: Sequence[Entry], *states: State) -> list[Amount]:
    return [entry.amount for entry in history if entry.state in states]
