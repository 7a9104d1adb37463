"""A party's side of the secure sum, without a transport: bytes in, bytes out.

    advertise -> share -> receive          once a session
    mask -> reveal                         once a round

A call out of order, or for a round that is over, is refused. Rounds may be missed but not repeated: keys and shares are
forgotten as they are used. Everybody of the plan takes part in the set-up: a party that was shown fewer others than
they were would share masks with those few only, and they might be opened (docs/theory/secure-sum.md).
"""

from __future__ import annotations

import struct

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privlearn.errors import DataError, InvalidParameter, ProtocolError, TooFewParties
from privlearn.multiparty.secure_sum.masks import (
    SHARE_BYTES,
    TAG_BYTES,
    ShareBox,
    pair_masks,
    self_mask,
    split,
)
from privlearn.multiparty.secure_sum.noise_share import Words
from privlearn.multiparty.secure_sum.session import (
    ENVELOPE_BYTES,
    KeyBook,
    RoundKeys,
    Step,
    SumSession,
    from_coordinator,
    from_party,
    seal,
)

NUMBER = struct.Struct(">H")
"""How a party's number is written."""


def box_size(rounds: int) -> int:
    """Bytes of one party's shares for another: of two secrets per round."""
    return 2 * rounds * SHARE_BYTES + TAG_BYTES


class MaskingParty:
    """One party of a secure sum.

    Parameters
    ----------
    session : SumSession
    number : int
        The party's place in the session.
    identity : Ed25519PrivateKey
        Its long-lived key, whose public half is in the session.
    """

    def __init__(self, session: SumSession, number: int, identity: Ed25519PrivateKey) -> None:
        if session.identities[number] != identity.public_key().public_bytes_raw():
            raise InvalidParameter(f"the identity key is not that of party {number} in the plan")
        self._session = session
        self._number = number
        self._identity = identity
        keys = KeyBook.generate(session.rounds)
        self._public = keys.public()
        self._box_key = X25519PrivateKey.from_private_bytes(keys.box)
        self._unused = dict(enumerate(keys.rounds))
        self._roster: dict[int, KeyBook] = {}
        self._own_shares: bytes = b""
        self._shares: dict[int, dict[int, RoundKeys]] = {}

    def advertise(self) -> bytes:
        """The party's public keys, signed."""
        return self._seal(Step.KEYS, self._public.to_bytes())

    def share(self, roster: bytes) -> bytes:
        """Shares of the party's secrets, a locked box for each other party of the roster."""
        if self._roster:
            raise ProtocolError("the shares of this session were already given out")
        session = self._session
        self._roster = self._read_roster(from_coordinator(roster, session, Step.ROSTER).body)
        points = [number + 1 for number in self._roster]
        contents = dict.fromkeys(self._roster, b"")
        for keys in self._unused.values():
            for secret in keys:
                for point, share in split(secret, session.cohort.threshold, points).items():
                    contents[point - 1] += share
        self._own_shares = contents.pop(self._number)
        boxes = (self._box(self._number, other).lock(content) for other, content in contents.items())
        return self._seal(Step.SHARES, b"".join(boxes))

    def receive(self, inbox: bytes) -> None:
        """Take the other parties' shares; the session can start."""
        if self._shares or not self._roster:
            raise ProtocolError("shares arrive once, after the party gave out its own")
        contents = {self._number: self._own_shares}
        for sender, box in self._read_inbox(from_coordinator(inbox, self._session, Step.INBOX).body).items():
            contents[sender] = self._box(sender, self._number).unlock(box)
        self._require(len(contents), self._session.cohort.parties, "gave out shares")
        self._own_shares = b""
        for round in self._unused:
            start = 2 * round * SHARE_BYTES
            middle, end = start + SHARE_BYTES, start + 2 * SHARE_BYTES
            self._shares[round] = {
                sender: RoundKeys(content[start:middle], content[middle:end])
                for sender, content in sorted(contents.items())
            }

    def check_open(self, round: int) -> None:
        """Refuse a round that cannot be masked any more, or not yet."""
        if round not in self._unused or round not in self._shares:
            raise ProtocolError(f"round {round} is over, not agreed, or the session has not started")

    def mask(self, round: int, words: Words) -> bytes:
        """The party's encoded vector under its masks: uniform to everyone who lacks their keys."""
        if words.shape != (self._session.dimension,) or words.dtype != np.uint64:
            raise DataError(f"the encoded vector must have {self._session.dimension} words of 64 bits")
        self.check_open(round)
        self._forget_before(round)
        keys = self._unused.pop(round)
        others = {n: self._roster[n].rounds[round].pair for n in self._shares[round] if n != self._number}
        masked = words + self_mask(keys.own, self._session, round, self._number)
        masked += pair_masks(keys.pair, others, self._session, round, self._number)
        return self._seal(Step.MASKED, masked.astype("<u8").tobytes(), round)

    def reveal(self, survivors: bytes) -> bytes:
        """Shares that open the sum: of a survivor's own mask, or of a missing party's pair key, never of both."""
        letter = from_coordinator(survivors, self._session, Step.SURVIVORS)
        if letter.round not in self._shares:
            raise ProtocolError(f"round {letter.round} was answered already, or was not agreed")
        shares = self._shares[letter.round]
        arrived = _read_numbers(letter.body)
        if not set(arrived) <= set(shares):
            raise ProtocolError("a party whose vector is said to have arrived is not in this session")
        self._require(len(arrived), self._session.cohort.threshold, "sent a vector")
        self._forget_before(letter.round + 1)
        body = b"".join(share.own if number in arrived else share.pair for number, share in shares.items())
        return self._seal(Step.REVEALED, body, letter.round)

    def _read_roster(self, body: bytes) -> dict[int, KeyBook]:
        size = ENVELOPE_BYTES + KeyBook.size(self._session.rounds)
        roster: dict[int, KeyBook] = {}
        for start in range(0, len(body), size):
            letter = from_party(body[start : start + size], self._session, Step.KEYS)
            roster[letter.sender] = KeyBook.from_bytes(letter.body, self._session.rounds)
        if roster.get(self._number) != self._public:
            raise ProtocolError("the roster does not hold this party's own keys")
        self._require(len(roster), self._session.cohort.parties, "advertised keys")
        return dict(sorted(roster.items()))

    def _read_inbox(self, body: bytes) -> dict[int, bytes]:
        size = NUMBER.size + box_size(self._session.rounds)
        parts = [body[start : start + size] for start in range(0, len(body), size)]
        boxes = {
            NUMBER.unpack(part[: NUMBER.size])[0]: part[NUMBER.size :] for part in parts if len(part) == size
        }
        if len(boxes) != len(parts) or not set(boxes) <= set(self._roster) - {self._number}:
            raise ProtocolError("the box of shares is not in order")
        return boxes

    def _box(self, sender: int, receiver: int) -> ShareBox:
        other = receiver if sender == self._number else sender
        return ShareBox(self._box_key, self._roster[other].box, self._session, sender, receiver)

    def _require(self, count: int, needed: int, did: str) -> None:
        if count < needed:
            raise TooFewParties(f"only {count} parties {did}, the plan asks for {needed}: nothing is opened")

    def _forget_before(self, round: int) -> None:
        for past in [number for number in self._shares if number < round]:
            self._shares.pop(past)
            self._unused.pop(past, None)

    def _seal(self, step: Step, body: bytes, round: int = 0) -> bytes:
        return seal(self._identity, self._session, step, self._number, body, round)


def arrived_in(survivors: bytes, session: SumSession) -> list[int]:
    """The parties whose vectors are in the sum, by the coordinator's signed list."""
    return _read_numbers(from_coordinator(survivors, session, Step.SURVIVORS).body)


def _read_numbers(body: bytes) -> list[int]:
    if len(body) % NUMBER.size == 0:
        numbers = [number for (number,) in NUMBER.iter_unpack(body)]
        if numbers == sorted(set(numbers)):
            return numbers
    raise ProtocolError("the list of parties whose vectors arrived is not in order")
