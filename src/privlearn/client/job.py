"""A job of any kind on a server, and what it makes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from privlearn.charged import AskedJob
from privlearn.client.connection import Connection, TrainingFailed
from privlearn.service.refusals import Conflict

_WAIT_SECONDS = 5
_OVER = ("done", "failed", "declined")


@dataclass(frozen=True)
class RemoteResult:
    """What a job has made.

    Attributes
    ----------
    record : dict
        What the server says about it: kind, data set, promise, certificate, type of the content.
    content : bytes
        Empty if it stays with the holder, as that of a session does.
    """

    record: dict[str, Any]
    content: bytes = field(repr=False)


class RemoteJob:
    """A job that a server does; it goes on without this object.

    Attributes
    ----------
    id : str
        Also that of its result.
    record : dict
        What the server said about it last.
    """

    def __init__(self, connection: Connection, record: dict[str, Any], asked: AskedJob) -> None:
        self._connection, self._asked = connection, asked
        self.id: str = record["id"]
        asked.id = self.id
        self.record = record

    @property
    def is_over(self) -> bool:
        """Whether it has ended, with a result or without one, as far as the server said last."""
        return self.record["state"] in _OVER

    def wait(self, progress: Callable[[str], None] | None = None) -> RemoteJob:
        """Until it is done, however long somebody takes to approve it; ``progress`` is called with each stage's name.

        Raises
        ------
        TrainingFailed
            If it ended without a result, or was declined; the message says why, and whether the cost stands.
        """
        while not self.is_over:
            if progress is not None:
                progress(self.record["stage"])
            self.record = self._connection.get(f"/jobs/{self.id}", wait=_WAIT_SECONDS).json()
        self._asked.is_over = True
        if self.record["state"] != "done":
            raise TrainingFailed(self.record["failure"])
        return self

    def cancel(self) -> RemoteJob:
        """End it now, if it is not over; what it had reserved stays spent."""
        with suppress(Conflict):  # it is over already
            self._connection.send("DELETE", f"/jobs/{self.id}")
        self.record = self._connection.get(f"/jobs/{self.id}").json()
        return self

    def result(self, progress: Callable[[str], None] | None = None) -> RemoteResult:
        """What it made, once it is done."""
        self.wait(progress)
        return fetched(self._connection, self.id)

    def __repr__(self) -> str:
        return (
            f"<RemoteJob {self.id} at {self._connection.url}: {self.record['kind']}, {self.record['state']}>"
        )


def fetched(connection: Connection, result_id: str) -> RemoteResult:
    """A result with its content, if that is given out."""
    record: dict[str, Any] = connection.get(f"/results/{result_id}").json()
    path = f"/results/{result_id}/content"
    return RemoteResult(record, connection.get(path, accept="*/*").content if record["media_type"] else b"")
