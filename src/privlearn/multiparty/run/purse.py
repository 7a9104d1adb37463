"""What a run takes out of one party's budget: reserved before the sign-off, final before an answer leaves.

An answer leaves only after its cost is committed, durably. So a reservation that was never committed proves that
nothing was sent, whatever became of the process, and can be given back: should the process still live, it can commit no
more, and so answers no more.

A ledger with Renyi composition charges question by question. With basic composition a run that was begun costs the
whole plan: the coordinator sees the answers and may choose when to stop, and what was sent up to a moment chosen so
does not have the epsilon and delta of that many answers (docs/theory/multiparty.md, "A run that stops early").
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from privlearn.errors import LedgerError
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Reservation
from privlearn.ledger.composition import Cost, RenyiComposition
from privlearn.ledger.ledger import Ledger
from privlearn.multiparty.run.joint_plan import JointPlan


class Purse:
    """One party's cost of one run.

    Parameters
    ----------
    plan : JointPlan
    name : str
        The party's.
    ledger : Ledger, optional
        Without one nothing is charged.
    """

    def __init__(self, plan: JointPlan, name: str, ledger: Ledger | None) -> None:
        self._plan = plan
        self._ledger = ledger
        self._purpose = f"party {name} of the plan {plan.digest[:16]}"
        self._by_question = ledger is not None and isinstance(ledger.rule(), RenyiComposition)
        self._reserved: list[Reservation] = []
        self.asked: set[int] = set()
        """Questions whose cost is final: their answers may have left."""

    def reserve(self) -> None:
        """Take the whole plan's cost out of the budget, or nothing."""
        ledger, kinds = self._ledger, self._plan.mechanism.kinds
        if ledger is None:
            return
        parts = [(kind,) for kind in kinds] if self._by_question else [kinds]
        try:
            for part in parts:
                made = ledger.reserve(self._cost(part), self._purpose, self._plan.table_schema.digest)
                self._reserved.append(made)
        except LedgerError:
            self._give_back()
            raise

    def to_dict(self) -> dict[str, Any]:
        """What `resume` needs."""
        return {"reserved": [reservation.id for reservation in self._reserved], "asked": sorted(self.asked)}

    def resume(self, content: Mapping[str, Any], begun: int | None) -> None:
        """Go on with another process's reservations; the ledger says which questions were paid for.

        ``begun`` is a question that was being answered: paid for, if the ledger says so.
        """
        if self._ledger is None:
            raise LedgerError("the run was begun with a ledger: name the same one")
        store, dataset = self._ledger.store, self._ledger.dataset
        self._reserved = [Reservation(store, dataset, id) for id in content["reserved"]]
        if any(one.state() == "committed" and not one.answered() for one in self._reserved):
            raise LedgerError(
                "the ledger says that this run has answered, and not what: it was upgraded since, and the run must not "
                "go on. End it with `privlearn party MINE.toml --give-back`"
            )
        self.asked = set().union(*(reservation.answered() for reservation in self._reserved))
        if self.asked - {begun} != set(content["asked"]) - {begun}:
            raise LedgerError(
                "the ledger has answers of this run that the file of the run does not know: it is an old copy, and "
                "must not go on. End the run with `privlearn party MINE.toml --give-back`"
            )

    def spend(self, question: int) -> None:
        """Make the question's cost final; only afterwards may its answer leave.

        The ledger counts it and refuses a second time: by a process that has a copy of this one's memory, say.
        """
        self.asked.add(question)
        if self._reserved:
            self._paying(question).commit_answer(question)

    def reveal(self, question: int, message: bytes) -> None:
        """Before shares leave for a list of who arrived: they may for one list per question, whatever files say."""
        if self._reserved:
            self._paying(question).record_shares(question, hashlib.sha256(message).hexdigest())

    def close(self) -> str:
        """Give back what was not asked; says what was asked, what it costs and what was given back."""
        kinds = self._plan.mechanism.kinds
        if not self.asked:
            self._give_back()
            return "No question was answered: nothing about the rows was sent, and the budget is as it was."
        spent = self._plan.mechanism.epsilon_of(tuple(kinds[number] for number in self.asked))
        told = (
            f"Answered {len(self.asked)} of {len(kinds)} questions: epsilon {spent:.3g} of the plan's "
            f"{self._plan.guarantee.epsilon:.3g}."
        )
        if self._ledger is None or len(self.asked) == len(kinds):
            return told
        if not self._by_question:
            return (
                f"{told} The ledger charges the whole plan, {self._plan.guarantee}: with basic composition a run that "
                "was begun is not given back in part."
            )
        self._give_back()
        return f"{told} The ledger charges these; the cost of {len(kinds) - len(self.asked)} was given back."

    def give_back_stranded(self) -> int:
        """Give back what an earlier run of the plan reserved and never committed; returns how many reservations."""
        if self._ledger is None:
            return 0
        of_this = [
            Reservation(self._ledger.store, self._ledger.dataset, entry.reservation)
            for entry in self._ledger.statement().entries
            if entry.purpose == self._purpose and entry.state == "reserved"
        ]
        given = 0
        for reservation in of_this:
            with suppress(LedgerError):  # committed meanwhile: its run goes on
                reservation.cancel()
                given += 1
        return given

    def _paying(self, question: int) -> Reservation:
        return self._reserved[question if self._by_question else 0]

    def _give_back(self) -> None:
        kept = self.asked if self._by_question else {0} if self.asked else set()
        for place, reservation in enumerate(self._reserved):
            if place not in kept:
                reservation.cancel()

    def _cost(self, kinds: tuple[str, ...]) -> Cost:
        mechanism, promise = self._plan.mechanism, self._plan.guarantee
        if kinds == mechanism.kinds:
            return Cost(promise, mechanism.renyi)
        part = Guarantee(mechanism.epsilon_of(kinds), promise.delta, promise.neighbours)
        return Cost(part, partial(mechanism.renyi_of, kinds))
