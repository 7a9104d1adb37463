"""After an older backup was restored: what may have happened since it was made has to count as having happened.

The database then knows less than analysts do. Its budgets have forgotten what was spent, trainings that were under way
would be done again with fresh noise under a cost that was paid once, sessions that draw noise for each point would draw
it a second time for points answered before, and keys that were revoked would open again.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import delete, select, update

from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.ledger.composition import Amount, Cost
from privlearn.ledger.ledger import Ledger
from privlearn.service.access.keys import HOLDER
from privlearn.service.jobs import queue
from privlearn.service.store import events
from privlearn.service.store.tables import jobs, keys, logins, results
from privlearn.service.timing import as_text, now
from privlearn.storage import excluding

_FAILED = "the holder restored an older backup: ask again; what was paid for this stands"
_PURPOSE = "spent before a restored backup, or taken to be"


def settle(store: str, lost: Mapping[str, Amount]) -> dict[str, Guarantee]:
    """Take the worst for granted; no server may be running.

    Parameters
    ----------
    store : str
        As `Owner.server.store` names it.
    lost : mapping from str to Amount
        Of data sets for which it is known for certain: what was spent after the backup was made. Of all others
        everything that is left counts as spent.

    Returns
    -------
    dict from str to Guarantee
        What was marked as spent, of the data sets that had something left.
    """
    datasets = Ledger.datasets(store)
    for name in lost:
        if name not in datasets:
            raise InvalidParameter(
                f"there is no data set {name!r} in this ledger: it has {', '.join(datasets)}"
            )
    _end_what_was_under_way(store)
    spent = {name: _spend(Ledger.open(store, name), lost.get(name)) for name in datasets}
    events.record(store, HOLDER, "settled a restored backup")
    return {name: guarantee for name, guarantee in spent.items() if guarantee is not None}


def _end_what_was_under_way(store: str) -> None:
    moment = as_text(now())
    with excluding(store, "jobs") as connection:
        under_way = jobs.c.state.in_((*queue.NOT_BEGUN, "running"))
        for job in connection.execute(select(jobs).where(under_way)).all():
            told = {"job": job.id, "reason": "an older backup was restored"}
            events.record_with(connection, store, job.analyst, f"{job.kind} failed", job.dataset, **told)
        ended = {"state": "failed", "failure": _FAILED, "finished": moment}
        connection.execute(update(jobs).where(under_way).values(ended))
        noisy = results.c.content.is_(None)  # the noise of a content is in the backup, whole
        connection.execute(update(results).where(noisy).values(closed=True))
        connection.execute(delete(logins))
        connection.execute(update(keys).where(keys.c.revoked == "").values(revoked=moment))


def _spend(ledger: Ledger, lost: Amount | None) -> Guarantee | None:
    """One committed entry over what was lost, or over everything that is left."""
    standing = ledger.standing()
    amount = standing.left if lost is None else lost
    if amount.epsilon == 0:
        return None
    divergence = amount.renyi
    guarantee = Guarantee(amount.epsilon, amount.delta, standing.total.neighbours)
    cost = Cost(guarantee, renyi=None if divergence is None else lambda _order: divergence)
    with ledger.reserve(cost, _PURPOSE) as reservation:
        reservation.commit()
    return cost.guarantee
