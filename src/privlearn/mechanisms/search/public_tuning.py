"""Tuning on public rows: the choice costs nothing, the fit on the records its usual cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privlearn.errors import whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.search.search import Calibrator, Search


@register_mechanism
@dataclass(frozen=True)
class PublicTuning(Search):
    """Choose a candidate without the records, then run it on them.

    Candidate and mechanism are fixed before a record is used, so the total cost is that of the chosen candidate: at
    most the largest of the candidates' epsilons and deltas. See docs/theory/selection.md for how public rows stand in
    for the records.

    Parameters
    ----------
    public_rows : int
        Number of public rows that the choice was made on.

    Examples
    --------
    >>> from functools import partial
    >>> from privlearn.mechanisms.release.output import OutputPerturbation
    >>> from privlearn.mechanisms.task import Task
    >>> from privlearn.solvers import Logistic
    >>> tasks = [Task(Logistic(), 10_000, 5, 1, strength, 1e-9, "replace_one") for strength in (0.001, 0.01)]
    >>> candidates = [
    ...     partial(OutputPerturbation.calibrate, task, noise="gaussian", calibration="tight") for task in tasks
    ... ]
    >>> search = PublicTuning.calibrate(Guarantee(1.0, 1e-6), candidates, public_rows=1_000)
    >>> [round(candidate.noise_scale, 3) for candidate in search.candidates]
    [0.845, 0.084]
    """

    public_rows: int

    name = "public"
    title = "tuned on public rows, which costs nothing"
    floating_point = "the choice saw no record"
    calibrated_constants = ("public_rows",)

    @property
    def covers(self) -> str:
        return (
            "Everything in this file that depends on the records: the coefficients. The candidate was chosen on public "
            "rows, free of charge; the error shown is expected from them. "
            f"{self.guarantee.relation.count_label}, schema, class labels, the candidates' parameters and the solver's "
            f"tolerance are public and enter as such.{self.guarantee.relation.count_coverage}"
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "public_rows", whole_number(self.public_rows, "public_rows"))

    @classmethod
    def calibrate(
        cls, guarantee: Guarantee, calibrators: Sequence[Calibrator], public_rows: int
    ) -> PublicTuning:
        """Return the search that gives every candidate the whole guarantee: only one of them will be run."""
        return cls(guarantee, tuple(calibrate(guarantee) for calibrate in calibrators), public_rows)

    def spends(self) -> Guarantee:
        return self._max_cost()

    def renyi(self, order: float) -> float:
        return self._max_renyi(order)

    def constants(self) -> dict[str, Any]:
        return {"public_rows": self.public_rows}
