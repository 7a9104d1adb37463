"""A simulated census of fictitious people: a table for demonstrations that needs no download."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privlearn.data.columns import CategoryColumn, NumberColumn, Target
from privlearn.data.schema import Schema

_OCCUPATIONS = {  # share of the people and effect on income
    "office": (0.22, 0.2),
    "trade": (0.18, -0.2),
    "craft": (0.16, -0.3),
    "services": (0.16, -1.0),
    "health": (0.12, 0.4),
    "management": (0.10, 1.4),
    "farming": (0.06, -1.2),
}
_REGIONS = {"north": (0.3, 0.2), "east": (0.2, -0.4), "south": (0.3, 0.0), "west": (0.2, 0.3)}
_SEXES = {"female": (0.5, -0.2), "male": (0.5, 0.2)}


def census_schema() -> Schema:
    """The public description of :func:`simulated_census`."""
    return Schema(
        name="census",
        columns={
            "age": NumberColumn(lower=18, upper=90),
            "hours": NumberColumn(lower=0, upper=80),
            "education_years": NumberColumn(lower=6, upper=22),
            "capital_income": NumberColumn(lower=0, upper=1_000_000, scale="log"),
            "occupation": CategoryColumn(values=tuple(_OCCUPATIONS)),
            "region": CategoryColumn(values=tuple(_REGIONS)),
            "sex": CategoryColumn(values=tuple(_SEXES)),
        },
        target=Target(name="income", classes=("low", "high")),
    )


def simulated_census(n_rows: int, seed: int) -> pa.Table:
    """Draw a table that fits :func:`census_schema`, column income included.

    A high income becomes likelier with age until 50 and rarer after, likelier with full-time hours and rarer
    with very long ones, and jumps with a degree and with capital: effects that a straight line misses.
    About 15 % of the labels no rule can predict.

    Parameters
    ----------
    n_rows : int
        Number of people.
    seed : int
        The same seed draws the same people.
    """
    random = np.random.default_rng(seed)
    age = np.clip(np.round(18 + 72 * random.beta(1.6, 2.4, n_rows)), 18, 90)
    hours = np.clip(np.round(random.normal(38, 11, n_rows)), 0, 80)
    education = np.clip(np.round(random.normal(12.5, 2.8, n_rows)), 6, 22)
    has_capital = random.random(n_rows) < 0.2
    capital = np.minimum(random.lognormal(7.5, 1.8, n_rows), 1e6).round() * has_capital
    occupation, occupation_effect = _drawn(_OCCUPATIONS, n_rows, random)
    region, region_effect = _drawn(_REGIONS, n_rows, random)
    sex, sex_effect = _drawn(_SEXES, n_rows, random)
    score = _score(age, hours, education, capital) + occupation_effect + region_effect + sex_effect
    is_high = random.random(n_rows) < 1.0 / (1.0 + np.exp(-1.3 * score))
    return pa.table(
        {
            "age": age.astype(np.int64),
            "hours": hours.astype(np.int64),
            "education_years": education.astype(np.int64),
            "capital_income": capital,
            "occupation": occupation,
            "region": region,
            "sex": sex,
            "income": np.where(is_high, "high", "low"),
        }
    )


def _score(
    age: NDArray[np.float64],
    hours: NDArray[np.float64],
    education: NDArray[np.float64],
    capital: NDArray[np.float64],
) -> NDArray[np.float64]:
    """How much the numbers speak for a high income."""
    career = 2.5 * np.exp(-(((age - 50) / 13) ** 2)) - 1.5
    work = 1.5 * np.tanh((hours - 36) / 5) - 1.5 * np.maximum(hours - 55, 0) / 10
    degree = 1.8 * (education >= 16) + 0.5 * (education >= 12) - 0.9
    wealth = 2.5 * (capital > 5000)
    return np.asarray(career + work + degree + wealth - 0.9)


def _drawn(
    shares: dict[str, tuple[float, float]], count: int, random: np.random.Generator
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """A category for each person, and the effect of each on income."""
    names = np.array(list(shares))
    share, effect = np.array(list(shares.values())).T
    places = random.choice(len(names), size=count, p=share)
    return names[places], effect[places]
