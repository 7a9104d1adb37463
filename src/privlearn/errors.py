"""The exception tree. Every message says what to do instead, and none repeats a private value.

PrivlearnError
├── InvalidParameter      a parameter that cannot be used (also a ValueError)
├── SchemaError           a schema that contradicts itself or cannot be read (also a ValueError)
├── DataError             a table that does not fit its schema; names the column, never a value (also a ValueError)
├── SolverError           the minimiser could not certify the asked tolerance
├── MissingPart           a library that only training needs is not installed (also an ImportError)
├── ClusterError          a Dask cluster cannot be used as asked, or was lost
├── LedgerError           the ledger cannot be used as asked
│   ├── BudgetExceeded    the request does not fit into what is left
│   └── StoreUnusable     its database is full, gone or held by another: the same may work later
├── SessionError          an interactive session cannot be opened or continued as asked
├── ProtocolError         a message or step of a multiparty computation that must be refused
│   └── TooFewParties     fewer parties answered than the plan asks for
└── ReleaseError          a release file that cannot be read
    └── VerificationError its bytes or constants contradict its claim

UserWarning
└── NothingRecorded       a promise was made without a ledger; said once in a process
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

ON_DROPPING = (
    "dropping rows changes the number of records, which is public: do it only if that number may be known"
)
"""What a message says that leaves no other choice than to repair or to drop rows."""


def shown(value: object) -> str:
    """A parameter as a message may repeat it: a number or a text; of anything else, which may be rows, its type."""
    plain = value is None or isinstance(value, bool | int | float | str)
    return repr(value) if plain else f"a {type(value).__name__}"


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of a message about a public word that is not known, if one that is known looks like it."""
    if not isinstance(word, str):
        return ""
    by_letters = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), by_letters, n=1, cutoff=0.65)
    return f". Did you mean {by_letters[close[0]]!r}?" if close else ""


def check_positive(**numbers: float) -> None:
    """Each must be a finite number above 0."""
    for name, number in numbers.items():
        if not 0 < number < math.inf:
            raise InvalidParameter(f"{name} must be a finite number above 0, not {shown(number)}")


def whole_number(value: Any, name: str) -> int:
    """As an integer of at least 1; a certificate's reader passes it as a float."""
    if isinstance(value, bool) or not 1 <= value < math.inf or value != int(value):
        raise InvalidParameter(f"{name} must be a whole number of at least 1, not {shown(value)}")
    return int(value)


class NothingRecorded(UserWarning):
    """A promise was made without a ledger: nobody adds up what the same people are asked for."""


class PrivlearnError(Exception):
    """Base of all errors raised on purpose by privlearn."""


class InvalidParameter(PrivlearnError, ValueError):
    """A parameter cannot be used as given."""


class SchemaError(PrivlearnError, ValueError):
    """A schema contradicts itself or cannot be read."""


class DataError(PrivlearnError, ValueError):
    """A table does not fit its schema. The message names columns and rules, never a cell's value."""


class SolverError(PrivlearnError, ArithmeticError):
    """The minimiser could not certify the asked tolerance, so no guarantee could be given."""


class MissingPart(PrivlearnError, ImportError):
    """A library that only training needs is not installed."""


class ClusterError(PrivlearnError):
    """A Dask cluster cannot be used as asked, or was lost on the way."""


class LedgerError(PrivlearnError):
    """The ledger cannot be used as asked."""


class BudgetExceeded(LedgerError):
    """The request does not fit into what is left of the budget."""


class StoreUnusable(LedgerError):
    """The ledger's database cannot be used at the moment; trying again later may help."""


class SessionError(PrivlearnError):
    """An interactive session cannot be opened or continued as asked."""


class ProtocolError(PrivlearnError):
    """A message or step of a multiparty computation is refused; the message says which and why, never what it held."""


class TooFewParties(ProtocolError):
    """Fewer parties answered than the plan asks for: nothing is opened."""


class ReleaseError(PrivlearnError):
    """A release file cannot be read."""


class VerificationError(ReleaseError):
    """A release contradicts itself: its bytes or its constants do not support its claim."""
