"""Long lists in pieces: newest first, and on from the last one seen, however many came in between."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Select, select, tuple_

from privlearn.service.store.tables import jobs


@dataclass(frozen=True)
class Piece:
    """Which jobs, or results of jobs, to list.

    Attributes
    ----------
    most : int or None
        ``None``: all of them.
    before : str, optional
        Id of the last one seen.
    datasets : collection of str, optional
        Only those about these; ``None``: about any.
    """

    most: int | None = None
    before: str | None = None
    datasets: Collection[str] | None = None

    def of(self, query: Select[Any], time: Column[str]) -> Select[Any]:
        """The query's rows of this piece, in the order of a time in the table of jobs."""
        query = query.order_by(time.desc(), jobs.c.id.desc()).limit(self.most)
        if self.datasets is not None:
            query = query.where(jobs.c.dataset.in_(self.datasets))
        if self.before is not None:
            seen = jobs.alias()
            at = select(seen.c[time.name]).where(seen.c.id == self.before).scalar_subquery()
            query = query.where(tuple_(time, jobs.c.id) < tuple_(at, self.before))
        return query


EVERYTHING = Piece()
