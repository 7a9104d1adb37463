"""A party's side of one run, whatever carries the messages: it signs the plan, answers each question once, and stops.

Nothing of the party's rows leaves but masked vectors with the party's noise in them. The budget is reserved before the
sign-off leaves, and final before a masked vector does (`Purse`).

A refusal is an output too, and the coordinator chooses the questions. So what is refused depends on the messages
alone, and a question counts as asked before a row is read for it: should an answer fail after that, the run ends for
this party, in the same words whatever failed (docs/theory/multiparty.md, "Refusals").

With a `PartyMemory` a party that crashed goes on in another process. A message that was answered is answered again
with the same bytes, never anew; and a crash while an answer was computed counts as an answer that failed, since the
rows may have been its cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privlearn.errors import PrivlearnError, ProtocolError
from privlearn.mechanisms.summed.summed import Question, SummedMechanism
from privlearn.multiparty.run import conversation
from privlearn.multiparty.run.conversation import QUESTION_NUMBER, RUN_BYTES, Parts, Place, Stage, Tell
from privlearn.multiparty.run.identity import Identity
from privlearn.multiparty.run.joint_plan import JointPlan
from privlearn.multiparty.run.memory import PartyMemory
from privlearn.multiparty.run.purse import Purse
from privlearn.multiparty.run.training import Answers
from privlearn.multiparty.run.witness import Witness
from privlearn.multiparty.secure_sum.noise_share import Words
from privlearn.multiparty.secure_sum.party import MaskingParty, arrived_in
from privlearn.multiparty.secure_sum.session import Step, SumSession, from_coordinator
from privlearn.randomness import SecureRandomness
from privlearn.release.outcome import Outcome

STAYS_HERE = "for a reason that stays with this party"
_UNFINISHED = "The run is over for this party: nobody can tell whether the rows were the cause"


class PartyRun:
    """One run of a plan.

    Parameters
    ----------
    plan : JointPlan
        The party's own copy, agreed on with the other parties: no other is signed.
    name : str
    identity : Identity
    party : Answers
        The rows.
    purse : Purse
        Its budget.
    tell : callable
    memory : PartyMemory, optional
        What a run that was cut off goes on from, if it holds one.
    """

    def __init__(
        self,
        plan: JointPlan,
        name: str,
        identity: Identity,
        party: Answers,
        purse: Purse,
        tell: Tell,
        memory: PartyMemory | None = None,
    ) -> None:
        conversation.check_can_be_summed(plan)
        if conversation.identity_of(plan, name) != identity.public:
            raise ProtocolError(f"the plan has another key for {name!r} than the identity file")
        self.release: Outcome | None = None
        self.stopped: str | None = None
        self._plan = plan
        self._name = name
        self._identity = identity
        self._party = party
        self._purse = purse
        self._tell = tell
        self._memory = memory
        self._run = b""
        self._next_question = 0
        self._begun: int | None = None
        self._answered, self._last_reply = "", list[bytes]()
        self._places: list[Place] = conversation.places(plan)
        # what does not wait for coefficients is computed before the sign-off: should it fail, it fails on this screen
        self._prepared = {
            number: self._encoded(plan.mechanism.question(number))
            for number, kind in enumerate(plan.mechanism.kinds)
            if kind != "gradients"
        }
        self._sessions: list[SumSession] = []
        self._sums: list[MaskingParty] = []
        self._stages = {
            Stage.PLAN: self._sign,
            Stage.KEYS: self._advertise,
            Stage.ROSTER: self._share,
            Stage.INBOX: self._receive,
            Stage.QUESTION: self._answer,
            Stage.SURVIVORS: self._reveal,
            Stage.RESULT: self._attest,
            Stage.RELEASE: self._take,
            Stage.STOP: self._stop,
        }
        if memory is not None and (kept := memory.read()) is not None:
            self._resume(kept)

    @property
    def finished(self) -> bool:
        return self.release is not None or self.stopped is not None

    def handle(self, stage: str, parts: Parts) -> Parts:
        """Answer the coordinator, or refuse: a refusal changes nothing, unless an answer failed and ended the run."""
        if stage not in self._stages or self.finished:
            raise ProtocolError("the coordinator asks for what the plan does not have")
        message = conversation.message_digest(stage, parts)
        if message == self._answered:  # the reply was lost, or the coordinator: the same bytes, nothing anew
            return self._last_reply
        if stage not in (Stage.PLAN, Stage.STOP) and not self._run:
            raise ProtocolError(
                "this process has signed no run, and the coordinator goes on with one: another process of this party "
                "signed it, or the file of its run is lost"
            )
        reply = self._stages[Stage(stage)](parts)
        if not self.finished:
            self._answered, self._last_reply, self._begun = message, reply, None
            self._remember()
        return reply

    def reply(self, stage: str, parts: Parts) -> Parts | str:
        """As `handle`; a refusal is returned in words that may leave: what concerns the rows stays on this screen."""
        try:
            return self.handle(stage, parts)
        except Exception as error:
            self._tell(f"Refused to answer ({stage}): {_in_words(error)}")
            expected = isinstance(error, PrivlearnError)
            if not (self._run and expected):  # nothing was signed, or nothing is sure any more
                self.stopped = _in_words(error)
            return str(error) if isinstance(error, ProtocolError) else STAYS_HERE

    def settle(self) -> None:
        """At the end, however it came: give back what was not asked, and say what the run cost."""
        self._tell(self._purse.close())
        if self._memory is not None:
            self._memory.forget()

    @property
    def _number(self) -> int:
        return list(self._plan.parties).index(self._name)

    def _remember(self) -> None:
        """Once this returns, a crash changes nothing about what this party says."""
        if self._memory is None:
            return
        self._memory.keep(
            {
                "run": self._run.hex(),
                "next_question": self._next_question,
                "begun": self._begun,
                "answered": self._answered,
                "last_reply": [part.hex() for part in self._last_reply],
                "sums": [party.to_dict() for party in self._sums],
                "witness": self._witness.to_dict(),
                "purse": self._purse.to_dict(),
            }
        )

    def _resume(self, kept: Mapping[str, Any]) -> None:
        self._run = bytes.fromhex(kept["run"])
        self._next_question = kept["next_question"]
        self._answered, self._last_reply = (
            kept["answered"],
            [bytes.fromhex(part) for part in kept["last_reply"]],
        )
        self._sessions = conversation.sum_sessions(self._plan, self._run)
        self._sums = [
            MaskingParty.from_dict(session, self._number, self._identity.key, content)
            for session, content in zip(self._sessions, kept["sums"], strict=True)
        ]
        self._witness = Witness(self._plan, self._run, self._name, self._identity)
        self._witness.resume(kept["witness"])
        self._purse.resume(kept["purse"], kept["begun"])
        answered = f"answered {len(self._purse.asked)} of {len(self._places)} questions so far"
        self._tell(f"Goes on with the run {self._run.hex()[:16]}: {answered}.")
        if kept["begun"] is not None:
            self.stopped = f"the process ended while it computed the answer to question {kept['begun'] + 1}"
            self._tell(f"{_UNFINISHED} ({self.stopped}).")

    def _sign(self, parts: Parts) -> Parts:
        digest, run, constants = _expect(parts, 3)
        if self._run:
            raise ProtocolError(
                "this party is in another run of the plan: end that one first, with `privlearn party MINE.toml "
                "--give-back`, and start the party again"
            )
        if digest != bytes.fromhex(self._plan.digest):
            raise ProtocolError("the coordinator's plan is not the one that this party agreed to")
        if len(run) != RUN_BYTES:
            raise ProtocolError("the coordinator's name for the run is not in order")
        if constants != self._plan.constants_digest:  # else it would refuse the result, when all is spent
            raise ProtocolError(
                "this party computes other constants from the plan than the coordinator: install the same versions of "
                "privlearn, numpy and scipy. Nothing was signed, and nothing is spent"
            )
        sessions = conversation.sum_sessions(self._plan, run)
        sums = [MaskingParty(session, self._number, self._identity.key) for session in sessions]
        self._purse.reserve()
        self._run, self._sessions, self._sums = run, sessions, sums
        self._witness = Witness(self._plan, run, self._name, self._identity)
        self._tell(f"Signed the plan {self._plan.fingerprint}: {self._plan.guarantee}.")
        return [self._identity.key.sign(conversation.sign_off(self._plan, run, self._name))]

    def _advertise(self, parts: Parts) -> Parts:
        names = list(self._plan.parties)
        for name, signature in zip(names, _expect(parts, len(names)), strict=True):
            if not conversation.identity_of(self._plan, name).has_signed(
                signature, conversation.sign_off(self._plan, self._run, name)
            ):
                raise ProtocolError(f"the sign-off of {name!r} is not in order: no key leaves")
        return [party.advertise() for party in self._sums]

    def _share(self, parts: Parts) -> Parts:
        rosters = _expect(parts, len(self._sums))
        return [party.share(roster) for party, roster in zip(self._sums, rosters, strict=True)]

    def _receive(self, parts: Parts) -> Parts:
        for party, inbox in zip(self._sums, _expect(parts, len(self._sums)), strict=True):
            party.receive(inbox)
        return []

    def _answer(self, parts: Parts) -> Parts:
        number, message = self._read(parts)
        if number < self._next_question:
            raise ProtocolError(f"question {number} is over: each is answered once, in the plan's order")
        place = self._places[number]
        letter = from_coordinator(message, self._sessions[place.session], Step.QUESTION)
        if letter.round != place.round:
            raise ProtocolError("the question and its round do not belong together")
        question = self._question(number, letter.body)
        self._sums[place.session].check_open(place.round)
        self._next_question, self._begun = number + 1, number
        self._remember()
        try:
            self._purse.spend(number)  # from here on something may leave
            masked = self._sums[place.session].mask(place.round, self._noisy(question))
        except Exception as error:
            self.stopped = f"question {number} could not be answered: {_in_words(error)}"
            self._tell(f"The run ends here for this party: {self.stopped}")
            raise ProtocolError(STAYS_HERE) from None
        self._tell(self._progress(number))
        return [masked]

    def _noisy(self, question: Question) -> Words:
        words = self._prepared.pop(question.number, None)
        noise = conversation.noise_share(self._plan, question.number).draw(
            question.length, SecureRandomness()
        )
        return (self._encoded(question) if words is None else words) + noise

    def _encoded(self, question: Question) -> Words:
        return conversation.encoding(self._plan, question).encode(self._party.answer(question))

    def _reveal(self, parts: Parts) -> Parts:
        number, message = self._read(parts)
        place = self._places[number]
        session = self._sessions[place.session]
        if from_coordinator(message, session, Step.SURVIVORS).round != place.round:
            raise ProtocolError("the list and its question do not belong together")
        revealed = self._sums[place.session].reveal(message)
        self._purse.reveal(number, message)
        self._witness.saw(number, arrived_in(message, session))
        return [revealed]

    def _attest(self, parts: Parts) -> Parts:
        result, record = _expect(parts, 2)
        return [self._witness.attest(result, record)]

    def _take(self, parts: Parts) -> Parts:
        (content,) = _expect(parts, 1)
        self.release = self._witness.take(content)
        return []

    def _stop(self, parts: Parts) -> Parts:
        (reason,) = _expect(parts, 1)
        self.stopped = "".join(filter(str.isprintable, reason.decode("utf-8", "replace")))[:500]
        return []

    def _read(self, parts: Parts) -> tuple[int, bytes]:
        packed, message = _expect(parts, 2)
        if len(packed) != QUESTION_NUMBER.size or QUESTION_NUMBER.unpack(packed)[0] >= len(self._places):
            raise ProtocolError(
                f"the plan has {len(self._places)} questions: the coordinator asks for another"
            )
        return QUESTION_NUMBER.unpack(packed)[0], message

    def _question(self, number: int, body: bytes) -> Question:
        mechanism = self._plan.mechanism
        if not isinstance(mechanism, SummedMechanism) or mechanism.kinds[number] != "gradients":
            return mechanism.question(number)
        task = mechanism.task
        if len(body) != 8 * task.problems * task.dimension:
            raise ProtocolError("the coefficients asked about are not of the plan's shape")
        coefficients = np.frombuffer(body, dtype="<f8").reshape(task.problems, task.dimension)
        if not np.isfinite(coefficients).all():
            raise ProtocolError("the coefficients asked about are not finite")
        return mechanism.question(number, coefficients)

    def _progress(self, number: int) -> str:
        spent = self._plan.mechanism.epsilon_after(number + 1)
        return (
            f"Answered question {number + 1} of {len(self._places)}; "
            f"epsilon so far {spent:.3g} of {self._plan.guarantee.epsilon:.3g}."
        )


def _in_words(error: Exception) -> str:
    """For this party's screen; our own errors never quote a cell, others might."""
    return str(error) if isinstance(error, PrivlearnError) else type(error).__name__


def _expect(parts: Sequence[bytes], count: int) -> Sequence[bytes]:
    if len(parts) != count:
        raise ProtocolError("the coordinator's message does not have the parts that its stage has")
    return parts
