"""Divide the epsilon and delta of a pipeline among its stages, before anything is spent."""

from __future__ import annotations

import numbers
from dataclasses import asdict, dataclass
from decimal import Decimal

from privlearn.budget.composition import exact, exact_sum, round_down
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee

_FORM = "bounds=0.1,fit=0.9"


@dataclass(frozen=True)
class BudgetSplit:
    """Shares of one budget; they add up to 1, and basic composition makes the whole keep the total.

    Parameters
    ----------
    bounds : float, default=0.0
        For bounds and lists that a draft of a schema marks ``estimate``.
    selection : float, default=0.0
        For choosing among settings; a private search takes it together with ``fit``, as one guarantee.
    fit : float, default=1.0
        For the model.

    Examples
    --------
    >>> budgets = BudgetSplit(bounds=0.1, fit=0.9).of(Guarantee(1.0, 1e-5))
    >>> print(budgets)
    stage     share    epsilon      delta
    bounds      10%        0.1      1e-06
    fit         90%        0.9      9e-06
    together   100%          1      1e-05
    >>> budgets.guarantee("bounds")
    Guarantee(epsilon=0.1, delta=1e-06, neighbours='replace_one')
    """

    bounds: float = 0.0
    selection: float = 0.0
    fit: float = 1.0

    def __post_init__(self) -> None:
        for stage, share in asdict(self).items():
            if not isinstance(share, numbers.Real) or isinstance(share, bool) or not 0 <= float(share) <= 1:
                raise InvalidParameter(
                    f"the share of {stage} must be a number from 0 to 1. Write shares like {_FORM}."
                )
        if self.fit == 0:
            raise InvalidParameter(f"the model needs a share above 0. Write shares like {_FORM}.")
        if exact_sum(asdict(self).values()) != 1:
            raise InvalidParameter(f"the shares must add up to 1. Write shares like {_FORM}.")

    @classmethod
    def parse(cls, text: str) -> BudgetSplit:
        """Read shares as they are typed: ``bounds=0.1,fit=0.9``; stages that are not named get 0."""
        shares = {"fit": 0.0}
        for part in text.split(","):
            stage, _, share = part.partition("=")
            try:
                shares[stage.strip()] = float(share)
            except ValueError:
                raise InvalidParameter(
                    f"the split {text!r} cannot be read. Write shares like {_FORM}."
                ) from None
        unknown = shares.keys() - asdict(cls()).keys()
        if unknown:
            raise InvalidParameter(
                f"unknown stage {min(unknown)!r}. The stages are {', '.join(asdict(cls()))}"
            )
        return cls(**shares)

    def of(self, total: Guarantee) -> StageBudgets:
        """Return the budgets of the stages for a total; delta is divided like epsilon."""
        return StageBudgets(self, total)


@dataclass(frozen=True)
class StageBudgets:
    """A split applied to a total. `BudgetSplit.of` returns it; printed, it is a table."""

    split: BudgetSplit
    total: Guarantee

    def guarantee(self, *stages: str) -> Guarantee:
        """Return what these stages may spend together. Sums over all stages never exceed the total, in exact
        decimals."""
        share = exact_sum(asdict(self.split)[stage] for stage in stages)
        return Guarantee(
            _part(share, self.total.epsilon), _part(share, self.total.delta), self.total.neighbours
        )

    def __str__(self) -> str:
        shares = {stage: share for stage, share in asdict(self.split).items() if share}
        lines = [f"{'stage':<9} {'share':>5} {'epsilon':>10} {'delta':>10}"]
        lines += [_line(stage, share, self.guarantee(stage)) for stage, share in shares.items()]
        return "\n".join([*lines, _line("together", 1.0, self.total)])


def _part(share: Decimal, whole: float) -> float:
    return round_down(share * exact(whole)) if share and whole else 0.0


def _line(stage: str, share: float, guarantee: Guarantee) -> str:
    return f"{stage:<9} {share:>5.0%} {guarantee.epsilon:>10.4g} {guarantee.delta:>10.4g}"
