"""Shamir's shares of the round keys, and the proof that they are shares of the advertised keys.

Without a proof, a dishonest party could deal shares from which its key cannot be recovered. The others would be
charged for a question whose sum cannot be opened, and could not identify that party. The proof is part of the keys that
a party signs, and is checked before anything is charged (docs/theory/secure-sum.md, "Shares that can be checked").
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from privlearn.errors import InvalidParameter, ProtocolError
from privlearn.parties.secure_sum.curve import (
    KEY_BYTES,
    ORDER,
    PUBLIC_BYTES,
    generate_key,
    public_half,
    weighted_sum,
)
from privlearn.parties.secure_sum.session import KeyBook, LyingParty, SumSession

SHARE_BYTES = 2 * KEY_BYTES
"""A share of a key, and the share of the number that blinds it in the proof."""

_HASH_BYTES = 32
_CHALLENGE_BYTES = 16
_INDICES = struct.Struct(">HHI")

Polynomial = tuple[int, ...]
"""Coefficients modulo the order of the curve, the constant first."""


def split(secret: bytes, threshold: int) -> Polynomial:
    """Return a random polynomial with ``threshold`` coefficients that is the secret at zero."""
    if len(secret) != KEY_BYTES or not 0 < int.from_bytes(secret) < ORDER or threshold < 1:
        raise InvalidParameter("secret must be a private key, and threshold at least 1")
    return (int.from_bytes(secret), *(secrets.randbelow(ORDER) for _ in range(threshold - 1)))


def value_at(polynomial: Polynomial, point: int) -> int:
    """Return the polynomial's value modulo the order of the curve."""
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * point + coefficient) % ORDER
    return value


def recover(shares: Mapping[int, bytes]) -> bytes:
    """Return the secret from exactly ``threshold`` shares by point; wrong shares give other bytes.

    >>> from privlearn.parties.secure_sum.curve import generate_key
    >>> key = generate_key()
    >>> polynomial = split(key, threshold=2)
    >>> recover({point: value_at(polynomial, point).to_bytes(KEY_BYTES) for point in (1, 3)}) == key
    True
    """
    # The first half of a share belongs to the key. The second half, of the blind, is only needed for the proof.
    weights = _weights_at_zero(tuple(shares))
    total = sum(weights[point] * int.from_bytes(share[:KEY_BYTES]) for point, share in shares.items())
    return (total % ORDER).to_bytes(KEY_BYTES)


@lru_cache(maxsize=64)
def _weights_at_zero(points: tuple[int, ...]) -> dict[int, int]:
    """Return Lagrange weights: the value at zero is the sum of weights times values at the points."""
    if min(points, default=0) < 1:
        raise InvalidParameter("shares belong to points above 0")
    weights = {}
    for point in points:
        numerator = denominator = 1
        for other in points:
            if other != point:
                numerator = numerator * other % ORDER
                denominator = denominator * (other - point) % ORDER
        weights[point] = numerator * pow(denominator, -1, ORDER) % ORDER
    return weights


@dataclass(frozen=True, repr=False)
class Dealing:
    """SECRET: the polynomials that share one party's keys, each with one that blinds it in the proof."""

    keys: tuple[Polynomial, ...]
    blinds: tuple[Polynomial, ...]

    @classmethod
    def draw(cls, keys: Iterable[bytes], threshold: int) -> Dealing:
        """Return random polynomials for these keys."""
        polynomials = tuple(split(key, threshold) for key in keys)
        blinds = tuple(split(generate_key(), threshold) for _ in polynomials)
        return cls(polynomials, blinds)

    def shares_of(self, receiver: int) -> bytes:
        """Return a party's shares of all keys, in order."""
        # The value at point 0 is the secret itself.
        point = receiver + 1
        pairs = zip(self.keys, self.blinds, strict=True)
        return b"".join(value_at(part, point).to_bytes(KEY_BYTES) for pair in pairs for part in pair)

    def proof(self, session: SumSession, dealer: int, publics: Sequence[bytes]) -> Proof:
        """Return the public proof that the shares open the keys with these public halves."""
        blinds = tuple(public_half(blind[0].to_bytes(KEY_BYTES)) for blind in self.blinds)
        commitments = tuple(
            _commitment(session, dealer, receiver, index, share)
            for receiver in range(session.cohort.parties)
            for index, share in enumerate(shares_in(self.shares_of(receiver)))
        )
        # The challenges are hashes of everything before the combined polynomials, so these come last.
        draft = Proof(session, dealer, tuple(publics), blinds, commitments, ())
        combined = tuple(
            tuple((b + challenge * k) % ORDER for k, b in zip(key, blind, strict=True))
            for challenge, key, blind in zip(draft.challenges, self.keys, self.blinds, strict=True)
        )
        return Proof(session, dealer, tuple(publics), blinds, commitments, combined)


@dataclass(frozen=True, eq=False)
class Proof:
    """The public part of a dealer's shares.

    For each key with polynomial f: the public half of the constant of a random polynomial b; a hash of every receiver's
    share (f, b); and g = b + c f for a challenge c that is a hash of all the rest.

    **Theorem** (docs/theory/secure-sum.md). Let `check` pass, and the shares of T honest parties satisfy `confirms`.
    Then any T shares that satisfy `confirms` open the advertised key, except with probability q M (K + 2) 2^-128 for a
    dealer of M keys that computes q hashes. The proof reveals nothing about a key beyond its public half.

    Parameters
    ----------
    session : SumSession
    dealer : int
        Index of the party whose keys are shared.
    publics, blinds : tuple of bytes, of length M
        Public halves of the keys and of the constants of the polynomials b.
    commitments : tuple of bytes, of length (parties * M)
        Hash of each share; that of receiver r and key i is at r * M + i.
    combined : tuple of Polynomial, of length M
        The polynomials g.
    """

    session: SumSession
    dealer: int
    publics: tuple[bytes, ...]
    blinds: tuple[bytes, ...]
    commitments: tuple[bytes, ...]
    combined: tuple[Polynomial, ...]

    @staticmethod
    def size(session: SumSession) -> int:
        """Return the number of bytes of `to_bytes`."""
        keys, cohort = 2 * session.rounds, session.cohort
        return keys * (PUBLIC_BYTES + cohort.parties * _HASH_BYTES + cohort.threshold * KEY_BYTES)

    @classmethod
    def from_bytes(cls, body: bytes, session: SumSession, dealer: int, publics: Sequence[bytes]) -> Proof:
        """Read a proof; refuse one that is malformed."""
        keys, cohort = 2 * session.rounds, session.cohort
        first, second = keys * PUBLIC_BYTES, keys * (PUBLIC_BYTES + cohort.parties * _HASH_BYTES)
        numbers = tuple(int.from_bytes(part) for part in _parts(body[second:], KEY_BYTES))
        if len(body) != cls.size(session) or any(number >= ORDER for number in numbers):
            raise ProtocolError("the proof of a party's shares is malformed")
        width = cohort.threshold
        combined = tuple(numbers[start : start + width] for start in range(0, len(numbers), width))
        return cls(
            session,
            dealer,
            tuple(publics),
            tuple(_parts(body[:first], PUBLIC_BYTES)),
            tuple(_parts(body[first:second], _HASH_BYTES)),
            combined,
        )

    def to_bytes(self) -> bytes:
        """Return the proof without the fields that the receiver has already: session, dealer and public keys."""
        numbers = (number.to_bytes(KEY_BYTES) for polynomial in self.combined for number in polynomial)
        return b"".join((*self.blinds, *self.commitments, *numbers))

    @cached_property
    def challenges(self) -> tuple[int, ...]:
        """A number below 2^128 for each key, which no dealer can know before it commits to its shares."""
        prefix = self.session.digest + _INDICES.pack(self.dealer, 0, 0)
        return _numbers(
            b"challenge" + prefix + b"".join((*self.publics, *self.blinds, *self.commitments)),
            len(self.blinds),
        )

    def check(self) -> None:
        """Refuse a proof whose combined polynomials do not have the advertised keys at zero.

        All equations g(0) G = B + c K are checked as one sum with random weights of 128 bits.
        """
        # One sum over all keys costs a fraction of one check per key. If an equation were wrong, the weights, which
        # are hashes of the whole proof, would have to cancel it by chance.
        weights = _numbers(
            b"weights" + self.session.digest + self.to_bytes() + b"".join(self.publics), len(self.blinds)
        )
        left = sum(weight * part[0] for weight, part in zip(weights, self.combined, strict=True)) % ORDER
        terms = [
            term
            for weight, challenge, blind, key in zip(
                weights, self.challenges, self.blinds, self.publics, strict=True
            )
            for term in ((weight, blind), (weight * challenge, key))
        ]
        right = weighted_sum(terms)
        # Zero has no public half. An honest dealer meets it with probability 2^-256.
        if left == 0 or right != public_half(left.to_bytes(KEY_BYTES)):
            raise ProtocolError("the shares that the party deals do not open its keys")

    def confirms(self, receiver: int, index: int, share: bytes) -> bool:
        """Return whether the dealer committed to this share, and it lies on the polynomial of the key at this index."""
        if len(share) != SHARE_BYTES:
            return False
        committed = self.commitments[receiver * len(self.publics) + index]
        if _commitment(self.session, self.dealer, receiver, index, share) != committed:
            return False
        key, blind = (int.from_bytes(part) for part in _parts(share, KEY_BYTES))
        combined = value_at(self.combined[index], receiver + 1)
        return max(key, blind) < ORDER and (blind + self.challenges[index] * key) % ORDER == combined


def shares_in(content: bytes) -> list[bytes]:
    """Return the shares of all keys that one party received from another."""
    return list(_parts(content, SHARE_BYTES))


def _commitment(session: SumSession, dealer: int, receiver: int, index: int, share: bytes) -> bytes:
    prefix = session.digest + _INDICES.pack(dealer, receiver, index)
    return hashlib.sha256(b"privlearn share" + prefix + share).digest()


def _numbers(content: bytes, count: int) -> tuple[int, ...]:
    """Return pseudorandom numbers below 2^128 that any party can compute from the content."""
    seed = hashlib.sha256(b"privlearn proof of shares: " + content).digest()
    digests = (hashlib.sha256(seed + struct.pack(">I", number)).digest() for number in range(count))
    return tuple(int.from_bytes(digest[:_CHALLENGE_BYTES]) for digest in digests)


def _parts(content: bytes, size: int) -> Iterable[bytes]:
    """Return consecutive parts of the content, each of this many bytes."""
    return (content[start : start + size] for start in range(0, len(content), size))


@lru_cache(maxsize=256)
def read_advertised(body: bytes, session: SumSession, sender: int) -> tuple[KeyBook, Proof]:
    """Read the keys that a party advertised and the proof of their shares; refuse them unless both are valid."""
    size = KeyBook.size(session.rounds)
    try:
        book = KeyBook.from_bytes(body[:size], session.rounds)
        proof = Proof.from_bytes(body[size:], session, sender, book.shared)
        proof.check()
    except ProtocolError as error:
        raise LyingParty(sender, str(error)) from None
    return book, proof


def advertised_size(session: SumSession) -> int:
    """Return the number of bytes of a party's keys and their proof."""
    return KeyBook.size(session.rounds) + Proof.size(session)
