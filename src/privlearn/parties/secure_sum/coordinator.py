"""The coordinator's side of a masked sum: it opens the sum of enough parties, and nothing else."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privlearn.errors import InvalidParameter, ProtocolError, TooFewParties
from privlearn.parties.secure_sum import masks
from privlearn.parties.secure_sum.noise_share import Words
from privlearn.parties.secure_sum.party import LIST_BYTES, NUMBER, box_size, list_digest
from privlearn.parties.secure_sum.session import (
    COORDINATOR,
    KeyBook,
    Letter,
    Step,
    SumSession,
    from_party,
    seal,
)
from privlearn.parties.secure_sum.sharing import SHARE_BYTES, Proof, advertised_size, read_advertised


class MaskingCoordinator:
    """Collects the parties' messages step by step and opens the sum of each round.

    Parameters
    ----------
    session : SumSession
    identity : Ed25519PrivateKey
        Its long-lived key, whose public half is in the session.

    Attributes
    ----------
    question : bytes
        The question of this round; vectors that answer another one are refused.
    liars : frozenset of int
        Parties that revealed false shares for the last sum, whether or not it could be opened.
    evidence : tuple of bytes
        For the last opened sum: the signed masked vectors, joined, and the opened keys, joined.
    """

    def __init__(self, session: SumSession, identity: Ed25519PrivateKey) -> None:
        if session.coordinator != identity.public_key().public_bytes_raw():
            raise InvalidParameter("the identity key is not the coordinator's in this session")
        self._session = session
        self._identity = identity
        self._keys: dict[int, KeyBook] = {}
        self._proofs: dict[int, Proof] = {}
        self._masked: dict[int, Words] = {}
        self._vectors = self._list = b""
        self.question = b""
        self.liars: frozenset[int] = frozenset()
        self.evidence = (b"", b"")
        self._begin(Step.KEYS, 0)

    @property
    def round(self) -> int:
        """The current round, or the next one."""
        return self._round

    @property
    def arrived(self) -> list[int]:
        """Parties whose vectors are in the sum that is being opened, or was opened last."""
        return sorted(self._masked)

    def accept(self, message: bytes) -> int:
        """Store one party's message of the current step and return its sender; a refused message changes nothing."""
        letter = from_party(message, self._session, self._step)
        self._check(letter)
        self._messages[letter.sender] = message
        self._bodies[letter.sender] = letter.body
        return letter.sender

    def roster(self) -> bytes:
        """Return the message for every party with all parties' keys."""
        bodies = self._close(Step.KEYS)
        for number, body in bodies.items():
            self._keys[number], self._proofs[number] = read_advertised(body, self._session, number)
        message = self._seal(Step.ROSTER, b"".join(self._messages[number] for number in bodies))
        self._begin(Step.SHARES, 0)
        return message

    def inboxes(self) -> dict[int, bytes]:
        """Return the message for each party with the boxes that the others locked for it."""
        bodies = self._close(Step.SHARES)
        size = box_size(self._session.rounds)
        inboxes = dict.fromkeys(bodies, b"")
        for sender, body in bodies.items():
            receivers = [number for number in inboxes if number != sender]
            for index, receiver in enumerate(receivers):
                inboxes[receiver] += NUMBER.pack(sender) + body[index * size : (index + 1) * size]
        self._begin(Step.MASKED, 0)
        return {receiver: self._seal(Step.INBOX, inbox) for receiver, inbox in inboxes.items()}

    def survivors(self) -> bytes:
        """Return the message for every party with the list of vectors that arrived in this round."""
        bodies = self._close(Step.MASKED)
        self._vectors = b"".join(self._messages[number] for number in bodies)
        self._masked = masks.read_masked(self._vectors, self._session, self._round, self._question_digest)
        self._list = b"".join(map(NUMBER.pack, bodies))
        message = self._seal(Step.SURVIVORS, self._list)
        self._begin(Step.REVEALED, self._round)
        return message

    def total(self) -> Words:
        """Return the sum of the vectors that arrived; the next round may begin."""
        answers = self._close(Step.REVEALED)
        session, round = self._session, self._round
        # Of a present party the own key, of a missing one the pair key: both together would open its vector.
        indices = {number: masks.key_index(round, number in self._masked) for number in self._keys}
        opened = masks.open_secrets(answers, self._proofs, indices, session.cohort.threshold)
        self.liars = opened.liars
        if len(opened.secrets) < len(indices):
            raise TooFewParties(
                f"false shares were revealed, and fewer than {session.cohort.threshold} true ones are left. The sum "
                "stays closed"
            )
        total = masks.unmask(session, self._keys, round, self.question, self._masked, opened.secrets)
        self.evidence = self._vectors, b"".join(opened.secrets.values())
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
        if self._step is Step.MASKED and letter.body[-masks.QUESTION_DIGEST_BYTES :] != self._question_digest:
            raise ProtocolError(f"party {letter.sender} answered another question")
        if self._step is Step.REVEALED and letter.body[-LIST_BYTES:] != list_digest(self._list):
            raise ProtocolError(f"party {letter.sender} revealed shares for another list of vectors")
        if self._step is Step.KEYS:
            read_advertised(letter.body, self._session, letter.sender)

    @property
    def _question_digest(self) -> bytes:
        return masks.question_digest(self._keys, self.question)

    def _body_size(self) -> int:
        session, parties = self._session, self._session.cohort.parties
        return {
            Step.KEYS: advertised_size(session),
            Step.SHARES: (parties - 1) * box_size(session.rounds),
            Step.MASKED: masks.masked_size(session),
            Step.REVEALED: parties * SHARE_BYTES + LIST_BYTES,
        }[self._step]

    def _close(self, step: Step) -> dict[int, bytes]:
        """Return the bodies of a step, by sender; refuse if there are too few, so that more messages may come."""
        if self._step != step:
            raise ProtocolError(
                f"this call is out of order. First the parties' messages of {self._step.name} are due."
            )
        cohort = self._session.cohort
        # Keys and shares must be complete: a party without them could never be unmasked.
        needed = cohort.parties if step in (Step.KEYS, Step.SHARES) else cohort.threshold
        if len(self._bodies) < needed:
            raise TooFewParties(
                f"{len(self._bodies)} parties answered; {needed} are needed. The sum stays closed"
            )
        return dict(sorted(self._bodies.items()))

    def _seal(self, step: Step, body: bytes) -> bytes:
        return seal(self._identity, self._session, step, COORDINATOR, body, self._round)
