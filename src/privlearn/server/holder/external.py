"""The parts of owner.toml about other servers: sign-in provider, mail server, webhook, collector of traces.

Each address must be encrypted, unless it is on this machine. Secrets are read from files when they are used, and are
not stored.
"""

from __future__ import annotations

from email.headerregistry import Address
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StrictInt, StrictStr, model_validator

from privlearn.data.schema.public import PublicModel
from privlearn.errors import SchemaError, is_loopback
from privlearn.server.access.keys import PersonRole

_Text = Annotated[StrictStr, Field(min_length=1)]


def _mail_address(text: str) -> str:
    try:
        if "@" in text and text.isprintable() and Address(addr_spec=text).domain:
            return text
    except Exception:  # the parser of the standard library raises several types
        pass
    raise ValueError("must be one address, such as board@hospital.example")


def _web_address(text: str) -> str:
    """Return the address; refuse one that is not encrypted, or that contains a user or a fragment."""
    parts = urlsplit(text)
    host = parts.hostname or ""
    encrypted = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not encrypted or not host or "@" in parts.netloc or parts.fragment:
        raise ValueError(
            "must be https://HOST/..., without a user and a password, since it would be sent unencrypted"
        )
    return text


def _address_without_query(text: str) -> str:
    if urlsplit(_web_address(text)).query:
        raise ValueError("must be https://HOST/... without a query. Remove what follows the question mark")
    return text


MailAddress = Annotated[StrictStr, AfterValidator(_mail_address)]
WebAddress = Annotated[StrictStr, AfterValidator(_web_address)]
BaseAddress = Annotated[StrictStr, Field(min_length=1), AfterValidator(_address_without_query)]


class OpenId(PublicModel):
    """A provider of OpenID Connect, in addition to keys.

    Parameters
    ----------
    issuer : str
        Its address, exactly as in its tokens.
    client_id : str
        The name under which the provider has registered this server.
    client_secret_file : path, optional
        A file that holds only the client's secret. A public client has none: PKCE protects it.
    address : str
        Where browsers reach this server. The provider must allow ADDRESS/signed-in as a redirect address.
    scopes : tuple of str, default=("openid", "profile", "email")
        The scopes to request; some providers need one more to send groups.
    name_claim : str
        The claim with the person's name: a name under ``analysts``. Choose one that people cannot edit themselves.
    roles_claim : str
        The claim with the person's roles: a text, or a list of texts.
    roles : dict of str to {"holder", "analyst", "approver", "auditor"}
        The role for each value of that claim; if several apply, the first in this list.
    """

    issuer: BaseAddress
    client_id: _Text
    client_secret_file: Path | None = None
    address: BaseAddress
    scopes: tuple[_Text, ...] = ("openid", "profile", "email")
    name_claim: _Text
    roles_claim: _Text
    roles: Annotated[dict[_Text, PersonRole], Field(min_length=1)]

    @property
    def host(self) -> str:
        """The provider's host name, for the sign-in button."""
        return urlsplit(self.issuer).netloc

    @property
    def return_address(self) -> str:
        return f"{self.address.rstrip('/')}/signed-in"

    def secret(self) -> str | None:
        """Read the client's secret; None for a public client."""
        path = self.client_secret_file
        return None if path is None else _read_secret(path, "sign_in.openid.client_secret_file")


class SignIn(PublicModel):
    """Settings of the sign-in of browsers.

    Parameters
    ----------
    hours : int, default=12
        A browser must sign in again after this time.
    idle_minutes : int, default=60
        It must also sign in again after this time without a request.
    openid : OpenId, optional
        Without it, people sign in with keys only.
    """

    hours: Annotated[StrictInt, Field(ge=1, le=24 * 7)] = 12
    idle_minutes: Annotated[StrictInt, Field(ge=1)] = 60
    openid: OpenId | None = None


class Mail(PublicModel):
    """A mail server.

    Parameters
    ----------
    host, port
    encryption : {"starttls", "tls", "none"}, default="starttls"
        ``none`` is allowed only on this machine.
    user : str, optional
    password_file : path, optional
        A file that holds only the user's password.
    sender : str
        The sender's address.
    approvers : tuple of str
        Addresses that are notified when a request waits for approval.
    analysts : dict of str to str
        The address of each analyst who is notified about decisions and results.
    """

    host: _Text
    port: Annotated[StrictInt, Field(ge=1, le=65535)] = 587
    encryption: Literal["starttls", "tls", "none"] = "starttls"
    user: _Text | None = None
    password_file: Path | None = None
    sender: MailAddress
    approvers: tuple[MailAddress, ...] = ()
    analysts: dict[_Text, MailAddress] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_encryption(self) -> Mail:
        if self.encryption == "none" and not is_loopback(self.host):
            raise ValueError('encryption: must be "starttls" or "tls" unless the server is on this machine')
        if (self.user is None) != (self.password_file is None):
            raise ValueError("user and password_file go together. Give both, or neither")
        return self

    def password(self) -> str:
        """Read the user's password; empty if there is no user."""
        path = self.password_file
        return "" if path is None else _read_secret(path, "notices.mail.password_file")


class Webhook(PublicModel):
    """An address that receives every notice as JSON.

    Parameters
    ----------
    url : str
    secret_file : path
        A file that holds the secret with which notices are signed; the receiver has the same secret.
    """

    url: WebAddress
    secret_file: Path

    def secret(self) -> str:
        return _read_secret(self.secret_file, "notices.webhook.secret_file")


class Notices(PublicModel):
    """Where notices about requests are sent.

    Parameters
    ----------
    address : str
        Where browsers reach this server, for links.
    mail : Mail, optional
    webhook : Webhook, optional
    """

    address: WebAddress
    mail: Mail | None = None
    webhook: Webhook | None = None


class Telemetry(PublicModel):
    """Where traces of the server are sent; by default there are none.

    Parameters
    ----------
    endpoint : str, optional
        Address of a collector that accepts OTLP over HTTP, ``https://collector.example/v1/traces``. Headers and
        certificates are set with OpenTelemetry's variables ``OTEL_EXPORTER_OTLP_HEADERS`` and
        ``OTEL_EXPORTER_OTLP_CERTIFICATE``.
    """

    endpoint: BaseAddress | None = None


def _read_secret(path: Path, setting: str) -> str:
    try:
        content = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise SchemaError(f"{setting}: cannot read {path}: {reason}") from None
    if not content:
        raise SchemaError(f"{setting}: {path} is empty. Write the secret into it")
    return content
