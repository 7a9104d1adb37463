"""A training's charge: under the job's own id, and final only once its result is stored.

    reserve (durable) -> compute -> store the result, unseen -> commit -> show it

A process that dies in between leaves a reservation that the job goes on with, so a restart neither pays twice nor
loses what was paid; and one result alone is ever seen for it.

Before the cost is reserved rows are read: how long that takes depends on the records, and everybody sees when the
budget moves. So it moves at the end of a slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from privlearn.ledger import Cost, Ledger
from privlearn.service.requests import Job
from privlearn.service.slots import wait_for_end_of_slot


@dataclass(frozen=True)
class JobBudget:
    """What estimators and sessions take for a ledger."""

    ledger: Ledger
    job: Job
    slot: float
    """``training_seconds``."""

    def reserve(self, cost: Cost, purpose: str, schema_digest: str = "") -> StoredFirst:
        told = f"{self.job.kind}, {self.job.learner} ({purpose})"
        wait_for_end_of_slot(self.job.started, self.slot / 2.0)
        self.ledger.reserve(cost, told, schema_digest, id=self.job.id)
        return StoredFirst()


class StoredFirst:
    """The reservation as an estimator sees it: what it calls commit comes later, when the result is stored."""

    def commit(self) -> None:
        """Nothing yet: the result exists in memory alone, and could still be lost."""

    def __enter__(self) -> StoredFirst:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to do: without a commit the cost stays reserved."""
