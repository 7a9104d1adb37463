"""A party's side of the secure sum, without a transport: bytes in, bytes out.

    advertise -> share -> receive          once a session
    mask -> reveal                         once a round

A call out of order, or for a round that is over, is refused. Rounds may be missed but not repeated: keys and shares are
deleted as they are used, and `to_dict` contains no deleted one. All parties take part in the set-up: a party that was
shown only some of the others would share masks with those few only, and these might be opened
(docs/theory/secure-sum.md).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privlearn.errors import DataError, InvalidParameter, ProtocolError, TooFewParties
from privlearn.parties.secure_sum import masks, sharing
from privlearn.parties.secure_sum.noise_share import Words
from privlearn.parties.secure_sum.session import (
    ENVELOPE_BYTES,
    KeyBook,
    LyingParty,
    RoundKeys,
    Step,
    SumSession,
    from_coordinator,
    from_party,
    seal,
)

NUMBER = struct.Struct(">H")
"""Encoding of a party's number."""
LIST_BYTES = 32


def box_size(rounds: int) -> int:
    """Return the number of bytes of one party's shares for another: two secrets per round."""
    return masks.NONCE_BYTES + 2 * rounds * sharing.SHARE_BYTES + masks.TAG_BYTES


class MaskingParty:
    """One party of a secure sum.

    Parameters
    ----------
    session : SumSession
    number : int
        The party's index in the session.
    identity : Ed25519PrivateKey
        Its long-lived key, whose public half is in the session.
    """

    def __init__(self, session: SumSession, number: int, identity: Ed25519PrivateKey) -> None:
        if session.identities[number] != identity.public_key().public_bytes_raw():
            raise InvalidParameter(f"the identity key is not that of party {number} in this session")
        self._session = session
        self._number = number
        self._identity = identity
        keys = KeyBook.generate(session.rounds)
        self._dealing: sharing.Dealing | None = sharing.Dealing.draw(keys.shared, session.cohort.threshold)
        public = keys.public()
        proof = self._dealing.proof(session, number, public.shared)
        self._advertised = public.to_bytes() + proof.to_bytes()
        self._box_key = keys.box
        self._unused = dict(enumerate(keys.rounds))
        self._roster: dict[int, bytes] = {}
        self._own_shares: bytes = b""
        self._shares: dict[int, dict[int, RoundKeys]] = {}
        self._sent: dict[int, bytes] = {}

    def to_dict(self) -> dict[str, Any]:
        """SECRET: return what the party needs to continue in another process, as JSON, without what it has used."""
        dealing = self._dealing
        return {
            "advertised": self._advertised.hex(),
            "dealing": None if dealing is None else [_numbers(dealing.keys), _numbers(dealing.blinds)],
            "box": self._box_key.hex(),
            "unused": {round: _hex(keys) for round, keys in self._unused.items()},
            "roster": {number: body.hex() for number, body in self._roster.items()},
            "own_shares": self._own_shares.hex(),
            "shares": {
                round: {number: _hex(keys) for number, keys in held.items()}
                for round, held in self._shares.items()
            },
            "sent": {round: digest.hex() for round, digest in self._sent.items()},
        }

    @classmethod
    def from_dict(
        cls, session: SumSession, number: int, identity: Ed25519PrivateKey, content: Mapping[str, Any]
    ) -> MaskingParty:
        """Return the party as it was when `to_dict` was called."""
        party = cls(session, number, identity)
        party._advertised = bytes.fromhex(content["advertised"])
        dealing = content["dealing"]
        party._dealing = None if dealing is None else sharing.Dealing(*map(_polynomials, dealing))
        party._box_key = bytes.fromhex(content["box"])
        party._unused = {int(round): _round_keys(keys) for round, keys in content["unused"].items()}
        party._roster = {int(other): bytes.fromhex(body) for other, body in content["roster"].items()}
        party._own_shares = bytes.fromhex(content["own_shares"])
        party._shares = {
            int(round): {int(other): _round_keys(keys) for other, keys in held.items()}
            for round, held in content["shares"].items()
        }
        party._sent = {int(round): bytes.fromhex(digest) for round, digest in content["sent"].items()}
        return party

    def advertise(self) -> bytes:
        """Return the party's public keys and the proof that its shares open them, signed."""
        return self._seal(Step.KEYS, self._advertised)

    def share(self, roster: bytes) -> bytes:
        """Return shares of the party's secrets, in a locked box for each other party of the roster."""
        # New shares after a crash could be combined with the old ones, so they are dealt once.
        if self._dealing is None:
            raise ProtocolError("the shares of this session were already sent")
        self._roster = self._read_roster(from_coordinator(roster, self._session, Step.ROSTER).body)
        boxes = [
            self._box(self._number, other).lock(self._dealing.shares_of(other))
            for other in self._roster
            if other != self._number
        ]
        # The polynomials would open every round; from here on only the shares exist.
        self._own_shares = self._dealing.shares_of(self._number)
        self._dealing = None
        return self._seal(Step.SHARES, b"".join(boxes))

    def receive(self, inbox: bytes) -> None:
        """Store the other parties' shares after checking their dealers' proofs; then the session can start.

        The key of the boxes is deleted: with it and recorded boxes every past round could be opened.
        """
        if self._shares or not self._roster:
            raise ProtocolError("shares arrive once, after the party sent its own")
        contents = {self._number: self._own_shares}
        for sender, box in self._read_inbox(from_coordinator(inbox, self._session, Step.INBOX).body).items():
            contents[sender] = self._box(sender, self._number).unlock(box)
        self._require(len(contents), self._session.cohort.parties, "sent shares")
        dealt = {sender: self._check_shares(sender, content) for sender, content in sorted(contents.items())}
        for round in self._unused:
            self._shares[round] = {
                sender: RoundKeys(*shares[2 * round : 2 * round + 2]) for sender, shares in dealt.items()
            }
        self._own_shares = self._box_key = b""
        # The proofs have been checked; from here on only the keys are needed.
        size = KeyBook.size(self._session.rounds)
        self._roster = {number: body[:size] for number, body in self._roster.items()}

    def _check_shares(self, sender: int, content: bytes) -> list[bytes]:
        """Return the shares that one party dealt; refuse them unless its proof confirms them."""
        _, proof = sharing.read_advertised(self._roster[sender], self._session, sender)
        shares = sharing.shares_in(content)
        if not all(proof.confirms(self._number, index, share) for index, share in enumerate(shares)):
            raise LyingParty(sender, "the shares that it dealt contradict its proof")
        return shares

    def check_open(self, round: int) -> None:
        """Refuse a round that is over or has not been set up."""
        if round not in self._unused or round not in self._shares:
            raise ProtocolError(f"round {round} is over or does not exist, or the session has not started")

    def mask(self, round: int, words: Words, question: bytes = b"") -> bytes:
        """Return the party's encoded vector under its masks, uniform to an adversary without their keys, signed.

        The masks cancel in the sum only among parties that were asked the same question; the digest of the question is
        signed with the vector.
        """
        if words.shape != (self._session.dimension,) or words.dtype != np.uint64:
            raise DataError(f"the encoded vector must have {self._session.dimension} words of 64 bits")
        self.check_open(round)
        self._forget_before(round)
        # Before the message exists: a second vector under the same masks would reveal the difference of the two.
        keys = self._unused.pop(round)
        others = {n: book.rounds[round].pair for n, book in self._books.items() if n != self._number}
        masked = words + masks.self_mask(keys.own, self._session, round, self._number)
        masked += masks.pair_masks(keys.pair, others, self._session, round, self._number, question)
        body = masked.astype("<u8").tobytes() + masks.question_digest(self._books, question)
        message = self._seal(Step.MASKED, body, round)
        # The digest, not the vector: it recognises the message in the evidence and keeps nothing else.
        self._sent[round] = hashlib.sha256(message).digest()
        return message

    def reveal(self, survivors: bytes) -> bytes:
        """Return the shares that open the sum: of a survivor's own key or a missing party's pair key, never both."""
        letter = from_coordinator(survivors, self._session, Step.SURVIVORS)
        if letter.round not in self._shares:
            raise ProtocolError(f"round {letter.round} was answered already, or does not exist")
        shares = self._shares[letter.round]
        arrived = _read_numbers(letter.body)
        if not set(arrived) <= set(shares):
            raise ProtocolError("the list of arrived vectors has a party that is not in this session")
        self._require(len(arrived), self._session.cohort.threshold, "sent a vector")
        # One answer per round: a coordinator with both lists could open a vector that it called missing and
        # then present.
        self._forget_before(letter.round + 1)
        body = b"".join(share.own if number in arrived else share.pair for number, share in shares.items())
        return self._seal(Step.REVEALED, body + list_digest(letter.body), letter.round)

    def forget(self) -> None:
        """Delete all keys and shares: the session is over."""
        self._forget_before(self._session.rounds)
        self._unused.clear()

    def check_sum(
        self, round: int, question: bytes, masked: bytes, secrets: bytes
    ) -> tuple[list[int], Words]:
        """Return the parties in a round's sum, and the sum, from their signed vectors and the opened keys.

        All vectors must answer this question, and this party's must be the one that it sent. The evidence reveals the
        sum and nothing else: it is what the coordinator has.
        """
        vectors = masks.read_masked(
            masked, self._session, round, masks.question_digest(self._books, question)
        )
        if self._number in vectors and not self._has_sent(round, masked, len(vectors)):
            raise ProtocolError("the evidence contains another vector of this party than it sent")
        opened = masks.read_secrets(secrets, self._session.cohort.parties)
        return list(vectors), masks.unmask(self._session, self._books, round, question, vectors, opened)

    def _has_sent(self, round: int, masked: bytes, count: int) -> bool:
        size = len(masked) // count
        messages = (masked[start : start + size] for start in range(0, len(masked), size))
        return self._sent.get(round) in {hashlib.sha256(message).digest() for message in messages}

    @property
    def _books(self) -> dict[int, KeyBook]:
        size, rounds = KeyBook.size(self._session.rounds), self._session.rounds
        return {number: _read_book(body[:size], rounds) for number, body in self._roster.items()}

    def _read_roster(self, body: bytes) -> dict[int, bytes]:
        size = ENVELOPE_BYTES + sharing.advertised_size(self._session)
        roster: dict[int, bytes] = {}
        for start in range(0, len(body), size):
            letter = from_party(body[start : start + size], self._session, Step.KEYS)
            sharing.read_advertised(letter.body, self._session, letter.sender)
            roster[letter.sender] = letter.body
        if roster.get(self._number) != self._advertised:
            raise ProtocolError("the roster does not contain this party's own keys")
        self._require(len(roster), self._session.cohort.parties, "advertised keys")
        return dict(sorted(roster.items()))

    def _read_inbox(self, body: bytes) -> dict[int, bytes]:
        size = NUMBER.size + box_size(self._session.rounds)
        parts = [body[start : start + size] for start in range(0, len(body), size)]
        boxes = {NUMBER.unpack_from(part)[0]: part[NUMBER.size :] for part in parts if len(part) == size}
        if len(boxes) != len(parts) or not set(boxes) <= set(self._roster) - {self._number}:
            raise ProtocolError("the inbox of shares is malformed")
        return boxes

    def _box(self, sender: int, receiver: int) -> masks.ShareBox:
        other = receiver if sender == self._number else sender
        return masks.ShareBox(self._box_key, self._books[other].box, self._session, sender, receiver)

    def _require(self, count: int, needed: int, did: str) -> None:
        if count < needed:
            raise TooFewParties(f"only {count} parties {did}; {needed} are needed. Nothing is opened")

    def _forget_before(self, round: int) -> None:
        for past in [number for number in self._shares if number < round]:
            self._shares.pop(past)
            self._unused.pop(past, None)

    def _seal(self, step: Step, body: bytes, round: int = 0) -> bytes:
        return seal(self._identity, self._session, step, self._number, body, round)


@lru_cache(maxsize=1024)
def _read_book(body: bytes, rounds: int) -> KeyBook:
    return KeyBook.from_bytes(body, rounds)


def _hex(keys: RoundKeys) -> list[str]:
    return [key.hex() for key in keys]


def _numbers(polynomials: tuple[sharing.Polynomial, ...]) -> list[list[str]]:
    return [[f"{number:x}" for number in polynomial] for polynomial in polynomials]


def _polynomials(texts: list[list[str]]) -> tuple[sharing.Polynomial, ...]:
    return tuple(tuple(int(text, 16) for text in numbers) for numbers in texts)


def _round_keys(texts: list[str]) -> RoundKeys:
    return RoundKeys(*map(bytes.fromhex, texts))


def list_digest(arrived: bytes) -> bytes:
    """Return what binds revealed shares to their list of arrived vectors."""
    return hashlib.sha256(b"privlearn arrived" + arrived).digest()


def arrived_in(survivors: bytes, session: SumSession) -> list[int]:
    """Return the parties whose vectors are in the sum, from the coordinator's signed list."""
    return _read_numbers(from_coordinator(survivors, session, Step.SURVIVORS).body)


def _read_numbers(body: bytes) -> list[int]:
    if len(body) % NUMBER.size == 0:
        numbers = [number for (number,) in NUMBER.iter_unpack(body)]
        if numbers == sorted(set(numbers)):
            return numbers
    raise ProtocolError("the list of arrived vectors is malformed")
