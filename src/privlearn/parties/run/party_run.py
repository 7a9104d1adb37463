"""A party's side of one run, independent of the transport: it signs the agreement and answers each question once.

Nothing of the party's rows leaves except masked vectors that contain the party's noise. The budget is reserved before
the sign-off leaves, and the cost is final before a masked vector does (`RunBudget`).

A refusal is an output too, and the coordinator chooses the questions. So refusals depend on the messages alone, and a
question counts as asked before a row is read for it. If an answer fails after that, the run ends for this party, with
the same text for every cause (docs/theory/multiparty.md, "Refusals").

With a `PartyMemory` a party that crashed continues in another process. A repeated message gets the same bytes as
before, never a new computation; and a crash during the computation of an answer counts as an answer that failed, since
the rows may have caused it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import PrivlearnError, ProtocolError
from privlearn.mechanisms.summed.summed import Question, SummedMechanism
from privlearn.parties.run import conversation
from privlearn.parties.run.agreement import Agreement
from privlearn.parties.run.answers import Answers
from privlearn.parties.run.checkpoints import PartyMemory
from privlearn.parties.run.conversation import QUESTION_NUMBER, RUN_BYTES, Parts, Report, Stage, read_evidence
from privlearn.parties.run.identity import Identity
from privlearn.parties.run.noisy_answers import NoisyAnswers
from privlearn.parties.run.run_budget import RunBudget
from privlearn.parties.run.witness import Witness
from privlearn.parties.secure_sum.noise_share import Words
from privlearn.parties.secure_sum.party import MaskingParty, arrived_in
from privlearn.parties.secure_sum.session import LyingParty, Step, SumSession, from_coordinator
from privlearn.release.artifact import Outcome

PRIVATE_REASON = "for a reason that stays with this party"
_UNFINISHED = "The run is over for this party, since the rows may have caused the crash"


class PartyRun:
    """One run of an agreement.

    Parameters
    ----------
    agreement : Agreement
        The party's copy of the agreement. The party signs no other one.
    name : str
    identity : Identity
    party : Answers
        The rows.
    budget : RunBudget
    report : callable
        Called with each line of progress.
    memory : PartyMemory, optional
        Checkpoint from which an interrupted run continues, if it has content.

    Attributes
    ----------
    release : Outcome or None
        The result, once it has arrived.
    stopped : str or None
        Why the run ended without a result.
    """

    def __init__(
        self,
        agreement: Agreement,
        name: str,
        identity: Identity,
        party: Answers,
        budget: RunBudget,
        report: Report,
        memory: PartyMemory | None = None,
    ) -> None:
        if conversation.identity_of(agreement, name) != identity.public:
            raise ProtocolError(f"the identity file's key is not the key of {name!r} in the agreement")
        self.release: Outcome | None = None
        self.stopped: str | None = None
        self._steps: set[tuple[str, bytes]] = set()
        self._agreement = agreement
        self._name = name
        self._identity = identity
        self._party = party
        self._budget = budget
        self._report = report
        self._memory = memory
        self._run = b""
        self._next_question = 0
        self._begun: int | None = None
        self._answered, self._last_reply = "", list[bytes]()
        self._rounds = conversation.question_rounds(agreement)
        self._noise = NoisyAnswers(agreement)
        # Answers without coefficients are computed before the sign-off, so that the coordinator sees no error of them.
        self._precomputed = {
            number: self._exact(agreement.mechanism.question(number))
            for number, kind in enumerate(agreement.mechanism.kinds)
            if kind != "gradients"
        }
        self._sessions: list[SumSession] = []
        self._sums: list[MaskingParty] = []
        self._stages = {
            Stage.AGREEMENT: self._sign,
            Stage.KEYS: self._advertise,
            Stage.ROSTER: self._share,
            Stage.INBOX: self._receive,
            Stage.QUESTION: self._answer,
            Stage.SURVIVORS: self._reveal,
            Stage.RESULT: self._attest,
            Stage.RELEASE: self._take,
            Stage.STOP: self._stop,
        }
        if memory is not None and (stored := memory.read()) is not None:
            self._resume(stored)

    @property
    def progress(self) -> int:
        """Return the number of answered steps of the agreement; repeated messages count once."""
        return len(self._steps)

    @property
    def finished(self) -> bool:
        """Return whether the run has ended for this party, with or without a result."""
        return self.release is not None or self.stopped is not None

    def handle(self, stage: str, parts: Parts) -> Parts:
        """Answer the coordinator, or refuse. A refusal changes nothing, unless an answer failed and ended the run."""
        if stage not in self._stages or self.finished:
            raise ProtocolError("the coordinator sent a message that the agreement does not have")
        message = conversation.message_digest(stage, parts)
        if message == self._answered:  # the reply was lost, or the coordinator restarted: send the same bytes
            return self._last_reply
        if stage not in (Stage.AGREEMENT, Stage.STOP) and not self._run:
            raise ProtocolError(
                "this process has signed no run, and the coordinator continues one. Another process of this party "
                "signed it, or the file of its run is lost"
            )
        reply = self._stages[Stage(stage)](parts)
        self._steps.add((stage, parts[0] if stage in (Stage.QUESTION, Stage.SURVIVORS) else b""))
        if not self.finished:
            self._answered, self._last_reply, self._begun = message, reply, None
            self._store()
        return reply

    def reply(self, stage: str, parts: Parts) -> Parts | str:
        """Return the answer of `handle`, or the text of a refusal; reasons that depend on the rows do not leave."""
        try:
            return self.handle(stage, parts)
        except Exception as error:
            self._report(f"Refused to answer ({stage}): {_describe(error)}")
            if not (self._run and isinstance(error, PrivlearnError)):  # nothing signed, or an unknown state
                self.stopped = _describe(error)
            return str(error) if isinstance(error, ProtocolError) else PRIVATE_REASON

    def settle(self) -> None:
        """Give back unused budget at the end of a run, however it ended, and report its cost."""
        self._report(self._budget.close())
        if self._memory is not None:
            self._memory.forget()

    @property
    def _number(self) -> int:
        return list(self._agreement.parties).index(self._name)

    def _store(self) -> None:
        """Write the checkpoint; once this returns, a crash does not change what this party sends."""
        if self._memory is None:
            return
        self._memory.write(
            {
                "agreement": self._agreement.digest,
                "run": self._run.hex(),
                "next_question": self._next_question,
                "begun": self._begun,
                "answered": self._answered,
                "last_reply": [part.hex() for part in self._last_reply],
                "sums": [party.to_dict() for party in self._sums],
                "witness": self._witness.to_dict(),
                "budget": self._budget.to_dict(),
                "noise": self._noise.stored_noise(),
            }
        )

    def _resume(self, stored: Mapping[str, Any]) -> None:
        if stored["agreement"] != self._agreement.digest:
            raise ProtocolError(
                "the file of the run belongs to another agreement. End that run with `privlearn party MINE.toml "
                "--give-back`"
            )
        self._run = bytes.fromhex(stored["run"])
        self._next_question = stored["next_question"]
        self._answered = stored["answered"]
        self._last_reply = [bytes.fromhex(part) for part in stored["last_reply"]]
        self._sessions = conversation.sum_sessions(self._agreement, self._run)
        self._sums = [
            MaskingParty.from_dict(session, self._number, self._identity.key, content)
            for session, content in zip(self._sessions, stored["sums"], strict=True)
        ]
        self._witness = Witness(self._agreement, self._run, self._name, self._identity)
        self._witness.resume(stored["witness"])
        self._budget.resume(stored["budget"], stored["begun"])
        self._noise.resume(stored["noise"])
        answered = f"answered {len(self._budget.answered)} of {len(self._rounds)} questions so far"
        self._report(f"Continues the run {self._run.hex()[:16]}: {answered}.")
        if stored["begun"] is not None:
            self.stopped = f"the process ended while it computed the answer to question {stored['begun'] + 1}"
            self._report(f"{_UNFINISHED} ({self.stopped}).")

    def _sign(self, parts: Parts) -> Parts:
        digest, run, constants = _expect(parts, 3)
        if self._run:
            raise ProtocolError(
                "this party is in another run of the agreement. End that one with `privlearn party MINE.toml "
                "--give-back`, and start the party again"
            )
        if digest != bytes.fromhex(self._agreement.digest):
            raise ProtocolError("the coordinator's agreement differs from this party's")
        if len(run) != RUN_BYTES:
            raise ProtocolError("the coordinator's name for the run is malformed")
        # With other constants this party would refuse the result, after the full cost.
        if constants != self._agreement.constants_digest:
            raise ProtocolError(
                "this party and the coordinator compute different constants from the agreement. Install the same "
                "versions of privlearn, numpy and scipy. Nothing was signed or spent"
            )
        sessions = conversation.sum_sessions(self._agreement, run)
        sums = [MaskingParty(session, self._number, self._identity.key) for session in sessions]
        self._budget.reserve()
        self._run, self._sessions, self._sums = run, sessions, sums
        self._witness = Witness(self._agreement, run, self._name, self._identity)
        self._report(f"Signed the agreement {self._agreement.fingerprint}: {self._agreement.guarantee}.")
        return [self._identity.key.sign(conversation.sign_off(self._agreement, run, self._name))]

    def _advertise(self, parts: Parts) -> Parts:
        names = list(self._agreement.parties)
        for name, signature in zip(names, _expect(parts, len(names)), strict=True):
            if not conversation.identity_of(self._agreement, name).has_signed(
                signature, conversation.sign_off(self._agreement, self._run, name)
            ):
                raise ProtocolError(f"the sign-off of {name!r} is not valid: no key leaves")
        return [party.advertise() for party in self._sums]

    def _share(self, parts: Parts) -> Parts:
        rosters = _expect(parts, len(self._sums))
        with self._naming_liars():
            return [party.share(roster) for party, roster in zip(self._sums, rosters, strict=True)]

    @contextmanager
    def _naming_liars(self) -> Iterator[None]:
        """Refuse by name what another party advertised or dealt wrongly."""
        try:
            yield
        except LyingParty as error:
            raise ProtocolError(f"{list(self._agreement.parties)[error.party]}: {error.reason}") from None

    def _receive(self, parts: Parts) -> Parts:
        for party, inbox in zip(self._sums, _expect(parts, len(self._sums)), strict=True):
            with self._naming_liars():
                party.receive(inbox)
        return []

    def _answer(self, parts: Parts) -> Parts:
        number, message = self._read(parts[:2])
        if number < self._next_question:
            raise ProtocolError(f"question {number} is over: each is answered once, in order")
        position = self._rounds[number]
        self._sums[position.session].check_open(position.round)
        self._compute_sums(parts[2:])
        body, question = self._open_question(number, message)
        self._witness.check_question(question)
        # Stored before a row is read: the rows may decide whether the computation crashes, so the next process must
        # find that it had begun, and must not try again.
        self._next_question, self._begun = number + 1, number
        self._store()
        try:
            self._budget.commit(number)  # from here on something may leave
            self._witness.record_answer(number)
            masked = self._sums[position.session].mask(position.round, self._noisy(question), body)
        except Exception as error:
            self.stopped = f"question {number} could not be answered: {_describe(error)}"
            self._report(f"The run ends here for this party: {self.stopped}")
            raise ProtocolError(PRIVATE_REASON) from None
        # Masks of finished sums are deleted, so that a party that is seized later cannot open them.
        for earlier in self._sums[: position.session]:
            earlier.forget()
        self._report(self._progress(number))
        return [masked]

    def _compute_sums(self, parts: Parts) -> None:
        """Compute the sums for which there is evidence; each question must follow from the sums before it."""
        for evidence in read_evidence(parts):
            number, message = self._read([evidence.number, evidence.question])
            if number < self._witness.known:
                continue
            position = self._rounds[number]
            body, question = self._open_question(number, message)
            self._witness.check_question(question)
            total = self._sums[position.session]
            self._witness.record_sum(*total.check_sum(position.round, body, evidence.vectors, evidence.keys))

    def _open_question(self, number: int, message: bytes) -> tuple[bytes, Question]:
        position = self._rounds[number]
        letter = from_coordinator(message, self._sessions[position.session], Step.QUESTION)
        if letter.round != position.round:
            raise ProtocolError("the question is sealed for another round")
        return letter.body, self._question(number, letter.body)

    def _noisy(self, question: Question) -> Words:
        values = self._precomputed.pop(question.number, None)
        return self._noise.noisy_words(question, self._exact(question) if values is None else values)

    def _exact(self, question: Question) -> Array:
        return self._noise.check(question, self._party.answer(question))

    def _reveal(self, parts: Parts) -> Parts:
        number, message = self._read(parts)
        position = self._rounds[number]
        session = self._sessions[position.session]
        if from_coordinator(message, session, Step.SURVIVORS).round != position.round:
            raise ProtocolError("the list of arrived vectors is sealed for another round")
        shares = self._sums[position.session].reveal(message)
        # The ledger refuses a second list for the same question, even from a copy of this process: shares for two
        # lists would open one party's vector.
        self._budget.record_shares(number, message)
        self._witness.record_arrived(number, arrived_in(message, session))
        return [shares]

    def _attest(self, parts: Parts) -> Parts:
        sealed, result, record = _expect(parts[:3], 3)
        digest = from_coordinator(sealed, self._sessions[0], Step.RESULT).body
        if digest != conversation.result_digest(result, record):
            raise ProtocolError("the coordinator sealed another result than it shows")
        self._compute_sums(parts[3:])
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
        if len(packed) != QUESTION_NUMBER.size or QUESTION_NUMBER.unpack(packed)[0] >= len(self._rounds):
            raise ProtocolError(f"the question has no number below {len(self._rounds)}, as in the agreement")
        return QUESTION_NUMBER.unpack(packed)[0], message

    def _question(self, number: int, body: bytes) -> Question:
        mechanism = self._agreement.mechanism
        if not isinstance(mechanism, SummedMechanism) or mechanism.kinds[number] != "gradients":
            if body:  # the masks depend on the body, so every byte of it must follow from the agreement
                raise ProtocolError("a question without coefficients has no content")
            return mechanism.question(number)
        task = mechanism.task
        if len(body) != 8 * task.problems * task.dimension:
            raise ProtocolError("the question's coefficients do not have the agreement's shape")
        coefficients = np.frombuffer(body, dtype="<f8").reshape(task.problems, task.dimension)
        if not np.isfinite(coefficients).all():
            raise ProtocolError("the question's coefficients are not finite")
        return mechanism.question(number, coefficients)

    def _progress(self, number: int) -> str:
        spent = self._agreement.mechanism.epsilon_after(number + 1)
        return (
            f"Answered question {number + 1} of {len(self._rounds)}; "
            f"epsilon so far {spent:.3g} of {self._agreement.guarantee.epsilon:.3g}."
        )


def _describe(error: Exception) -> str:
    """Return an error's text for this party's screen; the library's errors never quote a cell, others might."""
    return str(error) if isinstance(error, PrivlearnError) else type(error).__name__


def _expect(parts: Sequence[bytes], count: int) -> Sequence[bytes]:
    if len(parts) != count:
        raise ProtocolError("the coordinator's message has the wrong number of parts for its stage")
    return parts
