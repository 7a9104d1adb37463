"""Differentially private linear learning, from a raw table to a release anyone can verify."""

from privlearn.data import Schema, SchemaEncoder
from privlearn.erm import Hinge, HuberHinge, Logistic, SmoothedHinge
from privlearn.errors import (
    BudgetExceeded,
    DataError,
    InvalidParameter,
    LedgerError,
    PrivlearnError,
    ReleaseError,
    SchemaError,
    SolverError,
    VerificationError,
)
from privlearn.estimators import PrivateLogisticRegression, PrivateSVC
from privlearn.guarantee import Guarantee
from privlearn.ledger import Ledger
from privlearn.release import Certificate, Release, verify

__version__ = "0.1.0"

__all__ = [
    "BudgetExceeded",
    "Certificate",
    "DataError",
    "Guarantee",
    "Hinge",
    "HuberHinge",
    "InvalidParameter",
    "Ledger",
    "LedgerError",
    "Logistic",
    "PrivateLogisticRegression",
    "PrivateSVC",
    "PrivlearnError",
    "Release",
    "ReleaseError",
    "Schema",
    "SchemaEncoder",
    "SchemaError",
    "SmoothedHinge",
    "SolverError",
    "VerificationError",
    "verify",
]
