"""Describe a budget as the ledger has it: its entries, and its balance as a whole, by part and by account."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Row, select

from privlearn.budget.composition import (
    Amount,
    BasicComposition,
    Composition,
    CompositionName,
    RenyiComposition,
)
from privlearn.budget.tables import State, entries
from privlearn.budget.totals import Totals, balance_of, read_composition, read_totals
from privlearn.guarantee import Guarantee


@dataclass(frozen=True)
class Entry:
    """One reservation and its state.

    Attributes
    ----------
    reservation : str
    state : {"reserved", "committed", "cancelled"}
        All but cancelled ones count.
    amount : Amount
    purpose, schema_digest : str
    account : str
        Who requested it; empty if the budget is not shared out.
    part : str
        The part of the split data set that it concerns; empty for the whole.
    file_name, note : str
        The purpose that was stated with the reservation; may be empty.
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
    """The balance of an account's share of a budget; in both compositions its costs add up.

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
    """The balance of the people of one part of a split data set: what concerns all, and what concerns their part.

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
class Standing:
    """The balance of a data set's budget.

    Attributes
    ----------
    dataset : str
    total : Guarantee
    composition : {"basic", "renyi"}
    spent, reserved, left : Amount
        They add up to the total. In a renyi ledger each epsilon is stated at the total's delta. For a split data set
        they are those of the part with the least left; for a ledger of one part, those of that part.
    renyi_order, renyi_limit : float or None
        The fixed order and the largest divergence at it; None in a basic ledger.
    share : Share or None
        The share of the ledger's account, if it has one.
    parts : tuple of PartStatement
        Those of which there are entries.
    """

    dataset: str
    total: Guarantee
    composition: CompositionName
    spent: Amount
    reserved: Amount
    left: Amount
    renyi_order: float | None = None
    renyi_limit: float | None = None
    share: Share | None = None
    parts: tuple[PartStatement, ...] = ()

    def __str__(self) -> str:
        whole = f"{self.dataset}: {self.total}, {self.composition} composition\n{_balance_lines(self)}"
        details = [*([] if self.share is None else [self.share]), *self.parts]
        return "\n".join([whole, *map(str, details)])


@dataclass(frozen=True)
class Statement(Standing):
    """The balance of a data set's budget, with every reservation.

    Attributes
    ----------
    entries : tuple of Entry
        In the order of their reservation.
    """

    entries: tuple[Entry, ...] = ()

    __str__ = Standing.__str__


def _balance_lines(balance: Standing | Share | PartStatement) -> str:
    return f"spent     {balance.spent}\nreserved  {balance.reserved}\nleft      {balance.left}"


def read_standing(
    connection: Connection, store: str, dataset: str, account: str, share: Guarantee | None, part: str = ""
) -> Standing:
    """Return the balance of a data set, and of the account's share if it has one."""
    composition = read_composition(connection, store, dataset)
    totals = read_totals(connection, dataset)
    balance = balance_of(composition, totals, part)
    renyi = composition if isinstance(composition, RenyiComposition) else None
    return Standing(
        dataset=dataset,
        total=composition.total,
        composition="renyi" if renyi else "basic",
        spent=balance.spent,
        reserved=balance.reserved,
        left=balance.left,
        renyi_order=renyi.order if renyi else None,
        renyi_limit=renyi.limit if renyi else None,
        share=None if share is None else _share(connection, dataset, account, share, part),
        parts=tuple(_part(composition, totals, name) for name in sorted(totals) if name),
    )


def read_statement(connection: Connection, standing: Standing) -> Statement:
    """Return the balance together with all entries."""
    values = {field.name: getattr(standing, field.name) for field in fields(standing)}
    return Statement(**values, entries=tuple(read_entries(connection, standing.dataset)))


def _part(composition: Composition, totals: Totals, name: str) -> PartStatement:
    balance = balance_of(composition, totals, name)
    return PartStatement(name, balance.spent, balance.reserved, balance.left)


def _share(connection: Connection, dataset: str, account: str, total: Guarantee, part: str) -> Share:
    balance = balance_of(BasicComposition(total), read_totals(connection, dataset, account), part)
    return Share(account, total, balance.spent, balance.reserved, balance.left)


def read_entries(
    connection: Connection,
    dataset: str,
    account: str | None = None,
    limit: int | None = None,
    before: str | None = None,
) -> list[Entry]:
    """Return reservations in their order: all, or the newest ``limit``, of all accounts or of one.

    Parameters
    ----------
    before : str, optional
        Id of a reservation: only older ones.
    """
    of_this = (entries.c.dataset == dataset) & (entries.c.kind == "reserved")
    query = select(entries).where(of_this).order_by(entries.c.id.desc()).limit(limit)
    if account is not None:
        query = query.where(entries.c.account == account)
    if before is not None:
        seen = select(entries.c.id).where(of_this, entries.c.reservation == before)
        query = query.where(entries.c.id < seen.scalar_subquery())
    reserved = connection.execute(query).all()[::-1]
    settlements = _settlements(connection, dataset, [row.reservation for row in reserved] if limit else None)
    return [_entry(row, settlements.get(row.reservation)) for row in reserved]


def _settlements(connection: Connection, dataset: str, reservations: list[str] | None) -> dict[str, Row[Any]]:
    """Return the rows that settled reservations, by id: of all, or of these."""
    these = entries.c.dataset == dataset if reservations is None else entries.c.reservation.in_(reservations)
    query = select(entries).where(these, entries.c.kind.in_(("committed", "cancelled")))
    return {row.reservation: row for row in connection.execute(query)}


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
