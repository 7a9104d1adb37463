"""What a process of a run keeps on disk, so that another can go on after a crash: written before anything leaves.

A party keeps its secrets and its last reply. After a crash it answers a message that it has answered before with the
same bytes, and any other message for the same question with a refusal (docs/theory/secure-sum.md, "After a crash").
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from privlearn.errors import InvalidParameter

_FORMAT = "privlearn party run 1"


class PartyMemory:
    """SECRET: one party's file of one run; until `close` no other process can have it.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new = path.with_name(f".{path.name}.tmp")
        self._lock = only_process(path)

    def read(self) -> dict[str, Any] | None:
        """What was kept last; None if there is nothing."""
        try:
            content = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            content = None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise InvalidParameter(
                f"{self._path} cannot be read, or is not a party's run of this version: end that run with --give-back"
            )
        return content

    def keep(self, content: Mapping[str, Any]) -> None:
        """Replace what was kept; once this returns, a crash of the machine does not undo it."""
        descriptor = os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps({"format": _FORMAT, **content}).encode())
            flush(file)
        self._new.replace(self._path)
        flush_folder(self._path)

    def forget(self) -> None:
        """The run is over."""
        self._path.unlink(missing_ok=True)
        self._new.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another process have the file; the end of this one, however it comes, does the same."""
        os.close(self._lock)


def only_process(path: Path) -> int:
    """A lock on ``path``, as an open file's descriptor: no second process gets it until it is closed."""
    try:
        import fcntl
    except ImportError:
        raise InvalidParameter(
            "a run that outlives a crash locks its file in a way that Windows has not: use Linux or macOS"
        ) from None
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise InvalidParameter(
            f"another process works on the run in {path}: wait for its end, or stop it first"
        ) from None
    return lock


def flush(file: IO[bytes]) -> None:
    """To the disk."""
    file.flush()
    os.fsync(file.fileno())


def flush_folder(path: Path) -> None:
    """That a file of this name is there, to the disk."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
