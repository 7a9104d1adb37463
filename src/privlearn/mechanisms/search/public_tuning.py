"""Candidates compared on public rows: the choice costs nothing, the fit on the records what it always costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.errors import whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.search.search import Plan, Search


@register_mechanism
@dataclass(frozen=True)
class PublicTuning(Search):
    """Choose a candidate without the records, then run it on them.

    Candidate and mechanism are fixed before a record is used, so the whole costs what the chosen candidate costs: at
    most the largest of the candidates' epsilons and deltas. See docs/theory/selection.md for how public rows stand in
    for the records.

    Parameters
    ----------
    public_rows : int
        Number of public rows that the choice was made on.
    """

    public_rows: int

    name: ClassVar[str] = "public"
    title: ClassVar[str] = "tuned on public rows, which costs nothing"
    floating_point: ClassVar[str] = "the choice saw no record"
    chosen_constants: ClassVar[tuple[str, ...]] = ("public_rows",)

    @property
    def covers(self) -> str:
        """What the guarantee is about."""
        return (
            "Everything in this file that depends on the records: the coefficients. The candidate was chosen on public "
            "rows, free of charge; the error shown is expected from them. "
            f"{self.guarantee.relation.counted}, schema, class labels, the candidates' parameters and the solver's "
            f"tolerance are public and enter as such.{self.guarantee.relation.on_count}"
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "public_rows", whole_number(self.public_rows, "public_rows"))

    @classmethod
    def calibrate(cls, guarantee: Guarantee, plans: Sequence[Plan], public_rows: int) -> PublicTuning:
        """Every candidate gets the whole promise: only one of them will be run."""
        return cls(guarantee, tuple(plan(guarantee) for plan in plans), public_rows)

    def spends(self) -> Guarantee:
        return self._largest_spent()

    def renyi(self, order: float) -> float:
        return self._largest_renyi(order)

    def constants(self) -> dict[str, Any]:
        return {"public_rows": self.public_rows}
