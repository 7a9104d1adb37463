"""Checkpoints of a run on disk, written before anything leaves, so that another process can continue after a crash.

A party stores its secrets and its last reply (`PartyMemory`). After a crash it answers a repeated message with the same
bytes, and refuses any other message for the same question (docs/theory/secure-sum.md, "After a crash").

A coordinator stores every reply (`Journal`). What it does follows from the agreement, the run's name and the replies
alone: it draws nothing at random. So after a crash it reads the replies again, up to the last, and then sends the same
message that it had sent, or was about to send.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from privlearn.errors import InvalidParameter
from privlearn.parties.run.agreement import Agreement
from privlearn.parties.run.conversation import RUN_BYTES, Parts, Stage, message_digest

Exchange = Callable[[Stage, Mapping[int, Parts]], Mapping[int, Parts | str]]
"""Sends each party its parts, by number; returns the replies that came in time: parts, or the reason of a refusal."""

_FORMAT = "privlearn party run 1"


class PartyMemory:
    """SECRET: one party's file of one run, locked against other processes until `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new = path.with_name(f".{path.name}.tmp")
        self._lock = lock_file(path)

    def read(self) -> dict[str, Any] | None:
        """Return the content that was written last; None if there is no file."""
        try:
            content = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            content = None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise InvalidParameter(
                f"{self._path} cannot be read, or was written by another version. End that run with --give-back"
            )
        return content

    def write(self, content: Mapping[str, Any]) -> None:
        """Replace the content; once this returns, it survives a crash of the machine."""
        descriptor = os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps({"format": _FORMAT, **content}).encode())
            sync(file)
        # The rename is atomic, so a crash leaves the old or the new file; it survives a power failure only once the
        # directory is on the disk too.
        self._new.replace(self._path)
        sync_directory(self._path)

    def forget(self) -> None:
        """Delete the file: the run is over."""
        self._path.unlink(missing_ok=True)
        self._new.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock; the end of this process, for any reason, does the same."""
        os.close(self._lock)


class Journal:
    """The coordinator's file of one run, new or existing, locked against other processes until `close`.

    Parameters
    ----------
    path : Path
    agreement : Agreement
        A file of another agreement is refused.

    Attributes
    ----------
    run : bytes
        The run's name.
    existed : bool
        Whether an earlier process began the run.
    stored_exchanges : int
        Number of exchanges that were stored before a crash.
    """

    def __init__(self, path: Path, agreement: Agreement) -> None:
        self._path = path
        self._lock = lock_file(path)
        try:
            self._past = _read_records(path)
            self.existed = bool(self._past)
            self.run = self._read_header(agreement) if self._past else self._begin(agreement)
        except BaseException:
            self.close()
            raise
        self.stored_exchanges = len(self._past)

    def _read_header(self, agreement: Agreement) -> bytes:
        head = self._past.pop(0)
        if head.get("agreement") != agreement.digest:
            raise InvalidParameter(f"{self._path} belongs to another agreement. End that run, or move it")
        return bytes.fromhex(head["run"])

    def _begin(self, agreement: Agreement) -> bytes:
        run = secrets.token_bytes(RUN_BYTES)
        self._append({"agreement": agreement.digest, "run": run.hex()})
        sync_directory(self._path)
        return run

    @property
    def replaying(self) -> bool:
        """Return whether replies from before a crash remain to be used."""
        return bool(self._past)

    def recording(self, exchange: Exchange) -> Exchange:
        """Return an exchange that stores each reply, and answers from the file what was stored before a crash."""

        def exchange_once(stage: Stage, parts: Mapping[int, Parts]) -> Mapping[int, Parts | str]:
            sent = {str(party): message_digest(stage, own) for party, own in parts.items()}
            if stage is Stage.STOP:  # the file goes first: a stopped run must not be resumed
                self.end()
                return exchange(stage, parts)
            if self._past:
                record = self._past.pop(0)
                if record["sent"] != sent:
                    raise InvalidParameter(  # leave the file and the parties unchanged
                        f"{self._path} does not lead to the message that was sent: another version wrote it"
                    )
                return {int(party): _reply(text) for party, text in record["replies"].items()}
            replies = exchange(stage, parts)
            texts = {party: _text(reply) for party, reply in replies.items()}
            self._append({"sent": sent, "replies": texts})
            return replies

        return exchange_once

    def end(self) -> None:
        """Delete the file: the run is over."""
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock; the end of this process, for any reason, does the same."""
        os.close(self._lock)

    def _append(self, record: Mapping[str, Any]) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
            sync(file)


def _read_records(path: Path) -> list[dict[str, Any]]:
    """Return all complete records; cut off a last one that a crash left incomplete, since nothing followed from it."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    incomplete = lines.pop()
    if incomplete:
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - len(incomplete))
    try:
        return [dict(json.loads(line)) for line in lines]
    except (TypeError, ValueError):
        raise InvalidParameter(f"{path} is not a coordinator's checkpoint. Move it") from None


def _text(reply: Parts | str) -> str | list[str]:
    return reply if isinstance(reply, str) else [base64.b64encode(part).decode() for part in reply]


def _reply(text: str | list[str]) -> Parts | str:
    return text if isinstance(text, str) else [base64.b64decode(part) for part in text]


def lock_file(path: Path) -> int:
    """Return a descriptor that locks ``path`` against other processes until it is closed."""
    try:
        import fcntl
    except ImportError:
        raise InvalidParameter("checkpoints need file locks. Use Linux or macOS, not Windows") from None
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise InvalidParameter(
            f"another process works on the run in {path}. Wait until it ends, or stop it first"
        ) from None
    return lock


def sync(file: IO[bytes]) -> None:
    """Write a file's content to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Write a file's entry in its directory to the disk."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
