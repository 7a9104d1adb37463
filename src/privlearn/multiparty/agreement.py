"""Keys that two parties share and nobody else knows: X25519, then HKDF-SHA256 bound to session and purpose."""

from __future__ import annotations

import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from privlearn.errors import ProtocolError
from privlearn.multiparty.sum_session import SumSession

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
