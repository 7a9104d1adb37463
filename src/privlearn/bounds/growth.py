"""Theorems that leave their constants open, as growth laws: what changes when a number doubles.

A law's size is known up to a factor that no paper states, so it is never shown: only ratios are. The readings of the
print, and where it is wrong, are in docs/theory/bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from privlearn.bounds.finite import check_counts, check_failure
from privlearn.errors import check_positive


@dataclass(frozen=True)
class Sizes:
    """The public numbers that laws speak of.

    Attributes
    ----------
    rows, columns, queries : int
        Records, encoded columns, and questions asked of a session or public points.
    epsilon : float
    excess : float
        How much larger than the best loss ours may be.
    failure : float
        With which probability a bound may fail.
    """

    rows: int
    columns: int
    epsilon: float
    excess: float
    failure: float
    queries: int

    def __post_init__(self) -> None:
        check_counts(rows=self.rows, columns=self.columns, queries=self.queries)
        check_positive(epsilon=self.epsilon, excess=self.excess)
        check_failure(self.failure)


@dataclass(frozen=True)
class Law:
    """How a bound grows.

    Attributes
    ----------
    source : str
        Paper and theorem.
    bounds : str
        What it bounds: an error, or the rows that are enough.
    says : str
        In words, and whether it can be believed.
    powers : mapping
        The exponent of each size, 0 where none is given.
    beside : callable
        Logarithm of what is no power: the factors log(d / failure) and the like.
    """

    source: str
    bounds: str
    says: str
    powers: Mapping[str, float]
    beside: Callable[[Sizes], float] = lambda at: 0.0

    def ratio(self, sizes: Sizes, quantity: str, factor: int | float = 2) -> float:
        """What the bound is multiplied by when one of the sizes is."""
        changed = replace(sizes, **{quantity: getattr(sizes, quantity) * factor})
        power = self.powers.get(quantity, 0.0) * math.log(factor)
        return math.exp(power + self.beside(changed) - self.beside(sizes))


def _columns_logarithm(at: Sizes) -> float:
    return math.log(math.log(at.columns / at.failure))


def _queries_logarithm(at: Sizes) -> float:
    return math.log(math.log(at.queries / at.failure))


def _squared_volume(at: Sizes) -> float:
    """Of the unit ball."""
    return at.columns * math.log(math.pi) - 2.0 * math.lgamma(at.columns / 2.0 + 1.0)


ROWS, ERROR = "rows that are enough", "error"

LAWS = (
    Law(
        "CMS11 Theorems 3, 4, RA12 Theorem 5.3",
        ROWS,
        "learning itself, with or without privacy: free of the columns",
        {"excess": -2},
    ),
    Law(
        "CMS11 Theorem 3, Corollaries 5, 6",
        ROWS,
        "output perturbation pays for every column",
        {"columns": 1, "excess": -1.5, "epsilon": -1},
        _columns_logarithm,
    ),
    Law(
        "CMS11 Theorem 4, Corollaries 5, 6",
        ROWS,
        "objective perturbation pays for every column, and less for a small excess",
        {"columns": 1, "excess": -1, "epsilon": -1},
        _columns_logarithm,
    ),
    Law(
        "CMS11 Theorem 4, Corollaries 5, 6, slack",
        ROWS,
        "so many that Lambda need not be raised: free of the columns",
        {"excess": -1, "epsilon": -1},
    ),
    Law(
        "CMS11 Lemma 7",
        ROWS,
        "random features, any number of columns; the print forgets the rows of learning itself",
        {"excess": -2, "epsilon": -1},
        lambda at: math.log(math.log1p(1.0 / (at.excess * at.failure))),
    ),
    Law(
        "CMS11 Theorem 6",
        ROWS,
        "NOT CREDIBLE: falls with the columns like the squared volume of the unit ball; its proof has a gap",
        {"excess": -2, "epsilon": -1},
        _squared_volume,
    ),
    Law(
        "CMS11 Theorem 7",
        ROWS,
        "NOT CREDIBLE: it rests on Theorem 6",
        {"excess": -4, "epsilon": -1},
        _squared_volume,
    ),
    Law(
        "RA12 Proposition 5.2",
        "squared length of the noise",
        "Gaussian noise calibrated by its length",
        {"columns": 2, "epsilon": -2},
    ),
    Law(
        "RA12 Theorem 5.3",
        ROWS,
        "like CMS11 Theorem 4, whatever the number of parties",
        {"columns": 1, "excess": -1, "epsilon": -1},
    ),
    Law(
        "RA12 Theorem 5.3, our noise",
        ROWS,
        "Gaussian noise calibrated by its curve: only the root of the columns",
        {"columns": 0.5, "excess": -1, "epsilon": -1},
    ),
    Law(
        "JT13 Theorem 3",
        ERROR,
        "PINP's answers: free of the columns, and hardly worse for more questions",
        {"rows": -0.5, "epsilon": -0.5},
        lambda at: _queries_logarithm(at) / 2.0,
    ),
    Law(
        "JT13 Theorems 5, 13",
        ERROR,
        "TDDL's excess loss at points like the public ones: free of the columns",
        {"rows": -0.5, "epsilon": -0.5},
        _queries_logarithm,
    ),
    Law(
        "JT13 Corollary 6",
        ROWS,
        "TDDL, for a regularization that stays",
        {"excess": -2, "epsilon": -1},
    ),
    Law(
        "JT13 Theorem 8, printed",
        ERROR,
        "NOT PROVED: TDIL everywhere on the ball, from an overspent budget",
        {"columns": 1 / 3, "rows": -2 / 3, "epsilon": -0.5},
    ),
    Law(
        "JT13 Theorem 8, derived",
        ERROR,
        "TDIL everywhere on the ball, with the budget kept",
        {"columns": 0.5, "rows": -0.5, "epsilon": -0.5},
    ),
    Law(
        "JT13 Theorem 14, first term",
        ERROR,
        "NOT CREDIBLE: as printed it does not fall with the rows",
        {"epsilon": -0.5},
    ),
)
"""Of learning and of privacy: where a theorem has a maximum of several terms, each is a law."""
