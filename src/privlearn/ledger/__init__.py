"""The budget of a data set: reserve, compute, commit. The argument is in docs/theory/ledger.md."""

from privlearn.ledger.budget import Budget, Payment
from privlearn.ledger.cost import Cost
from privlearn.ledger.ledger import Ledger
from privlearn.ledger.promising import check_promise
from privlearn.ledger.reservation import Reservation
from privlearn.ledger.statement import Share, Statement

__all__ = ["Budget", "Cost", "Ledger", "Payment", "Reservation", "Share", "Statement", "check_promise"]
