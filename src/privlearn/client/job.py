"""A job on a server, and its result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from privlearn.budget.pending import RequestedJob
from privlearn.client.connection import Connection, TrainingFailed
from privlearn.server.refusals import Conflict

_WAIT_SECONDS = 5
_OVER = ("done", "failed", "declined")


@dataclass(frozen=True)
class RemoteResult:
    """The result of a job.

    Attributes
    ----------
    record : dict
        The server's description: kind, data set, guarantee, certificate, media type of the content.
    content : bytes
        Empty if it stays on the server, as for a session.
    """

    record: dict[str, Any]
    content: bytes = field(repr=False)


class RemoteJob:
    """A job on a server; it continues without this object.

    Attributes
    ----------
    id : str
        Also the id of its result.
    record : dict
        The server's last description.
    """

    def __init__(self, connection: Connection, record: dict[str, Any], requested: RequestedJob) -> None:
        self._connection, self._requested = connection, requested
        self.id: str = record["id"]
        requested.id = self.id
        self.record = record

    @property
    def is_over(self) -> bool:
        """Return whether it has ended, with or without a result, according to the server's last answer."""
        return self.record["state"] in _OVER

    def wait(self, progress: Callable[[str], None] | None = None) -> RemoteJob:
        """Wait until it is done, including its approval; ``progress`` is called with the name of each stage.

        Raises
        ------
        TrainingFailed
            If it ended without a result, or was declined; the message states why, and whether the cost stands.
        """
        while not self.is_over:
            if progress is not None:
                progress(self.record["stage"])
            self.record = self._connection.get(f"/jobs/{self.id}", wait=_WAIT_SECONDS).json()
        self._requested.is_over = True
        if self.record["state"] != "done":
            raise TrainingFailed(self.record["failure"])
        return self

    def cancel(self) -> RemoteJob:
        """End it now, if it is not over; what it has reserved stays spent."""
        with suppress(Conflict):  # it is over already
            self._connection.send("DELETE", f"/jobs/{self.id}")
        self.record = self._connection.get(f"/jobs/{self.id}").json()
        return self

    def result(self, progress: Callable[[str], None] | None = None) -> RemoteResult:
        """Wait until it is done, and return its result."""
        self.wait(progress)
        return fetch_result(self._connection, self.id)

    def __repr__(self) -> str:
        return (
            f"<RemoteJob {self.id}: {self.record['kind']}, {self.record['state']}, at {self._connection.url}>"
        )


def fetch_result(connection: Connection, result_id: str) -> RemoteResult:
    """Return a result with its content, if the content leaves the server."""
    record: dict[str, Any] = connection.get(f"/results/{result_id}").json()
    path = f"/results/{result_id}/content"
    return RemoteResult(record, connection.get(path, accept="*/*").content if record["media_type"] else b"")
