"""What parts of a schema cost that were bought from the private rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from privlearn.data.public_model import Neighbours, PublicModel
from privlearn.guarantee import Guarantee

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[StrictInt, Field(ge=1)]


class Purchase(PublicModel):
    """One purchase: what was bought, the price of all of it together, and the constants to recompute the price.

    Parameters
    ----------
    bounds : tuple of str
        Bounds bought as private quantiles, such as ``"age upper"``.
    anchors : int
        Private centres and spreads of columns, which the bounds were bought with.
    lists : tuple of str
        Columns whose values or classes were bought as the frequent ones among their cells.
    epsilon, delta, neighbours
        The price, as in `Guarantee`.
    records : int
        Number of records, or of persons; public.
    rows_per_person : int
        How many records one person may own.
    quantile_epsilon : float, optional
        Of one bound; an anchor's is half of it.
    noise_scale, threshold : float, optional
        Standard deviation of the noise in a count, and what the noisy count of a listed value exceeds.
    randomness : str
        Where the random bits came from.
    secure : bool
        False for a seeded generator: then nothing is promised.
    """

    bounds: tuple[StrictStr, ...] = ()
    anchors: Annotated[StrictInt, Field(ge=0)] = 0
    lists: tuple[StrictStr, ...] = ()
    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1)]
    neighbours: Neighbours
    records: Count
    rows_per_person: Count
    quantile_epsilon: Positive | None = None
    noise_scale: Positive | None = None
    threshold: Positive | None = None
    randomness: StrictStr
    secure: StrictBool

    @model_validator(mode="after")
    def _has_its_constants(self) -> Purchase:
        constants = (
            (self.bounds, self.quantile_epsilon),
            (self.lists, self.noise_scale),
            (self.lists, self.threshold),
        )
        if any(bool(parts) != (constant is not None) for parts, constant in constants):
            raise ValueError(
                "a receipt states quantile_epsilon with bounds, noise_scale and threshold with lists"
            )
        return self

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.epsilon, self.delta, self.neighbours)


def with_purchases(guarantee: Guarantee, bought: Iterable[Purchase]) -> Guarantee:
    """A promise together with those of the purchases that count the same neighbours, by basic composition."""
    alike = (part.guarantee for part in bought if part.neighbours == guarantee.neighbours)
    return sum(alike, start=guarantee)
