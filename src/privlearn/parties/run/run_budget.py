"""Cost of one run in a party's ledger: reserved before the sign-off, final before an answer leaves.

An answer leaves only after its cost is committed, durably. So a reservation that was never committed proves that
nothing was sent, even if the process was killed, and can be cancelled. A process that still lives cannot commit a
cancelled reservation, and so sends no further answer.

A ledger with Renyi composition charges each question. With basic composition a run that was begun costs the whole
agreement: the coordinator sees the answers and may choose when to stop, and the answers up to a moment chosen in this
way do not have the epsilon and delta of that many answers (docs/theory/multiparty.md, "A run that stops early").

The cost is the guarantee towards the adversary that learns most: with ``colluding = 0`` that is another party, which
subtracts its own share of the noise.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from privlearn.accounting import gaussian_epsilon
from privlearn.budget.charge import budget_of_rows
from privlearn.budget.composition import Cost, RenyiComposition
from privlearn.budget.ledger import Ledger
from privlearn.budget.pending import remember
from privlearn.budget.reservation import Reservation
from privlearn.errors import LedgerError
from privlearn.guarantee import Guarantee
from privlearn.parties.run.agreement import Agreement


class RunBudget:
    """One party's cost of one run.

    ``name``: the party's name. ``ledger``: without one nothing is charged.
    """

    def __init__(self, agreement: Agreement, name: str, ledger: Ledger | None) -> None:
        self._agreement = agreement
        self._ledger = ledger
        self._purpose = f"party {name} of the agreement {agreement.digest}"
        self._by_question = ledger is not None and isinstance(ledger.rule(), RenyiComposition)
        self._reserved: list[Reservation] = []
        self.answered: set[int] = set()
        """Questions whose cost is final: their answers may have left."""

    def reserve(self) -> None:
        """Reserve the cost of the whole agreement, or nothing."""
        ledger, kinds = self._ledger, self._agreement.mechanism.kinds
        if ledger is None:
            return
        # a run is about the whole data set: refuse a ledger that states a part
        budget_of_rows(ledger, None, self._agreement.table_schema)
        digest = self._agreement.table_schema.digest
        try:
            for part in [(kind,) for kind in kinds] if self._by_question else [kinds]:
                self._reserved.append(ledger.reserve(self._cost(part), self._purpose, digest))
        except LedgerError:
            self._cancel_unanswered()
            raise

    def to_dict(self) -> dict[str, Any]:
        """Return what `resume` needs."""
        return {"reserved": [one.id for one in self._reserved], "answered": sorted(self.answered)}

    def resume(self, content: Mapping[str, Any], begun: int | None) -> None:
        """Continue with another process's reservations; the ledger decides which questions were charged.

        ``begun`` is a question that was being answered: charged if it is in the ledger.
        """
        if self._ledger is None:
            raise LedgerError("the run was begun with a ledger. Name the same one")
        store, dataset = self._ledger.store, self._ledger.dataset
        self._reserved = [Reservation(store, dataset, id) for id in content["reserved"]]
        about = (
            "a part of the agreement's cost" if self._by_question else str(self._agreement.towards_a_party)
        )
        for reservation in self._reserved:  # so that an interruption of this process reports them too
            remember(reservation, about)
        self.answered = set().union(*(reservation.answered() for reservation in self._reserved))
        if self.answered - {begun} != set(content["answered"]) - {begun}:
            raise LedgerError(
                "the ledger has answers of this run that are not in the file of the run: the file is an old copy and "
                "must not continue. End the run with `privlearn party MINE.toml --give-back`"
            )

    def commit(self, question: int) -> None:
        """Make the question's cost final; only afterwards may its answer leave.

        The ledger counts answers and refuses a second one, for instance by a process with a copy of this one's memory.
        """
        if self._reserved:
            self._reservation(question).commit_answer(question)
        self.answered.add(question)

    def record_shares(self, question: int, message: bytes) -> None:
        """Record the list of arrived vectors before shares leave for it; the ledger allows one list per question."""
        if self._reserved:
            self._reservation(question).record_shares(question, hashlib.sha256(message).hexdigest())

    def close(self) -> str:
        """Cancel what was not used; return a summary of answers, cost and cancelled reservations."""
        kinds = self._agreement.mechanism.kinds
        if len(self.answered) < len(kinds):  # the ledger may have a commit whose success was not reported
            self.answered = self.answered.union(*(reservation.answered() for reservation in self._reserved))
        if not self.answered:
            self._cancel_unanswered()
            return "No question was answered: nothing about the rows was sent, and the budget is unchanged."
        spent = self._agreement.mechanism.epsilon_of(tuple(kinds[number] for number in self.answered))
        summary = (
            f"Answered {len(self.answered)} of {len(kinds)} questions: epsilon {spent:.3g} of the agreement's "
            f"{self._agreement.guarantee.epsilon:.3g}."
        )
        if self._ledger is None or len(self.answered) == len(kinds):
            return summary
        if not self._by_question:
            return (
                f"{summary} The ledger charges the whole agreement, {self._agreement.towards_a_party}: with basic "
                "composition no part of a run that was begun is given back."
            )
        self._cancel_unanswered()
        return f"{summary} The ledger charges these; the cost of {len(kinds) - len(self.answered)} was given back."

    def cancel_stranded(self) -> int:
        """Cancel reservations that an earlier run of the agreement never committed; return their number."""
        if self._ledger is None:
            return 0
        stranded = [
            Reservation(self._ledger.store, self._ledger.dataset, entry.reservation)
            for entry in self._ledger.statement().entries
            if entry.purpose == self._purpose and entry.state == "reserved"
        ]
        count = 0
        for reservation in stranded:
            with suppress(LedgerError):  # committed meanwhile: its run continues
                reservation.cancel()
                count += 1
        return count

    def _reservation(self, question: int) -> Reservation:
        return self._reserved[question if self._by_question else 0]

    def _cancel_unanswered(self) -> None:
        used = self.answered if self._by_question else {0} if self.answered else set()
        for index, reservation in enumerate(self._reserved):
            if index not in used:
                reservation.cancel()

    def _cost(self, kinds: tuple[str, ...]) -> Cost:
        """Return the cost of answers to such questions towards the adversary that learns most.

        Without one of H shares, the Renyi divergence of Gaussian noise is H / (H - 1) times as large.
        """
        mechanism, guarantee = self._agreement.mechanism, self._agreement.towards_a_party
        if guarantee is None:
            raise LedgerError("the agreement has no guarantee towards another party, and so no cost. Refused")
        known = 0.0 if guarantee == self._agreement.guarantee else 1.0 / self._agreement.cohort.honest

        def renyi(order: float) -> float:
            return mechanism.renyi_of(kinds, order) / (1.0 - known)

        if kinds == mechanism.kinds:
            return Cost(guarantee, renyi)
        epsilon = (
            gaussian_epsilon(math.sqrt(renyi(2.0)), guarantee.delta) if known else mechanism.epsilon_of(kinds)
        )
        return Cost(Guarantee(epsilon, guarantee.delta, guarantee.neighbours), renyi)
