"""Every message of the secure sum: bound to a session, a step, a round and a sender, and signed by the sender."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from privlearn.errors import ProtocolError
from privlearn.multiparty.sum_session import SumSession

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
