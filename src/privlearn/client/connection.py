"""The connection to a server: its address, requests with safe repetition, problems as exceptions, its public key."""

from __future__ import annotations

import os
import random
import re
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import httpx2

from privlearn import errors
from privlearn.errors import InvalidParameter, LedgerError, PrivlearnError, is_loopback
from privlearn.release.signatures import PublicKey, parse_public_key
from privlearn.server import refusals
from privlearn.server.refusals import AccessRefused, Conflict, Forbidden, NotFound, TooLarge, TooMany

KEY_VARIABLE = "PRIVLEARN_KEY"


def validate_url(url: str, *, plain_http: bool) -> str:
    """Return the server's address without a trailing slash; refuse one that would send the key unencrypted."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParameter("the server's address must look like https://learner.example:8383")
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidParameter(
            "the server's address must have no user, query and fragment. Give the key apart"
        )
    if parts.scheme == "http" and not (plain_http or is_loopback(parts.hostname)):
        raise InvalidParameter(
            "http:// would send the key readable over the network. Use https://, "
            "or plain_http=True (--plain-http) if something else encrypts the connection"
        )
    return url.rstrip("/")


def key_or_default(key: str | None) -> str:
    """Return the key, or that of the environment. No message repeats it."""
    found = os.environ.get(KEY_VARIABLE, "") if key is None else key
    found = found.strip()
    if not found:
        raise InvalidParameter(f"the key is missing. Give it, or set the environment variable {KEY_VARIABLE}")
    if not found.isascii() or not found.isprintable() or " " in found:
        raise InvalidParameter("this is not a key. Give what `privlearn keys create` printed, pl_ID_SECRET")
    return found


class Unreachable(PrivlearnError):
    """The server gives no usable answer."""


class TrainingFailed(PrivlearnError):
    """A job was accepted and ended without a result; the message states whether its cost stands."""


_BY_STATUS: dict[int, type[PrivlearnError]] = {
    401: AccessRefused,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    429: TooMany,
    503: LedgerError,
}
_BY_NAME: dict[str, type[PrivlearnError]] = {
    name.lower(): kind
    for module in (errors, refusals)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, PrivlearnError)
}


def problem(status: int, body: Any, remark: str = "") -> PrivlearnError:
    """Return the exception for an RFC 9457 problem, by its type or else by its status."""
    record = body if isinstance(body, dict) else {}
    name = re.split(r"[/:#]", str(record.get("type", "")))[-1].replace("-", "").lower()
    kind = _BY_NAME.get(name) or _BY_STATUS.get(status, InvalidParameter if status < 500 else Unreachable)
    detail = record.get("detail") or record.get("title") or f"the server answered with status {status}"
    return kind(f"{detail}{remark}")


_SECONDS_FOR_AN_ANSWER = 60.0
_STRANGER_SECONDS = 5.0  # for an address that has never answered: it may be mistyped
_FIRST_PAUSE = 0.2
_MAX_PAUSE = 10.0
_LATER = {429, 500, 502, 503, 504}
_NOT_SENT = {"ConnectError", "ConnectTimeout"}
"""Troubles of httpx2 before a byte of the request has left."""


class Connection:
    """A server, the key for it, and how long to keep trying.

    Every request can be repeated: reading and predicting change nothing, and requests that cost budget have an
    idempotency key. So a request is sent again after a lost connection, and while the server is busy or restarts.
    """

    def __init__(
        self, url: str, key: str | None, *, verify: str | Path | None, plain_http: bool, timeout: float
    ) -> None:
        self.url = validate_url(url, plain_http=plain_http)
        self._timeout = timeout
        self._known = False  # whether it has ever answered
        secure = self.url.startswith("https:")
        self._http = httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key_or_default(key)}"},
            verify=trust(verify) if secure else False,
            timeout=httpx2.Timeout(_SECONDS_FOR_AN_ANSWER, connect=10.0),
            trust_env=secure,  # a proxy of the environment would see a plain request, key and all
        )

    def get(self, path: str, *, accept: str = "application/json", **parameters: Any) -> httpx2.Response:
        known = {name: value for name, value in parameters.items() if value is not None}
        return self.send("GET", path, headers={"Accept": accept}, params=known)

    def send(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **content: Any
    ) -> httpx2.Response:
        """Return the answer, or raise the exception for its problem."""
        began, pause, unsure = time.monotonic(), _FIRST_PAUSE, ""
        while True:
            answer, trouble = self._attempt(method, path, dict(headers or {}), content)
            if _may_be_accepted(answer, trouble):
                unsure = _how_to_ask_again(headers or {})
            self._known = self._known or answer is not None
            if answer is not None and answer.status_code not in _LATER:
                break
            timeout = self._timeout if self._known else min(self._timeout, _STRANGER_SECONDS)
            wait = max(pause * random.uniform(0.5, 1.0), _retry_after(answer))
            if time.monotonic() + wait > began + timeout:
                break
            time.sleep(wait)
            pause = min(2 * pause, _MAX_PAUSE)
        if answer is None:
            raise Unreachable(
                f"{self.url} gives no answer ({trouble}). Check that the server runs and that this is its address; "
                f"`privlearn ask` reads it from --server or PRIVLEARN_SERVER{unsure}"
            )
        if answer.is_success:
            return answer
        raise problem(
            answer.status_code, _json_or_none(answer), unsure if answer.status_code in _LATER else ""
        )

    def close(self) -> None:
        self._http.close()

    def __repr__(self) -> str:
        return f"<Connection to {self.url}>"

    def __reduce__(self) -> NoReturn:
        raise InvalidParameter("a connection has a key and cannot be pickled. Create one where it is used")

    def _attempt(
        self, method: str, path: str, headers: dict[str, str], content: dict[str, Any]
    ) -> tuple[httpx2.Response | None, str]:
        """Return the answer, or the reason why there is none; never the request, which has the key."""
        try:
            return self._http.request(method, f"/v1{path}", headers=headers, **content), ""
        except httpx2.TransportError as error:
            untrusted, trouble = _is_untrusted(error), type(error).__name__
        if untrusted:
            raise Unreachable(
                f"the certificate of {self.url} is of another name or of no authority known here. Check the address, "
                "or give the authority's certificate, verify= (--ca)"
            )
        return None, trouble


def _may_be_accepted(answer: httpx2.Response | None, trouble: str) -> bool:
    """Return whether the request may have been accepted although its answer is lost or a 5xx, perhaps of a proxy."""
    return trouble not in _NOT_SENT if answer is None else answer.status_code >= 500


def _how_to_ask_again(headers: Mapping[str, str]) -> str:
    """Return advice for a lost answer about a job; all other requests can be repeated safely."""
    key = headers.get("Idempotency-Key")
    if key is None:
        return ""
    return (
        ". The request may have arrived, and its job then continues: see `privlearn ask jobs`. Repeat the request with "
        f"the idempotency key {key} to get the same job, charged once"
    )


def _is_untrusted(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _retry_after(answer: httpx2.Response | None) -> float:
    """Return the seconds that the server asks to wait."""
    seconds = "" if answer is None else answer.headers.get("Retry-After", "")
    return float(seconds) if seconds.isdecimal() else 0.0


def _json_or_none(answer: httpx2.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def trust(authority: str | Path | None) -> ssl.SSLContext:
    """Return a TLS context that trusts this authority, or the system's."""
    if authority is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=str(authority))
    except (OSError, ssl.SSLError):
        raise InvalidParameter(f"{authority} is not a certificate in PEM form that can be read") from None


ADDRESS = "/.well-known/privlearn.pem"
_SECONDS = 30.0


def server_key(url: str, *, verify: str | Path | None = None) -> PublicKey:
    """Fetch a server's public key; its TLS certificate identifies the server.

    Parameters
    ----------
    url : str
        Its address. Plain HTTP is accepted for this machine only.
    verify : path, optional
        As in `Client`.
    """
    base = validate_url(url, plain_http=False)
    secure = base.startswith("https:")
    try:
        answer = httpx2.get(
            base + ADDRESS, verify=trust(verify) if secure else False, timeout=_SECONDS, trust_env=secure
        )
    except httpx2.HTTPError as error:
        raise Unreachable(f"{url} gives no answer ({type(error).__name__}). Check the address") from None
    if answer.status_code != httpx2.codes.OK:
        raise Unreachable(f"{url} has no public key to show. Ask its holder whether it signs")
    return parse_public_key(answer.content, base + ADDRESS)
