"""The key that signs what a server gives out: in a file, or in a hardware token that never reveals it (PKCS#11)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import Field, StrictStr

from privlearn.data.schema.public import PublicModel
from privlearn.errors import InvalidParameter, StoreUnusable
from privlearn.release.signatures import PublicKey, SigningKey, lower_form, read_private_key

if TYPE_CHECKING:
    from privlearn.server.holder.settings import ServerSettings

PIN_VARIABLE = "PRIVLEARN_TOKEN_PIN"

Label = Annotated[StrictStr, Field(min_length=1)]


class SigningToken(PublicModel):
    """A key in a hardware token.

    Parameters
    ----------
    module : path
        The vendor's library, for example ``/usr/lib/softhsm/libsofthsm2.so``.
    token, key : str
        Their labels. The key is an Ed25519 or a P-256 key, and its public half has the same label.
    pin_file : path, optional
        A file whose first line is the PIN; by default it is in the variable ``PRIVLEARN_TOKEN_PIN``.
    """

    module: Path
    token: Label
    key: Label
    pin_file: Path | None = None


class TokenUnusable(StoreUnusable):
    """The token does not answer. The job that needs it is not at fault and may succeed later."""


class TokenKey:
    """A `SigningKey` in a token. Each signature opens a new session, so that the token may be removed in between."""

    def __init__(self, settings: SigningToken) -> None:
        self._settings = settings
        with self._session() as (session, library):
            self._public = _public_half(session, library, settings.key)

    def public_key(self) -> PublicKey:
        return self._public

    def sign(self, data: bytes, /) -> bytes:
        with self._session() as (session, library):
            key = session.get_key(object_class=library.ObjectClass.PRIVATE_KEY, label=self._settings.key)
            if isinstance(self._public, Ed25519PublicKey):
                return bytes(key.sign(data, mechanism=library.Mechanism.EDDSA))
            digest = hashlib.sha256(data).digest()
            return lower_form(bytes(key.sign(digest, mechanism=library.Mechanism.ECDSA)))

    @contextmanager
    def _session(self) -> Iterator[tuple[Any, Any]]:
        """Yield a session that is logged in; never retry a wrong PIN, since some tokens lock themselves."""
        library = _library()
        try:
            token = library.lib(str(self._settings.module)).get_token(token_label=self._settings.token)
            with token.open(user_pin=_pin(self._settings)) as session:
                yield session, library
        except (library.PinIncorrect, library.PinLocked, library.PinInvalid, library.PinLenRange):
            raise InvalidParameter("signing_token: the token refuses the PIN. Correct it first") from None
        except library.PKCS11Error as error:
            kind = type(error).__name__
            raise TokenUnusable(
                f"the token {self._settings.token!r} cannot sign with {self._settings.key!r} ({kind}). Check module, "
                "labels and whether the token is connected"
            ) from None


def signing_key(server: ServerSettings) -> SigningKey | None:
    """Return the key that the holder's file names, or None."""
    if server.signing_token is not None:
        return TokenKey(server.signing_token)
    return None if server.signing_key is None else read_private_key(server.signing_key)


def _library() -> Any:
    try:
        import pkcs11
    except ImportError:
        raise InvalidParameter("signing_token needs an extra: pip install 'privlearn[pkcs11]'") from None
    return pkcs11


def _pin(settings: SigningToken) -> str:
    if settings.pin_file is None:
        pin = os.environ.get(PIN_VARIABLE, "")
    else:
        try:
            pin = settings.pin_file.read_text(encoding="utf-8").partition("\n")[0].strip()
        except (OSError, UnicodeDecodeError):
            raise InvalidParameter(f"signing_token: cannot read {settings.pin_file}") from None
    if not pin:
        raise InvalidParameter(f"signing_token: the PIN is missing. Give pin_file, or set {PIN_VARIABLE}")
    return pin


def _public_half(session: Any, library: Any, label: str) -> PublicKey:
    public = session.get_key(object_class=library.ObjectClass.PUBLIC_KEY, label=label)
    kinds = library.KeyType
    try:
        point = _unwrap(bytes(public[library.Attribute.EC_POINT]))
        if public.key_type == kinds.EC_EDWARDS:
            return Ed25519PublicKey.from_public_bytes(point)
        if public.key_type == kinds.EC:
            return EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)
    except (ValueError, library.AttributeTypeInvalid):
        pass
    raise InvalidParameter(f"signing_token: the key {label!r} is neither an Ed25519 nor a P-256 key")


def _unwrap(point: bytes) -> bytes:
    """Return the point of a curve, which most tokens wrap as a DER octet string."""
    wrapped = len(point) > 2 and point[0] == 0x04 and point[1] == len(point) - 2
    return point[2:] if wrapped else point
