"""A coordinator's checkpoint: every reply of its run, on disk before anything follows from it.

What a coordinator does follows from the plan, the run's name and the replies alone: it draws nothing at random. So one
that was killed goes on by reading its replies again up to the last, and then sends the same message that it had sent,
or was about to send.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from privlearn.errors import InvalidParameter, ProtocolError
from privlearn.multiparty.run.conversation import RUN_BYTES, Parts, Stage, message_digest
from privlearn.multiparty.run.joint_plan import JointPlan
from privlearn.multiparty.run.memory import flush, flush_folder, only_process

Exchange = Callable[[Stage, Mapping[int, Parts]], Mapping[int, Parts | str]]
"""Sends each party its parts, by number; returns what came back in time: parts, or a refusal's reason."""


class Journal:
    """One run's file, begun or found; until `close` no other process can have it.

    Parameters
    ----------
    path : Path
    plan : JointPlan
        Refused if the file is of another.

    Attributes
    ----------
    run : bytes
        The run's name.
    found : int
        How many exchanges were kept before a crash.
    """

    def __init__(self, path: Path, plan: JointPlan) -> None:
        self._path = path
        self._lock = only_process(path)
        try:
            self._past = _read(path)
            self.run = self._found(plan) if self._past else self._begun(plan)
        except BaseException:
            self.close()
            raise
        self.found = len(self._past)

    def _found(self, plan: JointPlan) -> bytes:
        head = self._past.pop(0)
        if head.get("plan") != plan.digest:
            raise InvalidParameter(
                f"{self._path} is of a run of another plan: lead that one to its end, or move it"
            )
        return bytes.fromhex(head["run"])

    def _begun(self, plan: JointPlan) -> bytes:
        run = secrets.token_bytes(RUN_BYTES)
        self._append({"plan": plan.digest, "run": run.hex()})
        flush_folder(self._path)
        return run

    @property
    def replaying(self) -> bool:
        """Whether replies are left from before a crash."""
        return bool(self._past)

    def over(self, exchange: Exchange) -> Exchange:
        """The exchange, each of whose replies is kept; those kept before are not asked for again."""

        def kept(stage: Stage, parts: Mapping[int, Parts]) -> Mapping[int, Parts | str]:
            sent = {str(party): message_digest(stage, own) for party, own in parts.items()}
            if self._past:
                record = self._past.pop(0)
                if record["sent"] != sent:
                    raise ProtocolError(
                        f"{self._path} does not lead to the message that was sent: another version wrote it"
                    )
                return {int(party): _reply(text) for party, text in record["replies"].items()}
            if stage is Stage.STOP:  # said before it is done: a stopped run is not taken up again
                self.end()
                return exchange(stage, parts)
            replies = exchange(stage, parts)
            texts = {party: _text(reply) for party, reply in replies.items()}
            self._append({"sent": sent, "replies": texts})
            return replies

        return kept

    def end(self) -> None:
        """The run is over: nothing is left to go on with."""
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another process have the file; the end of this one, however it comes, does the same."""
        os.close(self._lock)

    def _append(self, record: Mapping[str, Any]) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
            flush(file)


def _read(path: Path) -> list[dict[str, Any]]:
    """All whole records; a last one that a crash cut off never had a consequence, and is cut off here too."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    torn = lines.pop()
    if torn:
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - len(torn))
    try:
        return [dict(json.loads(line)) for line in lines]
    except (TypeError, ValueError):
        raise InvalidParameter(f"{path} is not a coordinator's checkpoint: move it") from None


def _text(reply: Parts | str) -> str | list[str]:
    return reply if isinstance(reply, str) else [base64.b64encode(part).decode() for part in reply]


def _reply(text: str | list[str]) -> Parts | str:
    return text if isinstance(text, str) else [base64.b64decode(part) for part in text]
