"""A party's X25519 keys for one session: one for its boxes, and two for every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privlearn.errors import ProtocolError
from privlearn.multiparty.agreement import KEY_BYTES, public_half


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
