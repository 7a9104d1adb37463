"""The budget of a data set: reserve, compute, commit. The argument is in docs/theory/ledger.md."""

from privlearn.ledger.charge import Budget, Charge, Payment, Reservation
from privlearn.ledger.composition import Cost
from privlearn.ledger.ledger import Ledger
from privlearn.ledger.statement import Share, Standing, Statement

__all__ = ["Budget", "Charge", "Cost", "Ledger", "Payment", "Reservation", "Share", "Standing", "Statement"]
