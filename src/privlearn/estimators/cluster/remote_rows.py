"""The caller's side: partitions are loaded on any worker, queried where they are, and loaded again when lost.

Each step checks what is missing, so that a worker may die at any time: its partitions are read again elsewhere, and
must be equal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from privlearn.data.schema.schema import Schema
from privlearn.errors import ClusterError, InvalidParameter
from privlearn.estimators.cluster.partition import (
    Gone,
    Partition,
    Query,
    Receipt,
    Refusal,
    Setting,
    add_answers,
    answer_query,
    count_of,
    count_persons,
    send_query,
    set_weights,
    share_of,
)
from privlearn.estimators.cluster.workers import alive, check_workers, lost_scheduler
from privlearn.solvers.summed import Answer, check_partitions, sums_in_order

if TYPE_CHECKING:
    from distributed import Client, Future

GROUP = 16  # answers that a worker adds up at once; a power of two, so that the sums are those of one pairwise sum
POLL = 0.5  # seconds between two checks of the workers
TIMEOUT = 3600.0  # seconds without any finished task
MAX_ATTEMPTS = 5  # per query
_CHANGED = "rows that were read again, since their worker was lost, have changed"


class PartSource(Protocol):
    """Divides a table into partitions."""

    def __len__(self) -> int: ...

    def start(self, client: Client, number: int, schema: Schema, secret: bytes) -> Future:
        """Have a partition read by any worker; return the future of `partition.load`."""
        ...


class RemoteRows:
    """PRIVATE: rows on a cluster's workers, for as long as this object lives.

    Parameters
    ----------
    client : distributed.Client
        Checked by `workers.check_client`.
    parts : Parts
    schema : Schema
    secret : bytes
        Secret of this fit, the key of the digests of partitions and persons.
    """

    def __init__(self, client: Client, parts: PartSource, schema: Schema, secret: bytes) -> None:
        self._client, self._parts, self._schema, self._secret = client, parts, schema, secret
        self._futures: list[Future | None] = [None] * len(parts)
        self._where = [""] * len(parts)
        self._tokens = [""] * len(parts)
        self._digests: list[bytes | None] = [None] * len(parts)
        self._rows = [0] * len(parts)
        self._with_weights: set[int] = set()
        self._settings: dict[int, Setting] = {}
        self.persons = 0

    def __len__(self) -> int:
        return sum(self._rows)

    def load(self) -> None:
        """Touch the data: have the workers read and check all of it."""
        try:
            self._retry_until_answered(lambda: ())
            check_partitions(self._rows)
        except BaseException:
            self.release_rows()
            raise

    def release_rows(self) -> None:
        """Let the workers free the rows; a later query reads them again, and they must be equal."""
        self._forget(range(len(self._futures)))

    def total(self, setting: Setting, answer: Callable[..., Answer], *arguments: Any) -> list[Any]:
        """Return the sum of ``answer(partition, *arguments)`` in this setting, in the partitions' order."""
        query = Query(answer, arguments)

        def ask() -> Any:
            failed = self._prepare(setting)
            return self._sum(self._put(query, range(len(self._futures)))) if failed is None else failed

        return sums_in_order([self._retry_until_answered(ask)])  # arrays from the wire may be read-only

    def _retry_until_answered(self, ask: Callable[[], Any]) -> Answer:
        """Return the answer of all partitions; load lost ones again and retry."""
        for _ in range(MAX_ATTEMPTS):
            self._load()
            failed = self._set_person_weights()
            answer = ask() if failed is None else failed
            if isinstance(answer, Refusal):
                raise answer.to_error()
            if not isinstance(answer, Gone):
                return tuple(answer)
            self._forget_lost()
        raise ClusterError(
            "the cluster's workers die, or lose their rows, faster than rows can be read. Look at the workers' logs"
        )

    def _load(self) -> None:
        missing = [number for number, future in enumerate(self._futures) if future is None]
        if missing:
            self._check_workers()
        started = [self._parts.start(self._client, number, self._schema, self._secret) for number in missing]
        for number, future in zip(missing, started, strict=True):
            self._futures[number] = future
        if missing:
            self._finish(started)
        for number, receipt in zip(missing, self._gather(started), strict=True):
            self._check_receipt(number, receipt)

    def _check_workers(self) -> None:
        """Check the present workers; after the charge, only a `ClusterError` says that the budget is spent."""
        try:
            check_workers(self._client)
        except InvalidParameter as error:
            raise ClusterError(str(error)) from None

    def _check_receipt(self, number: int, result: Any) -> None:
        # Within one process nothing is pickled, and the result is the partition itself.
        receipt = result.receipt if isinstance(result, Partition) else result
        expected = self._digests[number]
        if isinstance(receipt, Refusal):
            self._forget([number])
            raise receipt.to_error() if expected is None else ClusterError(f"{_CHANGED}: {receipt.message}")
        if not isinstance(receipt, Receipt):
            raise ClusterError(f"a partition could not be read: its task ended with {type(receipt).__name__}")
        if expected is not None and expected != receipt.digest:
            raise ClusterError(f"{_CHANGED}: rows must not change while a model learns from them")
        self._digests[number], self._rows[number] = receipt.digest, receipt.rows
        self._where[number], self._tokens[number] = receipt.worker, receipt.token

    def _set_person_weights(self) -> Gone | Refusal | None:
        """Set the weights of persons' rows, which depend on all partitions together."""
        missing = [number for number in range(len(self._futures)) if number not in self._with_weights]
        if self._schema.person is None or not missing:
            return None
        persons = self._submit(
            count_persons, *self._put(Query(Partition.persons, ()), range(len(self._futures)))
        )
        confirmations = [
            self._submit(
                set_weights,
                self._futures[number],
                self._submit(share_of, persons, number),
                self._tokens[number],
                at=self._where[number],
            )
            for number in missing
        ]
        answer = self._sum([self._submit(count_of, persons)])
        failed = self._sum(confirmations) if isinstance(answer, tuple) else answer
        if not isinstance(failed, tuple):
            return failed  # type: ignore[no-any-return]
        self.persons = int(answer[0])
        self._with_weights.update(missing)
        return None

    def _prepare(self, setting: Setting) -> Gone | Refusal | None:
        missing = [
            number for number in range(len(self._futures)) if self._settings.get(number) is not setting
        ]
        if not missing:
            return None
        failed = self._sum(self._put(Query(Partition.prepare, [setting]), missing))
        if not isinstance(failed, tuple):
            return failed  # type: ignore[no-any-return]
        self._settings |= dict.fromkeys(missing, setting)
        return None

    def _put(self, query: Query, numbers: Iterable[int]) -> list[Future]:
        """Return the future answer of each partition, from the worker that has it."""
        by_worker: dict[str, list[int]] = {}
        for number in numbers:
            by_worker.setdefault(self._where[number], []).append(number)
        sent = self._submit(send_query, query)
        futures: dict[int, Future] = {}
        for worker, here in by_worker.items():
            keys = [_key("ask") for _ in here]
            partitions = [self._futures[number] for number in here]
            answers = self._client.map(
                answer_query,
                partitions,
                [sent] * len(here),
                [self._tokens[number] for number in here],
                key=keys,
                workers=[worker],
                allow_other_workers=False,
            )
            futures |= dict(zip(here, answers, strict=True))
        return [futures[number] for number in sorted(futures)]

    def _submit(self, work: Callable[..., Any], *arguments: Any, at: str | None = None) -> Future:
        pinned = {} if at is None else {"workers": [at], "allow_other_workers": False}
        return self._client.submit(work, *arguments, key=_key(work.__name__), **pinned)

    def _sum(self, answers: Sequence[Future]) -> Any:
        """Return the answers' sum, added on the workers in a tree of fixed shape; `Gone` if a worker is lost."""
        layer = list(answers)
        while len(layer) > 1:
            groups = [layer[start : start + GROUP] for start in range(0, len(layer), GROUP)]
            layer = [self._submit(add_answers, *group) for group in groups]
        if not self._finish([*answers, *layer]):
            for future in (*answers, *layer):
                future.release()  # a lost worker will not answer
            return Gone()
        (answer,) = self._gather(layer)
        return answer if isinstance(answer, tuple | Refusal) else Gone()

    def _finish(self, futures: Sequence[Future]) -> bool:
        """Wait until the futures are done; return False as soon as a worker with partitions is lost."""
        from distributed import wait

        with self._client.as_current():
            return self._wait_for(lambda: wait(futures, timeout=POLL), futures) is not None

    def _gather(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results of finished futures; for a failed one the error, whose text must not be repeated."""
        return [self._wait_for(partial(_value, future), [future]) for future in futures]

    def _wait_for(self, step: Callable[[], Any], futures: Sequence[Future]) -> Any:
        """Return the result of a step, repeated while it times out; None as soon as a worker is lost."""
        finished, since = 0, time.monotonic()
        while True:
            try:
                return step()
            except TimeoutError:
                pass
            except (OSError, CancelledError):
                raise lost_scheduler(self._client) from None
            if not set(self._where) - {""} <= alive(self._client):
                return None
            done = sum(future.done() for future in futures)
            if done > finished:
                finished, since = done, time.monotonic()
            elif time.monotonic() - since > TIMEOUT:
                raise ClusterError(
                    f"the cluster finished no task in {TIMEOUT:.0f} seconds. Look at its workers' logs"
                )

    def _forget_lost(self) -> None:
        """Forget partitions that are lost, with their worker or without; they will be read again."""
        workers = alive(self._client)
        numbers = [number for number, where in enumerate(self._where) if where in workers]
        answers = self._put(Query(Partition.here, ()), numbers)
        present: set[int] = set()
        if self._finish(answers):
            results = zip(numbers, self._gather(answers), strict=True)
            present = {number for number, answer in results if isinstance(answer, tuple)}
        self._forget(set(range(len(self._futures))) - present)

    def _forget(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if (future := self._futures[number]) is not None:
                future.release()  # now: the traceback of an error may refer to it for long
            self._futures[number], self._where[number], self._tokens[number] = None, "", ""
            self._with_weights.discard(number)
            self._settings.pop(number, None)


def _value(future: Future) -> Any:
    return future.exception(timeout=POLL) if future.status == "error" else future.result(timeout=POLL)


def _key(name: str) -> str:
    """Return a key that no other caller of the same cluster has."""
    return f"privlearn-{name}-{uuid4().hex}"
