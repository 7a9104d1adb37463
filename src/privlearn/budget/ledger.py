"""The budget of a data set: admit, reserve and spend. The argument is in docs/theory/ledger.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection, insert, select

from privlearn.budget import tables as stores
from privlearn.budget.composition import (
    COMPOSITIONS,
    Amount,
    Balance,
    BasicComposition,
    Composition,
    CompositionName,
    Cost,
    RenyiComposition,
)
from privlearn.budget.pending import remember
from privlearn.budget.reservation import Reservation, append, check_budget, is_repeated_request, record_split
from privlearn.budget.statement import Entry, Standing, Statement, read_entries, read_standing, read_statement
from privlearn.budget.storage import locate
from privlearn.budget.tables import budgets
from privlearn.budget.totals import WHOLE, TotalsCheck, add_totals, balance_of, history, read_composition
from privlearn.data.parts import Part
from privlearn.errors import LedgerError, preview
from privlearn.guarantee import Guarantee


@dataclass(frozen=True)
class Ledger:
    """The budget of one data set in one store.

    Get one from `Ledger.create` or `Ledger.open`. It holds names and no connection, so it can be copied,
    pickled and used after a fork. The data set's name alone is its key: a changed schema brings
    no fresh budget, and neither does an account.

    Attributes
    ----------
    store : str
        Absolute path of the SQLite file, or address of the PostgreSQL database; never a password.
    dataset : str
    account : str, default=""
        On whose behalf it reserves, see `of_account`.
    share : Guarantee, optional
        Maximum cost of all releases of the account together.
    part : Part, optional
        The part of the split data set that its entries are about, see `of_part`; by default the whole.
    file_name, note : str, default=""
        Recorded with every entry, see `with_note`.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/budgets.db", "census", Guarantee(1.0, 1e-6))
    >>> with ledger.reserve(Cost(Guarantee(0.25)), "an example") as reservation:
    ...     # compute the private result from rows that were checked before
    ...     reservation.commit()  # and only then let it out
    >>> print(ledger.statement().left)
    epsilon 0.75, delta 1e-06
    >>> folder.cleanup()
    """

    store: str
    dataset: str
    account: str = ""
    share: Guarantee | None = None
    file_name: str = ""
    note: str = ""
    part: Part | None = None

    def __post_init__(self) -> None:
        if self.file_name:
            _check_text("the file's name", self.file_name, max_length=255)
        if self.note:
            _check_text("the note", self.note)
        if self.account:
            _check_text("the account's name", self.account)
        elif self.share is not None:
            raise LedgerError("a share needs an account. Pass its name, as in of_account(name, share).")

    @classmethod
    def create(
        cls, store: str | Path, dataset: str, total: Guarantee, *, composition: CompositionName = "basic"
    ) -> Ledger:
        """Give a data set its budget, once.

        Parameters
        ----------
        store : str or Path
            A path, or ``sqlite:///path``; created, readable by its owner only, if missing. Or
            ``postgresql://user@host/database``, a database that exists and is empty or holds a ledger: then
            processes on several machines share the budget (docs/how-to/budget.md).
        dataset : str
        total : Guarantee
            Maximum cost of all releases together.
        composition : {"basic", "renyi"}, default="basic"
            How costs add up, see docs/theory/ledger.md. ``basic`` admits one release of exactly the total;
            ``renyi`` admits more releases when they are many and Gaussian, and needs delta > 0.
        """
        ledger = cls(locate(store), dataset)
        _check_text("the data set's name", dataset)
        _new_composition(total, composition)  # a refused budget leaves no file behind
        with stores.creating(ledger.store) as connection:
            create_budget(connection, dataset, total, composition)
        return ledger

    @classmethod
    def open(cls, store: str | Path, dataset: str) -> Ledger:
        """Return the ledger of a data set that has a budget."""
        ledger = cls(locate(store), dataset)
        ledger.rule()
        return ledger

    @classmethod
    def datasets(cls, store: str | Path) -> list[str]:
        """Return the names of the data sets that have a budget in this store."""
        with stores.reading(locate(store)) as connection:
            return _datasets(connection)

    def of_account(self, account: str, share: Guarantee | None = None) -> Ledger:
        """Return the same budget for one of the accounts that share it; the total holds for all of them together.

        Parameters
        ----------
        account : str
            Recorded with every entry.
        share : Guarantee, optional
            Maximum cost of all entries of this account together, within the budget that is left for all. In both
            compositions their epsilons and deltas add up to no more. It is not recorded: the caller enforces it.
        """
        return replace(self, account=account, share=share)

    def of_part(self, part: Part) -> Ledger:
        """Return the same budget for releases about one part of the split data set alone.

        No person is in both parts, so what is left is the total less what concerns the whole and the larger of what
        concerns each part (docs/theory/split.md). The first entry of a part records the split permanently.

        Parameters
        ----------
        part : Part
            As `privlearn.split` returned it, for the neighbours of the budget and a schema of the data set's name.
        """
        if part.split.dataset != self.dataset:
            raise LedgerError(
                f"the split is of data set {part.split.dataset!r}, and this is the budget of {self.dataset!r}. Open "
                "the budget of that name, or name the schema like the budget and split again."
            )
        if part.split.neighbours != self.rule().total.neighbours:
            raise LedgerError(
                f"the table was split for {part.split.neighbours!r} neighbours, and the budget counts "
                f"{self.rule().total.neighbours!r}. Split it for those."
            )
        return replace(self, part=part)

    @property
    def part_name(self) -> str:
        """Return the name of the part; empty for the whole."""
        return "" if self.part is None else self.part.name

    def with_note(self, note: str = "", *, file_name: str = "") -> Ledger:
        """Return the same budget with a note that is recorded with every entry.

        Parameters
        ----------
        note : str, optional
            A line of at most 200 characters; stored, so never private.
        file_name : str, optional
            Name of the file that is paid for, without its directory.
        """
        return replace(self, note=note, file_name=file_name)

    def reserve(
        self, cost: Cost, purpose: str, schema_digest: str = "", *, id: str | None = None
    ) -> Reservation:
        """Take the cost out of the budget, durably, before anything is computed from the private rows.

        Parameters
        ----------
        cost : Cost
        purpose : str
            A short text such as ``"PrivateLogisticRegression.fit"``; stored, so never private.
        schema_digest : str, optional
            Recorded with the entry.
        id : str, optional
            A name for the reservation, so that a request may be repeated: an open reservation of this name, data
            set, account and cost is returned, and nothing is charged. Its result may then be computed again,
            and one result only may leave: store it under the same name before the commit.

        Raises
        ------
        BudgetExceeded
            If it does not fit; nothing is recorded then.
        LedgerError
            If the id is taken: by another data set, account or cost, or by a reservation that is settled.
        """
        check_purpose(purpose)
        if schema_digest:
            _check_text("the schema's digest", schema_digest)
        if id is not None:
            _check_text("the reservation's id", id, max_length=36)
        requested = self._price(cost)  # before the lock: a Renyi curve may take its time
        reservation = Reservation(self.store, self.dataset, id or str(uuid4()))
        # Remembered before it is written: an interruption may come right after the commit, and the user must know.
        remember(reservation, str(cost.guarantee))
        with stores.writing(self.store, self.dataset) as connection:
            # Inside the same transaction as the entry: two processes with different splits of one data set must not
            # both find that there is none yet.
            if self.part is not None:
                record_split(connection, self.dataset, self.part.split)
            if id is not None and is_repeated_request(connection, self, id, requested):
                return Reservation(self.store, self.dataset, id, resumed=True)
            check_budget(connection, self, requested)
            entry = append(
                connection,
                dataset=self.dataset,
                kind="reserved",
                reservation=reservation.id,
                epsilon=requested.epsilon,
                delta=requested.delta,
                renyi=requested.renyi,
                purpose=purpose,
                schema_digest=schema_digest,
                account=self.account,
                part=self.part_name,
                file_name=self.file_name,
                note=self.note,
            )
            add_totals(connection, entry, self.dataset, self.account, self.part_name, "reserved", requested)
        return reservation

    def standing(self) -> Standing:
        """Return total, spent, reserved and left at one moment, with an account also its share, in constant time."""
        with stores.reading(self.store) as connection:
            return self._standing(connection)

    def statement(self) -> Statement:
        """Return the standing together with every reservation."""
        with stores.reading(self.store) as connection:
            return read_statement(connection, self._standing(connection))

    def entries(self, limit: int, *, of_account: bool = False, before: str | None = None) -> list[Entry]:
        """Return the newest reservations, in their order.

        Parameters
        ----------
        limit : int
        of_account : bool, default=False
            Only those of the ledger's account.
        before : str, optional
            Only those older than the reservation of this id.
        """
        account = self.account if of_account else None
        with stores.reading(self.store) as connection:
            return read_entries(connection, self.dataset, account, limit, before)

    def history(self, limit: int) -> list[tuple[str, Balance]]:
        """Return times (UTC) and balances of the budget, or of the account's share if it has one, after each entry;
        oldest first.

        At most ``limit`` entries per part are taken, evenly spaced.
        """
        with stores.reading(self.store) as connection:
            rule = read_composition(connection, self.store, self.dataset)
            if self.share is not None:
                rule = BasicComposition(self.share)
            account = WHOLE if self.share is None else self.account
            moments = history(connection, self.dataset, account, limit)
        return [(time, balance_of(rule, totals, self.part_name)) for time, totals in moments]

    def check(self) -> int:
        """Add up all entries again, compare them with every running total, and return the number of entries.

        Raises
        ------
        LedgerError
            If they differ: the ledger was changed by other means.
        """
        self.rule()  # raises LedgerError for an unknown data set
        check, more = TotalsCheck(self.dataset), True
        while more:
            with stores.reading(self.store) as connection:
                more = check.check_more(connection)
        return check.count

    def _standing(self, connection: Connection) -> Standing:
        return read_standing(connection, self.store, self.dataset, self.account, self.share, self.part_name)

    def rule(self) -> Composition:
        """Return the total, and how costs add up to it."""
        with stores.reading(self.store) as connection:
            return read_composition(connection, self.store, self.dataset)

    def _price(self, cost: Cost) -> Amount:
        if self.share is not None:
            BasicComposition(self.share).price(cost)  # refuses a cost that cannot be compared with the share
        return self.rule().price(cost)


def create_budget(
    connection: Connection, dataset: str, total: Guarantee, composition: CompositionName
) -> None:
    """Give a data set its budget, once, inside a transaction that excludes others that create one."""
    _check_text("the data set's name", dataset)
    rule = _new_composition(total, composition)
    if dataset in _datasets(connection):
        raise LedgerError(
            f"data set {dataset!r} already has a budget, which cannot be changed. `privlearn budget show` "
            "shows it, and Ledger.open opens it."
        )
    connection.execute(insert(budgets).values(_budget_row(dataset, rule)))
    append(connection, dataset=dataset, kind="opened")


def _new_composition(total: Guarantee, name: str) -> Composition:
    if name not in COMPOSITIONS:
        raise LedgerError(f"composition must be one of {COMPOSITIONS}, not {preview(name)}")
    return RenyiComposition.of(total) if name == "renyi" else BasicComposition(total)


def _budget_row(dataset: str, rule: Composition) -> dict[str, str | float | None]:
    renyi = rule if isinstance(rule, RenyiComposition) else None
    return {
        "dataset": dataset,
        "epsilon": float(rule.total.epsilon),
        "delta": float(rule.total.delta),
        "neighbours": rule.total.neighbours,
        "composition": "renyi" if renyi else "basic",
        "renyi_order": renyi.order if renyi else None,
        "renyi_limit": renyi.limit if renyi else None,
    }


def _datasets(connection: Connection) -> list[str]:
    return sorted(connection.scalars(select(budgets.c.dataset)))


def check_purpose(purpose: str) -> None:
    """Raise LedgerError unless the text can be the purpose of an entry."""
    _check_text("the purpose", purpose)


def _check_text(what: str, text: str, max_length: int = 200) -> None:
    if not isinstance(text, str) or not text.strip() or len(text) > max_length or not text.isprintable():
        raise LedgerError(f"{what} must be one line of 1 to {max_length} printable characters")
