"""Count and store the privacy budget of data sets: reserve, compute, commit.

`ledger.py` holds the accounts, `charge.py` the order in which work is charged, `composition.py` the sum of costs,
`split.py` the division of a budget among stages, and `storage/` the database. This is the only place that counts
budget. May import everything up to `release`; start with `charge.py`. The argument is in docs/theory/ledger.md.

Nothing is imported here, because a client without a database uses `pending.py`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.budget.composition import (
        Amount,
        BasicComposition,
        Composition,
        CompositionName,
        Cost,
        RenyiComposition,
        Sum,
        best_order,
        difference,
        divergence_limit,
        exact,
        exact_sum,
    )
    from privlearn.budget.pending import CoordinatedRun, remember_job, watch_charges
    from privlearn.budget.reservation import Reservation
    from privlearn.budget.statement import Entry, Statement
else:
    __getattr__ = export_late(__name__)
