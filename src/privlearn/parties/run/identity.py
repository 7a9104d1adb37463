"""Identities of parties (signing keys), and the TLS certificate of the coordinator."""

from __future__ import annotations

import base64
import ipaddress
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from privlearn.errors import InvalidParameter
from privlearn.release.run_record import has_signed
from privlearn.release.signatures import read_private_key

COORDINATOR_NAME = "coordinator"
"""The coordinator's name among an agreement's keys; no party may have it."""

_CURVE = ec.SECP384R1()
_SIGNING_BYTES = 32
_FIELD = 2**255 - 19
_ORDER_8 = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
_SMALL_ORDER = frozenset({0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8})
"""The y coordinates of the eight Ed25519 points of small order: one signature under such a key fits many messages."""
_NODE_BYTES = 49
_NODE_SECRET_BYTES = 47  # so that every value is below the order of the curve


@dataclass(frozen=True)
class PublicIdentity:
    """The public half of an `Identity`; its text form is one line of an agreement's keys."""

    signing: bytes
    node: bytes

    @classmethod
    def parse(cls, text: str) -> PublicIdentity:
        """Read the text form; refuse malformed keys and keys of small order."""
        try:
            raw = base64.b64decode(text, altchars=b"-_", validate=True)
            public = cls(raw[:_SIGNING_BYTES], raw[_SIGNING_BYTES:])
            Ed25519PublicKey.from_public_bytes(public.signing)
            if has_small_order(public.signing):
                raise ValueError
            public.node_key()
        except ValueError:
            raise InvalidParameter("not a public identity. Copy what `privlearn identity` printed") from None
        return public

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self.signing + self.node).decode("ascii")

    def node_key(self) -> ec.EllipticCurvePublicKey:
        """Return the key by which Flower knows the party's node."""
        return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, self.node)

    def has_signed(self, signature: bytes, content: bytes) -> bool:
        """Return whether the signature under the content is this identity's."""
        return has_signed(self.signing, signature, content)


def has_small_order(key: bytes) -> bool:
    """Return whether an Ed25519 public key, in any encoding, is a point of order 1, 2, 4 or 8."""
    return (int.from_bytes(key, "little") % 2**255) % _FIELD in _SMALL_ORDER


class Identity:
    """A private key.

    Examples
    --------
    >>> identity = Identity.generate()
    >>> PublicIdentity.parse(str(identity.public)) == identity.public
    True
    """

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self.key = key

    @classmethod
    def generate(cls) -> Identity:
        """Return a new identity, from the operating system's secure bits."""
        return cls(Ed25519PrivateKey.from_private_bytes(secrets.token_bytes(_SIGNING_BYTES)))

    @classmethod
    def read(cls, path: str | Path) -> Identity:
        """Read a PEM file written by `write`."""
        return cls(read_private_key(path))

    def write(self, path: Path) -> None:
        """Write a new PEM file that only its owner may read."""
        write_secret(path, self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    @property
    def public(self) -> PublicIdentity:
        """The public half."""
        node = self.node_key().public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
        return PublicIdentity(self.key.public_key().public_bytes_raw(), node)

    def node_key(self) -> ec.EllipticCurvePrivateKey:
        """Return the derived key by which Flower authenticates the party's node."""
        derivation = HKDF(SHA256(), length=_NODE_SECRET_BYTES, salt=None, info=b"privlearn flower node 1")
        secret = derivation.derive(self.key.private_bytes_raw())
        return ec.derive_private_key(int.from_bytes(secret, "big") + 1, _CURVE)


def write_secret(path: Path, content: bytes) -> None:
    """Write a new file that only its owner may read; never replace an existing one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidParameter(f"{path} exists, and a lost key cannot be restored. Move it first") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def check_keys(keys: Mapping[str, str], parties: Mapping[str, int]) -> None:
    """Refuse keys that are not exactly those of the parties and the coordinator, all different."""
    if COORDINATOR_NAME in parties:
        raise InvalidParameter(f"a party must not be called {COORDINATOR_NAME}")
    if set(keys) != {COORDINATOR_NAME, *parties}:
        raise InvalidParameter(
            f"list a key for each of {COORDINATOR_NAME}, {', '.join(parties)}, and no other"
        )
    for name, text in keys.items():
        try:
            PublicIdentity.parse(text)
        except InvalidParameter as error:
            raise InvalidParameter(f"{name}: {error}") from None
    if len({PublicIdentity.parse(text).signing for text in keys.values()}) < len(keys):
        raise InvalidParameter("two parties have the same key. Each must run `privlearn identity` itself")


_DAYS = 365


def write_certificate(certificate: Path, key: Path, hosts: Sequence[str]) -> None:
    """Write a key and a self-signed certificate for these host names or addresses, valid for a year."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "privlearn coordinator")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(private, SHA256())
    )
    write_secret(key, private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    certificate.write_bytes(signed.public_bytes(Encoding.PEM))


def check_dates(certificate: Path) -> None:
    """Refuse a certificate that no party would accept today, by this machine's clock."""
    loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    first, last = loaded.not_valid_before_utc, loaded.not_valid_after_utc
    if not first <= datetime.now(UTC) <= last:
        raise InvalidParameter(
            f"{certificate} is valid from {first:%Y-%m-%d} to {last:%Y-%m-%d}, not today. Create a new one with "
            "`privlearn identity coordinator --host HUB --renew`, and give every party a copy. An interrupted "
            "run continues with it"
        )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise InvalidParameter(f"{host} is neither a host name nor an address") from None
