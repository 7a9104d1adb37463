"""Read files whole, and write them whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from privlearn.errors import InvalidParameter, ReleaseError


def write_atomically(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write next to the target, flush to disk, then rename over it: a crash leaves the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            for piece in (content,) if isinstance(content, bytes) else content:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_new(path: str | Path, content: bytes, *, overwrite: bool) -> None:
    """Write a file atomically; refuse to replace an existing one unless ``overwrite``: a release costs budget to
    repeat."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise InvalidParameter(f"{path} exists: give another name, or overwrite=True to replace it")
    write_atomically(path, content)


def read_whole(path: str | Path) -> bytes:
    """Return the bytes of a file; raise ReleaseError with its path if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ReleaseError(f"cannot read {path}: {error.strerror}") from None
