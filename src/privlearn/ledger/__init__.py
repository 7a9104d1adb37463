"""The budget of a data set: reserve, compute, commit. The argument is in docs/theory/ledger.md."""

from privlearn.ledger.budget import Budget, Payment
from privlearn.ledger.charge import Charge
from privlearn.ledger.cost import Cost
from privlearn.ledger.ledger import Ledger
from privlearn.ledger.reservation import Reservation
from privlearn.ledger.statement import Share, Statement

__all__ = ["Budget", "Charge", "Cost", "Ledger", "Payment", "Reservation", "Share", "Statement"]
