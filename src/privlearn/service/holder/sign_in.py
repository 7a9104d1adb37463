"""The part of owner.toml about browsers: how long they stay signed in, and the institution's own sign-in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, StrictInt, StrictStr, field_validator

from privlearn.data.schema.public import PublicModel
from privlearn.errors import SchemaError
from privlearn.service.access.keys import PersonRole

_Text = Annotated[StrictStr, Field(min_length=1)]
_HERE = ("localhost", "127.0.0.1", "::1")


class OpenId(PublicModel):
    """A provider of OpenID Connect, beside keys.

    Parameters
    ----------
    issuer : str
        Its address, as it stands in its tokens.
    client_id : str
        The name under which the provider knows this server.
    client_secret_file : path, optional
        A file that holds the client's secret alone; a public client, which has none, is protected by PKCE.
    address : str
        Where browsers reach this server; the provider must allow ADDRESS/signed-in as an address to return to.
    scopes : tuple of str, default=("openid", "profile", "email")
        What is asked for; some providers want one more to say which groups somebody is in.
    name_claim : str
        Which of the provider's claims says who somebody is: a name under ``analysts``. Take one that people cannot
        change themselves.
    roles_claim : str
        Which claim says what somebody may do: a text, or a list of them.
    roles : dict of str to {"holder", "analyst", "approver", "auditor"}
        What each value of that claim lets somebody be; of several, the first in this list.
    """

    issuer: _Text
    client_id: _Text
    client_secret_file: Path | None = None
    address: _Text
    scopes: tuple[_Text, ...] = ("openid", "profile", "email")
    name_claim: _Text
    roles_claim: _Text
    roles: Annotated[dict[_Text, PersonRole], Field(min_length=1)]

    @field_validator("issuer", "address")
    @classmethod
    def _is_encrypted(cls, address: str) -> str:
        parts = urlsplit(address)
        encrypted = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _HERE)
        if not encrypted or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(
                "must be https://HOST/...: names and tokens would be sent in the clear otherwise"
            )
        return address

    @property
    def host(self) -> str:
        """As people know it."""
        return urlsplit(self.issuer).netloc

    @property
    def return_address(self) -> str:
        return f"{self.address.rstrip('/')}/signed-in"

    def secret(self) -> str | None:
        """The client's secret, read when it is needed and kept nowhere."""
        if self.client_secret_file is None:
            return None
        try:
            return self.client_secret_file.read_text().strip()
        except OSError as error:
            raise SchemaError(
                f"sign_in.openid.client_secret_file: cannot read {self.client_secret_file}: {error.strerror}"
            ) from None


class SignIn(PublicModel):
    """How browsers are signed in.

    Parameters
    ----------
    hours : int, default=12
        After so long a browser must sign in again.
    idle_minutes : int, default=60
        So too after so long without a request.
    openid : OpenId, optional
        By default there are keys alone.
    """

    hours: Annotated[StrictInt, Field(ge=1, le=24 * 7)] = 12
    idle_minutes: Annotated[StrictInt, Field(ge=1)] = 60
    openid: OpenId | None = None
