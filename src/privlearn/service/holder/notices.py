"""The part of owner.toml about notices: who is told that a request waits, and what became of it."""

from __future__ import annotations

from email.headerregistry import Address
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StrictInt, StrictStr, model_validator

from privlearn.data.schema.public import PublicModel
from privlearn.errors import SchemaError

_Text = Annotated[StrictStr, Field(min_length=1)]
_HERE = ("localhost", "127.0.0.1", "::1")


def _mail_address(text: str) -> str:
    try:
        if "@" in text and text.isprintable() and Address(addr_spec=text).domain:
            return text
    except Exception:  # whatever the parser of the standard library met
        pass
    raise ValueError("must be one address, such as board@hospital.example")


def _web_address(text: str) -> str:
    parts = urlsplit(text)
    encrypted = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _HERE)
    if not encrypted or not parts.hostname or parts.username is not None or parts.fragment:
        raise ValueError("must be https://HOST/..., without a user: it would be sent in the clear otherwise")
    return text


MailAddress = Annotated[StrictStr, AfterValidator(_mail_address)]
WebAddress = Annotated[StrictStr, AfterValidator(_web_address)]


class Mail(PublicModel):
    """A mail server.

    Parameters
    ----------
    host, port
    encryption : {"starttls", "tls", "none"}, default="starttls"
        ``none`` only on this machine itself.
    user : str, optional
    password_file : path, optional
        A file that holds the user's password alone.
    sender : str
        From whom the mails are.
    approvers : tuple of str
        Addresses that are told what waits for approval.
    analysts : dict of str to str
        The address of each analyst who is told what became of their requests.
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
    def _is_not_overheard(self) -> Mail:
        if self.encryption == "none" and self.host not in _HERE:
            raise ValueError(
                'encryption: must be "starttls" or "tls" unless the mail server is on this machine'
            )
        if (self.user is None) != (self.password_file is None):
            raise ValueError("user and password_file go together: give both, or neither")
        return self

    def password(self) -> str:
        """Read when it is needed and kept nowhere; empty if there is no user."""
        path = self.password_file
        return "" if path is None else _content(path, "notices.mail.password_file")


class Webhook(PublicModel):
    """An address that is sent every notice as JSON.

    Parameters
    ----------
    url : str
    secret_file : path
        A file that holds the secret which the receiver knows too: it signs what is sent.
    """

    url: WebAddress
    secret_file: Path

    def secret(self) -> str:
        """Read when it is needed and kept nowhere."""
        return _content(self.secret_file, "notices.webhook.secret_file")


class Notices(PublicModel):
    """Who is told.

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


def _content(path: Path, setting: str) -> str:
    try:
        found = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise SchemaError(f"{setting}: cannot read {path}: {reason}") from None
    if not found:
        raise SchemaError(f"{setting}: {path} is empty: write the secret into it")
    return found
