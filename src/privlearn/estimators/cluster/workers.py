"""Checks of a cluster before it gets rows: encrypted, the same privlearn everywhere, and no rows on a worker's disk."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from privlearn._version import __version__
from privlearn.errors import ClusterError, InvalidParameter

if TYPE_CHECKING:
    from distributed import Client, Future

ANSWER_TIME = 30.0  # seconds in which a scheduler must list its workers
FIRST_ANSWER_TIME = 300.0  # seconds for a worker's first answer: it has to import privlearn
NO_SPILLING = (
    "start workers with DASK_DISTRIBUTED__WORKER__MEMORY__TARGET=False and "
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL=False in their environment"
)


@dataclass(frozen=True)
class WorkerProperties:
    """Public: the properties of a worker that are checked before it may read a row."""

    version: str
    spills: bool

    @classmethod
    def here(cls) -> WorkerProperties:
        """Return the properties of the worker that runs this."""
        from distributed import get_worker

        return cls(__version__, not isinstance(get_worker().data, dict))

    def check(self, version: str, address: str) -> None:
        """Raise ClusterError for another version, or a worker that may write rows to its disk."""
        if self.version != version:
            raise ClusterError(
                f"worker {address} has privlearn {self.version}, the caller {version}. Install the same everywhere"
            )
        if self.spills:
            raise ClusterError(
                f"worker {address} may write rows to its disk when its memory is full: {NO_SPILLING}"
            )


def check_address(address: str) -> None:
    """Refuse a cluster that would send rows unencrypted, unless it is this machine."""
    if not (address.startswith("tls://") or is_local(address)):
        raise InvalidParameter(
            f"a cluster at {address} sends rows unencrypted. Use tls://HOST:PORT, with a certificate for the "
            "scheduler, each worker and you; docs/how-to/cluster.md shows how"
        )


def is_local(address: str) -> bool:
    """Return whether the address is on this machine."""
    parts = urlsplit(address)
    if parts.scheme == "inproc":
        return True
    try:
        return parts.scheme == "tcp" and ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def check_client(client: Client) -> None:
    """Raise unless the cluster may get rows; nothing has been read so far."""
    check_address(str(client.scheduler.address))
    workers = check_workers(client)
    if not workers:
        raise ClusterError(f"the cluster at {client.scheduler.address} has no workers. Start some")
    answers = {
        worker: client.submit(WorkerProperties.here, workers=[worker], pure=False) for worker in workers
    }
    for worker, answer in sorted(answers.items()):
        _properties(answer, worker).check(__version__, worker)


def check_workers(client: Client) -> set[str]:
    """Return the workers' addresses; refuse unencrypted ones. Workers may join at any time."""
    workers = alive(client)
    for worker in sorted(workers):
        check_address(worker)
    return workers


def _properties(answer: Future, worker: str) -> WorkerProperties:
    try:
        return cast(WorkerProperties, answer.result(timeout=FIRST_ANSWER_TIME))
    except Exception as error:
        kind = type(error).__name__
    raise ClusterError(
        f"worker {worker} did not report its privlearn version ({kind}). Install privlearn[dask] {__version__} for it"
    )


def alive(client: Client) -> set[str]:
    """Return the workers' addresses from the scheduler.

    A client that has lost its scheduler would retry for a while, and a restarted scheduler has none of the tasks.
    """
    if client.status != "running":
        raise lost_scheduler(client)
    try:
        return set(client.sync(client.scheduler.ncores, callback_timeout=ANSWER_TIME))
    except Exception:
        raise lost_scheduler(client) from None


def lost_scheduler(client: Client) -> ClusterError:
    """Return the error to raise when the scheduler is lost."""
    return ClusterError(f"the cluster's scheduler at {client.scheduler.address} no longer answers")
