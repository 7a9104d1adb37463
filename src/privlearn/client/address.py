"""Where a key may be sent, and where it comes from."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

from privlearn.errors import InvalidParameter

KEY_VARIABLE = "PRIVLEARN_KEY"


def checked_url(url: str, *, plain_http: bool) -> str:
    """The server's address without a slash at its end; refused if it would carry the key in the clear."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParameter("the server's address must look like https://learner.example:8383")
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidParameter(
            "the server's address must be without user, query and fragment: give the key apart"
        )
    if parts.scheme == "http" and not (plain_http or _is_loopback(parts.hostname)):
        raise InvalidParameter(
            "http:// would send the key readable over the network: use https://, "
            "or plain_http=True (--plain-http) if something else encrypts the connection"
        )
    return url.rstrip("/")


def key_or_default(key: str | None) -> str:
    """The key given, or that of the environment. No message repeats it."""
    found = os.environ.get(KEY_VARIABLE, "") if key is None else key
    found = found.strip()
    if not found:
        raise InvalidParameter(f"there is no key: give one, or put it into the environment as {KEY_VARIABLE}")
    if not found.isascii() or not found.isprintable() or " " in found:
        raise InvalidParameter(
            "this is not a key: it has the form pl_ID_SECRET, as `privlearn keys` printed it"
        )
    return found


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
