"""The part of owner.toml about approval: which requests a second person must agree to."""

from __future__ import annotations

from collections.abc import Container
from datetime import timedelta
from typing import Annotated

from pydantic import Field, StrictStr

from privlearn.data.schema.public import PublicModel
from privlearn.errors import SchemaError

_Epsilon = Annotated[float, Field(ge=0, strict=True)]


class Approval(PublicModel):
    """When a request about a data set waits until somebody approves it.

    Parameters
    ----------
    above : float or dict of str to float
        Requests of a larger epsilon wait; 0: every one. With a number per kind of job, kinds without one never wait.
    days : float, default=14
        After so long a request that nobody has decided on ends, unpaid.
    """

    above: _Epsilon | dict[StrictStr, _Epsilon]
    days: Annotated[float, Field(gt=0, le=366, strict=True)] = 14.0

    def limit(self, kind: str) -> float | None:
        """Up to which epsilon a kind of job needs no approval; ``None``: it never does."""
        return self.above.get(kind) if isinstance(self.above, dict) else self.above

    def is_needed(self, kind: str, epsilon: float) -> bool:
        limit = self.limit(kind)
        return limit is not None and epsilon > limit

    @property
    def patience(self) -> timedelta:
        return timedelta(days=self.days)

    def check_kinds(self, where: str, known: Container[str]) -> None:
        """Refuse a misspelt kind: it would let everything pass."""
        for kind in self.above if isinstance(self.above, dict) else ():
            if kind not in known:
                raise SchemaError(
                    f"{where}.approval.above: this server does no job of kind {kind!r}: correct its name"
                )
