"""Who takes part, and how many of them may fail: the numbers that every promise of the secure sum rests on."""

from __future__ import annotations

from dataclasses import dataclass

from privlearn.errors import InvalidParameter

MOST_PARTIES = 1000


@dataclass(frozen=True)
class Cohort:
    """The parties of a secure sum, how many may be missing from it, and how many may pool what they know.

    Parameters
    ----------
    parties : int
        K, everyone in the plan.
    dropouts : int, default=0
        How many may be missing from a round. Fewer than half, so that even a coordinator which tells the parties
        different stories about who is missing cannot collect enough shares to open a vector.
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
        if 2 * self.dropouts >= self.parties:
            raise InvalidParameter(
                f"of {self.parties} parties fewer than half may drop out: dropouts at most {(self.parties - 1) // 2}"
            )
        if self.honest < 1:
            raise InvalidParameter(
                f"with {self.dropouts} missing and {self.colluding} colluding of {self.parties} parties nobody is "
                "left to add noise: lower dropouts or colluding, or find more parties"
            )

    @property
    def threshold(self) -> int:
        """How many parties a round needs, and how many shares open a secret: K - dropouts."""
        return self.parties - self.dropouts

    @property
    def honest(self) -> int:
        """The shares of the noise that are surely in the sum and known to no adversary: K - dropouts - colluding."""
        return self.threshold - self.colluding

    @property
    def colluding_with_liar(self) -> int:
        """How many parties may help a coordinator that tells the parties different stories about who is missing.

        Such a coordinator opens a vector with ``threshold`` shares of both its secrets. A colluding party gives two
        shares, an honest one only one, so it needs 2 threshold <= K + colluding.
        """
        return min(self.colluding, 2 * self.threshold - self.parties - 1)
