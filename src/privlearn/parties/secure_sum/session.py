"""What parties and coordinator of a secure sum share: the cohort, the session, its keys, and signed envelopes."""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from privlearn.errors import InvalidParameter, ProtocolError
from privlearn.parties.secure_sum.curve import (
    KEY_BYTES,
    PUBLIC_BYTES,
    check_public,
    generate_key,
    public_half,
)

MAX_PARTIES = 1000


@dataclass(frozen=True)
class Cohort:
    """Number of parties of a secure sum, of parties that may be missing, and of parties that may collude.

    **Theorem** (docs/theory/secure-sum.md). Let n = parties - colluding be the honest parties. A coordinator that sends
    the parties different lists of missing parties opens, in each round, at most one sum of honest vectors, over at
    least n - dropouts parties, if and only if

        dropouts (dropouts + 1) < n.

    Other cohorts are refused: a coordinator could open the sum of too few parties, or a single vector.

    Parameters
    ----------
    parties : int
        K.
    dropouts : int, default=0
        How many may be missing from a round.
    colluding : int, default=1
        How many parties may pool all they know, among themselves and with the coordinator. Use at least 1 if the
        parties see the sum, since each can subtract its own share of the noise.

    Examples
    --------
    >>> cohort = Cohort(parties=10, dropouts=2, colluding=3)
    >>> cohort.threshold, cohort.honest
    (8, 5)
    """

    parties: int
    dropouts: int = 0
    colluding: int = 1

    def __post_init__(self) -> None:
        if not 2 <= self.parties <= MAX_PARTIES:
            raise InvalidParameter(f"a secure sum has 2 to {MAX_PARTIES} parties, not {self.parties}")
        if self.dropouts < 0 or self.colluding < 0:
            raise InvalidParameter("dropouts and colluding must be whole numbers of at least 0")
        if self.colluding >= self.parties:
            raise InvalidParameter(
                f"if {self.colluding} of {self.parties} parties collude, none is left to add noise. "
                f"Set colluding to at most {self.parties - 1}"
            )
        max_dropouts = _max_dropouts(self.parties - self.colluding)
        if self.dropouts > max_dropouts:
            enough = self.colluding + self.dropouts * (self.dropouts + 1) + 1
            raise InvalidParameter(
                f"with dropouts = {self.dropouts} and colluding = {self.colluding}, a coordinator that sends "
                f"{self.parties} parties different lists of missing parties could open the sum of too few of them. "
                f"Set dropouts = {max_dropouts}: dropouts = {self.dropouts} needs {enough} parties"
            )

    @property
    def threshold(self) -> int:
        """Number of parties that a round needs, and of shares that open a secret: K - dropouts."""
        return self.parties - self.dropouts

    @property
    def honest(self) -> int:
        """Shares of the noise that are in every sum and unknown to the adversary: K - dropouts - colluding."""
        return self.threshold - self.colluding


def _max_dropouts(honest: int) -> int:
    """Return the largest D with D (D + 1) < honest."""
    return (math.isqrt(4 * honest - 3) - 1) // 2


@dataclass(frozen=True)
class SumSession:
    """Everything that coordinator and parties must agree on.

    Parameters
    ----------
    cohort : Cohort
    dimension : int
        Length of the vectors.
    rounds : int
        Maximum number of sums. Rounds are numbered from 0.
    identities : tuple of bytes
        The parties' Ed25519 public keys, 32 bytes each; a party's number is its index here.
    coordinator : bytes
        The coordinator's Ed25519 public key.
    context : bytes, default=b""
        Identifies the context of the session, such as the digest of an agreement and the name of a run.
    """

    cohort: Cohort
    dimension: int
    rounds: int
    identities: tuple[bytes, ...]
    coordinator: bytes
    context: bytes = b""

    def __post_init__(self) -> None:
        if self.dimension < 1 or not 1 <= self.rounds < 2**32:
            raise InvalidParameter("a secure sum has at least one coordinate and one round")
        keys = {*self.identities, self.coordinator}
        if len(self.identities) != self.cohort.parties or len(keys) != self.cohort.parties + 1:
            raise InvalidParameter(
                f"a cohort of {self.cohort.parties} needs that many identity keys, distinct and not the coordinator's"
            )
        if any(len(key) != 32 for key in keys):
            raise InvalidParameter("identity keys are Ed25519 public keys of 32 bytes")

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all fields."""
        cohort = self.cohort
        numbers = (cohort.parties, cohort.dropouts, cohort.colluding, self.dimension, self.rounds)
        description = struct.pack(">5Q", *numbers) + self.coordinator + b"".join(self.identities)
        return hashlib.sha256(b"privlearn secure sum 2" + description + self.context).digest()


def derive_key(
    secret: bytes, session: SumSession, purpose: str, *numbers: int, question: bytes = b""
) -> bytes:
    """Return a key of 32 bytes for one purpose in one session, and for one question if there is one."""
    info = f"privlearn secure sum: {purpose}".encode() + struct.pack(f">{len(numbers)}Q", *numbers)
    info += hashlib.sha256(question).digest()
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=session.digest, info=info).derive(secret)


class RoundKeys(NamedTuple):
    """A round's keys: ``pair`` agrees on masks with the others, ``own`` is the seed of the party's own mask.

    At most one of the two private keys is ever opened, and it is checked against the public one, advertised at the
    start: that is why the seed is a key too.
    """

    pair: bytes
    own: bytes


@dataclass(frozen=True, repr=False)
class KeyBook:
    """All keys of a session, either the private ones or their public halves."""

    box: bytes
    rounds: tuple[RoundKeys, ...]

    @classmethod
    def generate(cls, rounds: int) -> KeyBook:
        """Return fresh private keys, from the operating system's secure bits."""
        return cls(generate_key(), tuple(RoundKeys(generate_key(), generate_key()) for _ in range(rounds)))

    @classmethod
    def from_bytes(cls, body: bytes, rounds: int) -> KeyBook:
        """Read public halves; refuse any that is not a point of the curve."""
        if len(body) != cls.size(rounds):
            raise ProtocolError(f"a party's keys for {rounds} rounds have {cls.size(rounds)} bytes")
        keys = [body[start : start + PUBLIC_BYTES] for start in range(0, len(body), PUBLIC_BYTES)]
        for key in keys:
            check_public(key)
        return cls(keys[0], tuple(map(RoundKeys, keys[1::2], keys[2::2])))

    @staticmethod
    def size(rounds: int) -> int:
        """Return the number of bytes of `to_bytes`."""
        return (1 + 2 * rounds) * PUBLIC_BYTES

    def public(self) -> KeyBook:
        """Return the public halves."""
        halves = (RoundKeys(public_half(keys.pair), public_half(keys.own)) for keys in self.rounds)
        return KeyBook(public_half(self.box), tuple(halves))

    def to_bytes(self) -> bytes:
        """Return all keys, joined."""
        return self.box + b"".join(self.shared)

    @property
    def shared(self) -> list[bytes]:
        """The keys of which all parties hold shares: the pair key and the own key of each round."""
        return [key for keys in self.rounds for key in keys]


COORDINATOR = 2**16 - 1
"""The coordinator's number as a sender; parties count from 0."""

_HEADER = struct.Struct(">4sBIH32s")
_MAGIC = b"PLS3"
_SIGNATURE_BYTES = 64
ENVELOPE_BYTES = _HEADER.size + _SIGNATURE_BYTES
"""Number of bytes that an envelope adds to its body."""


class Step(IntEnum):
    """Steps of the protocol in order; KEYS to INBOX once a session, MASKED to REVEALED once a round.

    QUESTION, which opens a round, and RESULT, which ends a run, are not part of the sum itself.
    """

    KEYS = 1
    ROSTER = 2
    SHARES = 3
    INBOX = 4
    MASKED = 5
    SURVIVORS = 6
    REVEALED = 7
    QUESTION = 8
    RESULT = 9


class LyingParty(ProtocolError):
    """Raised if what one party advertised or dealt contradicts itself."""

    def __init__(self, party: int, reason: str) -> None:
        super().__init__(f"party {party}: {reason}")
        self.party = party
        self.reason = reason


class Letter(NamedTuple):
    """The content of a valid envelope."""

    round: int
    sender: int
    body: bytes


def seal(
    identity: Ed25519PrivateKey, session: SumSession, step: Step, sender: int, body: bytes, round: int = 0
) -> bytes:
    """Return a signed message."""
    content = _HEADER.pack(_MAGIC, step, round, sender, session.digest) + body
    return content + identity.sign(content)


def from_party(message: bytes, session: SumSession, step: Step) -> Letter:
    """Return the letter inside; refuse it unless a party signed it for this session and step."""
    letter = _unseal(message, session, step)
    if letter.sender == COORDINATOR:  # which would be sent shares as a party
        raise ProtocolError("the message does not come from a party")
    return letter


def from_coordinator(message: bytes, session: SumSession, step: Step) -> Letter:
    """Return the letter inside; refuse it unless the coordinator signed it for this session and step."""
    letter = _unseal(message, session, step)
    if letter.sender != COORDINATOR:
        raise ProtocolError("the message does not come from the coordinator")
    return letter


def _unseal(message: bytes, session: SumSession, step: Step) -> Letter:
    if len(message) < ENVELOPE_BYTES:
        raise ProtocolError("not a message of the secure sum: it is too short")
    magic, actual_step, round, sender, digest = _HEADER.unpack_from(message)
    if magic != _MAGIC:
        raise ProtocolError("not a message of the secure sum, or of another version")
    if digest != session.digest:
        raise ProtocolError("the message belongs to another session: agreement, run or parties differ")
    if actual_step != step:
        raise ProtocolError(f"the message does not belong to the current step ({step.name})")
    content, signature = message[:-_SIGNATURE_BYTES], message[-_SIGNATURE_BYTES:]
    try:
        Ed25519PublicKey.from_public_bytes(_key_of(sender, session)).verify(signature, content)
    except InvalidSignature:
        raise ProtocolError("the message's signature is not valid") from None
    return Letter(round, sender, content[_HEADER.size :])


def _key_of(sender: int, session: SumSession) -> bytes:
    if sender == COORDINATOR:
        return session.coordinator
    if sender >= len(session.identities):
        raise ProtocolError("the message's sender is not in the session")
    return session.identities[sender]
