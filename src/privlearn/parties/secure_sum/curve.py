"""Points of the curve P-256: keys, agreement, and sums of public points.

The curve has prime order, so every valid point but zero generates the whole group: there are no keys of small order.
Private keys only pass through the `cryptography` package. `weighted_sum` works on public points alone, so it need not
run in constant time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from privlearn.errors import ProtocolError

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Number of points of the curve, a prime: private keys are numbers from 1 to this, exclusive."""

KEY_BYTES = 32
PUBLIC_BYTES = 33

_FIELD = 2**256 - 2**224 + 2**192 + 2**96 - 1
_CURVE = ec.SECP256R1()
_Jacobian = tuple[int, int, int]
_ZERO: _Jacobian = (1, 1, 0)


def generate_key() -> bytes:
    """Return a fresh private key from the operating system's bits.

    OpenSSL's generator would repeat keys in a copied process.
    """
    return (1 + secrets.randbelow(ORDER - 1)).to_bytes(KEY_BYTES)


def public_half(secret: bytes) -> bytes:
    """Return the public key of a private one."""
    return _private(secret).public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)


def agree(secret: bytes, public: bytes) -> bytes:
    """Return the secret that only the owners of the two keys can compute (Diffie-Hellman)."""
    return _private(secret).exchange(ec.ECDH(), _public(public))


def check_public(public: bytes) -> None:
    """Refuse bytes that are not a compressed point of the curve."""
    _public(public)


def weighted_sum(terms: Iterable[tuple[int, bytes]]) -> bytes | None:
    """Return the sum of weight times point over public points; None for zero."""
    points = [(weight % ORDER, _affine(public)) for weight, public in terms]
    total = _ZERO
    # All terms share the doublings: for n points this is n times faster than one product after the other.
    for bit in reversed(range(max((weight.bit_length() for weight, _ in points), default=0))):
        total = _double(total)
        for weight, point in points:
            if weight >> bit & 1:
                total = _add(total, point)
    if total[2] == 0:
        return None
    # Jacobian coordinates (x / z^2, y / z^3) need one division in all, here at the end.
    inverse = pow(total[2], -1, _FIELD)
    x, y = total[0] * inverse**2 % _FIELD, total[1] * inverse**3 % _FIELD
    return bytes([2 + y % 2]) + x.to_bytes(KEY_BYTES)


def _private(secret: bytes) -> ec.EllipticCurvePrivateKey:
    number = int.from_bytes(secret)
    if len(secret) != KEY_BYTES or not 0 < number < ORDER:
        raise ProtocolError("not a private key of the curve")
    return ec.derive_private_key(number, _CURVE)


def _public(public: bytes) -> ec.EllipticCurvePublicKey:
    try:
        if len(public) == PUBLIC_BYTES:
            return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, public)
    except ValueError:
        pass
    raise ProtocolError("a party advertised an unusable key")


def _affine(public: bytes) -> tuple[int, int]:
    numbers = _public(public).public_numbers()
    return numbers.x, numbers.y


def _double(point: _Jacobian) -> _Jacobian:
    x, y, z = point
    if z == 0:
        return _ZERO
    square = y * y % _FIELD
    # 3 x^2 + a z^4 factors like this because a = -3 on P-256.
    slope = 3 * (x - z * z) * (x + z * z) % _FIELD
    middle = 4 * x * square % _FIELD
    new_x = (slope * slope - 2 * middle) % _FIELD
    return new_x, (slope * (middle - new_x) - 8 * square * square) % _FIELD, 2 * y * z % _FIELD


def _add(point: _Jacobian, other: tuple[int, int]) -> _Jacobian:
    x, y, z = point
    if z == 0:
        return (*other, 1)
    square = z * z % _FIELD
    across, rise = (other[0] * square - x) % _FIELD, (other[1] * square * z - y) % _FIELD
    if across == 0:
        return _double(point) if rise == 0 else _ZERO
    across2 = across * across % _FIELD
    across3, middle = across * across2 % _FIELD, x * across2 % _FIELD
    new_x = (rise * rise - across3 - 2 * middle) % _FIELD
    return new_x, (rise * (middle - new_x) - y * across3) % _FIELD, z * across % _FIELD
