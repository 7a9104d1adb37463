"""What every server needs before it serves: a free port, and a TLS certificate that belongs to its key."""

from __future__ import annotations

import os
import socket
import ssl
from pathlib import Path

from privlearn.errors import InvalidParameter


def listen(host: str, port: int) -> socket.socket:
    """Return a socket bound to this address; port 0 means any free one.

    Until uvicorn is ready to answer, the socket refuses connections, so that a proxy passes its requests on to another
    server.
    """
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":  # elsewhere it would let two servers have one address
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        return bound
    except OSError as error:
        bound.close()
        raise InvalidParameter(f"cannot listen on {host}:{port}: {error.strerror}") from None


def check_certificate(certificate: Path, key: Path, advice: str) -> None:
    """Raise InvalidParameter unless the files are a TLS certificate and its key; ``advice`` ends the message."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError:  # also raised for files with the wrong content
        raise InvalidParameter(
            f"{certificate} and {key} are not a certificate and its key: {advice}"
        ) from None
