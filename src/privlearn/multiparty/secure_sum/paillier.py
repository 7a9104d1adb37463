"""The papers' scheme: Paillier's additively homomorphic encryption, many coordinates in one ciphertext.

The parties share one key pair, made by one of them and passed on where the coordinator does not listen. The coordinator
has the public key only: it multiplies ciphertexts, which adds what is in them, and hands the product back; any party
decrypts it. A party may drop out at any moment. But every party could decrypt every other's ciphertext: the coordinator
together with one party sees all vectors. That is why the masks are the default and this is the cross-check.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from phe import paillier

from privlearn.errors import DataError, InvalidParameter, ProtocolError
from privlearn.multiparty.secure_sum.masks import WORD_BYTES
from privlearn.multiparty.secure_sum.noise_share import Words

KEY_BITS = 3072
"""Length of the modulus: as hard to factor as 128 bits are to guess (NIST SP 800-57)."""


def generate_keys() -> tuple[paillier.PaillierPublicKey, paillier.PaillierPrivateKey]:
    """A fresh key pair, from the operating system's secure bits."""
    public, private = paillier.generate_paillier_keypair(n_length=KEY_BITS)
    return public, private


@dataclass(frozen=True)
class PaillierSum:
    """Sums of words modulo 2**64 under encryption, equal to the masks' in every bit.

    A coordinate takes 8 bytes of a plaintext and enough guard bytes for the carries of ``parties`` summands, so that
    neighbours do not touch.

    Parameters
    ----------
    public_key : phe.paillier.PaillierPublicKey
    parties : int
        How many ciphertexts are added at the most.
    dimension : int
    """

    public_key: paillier.PaillierPublicKey
    parties: int
    dimension: int

    def __post_init__(self) -> None:
        if self.parties < 1 or self.dimension < 1:
            raise InvalidParameter("a sum has at least one party and one coordinate")

    @property
    def slot_bytes(self) -> int:
        return WORD_BYTES + -(-(self.parties - 1).bit_length() // 8)

    @property
    def slots(self) -> int:
        """Coordinates in one plaintext, which must stay below the modulus."""
        return int((self.public_key.n.bit_length() - 1) // 8 // self.slot_bytes)

    @property
    def ciphertexts(self) -> int:
        return -(-self.dimension // self.slots)

    @property
    def ciphertext_bytes(self) -> int:
        return int(-(-self.public_key.nsquare.bit_length() // 8))

    def encrypt(self, words: Words) -> bytes:
        """A party's vector, for the coordinator."""
        if words.shape != (self.dimension,):
            raise DataError(f"the vector must have {self.dimension} coordinates")
        slots = np.zeros((self.ciphertexts * self.slots, self.slot_bytes), dtype=np.uint8)
        slots[: self.dimension, :WORD_BYTES] = words.astype("<u8").view(np.uint8).reshape(-1, WORD_BYTES)
        plaintexts = (int.from_bytes(part.tobytes(), "little") for part in np.split(slots, self.ciphertexts))
        return self._join([self.public_key.raw_encrypt(plaintext) for plaintext in plaintexts])

    def add(self, messages: Collection[bytes]) -> bytes:
        """The coordinator's part: the encrypted sum, which it cannot read."""
        if not 1 <= len(messages) <= self.parties:
            raise ProtocolError(f"between 1 and {self.parties} vectors can be added, not {len(messages)}")
        product = [1] * self.ciphertexts
        for message in messages:
            product = [
                a * b % self.public_key.nsquare for a, b in zip(product, self._split(message), strict=True)
            ]
        return self._join(product)

    def decrypt(self, message: bytes, private_key: paillier.PaillierPrivateKey) -> Words:
        """A party's part: the sum, each coordinate modulo 2**64."""
        size = self.slots * self.slot_bytes
        try:
            plain = [private_key.raw_decrypt(part).to_bytes(size, "little") for part in self._split(message)]
        except OverflowError:
            raise ProtocolError("the encrypted sum holds more than sums of words") from None
        slots = np.frombuffer(b"".join(plain), dtype=np.uint8).reshape(-1, self.slot_bytes)
        words = np.ascontiguousarray(slots[: self.dimension, :WORD_BYTES]).view("<u8")
        return words.ravel().astype(np.uint64)

    def _join(self, ciphertexts: list[int]) -> bytes:
        return b"".join(ciphertext.to_bytes(self.ciphertext_bytes) for ciphertext in ciphertexts)

    def _split(self, message: bytes) -> list[int]:
        size = self.ciphertext_bytes
        if len(message) != self.ciphertexts * size:
            raise ProtocolError("an encrypted vector has the wrong size")
        ciphertexts = [int.from_bytes(message[at : at + size]) for at in range(0, len(message), size)]
        modulus, square = self.public_key.n, self.public_key.nsquare
        if any(number >= square or math.gcd(number, modulus) != 1 for number in ciphertexts):
            raise ProtocolError("an encrypted vector is not a list of ciphertexts of this key")
        return ciphertexts
