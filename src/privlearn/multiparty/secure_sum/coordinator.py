"""The coordinator's side of a masked sum: it opens what the plan allows, and no more."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privlearn.errors import InvalidParameter, ProtocolError, TooFewParties
from privlearn.multiparty.secure_sum.masks import SHARE_BYTES, WORD_BYTES, pair_masks, self_mask
from privlearn.multiparty.secure_sum.noise_share import Words
from privlearn.multiparty.secure_sum.opening import Blame, blame, open_secrets
from privlearn.multiparty.secure_sum.party import NUMBER, box_size
from privlearn.multiparty.secure_sum.session import (
    COORDINATOR,
    KeyBook,
    Letter,
    Step,
    SumSession,
    from_party,
    seal,
)


class MaskingCoordinator:
    """Carries the parties' messages and learns the sum.

    Parameters
    ----------
    session : SumSession
    identity : Ed25519PrivateKey
        Its long-lived key, whose public half is in the session.

    Attributes
    ----------
    blame : Blame
        For false shares in the sum that was opened last.
    """

    def __init__(self, session: SumSession, identity: Ed25519PrivateKey) -> None:
        if session.coordinator != identity.public_key().public_bytes_raw():
            raise InvalidParameter("the identity key is not that of the coordinator in the plan")
        self._session = session
        self._identity = identity
        self._keys: dict[int, KeyBook] = {}
        self._masked: dict[int, Words] = {}
        self.blame = Blame(frozenset(), frozenset())
        self._begin(Step.KEYS, 0)

    @property
    def round(self) -> int:
        """The round that is under way, or the next one."""
        return self._round

    @property
    def arrived(self) -> list[int]:
        """Whose vectors are in the sum that is being opened, or was opened last."""
        return sorted(self._masked)

    def accept(self, message: bytes) -> int:
        """Take one party's message of the present step; returns its sender. Refused messages change nothing."""
        letter = from_party(message, self._session, self._step)
        self._check(letter)
        self._messages[letter.sender] = message
        self._bodies[letter.sender] = letter.body
        return letter.sender

    def roster(self) -> bytes:
        """For every party: who takes part, with their keys."""
        bodies = self._close(Step.KEYS)
        self._keys = {n: KeyBook.from_bytes(body, self._session.rounds) for n, body in bodies.items()}
        message = self._seal(Step.ROSTER, b"".join(self._messages[number] for number in bodies))
        self._begin(Step.SHARES, 0)
        return message

    def inboxes(self) -> dict[int, bytes]:
        """For each party: the boxes that the others locked for it."""
        bodies = self._close(Step.SHARES)
        size = box_size(self._session.rounds)
        inboxes = dict.fromkeys(bodies, b"")
        for sender, body in bodies.items():
            receivers = [number for number in inboxes if number != sender]
            for place, receiver in enumerate(receivers):
                inboxes[receiver] += NUMBER.pack(sender) + body[place * size : (place + 1) * size]
        self._begin(Step.MASKED, 0)
        return {receiver: self._seal(Step.INBOX, inbox) for receiver, inbox in inboxes.items()}

    def survivors(self) -> bytes:
        """For every party: whose vectors arrived in this round."""
        bodies = self._close(Step.MASKED)
        self._masked = {n: np.frombuffer(body, dtype="<u8").astype(np.uint64) for n, body in bodies.items()}
        message = self._seal(Step.SURVIVORS, b"".join(map(NUMBER.pack, bodies)))
        self._begin(Step.REVEALED, self._round)
        return message

    def total(self) -> Words:
        """The sum of the vectors that arrived; the next round may begin."""
        answers = self._close(Step.REVEALED)
        session, round = self._session, self._round
        keys = {number: book.rounds[round] for number, book in self._keys.items()}
        publics = {number: key.own if number in self._masked else key.pair for number, key in keys.items()}
        opened = open_secrets(answers, publics, session.cohort.threshold)
        secrets, self.blame = opened.secrets, blame(opened.false, session.cohort.colluding)
        total = np.zeros(session.dimension, dtype=np.uint64)
        for number, masked in self._masked.items():
            total += masked - self_mask(secrets[number], session, round, number)
        survivors = {number: keys[number].pair for number in self._masked}
        for number in set(keys) - set(survivors):
            total += pair_masks(secrets[number], survivors, session, round, number)
        self._begin(Step.MASKED, round + 1)
        return total

    def _begin(self, step: Step, round: int) -> None:
        self._step, self._round = step, round
        self._messages: dict[int, bytes] = {}
        self._bodies: dict[int, bytes] = {}

    def _check(self, letter: Letter) -> None:
        if letter.round != self._round:
            raise ProtocolError(f"the message is for round {letter.round}, this is round {self._round}")
        if letter.sender in self._bodies:
            raise ProtocolError(f"party {letter.sender} has answered this step already")
        if len(letter.body) != self._body_size():
            raise ProtocolError(f"the message of party {letter.sender} has the wrong size for this step")

    def _body_size(self) -> int:
        session, parties = self._session, self._session.cohort.parties
        return {
            Step.KEYS: KeyBook.size(session.rounds),
            Step.SHARES: (parties - 1) * box_size(session.rounds),
            Step.MASKED: session.dimension * WORD_BYTES,
            Step.REVEALED: parties * SHARE_BYTES,
        }[self._step]

    def _close(self, step: Step) -> dict[int, bytes]:
        """The bodies of a step, by sender, if there are enough; else more messages may still come."""
        if self._step != step:
            raise ProtocolError(
                f"it is not the time for this: the parties' messages of {self._step.name} are due"
            )
        cohort = self._session.cohort
        needed = cohort.parties if step in (Step.KEYS, Step.SHARES) else cohort.threshold
        if len(self._bodies) < needed:
            raise TooFewParties(
                f"{len(self._bodies)} parties answered, the plan asks for {needed}: the sum stays closed"
            )
        return dict(sorted(self._bodies.items()))

    def _seal(self, step: Step, body: bytes) -> bytes:
        return seal(self._identity, self._session, step, COORDINATOR, body, self._round)
