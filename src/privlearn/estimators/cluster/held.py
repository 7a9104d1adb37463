"""Partitions on workers, seen from the caller: loaded where Dask likes, asked where they are, loaded anew where lost.

Each step names what it needs and finds out what is missing, so that a worker may die at any time: its partitions are
read again elsewhere, and must be the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from privlearn.data.schema.schema import Schema
from privlearn.erm.summed import Answer, check_places, sums_in_order
from privlearn.errors import ClusterError, InvalidParameter
from privlearn.estimators.cluster.partition import (
    Gone,
    Partition,
    Question,
    Receipt,
    Refusal,
    Setting,
    added,
    asked,
    count_of,
    given,
    persons_of,
    share_of,
    weighed,
)
from privlearn.estimators.cluster.workers import alive, check_workers, lost_scheduler

if TYPE_CHECKING:
    from distributed import Client, Future

GROUP = 16  # answers that a worker adds up at once; a power of two, so that the sums are those of one pairwise sum
POLL = 0.5  # seconds between two looks at which workers are there
PATIENCE = 3600.0  # seconds in which something must get done
MOST_ATTEMPTS = 5  # at one question
_CHANGED = "rows that had to be read again, since their worker was lost, are not what they were"


class Parts(Protocol):
    """Where partitions come from."""

    def __len__(self) -> int: ...

    def start(self, client: Client, number: int, schema: Schema, secret: bytes) -> Future:
        """Have a partition read by any worker; the future of what `partition.load` returns."""
        ...


class HeldRows:
    """PRIVATE: rows on a cluster's workers, for as long as this object lives.

    Parameters
    ----------
    client : distributed.Client
        Checked by `workers.check_client`.
    parts : Parts
    schema : Schema
    secret : bytes
        Of this fit: keys the digests of partitions and of persons.
    """

    def __init__(self, client: Client, parts: Parts, schema: Schema, secret: bytes) -> None:
        self._client, self._parts, self._schema, self._secret = client, parts, schema, secret
        self._futures: list[Future | None] = [None] * len(parts)
        self._where = [""] * len(parts)
        self._tokens = [""] * len(parts)
        self._digests: list[bytes | None] = [None] * len(parts)
        self._rows = [0] * len(parts)
        self._weighed: set[int] = set()
        self._equipped: dict[int, Setting] = {}
        self.persons = 0

    def __len__(self) -> int:
        return sum(self._rows)

    def load(self) -> None:
        """Touch the data: all of it is read and checked."""
        try:
            self._until_answered(lambda: ())
            check_places(self._rows)
        except BaseException:
            self.let_go()
            raise

    def let_go(self) -> None:
        """The workers forget the rows; a later question has them read again, and they must be the same."""
        self._forget(range(len(self._futures)))

    def total(self, setting: Setting, answer: Callable[..., Answer], *arguments: Any) -> list[Any]:
        """Each partition's ``answer(partition, *arguments)`` in this setting, summed in the partitions' order."""
        question = Question(answer, arguments)

        def ask() -> Any:
            failed = self._equip(setting)
            return self._summed(self._put(question, range(len(self._futures)))) if failed is None else failed

        return sums_in_order([self._until_answered(ask)])  # arrays from the wire may be read-only

    def _until_answered(self, ask: Callable[[], Any]) -> Answer:
        """What is asked, all partitions being there; once more when some turn out to be lost."""
        for _ in range(MOST_ATTEMPTS):
            self._load()
            failed = self._weigh()
            answer = ask() if failed is None else failed
            if isinstance(answer, Refusal):
                raise answer.raised()
            if not isinstance(answer, Gone):
                return tuple(answer)
            self._forget_lost()
        raise ClusterError(
            "the cluster's workers die, or lose their rows, faster than these can be read: look at the workers' logs"
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
        for number, receipt in zip(missing, self._gathered(started), strict=True):
            self._keep(number, receipt)

    def _check_workers(self) -> None:
        """Some may have come since the fit began; by then it is paid for, which only a `ClusterError` will say."""
        try:
            check_workers(self._client)
        except InvalidParameter as error:
            raise ClusterError(str(error)) from None

    def _keep(self, number: int, found: Any) -> None:
        receipt = (
            found.receipt if isinstance(found, Partition) else found
        )  # in one process nothing is pickled
        known = self._digests[number]
        if isinstance(receipt, Refusal):
            self._forget([number])
            raise receipt.raised() if known is None else ClusterError(f"{_CHANGED}: {receipt.message}")
        if not isinstance(receipt, Receipt):
            raise ClusterError(f"a partition could not be read: its task ended with {type(receipt).__name__}")
        if known is not None and known != receipt.digest:
            raise ClusterError(f"{_CHANGED}: rows must not change while a model learns from them")
        self._digests[number], self._rows[number] = receipt.digest, receipt.rows
        self._where[number], self._tokens[number] = receipt.worker, receipt.token

    def _weigh(self) -> Gone | Refusal | None:
        """Where persons have several rows: what each counts follows from all partitions together."""
        missing = [number for number in range(len(self._futures)) if number not in self._weighed]
        if self._schema.person is None or not missing:
            return None
        persons = self._submit(
            persons_of, *self._put(Question(Partition.persons, ()), range(len(self._futures)))
        )
        told = [
            self._submit(
                weighed,
                self._futures[number],
                self._submit(share_of, persons, number),
                self._tokens[number],
                at=self._where[number],
            )
            for number in missing
        ]
        answer = self._summed([self._submit(count_of, persons)])
        failed = self._summed(told) if isinstance(answer, tuple) else answer
        if not isinstance(failed, tuple):
            return failed  # type: ignore[no-any-return]
        self.persons = int(answer[0])
        self._weighed.update(missing)
        return None

    def _equip(self, setting: Setting) -> Gone | Refusal | None:
        missing = [
            number for number in range(len(self._futures)) if self._equipped.get(number) is not setting
        ]
        if not missing:
            return None
        failed = self._summed(self._put(Question(Partition.equip, [setting]), missing))
        if not isinstance(failed, tuple):
            return failed  # type: ignore[no-any-return]
        self._equipped |= dict.fromkeys(missing, setting)
        return None

    def _put(self, question: Question, numbers: Iterable[int]) -> list[Future]:
        """Each partition's answer, from the worker that has it and from no other."""
        places: dict[str, list[int]] = {}
        for number in numbers:
            places.setdefault(self._where[number], []).append(number)
        told = self._submit(given, question)
        found: dict[int, Future] = {}
        for worker, here in places.items():
            keys = [_key("ask") for _ in here]
            partitions = [self._futures[number] for number in here]
            answers = self._client.map(
                asked,
                partitions,
                [told] * len(here),
                [self._tokens[number] for number in here],
                key=keys,
                workers=[worker],
                allow_other_workers=False,
            )
            found |= dict(zip(here, answers, strict=True))
        return [found[number] for number in sorted(found)]

    def _submit(self, work: Callable[..., Any], *arguments: Any, at: str | None = None) -> Future:
        pinned = {} if at is None else {"workers": [at], "allow_other_workers": False}
        return self._client.submit(work, *arguments, key=_key(work.__name__), **pinned)

    def _summed(self, answers: Sequence[Future]) -> Any:
        """The answers' sum, made on the workers in a tree of fixed shape; `Gone` as soon as a worker is missing."""
        layer = list(answers)
        while len(layer) > 1:
            groups = [layer[start : start + GROUP] for start in range(0, len(layer), GROUP)]
            layer = [self._submit(added, *group) for group in groups]
        if not self._finish([*answers, *layer]):
            for future in (*answers, *layer):
                future.release()  # nobody waits for what a lost worker was asked
            return Gone()
        (found,) = self._gathered(layer)
        return found if isinstance(found, tuple | Refusal) else Gone()

    def _finish(self, futures: Sequence[Future]) -> bool:
        """Wait until they are done; False as soon as a worker that had partitions is gone."""
        from distributed import wait

        with self._client.as_current():
            return self._patiently(lambda: wait(futures, timeout=POLL), futures) is not None

    def _gathered(self, futures: Sequence[Future]) -> list[Any]:
        """What futures that are done hold; of one that failed, its error, whose text nobody repeats."""
        return [self._patiently(partial(_value, future), [future]) for future in futures]

    def _patiently(self, step: Callable[[], Any], futures: Sequence[Future]) -> Any:
        """What the step returns, when it does not run out of time; None as soon as a worker is gone."""
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
            elif time.monotonic() - since > PATIENCE:
                raise ClusterError(
                    f"nothing got done on the cluster for {PATIENCE:.0f} seconds: look at its workers' logs"
                )

    def _forget_lost(self) -> None:
        """Partitions whose worker is gone, or where they are not any more, will be read again."""
        there = alive(self._client)
        numbers = [number for number, where in enumerate(self._where) if where in there]
        answers = self._put(Question(Partition.here, ()), numbers)
        held: set[int] = set()
        if self._finish(answers):
            found = self._gathered(answers)
            held = {
                number for number, answer in zip(numbers, found, strict=True) if isinstance(answer, tuple)
            }
        self._forget(set(range(len(self._futures))) - held)

    def _forget(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if (future := self._futures[number]) is not None:
                future.release()  # at once: an error's traceback may refer to it for long
            self._futures[number], self._where[number], self._tokens[number] = None, "", ""
            self._weighed.discard(number)
            self._equipped.pop(number, None)


def _value(future: Future) -> Any:
    return future.exception(timeout=POLL) if future.status == "error" else future.result(timeout=POLL)


def _key(name: str) -> str:
    """One that no other caller of the same cluster has."""
    return f"privlearn-{name}-{uuid4().hex}"
