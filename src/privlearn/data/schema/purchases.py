"""Receipts: what of a schema was bought, and the constants to recompute its price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    model_serializer,
    model_validator,
)

from privlearn.data.schema.public import PublicModel
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.relation import relation_named

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[StrictInt, Field(ge=1)]


Neighbours = Annotated[StrictStr, AfterValidator(lambda name: relation_named(name).name)]
"""The name of a known relation, as a setting."""


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
        Public number of records, or of persons; the expected one where it is private.
    rows_per_person : int
        How many records one person may own.
    person : str or False, optional
        Column by which a person's rows were found and counted as one record; False if rows were counted. Receipts of
        version 0.1 do not say: absent, it is taken to be as in the schema that holds the receipt.
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
    person: Annotated[StrictStr, Field(min_length=1)] | Literal[False] | None = None
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

    def check_covers(self, rows: int, parties: int, person: str | bool) -> None:
        """Refuse to add up with a promise to people who have more rows, at more parties, or are told apart otherwise.

        ``person`` is the column that identifies them, or True if a column does whose name is not known, or False.
        """
        counted = False if self.rows_per_person > 1 else self.person
        alike = counted in (None, person) or (person is True and bool(counted))
        covered = getattr(self, "parties_per_person", 1)
        if rows > self.rows_per_person or parties > covered or not alike:
            raise ValueError(
                f"bought: the price of what was bought is for {_people(self.rows_per_person, covered, counted)}, and "
                f"here it is {_people(rows, parties, person)}. State what it was bought with; {_BUY_AGAIN}"
            )

    @model_serializer(mode="wrap")
    def _without_what_is_not_said(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        content: dict[str, Any] = serialize(self)
        if self.person is None:  # digests from before stay valid
            del content["person"]
        return content


class JointPurchase(Purchase):
    """A purchase of several holders, by one noisy sum of counts (docs/theory/multiparty.md, "Bounds and lists").

    Parameters
    ----------
    noise_scale : float
        Standard deviation of the promised noise in every number of the sum.
    cells : int
        How many numbers there are in the sum.
    parties, noise_shares, parties_per_person : int
        As in `SummedCounts`.
    """

    noise_scale: Positive
    cells: Count
    parties: Count
    noise_shares: Count
    parties_per_person: Count

    @model_validator(mode="after")
    def _has_its_constants(self) -> JointPurchase:
        if self.quantile_epsilon is not None or self.threshold is not None or self.anchors:
            raise ValueError("a receipt of several holders states noise_scale and cells, and no quantile")
        return self


_BUY_AGAIN = (
    "or take the receipt out of bought, write buy where its bounds and lists stand, and pay for them again"
)


def _people(rows: int, parties: int, person: str | bool | None) -> str:
    """Whom a price is for, as schemas and plans say it."""
    column = (
        f"person: {person}"
        if isinstance(person, str)
        else "a person column"
        if person
        else "no person column"
    )
    return f"rows_per_person: {rows}, parties_per_person: {parties}, {column}"


def read_purchase(record: Mapping[str, Any]) -> Purchase:
    """A receipt from what a file says of it: several holders state how many they are."""
    return (JointPurchase if "parties" in record else Purchase)(**record)


def with_purchases(guarantee: Guarantee, bought: Iterable[Purchase]) -> Guarantee:
    """A promise together with those of the purchases, by basic composition; other neighbours are refused."""
    for part in bought:
        if part.neighbours != guarantee.neighbours:
            raise InvalidParameter(
                f"parts of the schema were bought under neighbours={part.neighbours!r}, which does not add up with "
                f"{guarantee.neighbours!r}: take neighbours={part.neighbours!r} here as well; {_BUY_AGAIN}"
            )
        guarantee += part.guarantee
    return guarantee


def bought_beside(guarantee: Guarantee, bought: Iterable[Purchase]) -> Guarantee | None:
    """What the purchases that count the same neighbours cost together; ``None`` if there are none."""
    alike = [part.guarantee for part in bought if part.neighbours == guarantee.neighbours]
    return sum(alike[1:], start=alike[0]) if alike else None
