"""The exception tree, and the checks of parameters that every part uses.

Every message says what is wrong and what to do, and none repeats a private value.

PrivlearnError
├── InvalidParameter      a parameter that cannot be used (also a ValueError)
├── SchemaError           a schema that contradicts itself or cannot be read (also a ValueError)
├── DataError             a table that does not fit its schema; names the column, never a value (also a ValueError)
├── SolverError           the solver could not certify the requested tolerance
├── MissingPart           a library that only training needs is not installed (also an ImportError)
├── ClusterError          a Dask cluster cannot be used as requested, or was lost
├── LedgerError           the ledger cannot be used as requested
│   ├── BudgetExceeded    the request does not fit into what is left
│   └── StoreUnusable     its database is full, gone or locked by another process: a later attempt may work
├── SessionError          an interactive session cannot be opened or continued as requested
├── ProtocolError         a message or step of a multiparty computation that must be refused
│   └── TooFewParties     fewer parties answered than the agreement requires
└── ReleaseError          a release file that cannot be read
    └── VerificationError its bytes or constants contradict its claim

UserWarning
└── NothingRecorded       a guarantee was given without a ledger; warned about once in a process
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

ON_DROPPING = (
    "dropping rows changes the number of records, which is public: do it only if that number may be known"
)
"""Ends a message that leaves no other choice than to repair or to drop rows."""


def preview(value: object) -> str:
    """Return a parameter as a message may repeat it: a number or a text, otherwise its type (it may be rows)."""
    plain = value is None or isinstance(value, bool | int | float | str)
    return repr(value) if plain else f"a {type(value).__name__}"


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown public word: the known one that looks like it, or nothing."""
    if not isinstance(word, str):
        return ""
    by_letters = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), by_letters, n=1, cutoff=0.65)
    longer = [name for name in by_letters if len(word) > 2 and name.startswith(word.casefold())]
    found = close or longer[:1]
    return f". Did you mean {by_letters[found[0]]!r}?" if found else ""


def check_positive(**numbers: float) -> None:
    """Raise InvalidParameter unless each is a finite number above 0."""
    for name, number in numbers.items():
        if not 0 < number < math.inf:
            raise InvalidParameter(f"{name} must be a finite number above 0, not {preview(number)}")


def whole_number(value: Any, name: str) -> int:
    """Return a value as an integer of at least 1; a certificate's reader passes it as a float."""
    if isinstance(value, bool) or not 1 <= value < math.inf or value != int(value):
        raise InvalidParameter(f"{name} must be a whole number of at least 1, not {preview(value)}")
    return int(value)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine; a connection to any other one must be encrypted."""
    import ipaddress  # late: this module is imported by every command

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class NothingRecorded(UserWarning):
    """A guarantee was given without a ledger, so the costs for the same people are not added up."""


class PrivlearnError(Exception):
    """Base of all errors raised on purpose by privlearn."""


class InvalidParameter(PrivlearnError, ValueError):
    """A parameter cannot be used as given."""


class SchemaError(PrivlearnError, ValueError):
    """A schema contradicts itself or cannot be read."""


class DataError(PrivlearnError, ValueError):
    """A table does not fit its schema. The message names columns and rules, never a cell's value."""


class SolverError(PrivlearnError, ArithmeticError):
    """The solver could not certify the requested tolerance, so no guarantee could be given."""


class MissingPart(PrivlearnError, ImportError):
    """A library that only training needs is not installed."""


class ClusterError(PrivlearnError):
    """A Dask cluster cannot be used as requested, or was lost on the way."""


class LedgerError(PrivlearnError):
    """The ledger cannot be used as requested."""


class BudgetExceeded(LedgerError):
    """The request does not fit into what is left of the budget."""


class StoreUnusable(LedgerError):
    """The ledger's database cannot be used at the moment; trying again later may help."""


class SessionError(PrivlearnError):
    """An interactive session cannot be opened or continued as requested."""


class ProtocolError(PrivlearnError):
    """A message or step of a multiparty computation is refused. The text says which and why, never its content."""


class TooFewParties(ProtocolError):
    """Fewer parties answered than the agreement requires: nothing is opened."""


class ReleaseError(PrivlearnError):
    """A release file cannot be read."""


class VerificationError(ReleaseError):
    """A release contradicts itself: its bytes or its constants do not support its claim."""
