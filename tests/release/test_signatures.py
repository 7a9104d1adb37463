"""Signatures of both kinds belong to one content, and have one form."""

from __future__ import annotations

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePublicKey,
    derive_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from privlearn.release.signatures import (
    _ORDER,
    P256,
    SigningKey,
    check_record,
    lower_form,
    signature_by,
)

_CURVE_KEY = derive_private_key(20_26, SECP256R1())


class CurveKey:
    """As a token signs."""

    def public_key(self) -> EllipticCurvePublicKey:
        return _CURVE_KEY.public_key()

    def sign(self, data: bytes, /) -> bytes:
        first, second = decode_dss_signature(_CURVE_KEY.sign(data, ECDSA(SHA256())))
        return lower_form(first.to_bytes(32) + second.to_bytes(32))


KEYS: dict[str, SigningKey] = {"ed25519": Ed25519PrivateKey.from_private_bytes(b"k" * 32), "p256": CurveKey()}


@pytest.mark.parametrize("kind", KEYS)
def test_a_signature_belongs_to_one_content(kind: str) -> None:
    record = signature_by(KEYS[kind], b"one")
    check_record(record, b"one")
    with pytest.raises(InvalidSignature):
        check_record(record, b"another")


def test_old_files_name_no_algorithm() -> None:
    assert list(signature_by(KEYS["ed25519"], b"one")) == ["public_key", "signature"]
    assert signature_by(KEYS["p256"], b"one")["algorithm"] == P256


def test_the_algorithm_is_that_of_the_key() -> None:
    for kind, claimed in (("ed25519", {"algorithm": P256}), ("p256", {"algorithm": "none"})):
        with pytest.raises(ValueError, match="algorithm"):
            check_record(signature_by(KEYS[kind], b"one") | claimed, b"one")


def test_the_twin_of_a_signature_is_refused() -> None:
    record = signature_by(KEYS["p256"], b"one")
    signature = bytes.fromhex(record["signature"])
    twin = signature[:32] + (_ORDER - int.from_bytes(signature[32:])).to_bytes(32)
    assert lower_form(twin) == signature
    with pytest.raises(InvalidSignature):
        check_record(record | {"signature": twin.hex()}, b"one")
