"""The public key with which a server signs its files."""

from __future__ import annotations

from pathlib import Path

import httpx2

from privlearn.client.connection import Unreachable, trust, validate_url
from privlearn.release.signatures import PublicKey, parse_public_key

ADDRESS = "/.well-known/privlearn.pem"
_SECONDS = 30.0


def server_key(url: str, *, verify: str | Path | None = None) -> PublicKey:
    """Ask a server for its public key; whose server it is, its TLS certificate says.

    Parameters
    ----------
    url : str
        Its address; without TLS only this machine's own is taken.
    verify : path, optional
        As in `Client`.
    """
    base = validate_url(url, plain_http=False)
    secure = base.startswith("https:")
    try:
        answer = httpx2.get(
            base + ADDRESS,
            verify=trust(verify) if secure else False,
            timeout=_SECONDS,
            trust_env=secure,
        )
    except httpx2.HTTPError as error:
        raise Unreachable(f"{url} gives no answer ({type(error).__name__}): check the address") from None
    if answer.status_code != httpx2.codes.OK:
        raise Unreachable(f"{url} has no public key to show: ask its holder whether it signs")
    return parse_public_key(answer.content, base + ADDRESS)
