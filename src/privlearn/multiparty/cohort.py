"""Who takes part, and how many of them may fail: the numbers that every promise of the secure sum rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privlearn.errors import InvalidParameter

MOST_PARTIES = 1000


@dataclass(frozen=True)
class Cohort:
    """The parties of a secure sum, how many may be missing from it, and how many may pool what they know.

    **Theorem** (docs/theory/secure-sum.md). Let n = parties - colluding be the honest parties. A coordinator that tells
    the parties different stories about who is missing opens, in each round, at most one sum of honest vectors, over at
    least n - dropouts parties, if and only if

        dropouts (dropouts + 1) < n.

    Other cohorts are refused: their coordinator could open the sum of too few parties, or a single vector.

    Parameters
    ----------
    parties : int
        K, everyone in the plan.
    dropouts : int, default=0
        How many may be missing from a round.
    colluding : int, default=1
        How many parties may pool all they know, among themselves and with the coordinator. At least 1 if the
        parties see the sum: each can subtract its own share of the noise, and so colludes with itself.

    Examples
    --------
    >>> cohort = Cohort(parties=10, dropouts=2, colluding=3)
    >>> cohort.threshold, cohort.honest
    (8, 5)
    """

    parties: int
    dropouts: int = 0
    colluding: int = 1

    def __post_init__(self) -> None:
        if not 2 <= self.parties <= MOST_PARTIES:
            raise InvalidParameter(f"a secure sum has 2 to {MOST_PARTIES} parties, not {self.parties}")
        if self.dropouts < 0 or self.colluding < 0:
            raise InvalidParameter("dropouts and colluding are whole numbers of at least 0")
        if self.colluding >= self.parties:
            raise InvalidParameter(
                f"if {self.colluding} of {self.parties} parties collude, nobody is left to add noise: colluding is at "
                f"most {self.parties - 1}"
            )
        most = _most_dropouts(self.parties - self.colluding)
        if self.dropouts > most:
            enough = self.colluding + self.dropouts * (self.dropouts + 1) + 1
            raise InvalidParameter(
                f"with dropouts = {self.dropouts} and colluding = {self.colluding}, a coordinator that tells "
                f"{self.parties} parties different stories about who is missing could open the sum of too few of "
                f"them. Set dropouts = {most}: dropouts = {self.dropouts} needs {enough} parties"
            )

    @property
    def threshold(self) -> int:
        """How many parties a round needs, and how many shares open a secret: K - dropouts."""
        return self.parties - self.dropouts

    @property
    def honest(self) -> int:
        """The shares of the noise that are surely in the sum and known to no adversary: K - dropouts - colluding."""
        return self.threshold - self.colluding


def _most_dropouts(honest: int) -> int:
    """The largest D with D (D + 1) < honest."""
    return (math.isqrt(4 * honest - 3) - 1) // 2
