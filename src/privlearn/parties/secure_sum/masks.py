"""Masks that cancel in the sum, the boxes in which shares of their keys travel, and the way back to the sum.

A party adds to its vector its own mask and one mask for each other party, which the other party subtracts. The
coordinator opens the own masks of the vectors that arrived, and the pair masks of missing parties. Without these masks
the sum of the vectors remains.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from privlearn.errors import ProtocolError
from privlearn.parties.secure_sum.curve import KEY_BYTES, agree, public_half
from privlearn.parties.secure_sum.noise_share import Words
from privlearn.parties.secure_sum.session import (
    ENVELOPE_BYTES,
    KeyBook,
    Step,
    SumSession,
    derive_key,
    from_party,
)
from privlearn.parties.secure_sum.sharing import SHARE_BYTES, Proof, recover

TAG_BYTES = 16
NONCE_BYTES = 12
WORD_BYTES = 8
QUESTION_DIGEST_BYTES = 32


class ShareBox:
    """The encrypted and authenticated box in which one party sends shares to another.

    Its key is bound to session, sender and receiver. The nonce is random, so a party that is restored from a copy of
    its file does not encrypt two contents with one nonce.
    """

    def __init__(self, secret: bytes, public: bytes, session: SumSession, sender: int, receiver: int) -> None:
        self._sender = sender
        key = derive_key(agree(secret, public), session, "share box", sender, receiver)
        self._cipher = ChaCha20Poly1305(key)

    def lock(self, content: bytes) -> bytes:
        """Return the box with this content."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, content, None)

    def unlock(self, box: bytes) -> bytes:
        """Return what the sender locked in; refuse a box that was changed."""
        try:
            return self._cipher.decrypt(box[:NONCE_BYTES], box[NONCE_BYTES:], None)
        except InvalidTag:
            raise ProtocolError(
                f"the shares of party {self._sender} were changed on their way, or are for another party"
            ) from None


def self_mask(secret: bytes, session: SumSession, round: int, party: int) -> Words:
    """Return a party's own mask, which is opened once its vector has arrived."""
    return _stream(derive_key(secret, session, "self mask", round, party), session.dimension)


def pair_masks(
    secret: bytes,
    publics: Mapping[int, bytes],
    session: SumSession,
    round: int,
    party: int,
    question: bytes = b"",
) -> Words:
    """Return the sum of a party's masks with others: it adds what a party of a higher number subtracts.

    Two parties have the same mask only if they were asked the same question; masks for different questions do not
    cancel.
    """
    total = np.zeros(session.dimension, dtype=np.uint64)
    for other, public in publics.items():
        # Both sides derive the key from the same order of the two numbers.
        low, high = min(party, other), max(party, other)
        key = derive_key(agree(secret, public), session, "pair mask", round, low, high, question=question)
        mask = _stream(key, session.dimension)
        # Arithmetic is modulo 2**64 on both sides, so the two masks of a pair cancel exactly, not only up to rounding.
        total = total + mask if party == low else total - mask
    return total


def _stream(key: bytes, dimension: int) -> Words:
    nonce = bytes(16)  # safe: every key is derived for one round and one mask
    stream = Cipher(ChaCha20(key, nonce), mode=None).encryptor().update(bytes(dimension * WORD_BYTES))
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


@dataclass(frozen=True)
class OpenedKeys:
    """Private keys by owner, and the parties that revealed a false share."""

    secrets: dict[int, bytes]
    liars: frozenset[int]


def open_secrets(
    answers: Mapping[int, bytes], proofs: Mapping[int, Proof], indices: Mapping[int, int], threshold: int
) -> OpenedKeys:
    """Recover one key of each owner; every revealed share is checked, so false ones do no harm.

    ``answers``: a share for each owner, in the order of ``proofs``. ``indices``: index of the key to open among the
    owner's shared keys (`key_index`). ``threshold``: number of shares that open a key.
    """
    opened, liars = dict[int, bytes](), set[int]()
    for number, (owner, proof) in enumerate(proofs.items()):
        part = slice(number * SHARE_BYTES, (number + 1) * SHARE_BYTES)
        shares = {party: answer[part] for party, answer in answers.items()}
        false = {party for party, share in shares.items() if not proof.confirms(party, indices[owner], share)}
        liars |= false
        # More than `threshold` true shares would give the same key; fewer give nothing, and the owner is left out.
        true = [party for party in shares if party not in false][:threshold]
        if len(true) == threshold:
            opened[owner] = recover({party + 1: shares[party] for party in true})
    return OpenedKeys(opened, frozenset(liars))


def key_index(round: int, arrived: bool) -> int:
    """Return the index of the key to open: the own key if the party's vector arrived, else its pair key."""
    return 2 * round + arrived


def question_digest(books: Mapping[int, KeyBook], question: bytes) -> bytes:
    """Return what a party signs with its masked vector: the digest of the question and of all parties' keys.

    The keys are fresh in every run, so a vector of another run is refused, even if that run has the same name.
    """
    # All parties hash the books in the same order, not in the order in which they arrived.
    keys = hashlib.sha256(b"".join(books[number].to_bytes() for number in sorted(books))).digest()
    return hashlib.sha256(b"privlearn asked" + keys + question).digest()


def masked_size(session: SumSession) -> int:
    """Return the number of bytes of a masked vector with its `question_digest`."""
    return session.dimension * WORD_BYTES + QUESTION_DIGEST_BYTES


def read_masked(messages: bytes, session: SumSession, round: int, digest: bytes) -> dict[int, Words]:
    """Read the parties' signed masked vectors of one round, joined; refuse one that answers another question.

    ``digest`` is the `question_digest`. A party's masks depend on the question, so if a coordinator could
    choose the question for which they are removed, it could choose the sum.
    """
    size = ENVELOPE_BYTES + masked_size(session)
    vectors = {}
    for start in range(0, len(messages), size):
        letter = from_party(messages[start : start + size], session, Step.MASKED)
        if letter.round != round or len(letter.body) != masked_size(session):
            raise ProtocolError("a masked vector has another round or length")
        # Masks that were drawn for another question would not cancel, and the sum would look like noise.
        if letter.body[-QUESTION_DIGEST_BYTES:] != digest:
            raise ProtocolError(
                f"the vector of party {letter.sender} answers another question than the one in the evidence"
            )
        vectors[letter.sender] = np.frombuffer(letter.body[:-QUESTION_DIGEST_BYTES], dtype="<u8").astype(
            np.uint64
        )
    if len(vectors) * size != len(messages) or len(vectors) < session.cohort.threshold:
        raise ProtocolError("there are too few masked vectors, or one of them twice")
    return dict(sorted(vectors.items()))


def unmask(
    session: SumSession,
    books: Mapping[int, KeyBook],
    round: int,
    question: bytes,
    masked: Mapping[int, Words],
    secrets: Mapping[int, bytes],
) -> Words:
    """Return the sum of the masked vectors without their masks; every opened key must be the advertised one."""
    keys = {number: book.rounds[round] for number, book in books.items()}
    for number, key in keys.items():
        # A party proves what it opened by the public key that it signed in the set-up; a wrong key would shift the sum.
        if public_half(secrets[number]) != (key.own if number in masked else key.pair):
            raise ProtocolError("an opened key is not the one that its owner advertised")
    total = np.zeros(session.dimension, dtype=np.uint64)
    for number, vector in masked.items():
        total += vector - self_mask(secrets[number], session, round, number)
    # Masks between two present parties have cancelled. A missing party never subtracted its side: its opened pair
    # key gives the masks that the present ones have with it.
    present = {number: keys[number].pair for number in masked}
    for number in set(keys) - set(present):
        total += pair_masks(secrets[number], present, session, round, number, question)
    return total


def read_secrets(content: bytes, parties: int) -> dict[int, bytes]:
    """Read one opened key of each party, joined."""
    if len(content) != parties * KEY_BYTES:
        raise ProtocolError("the opened keys are malformed")
    return {number: content[number * KEY_BYTES : (number + 1) * KEY_BYTES] for number in range(parties)}
