"""Receipts for the bounds and lists of a schema that were estimated privately, with the constants of their cost.

A schema's ``private_bounds`` lists them. `add_private_bounds` adds their cost to that of a release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, model_validator

from privlearn.data.schema.public import PublicModel
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee, get_relation

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[StrictInt, Field(ge=1)]

Neighbours = Annotated[StrictStr, AfterValidator(lambda name: get_relation(name).name)]
"""The name of a known relation, as a setting."""

_ESTIMATE_AGAIN = (
    "or remove the receipt from `private_bounds`, write `estimate` instead of its bounds and lists, "
    "and estimate them again"
)


class PrivateBounds(PublicModel):
    """The receipt of one private estimate of bounds and lists: their names, their joint cost, and its constants.

    Parameters
    ----------
    bounds : tuple of str
        Bounds estimated as private quantiles, such as ``"age upper"``.
    anchors : int
        Number of private centres and spreads of columns, which the bounds needed.
    lists : tuple of str
        Columns whose values or classes are those that were frequent among their cells.
    epsilon, delta, neighbours
        The cost, as in `Guarantee`.
    records : int
        Public number of records, or of persons; the expected number if it is private.
    rows_per_person : int
        Maximum number of records of a person.
    person : str or False
        Column by which a person's rows were found and counted as one record; False if rows were counted.
    quantile_epsilon : float, optional
        Epsilon of one bound; that of an anchor is half of it.
    noise_scale, threshold : float, optional
        Standard deviation of the noise in a count, and the noisy count that a listed value exceeds.
    randomness : str
        Source of the random bits.
    secure : bool
        False for a seeded generator, for which there is no guarantee.
    """

    bounds: tuple[StrictStr, ...] = ()
    anchors: Annotated[StrictInt, Field(ge=0)] = 0
    lists: tuple[StrictStr, ...] = ()
    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1)]
    neighbours: Neighbours
    records: Count
    rows_per_person: Count
    person: Annotated[StrictStr, Field(min_length=1)] | Literal[False]
    quantile_epsilon: Positive | None = None
    noise_scale: Positive | None = None
    threshold: Positive | None = None
    randomness: StrictStr
    secure: StrictBool

    @model_validator(mode="after")
    def _check_constants(self) -> PrivateBounds:
        of_lists = ((self.lists, self.noise_scale), (self.lists, self.threshold))
        constants = ((self.bounds, self.quantile_epsilon), *of_lists)
        if any(bool(parts) != (constant is not None) for parts, constant in constants):
            raise ValueError(
                "a receipt with bounds needs quantile_epsilon, and one with lists noise_scale and threshold"
            )
        return self

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.epsilon, self.delta, self.neighbours)

    def check_covers(self, rows: int, parties: int, person: str | bool) -> None:
        """Refuse people whom the receipt does not protect: with more rows, at more parties, or counted differently.

        ``rows`` and ``parties``: maximum number of rows of a person, and of parties that have some of them.
        ``person``: the column that identifies persons; True if its name is not known, False without one.
        """
        column = False if self.rows_per_person > 1 else self.person
        is_same_column = column == person or (person is True and bool(column))
        max_parties = getattr(self, "parties_per_person", 1)
        if rows > self.rows_per_person or parties > max_parties or not is_same_column:
            raise ValueError(
                f"private_bounds: the receipt is for {_describe(self.rows_per_person, max_parties, column)}, but this "
                f"schema has {_describe(rows, parties, person)}. Use the receipt's values; {_ESTIMATE_AGAIN}"
            )


class JointPrivateBounds(PrivateBounds):
    """The receipt of several holders, for one noisy sum of counts (docs/theory/multiparty.md, "Bounds and lists").

    Parameters
    ----------
    noise_scale : float
        Standard deviation of the guaranteed noise in each number of the sum.
    cells : int
        Number of numbers in the sum.
    parties, noise_shares, parties_per_person : int
        As in `SummedCounts`.
    """

    noise_scale: Positive
    cells: Count
    parties: Count
    noise_shares: Count
    parties_per_person: Count

    @model_validator(mode="after")
    def _check_constants(self) -> JointPrivateBounds:
        if self.quantile_epsilon is not None or self.threshold is not None or self.anchors:
            raise ValueError(
                "a receipt of several holders must not have quantile_epsilon, threshold or anchors"
            )
        return self


def _describe(rows: int, parties: int, person: str | bool) -> str:
    """Return the persons that a receipt protects, as lines of a schema file."""
    column = f"person: {person}" if isinstance(person, str) else f"{'a' if person else 'no'} person column"
    return f"rows_per_person: {rows}, parties_per_person: {parties}, {column}"


def read_private_bounds(record: Mapping[str, Any]) -> PrivateBounds:
    """Return a receipt from its JSON form; that of several holders states their number."""
    return (JointPrivateBounds if "parties" in record else PrivateBounds)(**record)


def add_private_bounds(guarantee: Guarantee, receipts: Iterable[PrivateBounds]) -> Guarantee:
    """Return a guarantee together with those of the receipts, by basic composition; refuse other neighbours."""
    for part in receipts:
        if part.neighbours != guarantee.neighbours:
            raise InvalidParameter(
                f"parts of the schema were estimated under neighbours={part.neighbours!r}, which does not compose with "
                f"{guarantee.neighbours!r}. Set neighbours={part.neighbours!r} here as well; {_ESTIMATE_AGAIN}"
            )
        guarantee += part.guarantee
    return guarantee


def private_bounds_cost(receipts: Iterable[PrivateBounds]) -> Guarantee | None:
    """Return the cost of all receipts together, by basic composition; None without receipts."""
    costs = [part.guarantee for part in receipts]
    return sum(costs[1:], start=costs[0]) if costs else None
