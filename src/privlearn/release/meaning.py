"""What a guarantee means to an attacker, as text: the best test, mu of Gaussian privacy, and the change of odds.

All of it follows from a certificate's constants and is not stored in files. The theory is in docs/theory/meaning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from statistics import NormalDist
from typing import Any

from privlearn.accounting import Curve, EpsilonDeltaCurve, JointCurve
from privlearn.accounting.meaning import (
    area_under_best_tests,
    best_advantage,
    best_true_positives,
    gaussian_mu,
    max_odds,
)
from privlearn.guarantee import Guarantee, Relation

FALSE_POSITIVES = (0.01, 0.001)

_UP = Context(prec=3, rounding=ROUND_CEILING)
_MAX_ODDS = 1e6  # larger factors are not worth printing


@dataclass(frozen=True)
class Meaning:
    """The success of an attacker who knows the records of all persons but one, and sees the release.

    Attributes
    ----------
    relation : Relation
        Defines the two possibilities between which the attacker decides.
    whose : str
        The records of one person that the guarantee covers, as the beginning of a clause: "one person's record is".
    true_positives : tuple of float
        Largest true positive rate of any attack, for each false positive rate in `FALSE_POSITIVES`.
    mu : float or None
        The mu of Gaussian differential privacy: exact for Gaussian noise, an upper bound for other noise. None if the
        mechanism has no such bound, or none is known.
    odds : float
        Largest factor by which the odds of either possibility change.
    exception : float
        Bound on the probability that the odds change by more than ``odds``.
    curve : Curve
        The privacy curve that these numbers follow from.
    """

    relation: Relation
    whose: str
    true_positives: tuple[float, ...]
    mu: float | None
    odds: float
    exception: float
    curve: Any = field(repr=False, compare=False)

    @property
    def advantage(self) -> float:
        """Return a bound on the true positive rate less the false positive rate of every attack."""
        return best_advantage(self.curve)

    @property
    def area(self) -> float:
        """Return a bound on the area under the curve of every attack."""
        return area_under_best_tests(self.curve)

    @property
    def question(self) -> str:
        """Return what the attacker wants to find out."""
        return f"whether {self.whose} in the data as before, or {self.relation.change}"

    @property
    def properties(self) -> dict[str, str]:
        """Return the lines for a certificate, by name."""
        return {
            "an attacker asks": f"{self.question}; knows all other records",
            "true at false positives": ", ".join(f"at most {true} at {false}" for true, false in self._rates),
            "Gaussian privacy": f"mu {self._mu_text()}",
            "odds are multiplied by": self._odds_text(),
        }

    def in_words(self) -> str:
        """Return the same as sentences."""
        tests = "; ".join(f"{true} of cases if false alarms are {false}" for true, false in self._rates)
        even = self.odds / (1.0 + self.odds) if math.isfinite(self.odds) else 1.0
        return (
            f"An attacker knows all other records and wants to find out {self.question}. Their best test finds it in "
            f"at most {tests}; guessing finds it as often as it is a false alarm. The odds that they gave before are "
            f"multiplied by {self._odds_text()}; even odds become {_percent(even)} at most. Gaussian privacy: mu "
            f"{self._mu_text()}.{self._steps_text()}"
        )

    @property
    def _rates(self) -> list[tuple[str, str]]:
        pairs = zip(self.true_positives, FALSE_POSITIVES, strict=True)
        return [(_percent(true), _percent(false)) for true, false in pairs]

    def _mu_text(self) -> str:
        if self.mu is None:
            return "is unknown, for epsilon and delta are all that is known"
        harder = ", and harder at the rates stated before" if self._is_harder_than(self.mu) else ""
        return f"= {_up(self.mu)}, at least as hard as telling N(0, 1) from N({_up(self.mu)}, 1) by one draw{harder}"

    def _is_harder_than(self, mu: float) -> bool:
        """Return whether the test is harder than for a Gaussian mechanism of the same mu, which is an upper bound."""
        normal = NormalDist()
        allowed = [normal.cdf(normal.inv_cdf(rate) + mu) for rate in FALSE_POSITIVES]
        return any(true < 0.999 * rate for true, rate in zip(self.true_positives, allowed, strict=True))

    def _odds_text(self) -> str:
        factor = f"at most {_up(self.odds)}" if self.odds <= _MAX_ODDS else "any number"
        return factor + (f", but for a probability of {_up(self.exception)}" if self.exception else "")

    def _steps_text(self) -> str:
        """Return a sentence on finding out which of two records it is, which is another question than presence."""
        steps = self.relation.replacing
        if steps == 1:
            return ""
        return (
            f" To find out which of two records it is takes {steps} such steps: epsilon and mu are {steps} times as "
            f"large there{', and delta grows by the factor 1 + e^epsilon' if self.exception else ''}."
        )


def meaning_of(
    guarantee: Guarantee,
    curve: Curve | None = None,
    *,
    additional: Guarantee | None = None,
    rows_per_person: int | None = 1,
) -> Meaning | None:
    """Return what a guarantee means; None if nothing is guaranteed.

    Parameters
    ----------
    guarantee : Guarantee
    curve : Curve, optional
        The mechanism's own, from `Mechanism.curve`; without it only epsilon and delta are known.
    additional : Guarantee, optional
        The cost of other results about the same people, such as bounds of a schema.
    rows_per_person : int or None
        How many records of one person the guarantee covers; None for all that they have.
    """
    if not guarantee.is_private:
        return None
    known: Any = EpsilonDeltaCurve(guarantee.epsilon, guarantee.delta) if curve is None else curve
    exception = 2.0 * guarantee.delta
    if additional is not None:
        known = JointCurve(known, additional.epsilon, additional.delta)
        exception += 2.0 * additional.delta
    return Meaning(guarantee.relation, _whose(rows_per_person), *_measure(known, min(exception, 1.0)), known)


@lru_cache(maxsize=256)
def _measure(curve: Any, exception: float) -> tuple[tuple[float, ...], float | None, float, float]:
    rates = tuple(best_true_positives(curve, rate) for rate in FALSE_POSITIVES)
    return rates, gaussian_mu(curve), max_odds(curve, exception), exception


def _whose(rows_per_person: int | None) -> str:
    if rows_per_person == 1:
        return "one person's record is"
    return f"one person's records ({'all' if rows_per_person is None else f'up to {rows_per_person}'}) are"


def _up(value: float) -> str:
    """Return a number to three digits, rounded upwards; what is exact to six digits stays as it is."""
    if not math.isfinite(value):
        return str(value)
    return f"{float(_UP.create_decimal(Decimal(value * (1.0 - 1e-7)))):g}".replace("e-0", "e-")


def _percent(share: float) -> str:
    return f"{_up(100.0 * share)} %"
