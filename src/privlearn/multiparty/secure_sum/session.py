"""What a secure sum is agreed on: the cohort, the round, its keys, and sealed messages."""

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
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from privlearn.errors import InvalidParameter, ProtocolError

MOST_PARTIES = 1000


@dataclass(frozen=True)
class Cohort:
    """The parties of a secure sum, how many may be missing from it, and how many may pool what they know.

    **Theorem** (docs/theory/secure-sum.md). Let n = parties - colluding be the honest parties. A coordinator that tells
    the parties different stories about who is missing opens, in each round, at most one sum of honest vectors, over at
    least n - dropouts parties, if and only if

        dropouts (dropouts + 1) < n.

    Other cohorts are refused: their coordinator could open the sum of too few parties, or a single vector.

    Parameters
    ----------
    parties : int
        K, everyone in the plan.
    dropouts : int, default=0
        How many may be missing from a round.
    colluding : int, default=1
        How many parties may pool all they know, among themselves and with the coordinator. At least 1 if the
        parties see the sum: each can subtract its own share of the noise, and so colludes with itself.

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
        if not 2 <= self.parties <= MOST_PARTIES:
            raise InvalidParameter(f"a secure sum has 2 to {MOST_PARTIES} parties, not {self.parties}")
        if self.dropouts < 0 or self.colluding < 0:
            raise InvalidParameter("dropouts and colluding are whole numbers of at least 0")
        if self.colluding >= self.parties:
            raise InvalidParameter(
                f"if {self.colluding} of {self.parties} parties collude, nobody is left to add noise: colluding is at "
                f"most {self.parties - 1}"
            )
        most = _most_dropouts(self.parties - self.colluding)
        if self.dropouts > most:
            enough = self.colluding + self.dropouts * (self.dropouts + 1) + 1
            raise InvalidParameter(
                f"with dropouts = {self.dropouts} and colluding = {self.colluding}, a coordinator that tells "
                f"{self.parties} parties different stories about who is missing could open the sum of too few of "
                f"them. Set dropouts = {most}: dropouts = {self.dropouts} needs {enough} parties"
            )

    @property
    def threshold(self) -> int:
        """How many parties a round needs, and how many shares open a secret: K - dropouts."""
        return self.parties - self.dropouts

    @property
    def honest(self) -> int:
        """The shares of the noise that are surely in the sum and known to no adversary: K - dropouts - colluding."""
        return self.threshold - self.colluding


def _most_dropouts(honest: int) -> int:
    """The largest D with D (D + 1) < honest."""
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
        How many sums there will be at the most. Rounds are numbered from 0.
    identities : tuple of bytes
        The parties' Ed25519 public keys, 32 bytes each; a party's number is its place here.
    coordinator : bytes
        The coordinator's Ed25519 public key.
    context : bytes, default=b""
        What else the session is about: a digest of the plan and of this run of it.
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
                f"a cohort of {self.cohort.parties} needs as many identity keys, distinct and not the coordinator's"
            )
        if any(len(key) != 32 for key in keys):
            raise InvalidParameter("identity keys are Ed25519 public keys of 32 bytes")

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all fields."""
        cohort = self.cohort
        numbers = (cohort.parties, cohort.dropouts, cohort.colluding, self.dimension, self.rounds)
        described = struct.pack(">5Q", *numbers) + self.coordinator + b"".join(self.identities)
        return hashlib.sha256(b"privlearn secure sum 1" + described + self.context).digest()


KEY_BYTES = 32


def public_half(secret: bytes) -> bytes:
    """The X25519 public key of a private one."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def agree(private: X25519PrivateKey, public: bytes) -> bytes:
    """What the owners of both keys can compute, and nobody else."""
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:  # a point of small order, whose products are known to all
        raise ProtocolError("a party advertised an unusable key") from None


def derive_key(secret: bytes, session: SumSession, purpose: str, *numbers: int) -> bytes:
    """A key of 32 bytes for one purpose in one session."""
    info = f"privlearn secure sum: {purpose}".encode() + struct.pack(f">{len(numbers)}Q", *numbers)
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
        """Fresh private keys, from the operating system's secure bits."""
        return cls(_fresh(), tuple(RoundKeys(_fresh(), _fresh()) for _ in range(rounds)))

    @classmethod
    def from_bytes(cls, body: bytes, rounds: int) -> KeyBook:
        if len(body) != cls.size(rounds):
            raise ProtocolError(f"a party's keys for {rounds} rounds have {cls.size(rounds)} bytes")
        keys = [body[start : start + KEY_BYTES] for start in range(0, len(body), KEY_BYTES)]
        return cls(keys[0], tuple(map(RoundKeys, keys[1::2], keys[2::2])))

    @staticmethod
    def size(rounds: int) -> int:
        return (1 + 2 * rounds) * KEY_BYTES

    def public(self) -> KeyBook:
        """The halves that may be advertised."""
        halves = (RoundKeys(public_half(keys.pair), public_half(keys.own)) for keys in self.rounds)
        return KeyBook(public_half(self.box), tuple(halves))

    def to_bytes(self) -> bytes:
        return self.box + b"".join(keys.pair + keys.own for keys in self.rounds)


def _fresh() -> bytes:
    return X25519PrivateKey.generate().private_bytes_raw()


COORDINATOR = 2**16 - 1
"""The coordinator's number as a sender; parties count from 0."""

_HEADER = struct.Struct(">4sBIH32s")
_MAGIC = b"PLS1"
_SIGNATURE_BYTES = 64
ENVELOPE_BYTES = _HEADER.size + _SIGNATURE_BYTES
"""What an envelope adds to its body."""


class Step(IntEnum):
    """The protocol's steps in their order; KEYS to INBOX once a session, MASKED to REVEALED once a round.

    QUESTION, which opens a round, is not part of the sum: it says what is to be summed.
    """

    KEYS = 1
    ROSTER = 2
    SHARES = 3
    INBOX = 4
    MASKED = 5
    SURVIVORS = 6
    REVEALED = 7
    QUESTION = 8


class Letter(NamedTuple):
    """What was inside an envelope that is in order."""

    round: int
    sender: int
    body: bytes


def seal(
    identity: Ed25519PrivateKey, session: SumSession, step: Step, sender: int, body: bytes, round: int = 0
) -> bytes:
    """The message as it travels."""
    content = _HEADER.pack(_MAGIC, step, round, sender, session.digest) + body
    return content + identity.sign(content)


def from_party(message: bytes, session: SumSession, step: Step) -> Letter:
    """The letter inside; refused unless a party of the plan signed it for this session and step."""
    letter = _unseal(message, session, step)
    if letter.sender == COORDINATOR:  # as a party it would be given shares
        raise ProtocolError("the message does not come from a party")
    return letter


def from_coordinator(message: bytes, session: SumSession, step: Step) -> Letter:
    """The letter inside; refused unless the coordinator signed it for this session and step."""
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
        raise ProtocolError("the message belongs to another session: plan, run or parties differ")
    if actual_step != step:
        raise ProtocolError(f"the message is not the one expected now ({step.name})")
    content, signature = message[:-_SIGNATURE_BYTES], message[-_SIGNATURE_BYTES:]
    try:
        Ed25519PublicKey.from_public_bytes(_key_of(sender, session)).verify(signature, content)
    except InvalidSignature:
        raise ProtocolError("the message's signature is not its sender's") from None
    return Letter(round, sender, content[_HEADER.size :])


def _key_of(sender: int, session: SumSession) -> bytes:
    if sender == COORDINATOR:
        return session.coordinator
    if sender >= len(session.identities):
        raise ProtocolError("the message's sender is not in the plan")
    return session.identities[sender]
