"""What spends ask of a budget, whoever keeps it."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from privlearn.ledger.cost import Cost


class Payment(Protocol):
    """A cost that is counted already, such as `Reservation`: results are computed inside its ``with`` block."""

    def commit(self) -> None:
        """Makes the cost final; only afterwards may the result leave."""

    def __enter__(self) -> Payment: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Budget(Protocol):
    """What estimators, searches, purchases and sessions charge, such as `Ledger`."""

    def reserve(self, cost: Cost, purpose: str, schema_digest: str = "", /) -> Payment:
        """Takes the cost out of the budget, durably, or refuses with `BudgetExceeded`."""
