"""Count and store the privacy budget of data sets: reserve, compute, commit.

`ledger.py` holds the accounts, `charge.py` the order in which work is charged, `composition.py` the sum of costs,
`split.py` the division of a budget among stages, and `storage/` the database. This is the only place that counts
budget. May import everything up to `release`; start with `charge.py`. The argument is in docs/theory/ledger.md.

Nothing is imported here, because a client without a database uses `charged.py`.
"""
