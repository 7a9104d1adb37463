"""The coordinator's side of one run, independent of the transport: sign-offs, set-up, and sums of noisy answers."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from privlearn.errors import ProtocolError, TooFewParties
from privlearn.mechanisms.summed.summed import NoisySum, NoisySums, Question
from privlearn.parties.run import conversation
from privlearn.parties.run.agreement import Agreement
from privlearn.parties.run.checkpoints import Exchange, Journal
from privlearn.parties.run.conversation import QUESTION_NUMBER, RUN_BYTES, Evidence, Parts, Report, Stage
from privlearn.parties.run.identity import COORDINATOR_NAME, Identity
from privlearn.parties.secure_sum.coordinator import MaskingCoordinator
from privlearn.parties.secure_sum.session import COORDINATOR, LyingParty, Step, seal
from privlearn.randomness import SecureRandomness
from privlearn.release.artifact import Outcome
from privlearn.release.run_record import RunRecord


class CoordinatorRun(NoisySums):
    """One run of an agreement, which asks it for noisy sums.

    ``report``: called with each line of progress. ``journal``: checkpoint from which an interrupted run continues;
    without one a run cannot be resumed.
    """

    def __init__(
        self,
        agreement: Agreement,
        identity: Identity,
        exchange: Exchange,
        report: Report,
        journal: Journal | None = None,
    ) -> None:
        if conversation.identity_of(agreement, COORDINATOR_NAME) != identity.public:
            raise ProtocolError("the identity file's key is not the coordinator's key in the agreement")
        self._agreement = agreement
        self._names = list(agreement.parties)
        self._identity = identity
        self._resumable = journal is not None
        self._exchange = exchange if journal is None else journal.recording(exchange)
        self._report = report if journal is None else _skip_replayed(report, journal)
        self._run = secrets.token_bytes(RUN_BYTES) if journal is None else journal.run
        self._rounds = conversation.question_rounds(agreement)
        self._sign_offs: dict[str, bytes] = {}
        self._parties_in_sums: list[tuple[str, ...]] = []
        self._evidence: list[Evidence] = []
        self._evidence_seen = [0] * len(self._names)
        self._liars: set[int] = set()
        self._sessions = conversation.sum_sessions(agreement, self._run)
        self._sums = [MaskingCoordinator(session, identity.key) for session in self._sessions]

    def train(self) -> Outcome:
        """Lead the whole run and return its release.

        An error of the protocol ends the run for all parties; an interruption only suspends one that has a journal.
        """
        try:
            self._set_up()
            result = self._agreement.outcome(self, SecureRandomness())
            release = self._attach_record(result).signed(self._identity.key)
            self._send_all(Stage.RELEASE, [release.to_bytes()])
        except ProtocolError as error:
            self.end(str(error))
            raise
        except BaseException:
            if not self._resumable:
                self.end("the coordinator was interrupted")
            raise
        return release

    def end(self, reason: str) -> None:
        """Stop all parties; the run cannot be resumed."""
        with suppress(Exception):  # the error that ended the run matters more; parties time out by themselves
            self._send_all(Stage.STOP, [reason.encode()])

    def ask(self, question: Question) -> NoisySum:
        """Return the noisy sum of the parties' answers to a question."""
        position = self._rounds[question.number]
        total = self._sums[position.session]
        number = QUESTION_NUMBER.pack(question.number)
        body = _coefficients(question)
        total.question = body
        sealed = self._seal(position.session, Step.QUESTION, body, position.round)
        self._accept([total], self._send_with_evidence(Stage.QUESTION, [number, sealed], self._honest))
        survivors = total.survivors()
        self._accept(
            [total], self._send(Stage.SURVIVORS, {party: [number, survivors] for party in self._honest})
        )
        try:
            words = total.total()
        finally:
            self._exclude(total.liars, question)
        self._evidence.append(Evidence(number, sealed, *total.evidence))
        arrived = tuple(self._names[party] for party in total.arrived)
        self._parties_in_sums.append(arrived)
        self._report(self._progress(question, arrived))
        return conversation.noisy_sum(self._agreement, question, arrived, words)

    def _set_up(self) -> None:
        self._sign_offs = self._collect_sign_offs()
        self._accept(self._sums, self._send_all(Stage.KEYS, list(self._sign_offs.values())))
        rosters = [total.roster() for total in self._sums]
        self._accept(self._sums, self._send_all(Stage.ROSTER, rosters))
        inboxes = [total.inboxes() for total in self._sums]
        parties = range(len(self._names))
        accepted = self._send(Stage.INBOX, {party: [inbox[party] for inbox in inboxes] for party in parties})
        if len(accepted) < len(self._names):  # nothing has been charged yet: the first question would charge
            absent = ", ".join(self._names[party] for party in parties if party not in accepted)
            raise TooFewParties(
                f"{absent} did not accept the others' shares. The run ends before the first question"
            )

    def _collect_sign_offs(self) -> dict[str, bytes]:
        """Return all parties' signatures under the agreement; no dropout is allowed before the start."""
        replies = self._send_all(Stage.AGREEMENT, conversation.proposal(self._agreement, self._run))
        signed = {}
        for party, parts in replies.items():
            name = self._names[party]
            if self._has_signed(name, parts, conversation.sign_off(self._agreement, self._run, name)):
                signed[name] = parts[0]
        missing = [name for name in self._names if name not in signed]
        if missing:
            raise TooFewParties(f"no sign-off from {', '.join(missing)}. The run does not start without it")
        self._report(f"All {len(signed)} parties signed the agreement {self._agreement.fingerprint}.")
        return {name: signed[name] for name in self._names}

    def _attach_record(self, result: Outcome) -> Outcome:
        """Return the result with the record of this run, signed by at least as many parties as a sum needs."""
        sign_offs = {name: signature.hex() for name, signature in self._sign_offs.items()}
        canonical = self._agreement.canonical().decode()
        record = RunRecord(canonical, self._run.hex(), sign_offs, tuple(self._parties_in_sums))
        content, written = result.to_bytes(), record.to_bytes()
        sealed = self._seal(0, Step.RESULT, conversation.result_digest(content, written))
        message = [sealed, content, written]
        replies = self._send_with_evidence(Stage.RESULT, message, range(len(self._names)))
        signatures = {}
        for party in sorted(replies):
            name, parts = self._names[party], replies[party]
            if self._has_signed(name, parts, record.statement(name, result.model_digest)):
                signatures[name] = parts[0].hex()
        needed = self._agreement.cohort.threshold
        if len(signatures) < needed:
            raise TooFewParties(f"{len(signatures)} parties signed the result; the agreement needs {needed}")
        return replace(result, run=replace(record, signatures=signatures))

    def _has_signed(self, name: str, parts: Parts, content: bytes) -> bool:
        identity = conversation.identity_of(self._agreement, name)
        return len(parts) == 1 and identity.has_signed(parts[0], content)

    def _accept(self, sums: list[MaskingCoordinator], replies: Mapping[int, Parts]) -> None:
        """Hand each party's parts to the sums; a bad part only makes its sender missing from this step."""
        for party, parts in replies.items():
            if len(parts) != len(sums):
                self._report(f"{self._names[party]} sent a message with the wrong number of parts: left out.")
                continue
            for total, part in zip(sums, parts, strict=True):
                try:
                    total.accept(part)
                except LyingParty as error:
                    self._report(f"{self._names[error.party]} is left out of this step: {error.reason}.")
                except ProtocolError as error:
                    self._report(f"{self._names[party]} is left out of this step: {error}.")

    def _exclude(self, liars: Collection[int], question: Question) -> None:
        """Report parties that revealed false shares. They get no further question and count as missing."""
        for party in sorted(set(liars) - self._liars):
            self._report(
                f"{self._names[party]} revealed false shares (question {question.number + 1}): they differ from those "
                "that their dealers signed a commitment to. It is left out from here on."
            )
        self._liars |= set(liars)

    @property
    def _honest(self) -> list[int]:
        """All parties but those that were caught lying."""
        return [party for party in range(len(self._names)) if party not in self._liars]

    def _send_with_evidence(self, stage: Stage, parts: Parts, parties: Iterable[int]) -> dict[int, Parts]:
        """Send parts with the evidence for all sums that a party has not confirmed to have seen."""
        messages = {
            party: [
                *parts,
                *(part for one in self._evidence[self._evidence_seen[party] :] for part in one.parts),
            ]
            for party in parties
        }
        replies = self._send(stage, messages)
        for party in replies:
            self._evidence_seen[party] = len(self._evidence)
        return replies

    def _send_all(self, stage: Stage, parts: Parts) -> dict[int, Parts]:
        return self._send(stage, dict.fromkeys(range(len(self._names)), parts))

    def _send(self, stage: Stage, parts: Mapping[int, Parts]) -> dict[int, Parts]:
        replies = self._exchange(stage, parts)
        for party in parts if stage is not Stage.STOP else ():
            reply = replies.get(party)
            if reply is None:
                self._report(f"{self._names[party]} did not answer in time ({stage}).")
            elif isinstance(reply, str):
                self._report(f"{self._names[party]} refused: {reply}")
        return {party: reply for party, reply in replies.items() if not isinstance(reply, str)}

    def _seal(self, session: int, step: Step, body: bytes, round: int = 0) -> bytes:
        return seal(self._identity.key, self._sessions[session], step, COORDINATOR, body, round)

    def _progress(self, question: Question, arrived: Sequence[str]) -> str:
        spent = self._agreement.mechanism.epsilon_after(question.number + 1)
        return (
            f"Question {question.number + 1} of {len(self._rounds)} ({question.kind.replace('_', ' ')}): "
            f"{len(arrived)} of {len(self._names)} parties; "
            f"epsilon so far {spent:.3g} of {self._agreement.guarantee.epsilon:.3g}."
        )


def _coefficients(question: Question) -> bytes:
    if question.coefficients is None:
        return b""
    return np.asarray(question.coefficients, dtype="<f8").tobytes()


def _skip_replayed(report: Report, journal: Journal) -> Report:
    """Return a function that reports nothing while the journal replays what was reported before a crash."""
    return lambda line: None if journal.replaying else report(line)
