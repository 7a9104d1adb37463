"""Theorems without constants, as growth rates: by what factor a bound changes when a number doubles.

The size of such a bound is known only up to a factor that no paper states, so only ratios are shown. How the print is
read, and where it is wrong, is in docs/theory/bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from privlearn.errors import check_positive
from privlearn.papers.bounds.finite import check_counts, check_failure


@dataclass(frozen=True)
class Sizes:
    """The public numbers that bounds depend on.

    ``rows``, ``columns``, ``queries``: records, encoded columns, and questions asked of a session or public points.
    ``excess``: allowed excess over the best loss. ``failure``: probability with which a bound may fail.
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
class GrowthRate:
    """The growth rate of a bound.

    Attributes
    ----------
    source : str
        Paper and theorem.
    bounds : str
        The bounded quantity: an error, or a sufficient number of rows.
    meaning : str
        The meaning of the bound, and whether it is credible.
    powers : mapping
        The exponent of each size; 0 if missing.
    log_factor : callable
        Logarithm of the remaining factors, such as log(d / failure).
    """

    source: str
    bounds: str
    meaning: str
    powers: Mapping[str, float]
    log_factor: Callable[[Sizes], float] = lambda at: 0.0

    def ratio(self, sizes: Sizes, quantity: str, factor: int | float = 2) -> float:
        """Return the factor by which the bound changes when a size is multiplied by ``factor``."""
        changed = replace(sizes, **{quantity: getattr(sizes, quantity) * factor})
        power = self.powers.get(quantity, 0.0) * math.log(factor)
        return math.exp(power + self.log_factor(changed) - self.log_factor(sizes))


def _columns_logarithm(at: Sizes) -> float:
    """Return the logarithm of the factor log(columns / failure)."""
    return math.log(math.log(at.columns / at.failure))


def _queries_logarithm(at: Sizes) -> float:
    """Return the logarithm of the factor log(queries / failure)."""
    return math.log(math.log(at.queries / at.failure))


def _log_squared_volume(at: Sizes) -> float:
    """Return the logarithm of the squared volume of the unit ball."""
    return at.columns * math.log(math.pi) - 2.0 * math.lgamma(at.columns / 2.0 + 1.0)


ROWS, ERROR = "rows that are enough", "error"

GROWTH_RATES = (
    GrowthRate(
        "CMS11 Theorems 3, 4, RA12 Theorem 5.3",
        ROWS,
        "learning itself, with or without privacy: free of the columns",
        {"excess": -2},
    ),
    GrowthRate(
        "CMS11 Theorem 3, Corollaries 5, 6",
        ROWS,
        "output perturbation pays for every column",
        {"columns": 1, "excess": -1.5, "epsilon": -1},
        _columns_logarithm,
    ),
    GrowthRate(
        "CMS11 Theorem 4, Corollaries 5, 6",
        ROWS,
        "objective perturbation pays for every column, and less for a small excess",
        {"columns": 1, "excess": -1, "epsilon": -1},
        _columns_logarithm,
    ),
    GrowthRate(
        "CMS11 Theorem 4, Corollaries 5, 6, slack",
        ROWS,
        "enough that Lambda need not be raised: free of the columns",
        {"excess": -1, "epsilon": -1},
    ),
    GrowthRate(
        "CMS11 Lemma 7",
        ROWS,
        "random features, any number of columns; the print forgets the rows of learning itself",
        {"excess": -2, "epsilon": -1},
        lambda at: math.log(math.log1p(1.0 / (at.excess * at.failure))),
    ),
    GrowthRate(
        "CMS11 Theorem 6",
        ROWS,
        "NOT CREDIBLE: falls with the columns like the squared volume of the unit ball; its proof has a gap",
        {"excess": -2, "epsilon": -1},
        _log_squared_volume,
    ),
    GrowthRate(
        "CMS11 Theorem 7",
        ROWS,
        "NOT CREDIBLE: it rests on Theorem 6",
        {"excess": -4, "epsilon": -1},
        _log_squared_volume,
    ),
    GrowthRate(
        "RA12 Proposition 5.2",
        "squared length of the noise",
        "Gaussian noise calibrated by its length",
        {"columns": 2, "epsilon": -2},
    ),
    GrowthRate(
        "RA12 Theorem 5.3",
        ROWS,
        "like CMS11 Theorem 4, for any number of parties",
        {"columns": 1, "excess": -1, "epsilon": -1},
    ),
    GrowthRate(
        "RA12 Theorem 5.3, our noise",
        ROWS,
        "Gaussian noise calibrated by its curve: only the root of the columns",
        {"columns": 0.5, "excess": -1, "epsilon": -1},
    ),
    GrowthRate(
        "JT13 Theorem 3",
        ERROR,
        "PINP's answers: free of the columns, and hardly worse for more questions",
        {"rows": -0.5, "epsilon": -0.5},
        lambda at: _queries_logarithm(at) / 2.0,
    ),
    GrowthRate(
        "JT13 Theorems 5, 13",
        ERROR,
        "TDDL's excess loss at points like the public ones: free of the columns",
        {"rows": -0.5, "epsilon": -0.5},
        _queries_logarithm,
    ),
    GrowthRate(
        "JT13 Corollary 6", ROWS, "TDDL, for a regularization that stays", {"excess": -2, "epsilon": -1}
    ),
    GrowthRate(
        "JT13 Theorem 8, printed",
        ERROR,
        "NOT PROVED: TDIL everywhere on the ball, from an overspent budget",
        {"columns": 1 / 3, "rows": -2 / 3, "epsilon": -0.5},
    ),
    GrowthRate(
        "JT13 Theorem 8, derived",
        ERROR,
        "TDIL everywhere on the ball, with the budget kept",
        {"columns": 0.5, "rows": -0.5, "epsilon": -0.5},
    ),
    GrowthRate(
        "JT13 Theorem 14, first term",
        ERROR,
        "NOT CREDIBLE: as printed it does not fall with the rows",
        {"epsilon": -0.5},
    ),
)
"""Costs of learning and of privacy. A theorem with a maximum of several terms has one entry for each."""
