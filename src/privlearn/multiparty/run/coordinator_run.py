"""The coordinator's side of one run, whatever carries the messages: sign-offs, set-up, and sums of noisy answers."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np

from privlearn.errors import ProtocolError, TooFewParties
from privlearn.mechanisms.summed.summed import NoisySum, NoisySums, Question
from privlearn.multiparty.run import conversation
from privlearn.multiparty.run.conversation import QUESTION_NUMBER, RUN_BYTES, Parts, Stage, Tell
from privlearn.multiparty.run.identity import COORDINATOR_NAME, Identity
from privlearn.multiparty.run.joint_plan import JointPlan
from privlearn.multiparty.run.journal import Exchange, Journal
from privlearn.multiparty.secure_sum.coordinator import MaskingCoordinator
from privlearn.multiparty.secure_sum.opening import Blame
from privlearn.multiparty.secure_sum.session import COORDINATOR, Step, seal
from privlearn.randomness import SecureRandomness
from privlearn.release.outcome import Outcome
from privlearn.release.run_record import RunRecord


class CoordinatorRun(NoisySums):
    """One run of a plan; the plan asks it for noisy sums.

    Parameters
    ----------
    plan : JointPlan
    identity : Identity
    exchange : callable
    tell : callable
    journal : Journal, optional
        What a run that was cut off goes on from; without one a run cannot be taken up again.
    """

    def __init__(
        self,
        plan: JointPlan,
        identity: Identity,
        exchange: Exchange,
        tell: Tell,
        journal: Journal | None = None,
    ) -> None:
        conversation.check_can_be_summed(plan)
        if conversation.identity_of(plan, COORDINATOR_NAME) != identity.public:
            raise ProtocolError("the plan has another key for the coordinator than the identity file")
        self._plan = plan
        self._names = list(plan.parties)
        self._identity = identity
        self._exchange = exchange if journal is None else journal.over(exchange)
        self._tell = tell if journal is None else _once(tell, journal)
        self._run = secrets.token_bytes(RUN_BYTES) if journal is None else journal.run
        self._places = conversation.places(plan)
        self._sign_offs: dict[str, bytes] = {}
        self._in_sums: list[tuple[str, ...]] = []
        self._liars: set[int] = set()
        self._sessions = conversation.sum_sessions(plan, self._run)
        self._sums = [MaskingCoordinator(session, identity.key) for session in self._sessions]

    def train(self) -> Outcome:
        """The whole run. Whatever stops it, the parties are told."""
        try:
            self._open()
            result = self._plan.outcome(self, SecureRandomness())
            release = self._attested(result).signed(self._identity.key)
            self._send_all(Stage.RELEASE, [release.to_bytes()])
        except BaseException as error:
            reason = str(error) if isinstance(error, ProtocolError) else "the coordinator was interrupted"
            with suppress(Exception):  # the parties find out by themselves; what went wrong matters more
                self._send_all(Stage.STOP, [reason.encode()])
            raise
        return release

    def ask(self, question: Question) -> NoisySum:
        place = self._places[question.number]
        total = self._sums[place.session]
        number = QUESTION_NUMBER.pack(question.number)
        asked = self._sealed_question(question)
        self._accept([total], self._send_honest(Stage.QUESTION, [number, asked]))
        survivors = total.survivors()
        self._accept([total], self._send_honest(Stage.SURVIVORS, [number, survivors]))
        words = total.total()
        self._judge(total.blame, question)
        encoding = conversation.encoding(self._plan, question)
        arrived = [self._names[party] for party in total.arrived]
        self._in_sums.append(tuple(arrived))
        self._tell(self._progress(question, arrived))
        records = sum(self._plan.parties[name] for name in arrived)
        return NoisySum(encoding.decode(words), records, len(arrived))

    def _open(self) -> None:
        self._sign_offs = self._collect_sign_offs()
        self._accept(self._sums, self._send_all(Stage.KEYS, list(self._sign_offs.values())))
        rosters = [total.roster() for total in self._sums]
        self._accept(self._sums, self._send_all(Stage.ROSTER, rosters))
        inboxes = [total.inboxes() for total in self._sums]
        self._send(
            Stage.INBOX,
            {party: [inbox[party] for inbox in inboxes] for party in range(len(self._names))},
        )

    def _collect_sign_offs(self) -> dict[str, bytes]:
        """Everybody's; no dropout is allowed before the start."""
        replies = self._send_all(Stage.PLAN, conversation.proposal(self._plan, self._run))
        signed = {}
        for party, parts in replies.items():
            name = self._names[party]
            content = conversation.sign_off(self._plan, self._run, name)
            if len(parts) == 1 and conversation.identity_of(self._plan, name).has_signed(parts[0], content):
                signed[name] = parts[0]
        missing = [name for name in self._names if name not in signed]
        if missing:
            raise TooFewParties(f"no sign-off from {', '.join(missing)}: the run does not start without it")
        self._tell(f"All {len(signed)} parties signed the plan {self._plan.fingerprint}.")
        return {name: signed[name] for name in self._names}

    def _attested(self, result: Outcome) -> Outcome:
        """With the record of this run, signed by every party that answers; fewer than a sum needs are not enough."""
        sign_offs = {name: signature.hex() for name, signature in self._sign_offs.items()}
        record = RunRecord(self._plan.canonical().decode(), self._run.hex(), sign_offs, tuple(self._in_sums))
        replies = self._send_all(Stage.RESULT, [result.to_bytes(), record.to_bytes()])
        signatures = {}
        for party in sorted(replies):
            name, parts = self._names[party], replies[party]
            statement = record.statement(name, result.model_digest)
            if len(parts) == 1 and conversation.identity_of(self._plan, name).has_signed(parts[0], statement):
                signatures[name] = parts[0].hex()
        needed = self._plan.cohort.threshold
        if len(signatures) < needed:
            raise TooFewParties(f"{len(signatures)} parties signed the result, the plan asks for {needed}")
        return replace(result, run=replace(record, signatures=signatures))

    def _accept(self, sums: list[MaskingCoordinator], replies: Mapping[int, Parts]) -> None:
        """Hand each party's parts to the sums; a bad one makes its sender missing from this step, and nothing else."""
        for party, parts in replies.items():
            if len(parts) != len(sums):
                self._tell(f"{self._names[party]} sent a message with the wrong number of parts: left out.")
                continue
            for total, part in zip(sums, parts, strict=True):
                try:
                    total.accept(part)
                except ProtocolError as error:
                    self._tell(f"{self._names[party]} is left out of this step: {error}.")

    def _judge(self, blame: Blame, question: Question) -> None:
        """Name those who gave false shares; who surely did is asked no more, and counts as missing."""
        for party in sorted(blame.liars - self._liars):
            self._tell(
                f"{self._names[party]} gave false shares (question {question.number + 1}): it disagrees with more "
                "parties than the plan expects to lie, or with itself. It is left out from here on."
            )
        for one, other in sorted(blame.pairs):
            self._tell(
                f"{self._names[one]} or {self._names[other]} gave a false share (question {question.number + 1}); what "
                "they signed does not say which. The sum was opened without it."
            )
        self._liars |= blame.liars

    def _send_honest(self, stage: Stage, parts: Parts) -> dict[int, Parts]:
        """To all but those who were found to lie."""
        return self._send(
            stage, {party: parts for party in range(len(self._names)) if party not in self._liars}
        )

    def _send_all(self, stage: Stage, parts: Parts) -> dict[int, Parts]:
        return self._send(stage, dict.fromkeys(range(len(self._names)), parts))

    def _send(self, stage: Stage, parts: Mapping[int, Parts]) -> dict[int, Parts]:
        replies = self._exchange(stage, parts)
        for party in parts:
            reply = replies.get(party)
            if stage is Stage.STOP:
                continue
            if reply is None:
                self._tell(f"{self._names[party]} did not answer in time ({stage}).")
            elif isinstance(reply, str):
                self._tell(f"{self._names[party]} refused: {reply}")
        return {party: reply for party, reply in replies.items() if not isinstance(reply, str)}

    def _sealed_question(self, question: Question) -> bytes:
        place = self._places[question.number]
        body = (
            b"" if question.coefficients is None else np.asarray(question.coefficients, dtype="<f8").tobytes()
        )
        session = self._sessions[place.session]
        return seal(self._identity.key, session, Step.QUESTION, COORDINATOR, body, place.round)

    def _progress(self, question: Question, arrived: list[str]) -> str:
        spent = self._plan.mechanism.epsilon_after(question.number + 1)
        return (
            f"Question {question.number + 1} of {len(self._places)} ({question.kind.replace('_', ' ')}): "
            f"{len(arrived)} of {len(self._names)} parties; "
            f"epsilon so far {spent:.3g} of {self._plan.guarantee.epsilon:.3g}."
        )


def _once(tell: Tell, journal: Journal) -> Tell:
    """What was said before a crash is not said again, but for where the run stands."""
    return lambda line: None if journal.replaying else tell(line)
