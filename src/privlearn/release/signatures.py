"""Signatures of files, and their keys: Ed25519, or ECDSA on the curve P-256 for keys in hardware that has no other.

An ECDSA signature has a twin that anyone can compute. Only the one with the lower half is accepted, so that a signed
file has exactly one form of bytes. `in_words` spells a digest in words that people can compare over the telephone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from privlearn.errors import InvalidParameter

P256 = "ecdsa-p256-sha256"
"""The algorithm as a signature names it; without a name it is Ed25519."""

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_HALF = 32  # bytes

PublicKey: TypeAlias = Ed25519PublicKey | EllipticCurvePublicKey


class SigningKey(Protocol):
    """A key in a file (`Ed25519PrivateKey` is one), or in a token."""

    def public_key(self) -> PublicKey: ...

    def sign(self, data: bytes, /) -> bytes:
        """Return 64 bytes for Ed25519; for P-256 the two numbers of `lower_form`."""
        ...


def signature_by(key: SigningKey, content: bytes) -> dict[str, str]:
    """Return the record that is stored with the content."""
    named = {} if isinstance(key.public_key(), Ed25519PublicKey) else {"algorithm": P256}
    return named | {"public_key": key_hex(key.public_key()), "signature": key.sign(content).hex()}


def check_record(record: Mapping[str, str], content: bytes) -> None:
    """Check a record of `signature_by` for this content; raise ValueError, KeyError or InvalidSignature."""
    public_key = record["public_key"]
    if record.get("algorithm") != (None if _is_ed25519(public_key) else P256):
        raise ValueError("the algorithm is not that of the key")
    check_signature(public_key, record["signature"], content)


def check_signature(public_key: str, signature: str, content: bytes) -> None:
    """Check a signature in hexadecimal; the key's length decides the algorithm."""
    key, signed = bytes.fromhex(public_key), bytes.fromhex(signature)
    if _is_ed25519(public_key):
        Ed25519PublicKey.from_public_bytes(key).verify(signed, content)
        return
    curve_key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), key)
    first, second = int.from_bytes(signed[:_HALF]), int.from_bytes(signed[_HALF:])
    if key_hex(curve_key) != public_key or len(signed) != 2 * _HALF or second > _ORDER // 2:
        raise InvalidSignature
    curve_key.verify(encode_dss_signature(first, second), content, ECDSA(SHA256()))


def lower_form(signature: bytes) -> bytes:
    """Return the accepted one of the two ECDSA signatures that belong together, each two numbers of 32 bytes."""
    second = int.from_bytes(signature[_HALF:])
    return signature[:_HALF] + min(second, _ORDER - second).to_bytes(_HALF)


def key_hex(key: PublicKey) -> str:
    """Return a public key as signatures and `verify` write it."""
    if isinstance(key, Ed25519PublicKey):
        return key.public_bytes_raw().hex()
    form = serialization.PublicFormat.CompressedPoint
    return key.public_bytes(serialization.Encoding.X962, form).hex()


def public_pem(key: SigningKey) -> str:
    """Return the public half of a key, as `openssl pkey -pubout` writes it."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def is_supported_key(key: object) -> bool:
    """Return whether a public key is of one of the two kinds."""
    if isinstance(key, EllipticCurvePublicKey):
        return isinstance(key.curve, SECP256R1)
    return isinstance(key, Ed25519PublicKey)


def _is_ed25519(public_key: str) -> bool:
    return len(public_key) == 2 * _HALF


_CONSONANTS = "bdfghjklmnprstvz"
_VOWELS = "aiou"
WORDS = 12
"""Words in a fingerprint, of 16 bits each: 192 bits, so two plans with one fingerprint take 2^96 tries to find."""


def in_words(digest: str) -> str:
    """Return the first 192 bits of a hexadecimal digest as pronounceable words (proquints, Wilkerson 2009).

    Examples
    --------
    >>> in_words("7f000001" + 40 * "0")
    'lusab babad babab babab babab babab babab babab babab babab babab babab'
    """
    raw = bytes.fromhex(digest)[: 2 * WORDS]
    if len(raw) < 2 * WORDS:
        raise ValueError("a fingerprint needs a digest of at least 192 bits")
    return " ".join(_word(int.from_bytes(raw[start : start + 2])) for start in range(0, len(raw), 2))


def _word(number: int) -> str:
    """Return consonant, vowel, consonant, vowel, consonant: 4 + 2 + 4 + 2 + 4 bits."""
    letters = ""
    for alphabet, shift in zip((_CONSONANTS, _VOWELS) * 2 + (_CONSONANTS,), (12, 10, 6, 4, 0), strict=True):
        letters += alphabet[number >> shift & len(alphabet) - 1]
    return letters


def read_private_key(path: str | Path) -> Ed25519PrivateKey:
    """Read a holder's signing key in PEM form, as `openssl genpkey -algorithm ed25519` writes it."""
    key = _read_key(path, lambda content: load_pem_private_key(content, password=None))
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidParameter(
            f"{path} is not an Ed25519 key. Make one with `openssl genpkey -algorithm ed25519`"
        )
    return key


def read_public_key(path: str | Path) -> PublicKey:
    """Read a holder's public key in PEM form, as `openssl pkey -pubout` writes it."""
    key: PublicKey = _read_key(path, load_pem_public_key)
    if not is_supported_key(key):
        raise InvalidParameter(
            f"{path} is not an Ed25519 public key, nor one of the curve P-256. Make it with `openssl pkey -pubout`"
        )
    return key


def parse_public_key(content: bytes, where: str) -> PublicKey:
    """Return the public key in PEM form that ``where`` states."""
    try:
        key: Any = load_pem_public_key(content)
    except (TypeError, ValueError):
        key = None
    if not is_supported_key(key):
        raise InvalidParameter(f"what {where} says is not an Ed25519 or P-256 public key in PEM form")
    return key  # type: ignore[no-any-return]


def _read_key(path: str | Path, parse: Callable[[bytes], Any]) -> Any:
    try:
        return parse(Path(path).read_bytes())
    except OSError as error:
        raise InvalidParameter(f"cannot read the key {path}: {error.strerror}") from None
    except (TypeError, ValueError):
        raise InvalidParameter(f"{path} is not an unencrypted PEM key") from None
