"""What a promise means, in words for whoever has to answer for it: what an attacker can do at best, mu, and the odds.

All of it follows from a certificate's constants, so files state it without holding it. docs/theory/meaning.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from statistics import NormalDist
from typing import Any

from privlearn.accounting.curves import Curve
from privlearn.accounting.meaning import best_true_positives, gaussian_mu, largest_odds
from privlearn.accounting.release_curves import CurveBeside, StatedCurve
from privlearn.guarantee import Guarantee
from privlearn.relation import Relation

FALSE_POSITIVES = (0.01, 0.001)

_UP = Context(prec=3, rounding=ROUND_CEILING)
_LARGEST_ODDS = 1e6  # beyond it a number says nothing


@dataclass(frozen=True)
class Meaning:
    """What a promise leaves to an attacker who knows all records but one person's, and sees what was released.

    Attributes
    ----------
    relation : Relation
        Between which two possibilities the attacker decides.
    whose : str
        What of one person the promise is about: a record, or several.
    true_positives : tuple of float
        The best share of true alarms at each share of false alarms in `FALSE_POSITIVES`.
    mu : float or None
        Of Gaussian differential privacy: an upper bound on what the mechanism lets through, which Gaussian noise
        attains and others do not. None if the mechanism has none, or none that is known.
    odds : float
        What the odds of either possibility are multiplied by, at most.
    exception : float
        The probability, at most, that they are multiplied by more.
    """

    relation: Relation
    whose: str
    true_positives: tuple[float, ...]
    mu: float | None
    odds: float
    exception: float

    @property
    def question(self) -> str:
        """What the attacker asks."""
        return f"whether {self.whose} in the data as before, or {self.relation.otherwise}"

    @property
    def facts(self) -> dict[str, str]:
        """For a certificate's list."""
        return {
            "an attacker asks": f"{self.question}; knows all other records",
            "true at false positives": ", ".join(f"at most {true} at {false}" for true, false in self._rates),
            "Gaussian privacy": f"mu {self._told_mu()}",
            "odds are multiplied by": self._told_odds(),
        }

    def in_words(self) -> str:
        """The same as sentences."""
        tests = "; ".join(f"{true} of cases if false alarms are {false}" for true, false in self._rates)
        even = self.odds / (1.0 + self.odds) if math.isfinite(self.odds) else 1.0
        return (
            f"Somebody knows all other records and wants to find out {self.question}. Their best test finds it in at "
            f"most {tests}; guessing finds it as often as it is a false alarm. Whatever odds they gave beforehand are "
            f"multiplied by {self._told_odds()}; even odds become {_percent(even)} at most. Gaussian privacy: mu "
            f"{self._told_mu()}.{self._told_steps()}"
        )

    @property
    def _rates(self) -> list[tuple[str, str]]:
        pairs = zip(self.true_positives, FALSE_POSITIVES, strict=True)
        return [(_percent(true), _percent(false)) for true, false in pairs]

    def _told_mu(self) -> str:
        if self.mu is None:
            return "is unknown, for epsilon and delta are all that is known"
        harder = ", and harder at the rates stated before" if self._is_harder_than(self.mu) else ""
        return f"= {_up(self.mu)}, at least as hard as telling N(0, 1) from N({_up(self.mu)}, 1) by one draw{harder}"

    def _is_harder_than(self, mu: float) -> bool:
        """Whether a Gaussian mechanism of the same mu would leave more: another has the least mu that covers it."""
        normal = NormalDist()
        allowed = [normal.cdf(normal.inv_cdf(rate) + mu) for rate in FALSE_POSITIVES]
        return any(true < 0.999 * most for true, most in zip(self.true_positives, allowed, strict=True))

    def _told_odds(self) -> str:
        factor = f"at most {_up(self.odds)}" if self.odds <= _LARGEST_ODDS else "any number"
        return factor + (f", but for a probability of {_up(self.exception)}" if self.exception else "")

    def _told_steps(self) -> str:
        """Presence is one question, what a record that is there says another."""
        steps = self.relation.replacing
        if steps == 1:
            return ""
        return (
            f" To find out which of two records it is takes {steps} such steps: epsilon and mu are {steps} times as "
            "large there."
        )


def meaning_of(
    guarantee: Guarantee,
    curve: Curve | None = None,
    *,
    beside: Guarantee | None = None,
    rows_per_person: int | None = 1,
) -> Meaning | None:
    """What a promise means; ``None`` if nothing is promised.

    Parameters
    ----------
    guarantee : Guarantee
    curve : Curve, optional
        The mechanism's own, from `Mechanism.curve`; without it no more is known than epsilon and delta.
    beside : Guarantee, optional
        What else was released about the same people for it, such as bounds of a schema.
    rows_per_person : int or None
        How many records of one person the promise covers; None for all that they have.
    """
    if not guarantee.is_private:
        return None
    known: Any = StatedCurve(guarantee.epsilon, guarantee.delta) if curve is None else curve
    exception = 2.0 * guarantee.delta
    if beside is not None:
        known = CurveBeside(known, beside.epsilon, beside.delta)
        exception += 2.0 * beside.delta
    return Meaning(guarantee.relation, _whose(rows_per_person), *_measured(known, min(exception, 1.0)))


@lru_cache(maxsize=256)
def _measured(curve: Any, exception: float) -> tuple[tuple[float, ...], float | None, float, float]:
    rates = tuple(best_true_positives(curve, rate) for rate in FALSE_POSITIVES)
    return rates, gaussian_mu(curve), largest_odds(curve, exception), exception


def _whose(rows_per_person: int | None) -> str:
    if rows_per_person == 1:
        return "one person's record is"
    return f"one person's records ({'all' if rows_per_person is None else f'up to {rows_per_person}'}) are"


def _up(value: float) -> str:
    """To three digits, rounded upwards; what is exact to six stays as it is."""
    if not math.isfinite(value):
        return str(value)
    return f"{float(_UP.create_decimal(Decimal(value * (1.0 - 1e-7)))):g}".replace("e-0", "e-")


def _percent(share: float) -> str:
    return f"{_up(100.0 * share)} %"
