"""Describe a private table: a few noisy counts, charged and certified. The argument is in docs/theory/describe.md."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.column_cells import MISSING, codes, days, numbers
from privlearn.data.encode.encoder import weights_of_persons
from privlearn.data.encode.packed_cells import PackedCells
from privlearn.data.schema.columns import CategoryColumn, DateColumn, OrdinalColumn
from privlearn.data.schema.purchases import with_purchases
from privlearn.data.schema.schema import Schema, SchemaLike, as_schema
from privlearn.data.sources.files import open_table
from privlearn.data.sources.gaps import read_block
from privlearn.data.sources.passes import number_of_rows
from privlearn.data.sources.row_source import joined, read_each
from privlearn.description.description import Description
from privlearn.description.plan import (
    Described,
    DescriptionPlan,
    described_columns,
    edges_of,
    middles_of,
    plan_description,
)
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Budget, Charge
from privlearn.ledger.composition import Cost
from privlearn.mechanisms.statistics.counts import count
from privlearn.randomness import Randomness, randomness_from
from privlearn.release.archive import digest_of, json_bytes
from privlearn.release.counts_file import CountsCertificate

_EPOCH = datetime.date(1970, 1, 1)

Cell = NDArray[np.int64]


def describe(
    table: Any,
    schema: SchemaLike,
    *,
    epsilon: float,
    delta: float = 0.0,
    correlations: bool = True,
    neighbours: str = "replace_one",
    expected_records: int | None = None,
    ledger: Budget | None = None,
    accept_weak_privacy: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Description:
    """Counts per category, histograms, quantiles, missing shares and correlations of a private table, for one price.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, dict of arrays, or RowSource
        The private rows, also as `open_records` makes them of files, however large. Missing cells and values that the
        schema does not list are counted, never refused.
    schema : Schema
        What is public about the table: lists and bounds. Numbers beyond a bound count as the bound.
    epsilon : float
        The price of all of it.
    delta : float, default=0.0
        Above 0 it makes many columns and their correlations far more accurate.
    correlations : bool, default=True
        Without them the columns get all of the budget.
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
    expected_records : int, optional
        With ``add_remove``: how many records, or persons, there are about, from public knowledge.
    ledger : Ledger, optional
        Budget to charge.
    accept_weak_privacy : bool, default=False
        The word that an epsilon above 20 or a delta of at least 1/n needs.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests, and the certificate says "not private".
    """
    guarantee = Guarantee(epsilon, delta, neighbours)
    guarantee.relation.check_expected(expected_records)
    randomness = randomness_from(random_state)
    schema = as_schema(schema)
    cells, weights, persons = read_cells(table, schema)
    total = guarantee.relation.total(persons, expected_records)
    plan = plan_description(schema, guarantee, total, correlations=correlations)
    charge = Charge(
        ledger=ledger,
        cost=Cost(guarantee, plan.mechanism.renyi),
        promise=with_purchases(guarantee, schema.bought),
        records=total,
        purpose="describe",
        schema_digest=schema.digest,
        secure=randomness.secure,
        accept_weak_privacy=accept_weak_privacy,
    )
    return charge.pay_for(lambda: run_plan(plan, schema, cells, weights, randomness))


def read_cells(table: Any, schema: Schema) -> tuple[PackedCells, Array | None, int]:
    """PRIVATE: the cells that are counted, the rows' weights, and the number of records or persons.

    What cannot be read is an error, before the price.
    """
    described = described_columns(schema)
    persons = [] if schema.person is None else [schema.person]
    kept = PackedCells()
    owner: list[pa.Table] = []

    def read(block: Any) -> None:
        rows = read_block(block, [*described, *persons], schema.file)
        kept.add({name: _cells(name, column, rows.column(name)) for name, column in described.items()})
        owner.extend(pa.table({name: rows.column(name)}) for name in persons)

    for _ in read_each(open_table(table, schema, [*described, *persons]), read):
        pass
    rows = len(kept)
    if schema.person is None:
        return kept, None, rows
    return kept, *weights_of_persons(joined(owner).column(0), schema.person)


def run_plan(
    plan: DescriptionPlan,
    schema: Schema,
    cells: PackedCells,
    weights: Array | None,
    randomness: Randomness,
) -> Description:
    """Touch the data: count, add the noise that was planned, and write the certificate."""
    told = plan.about["columns"]
    exact: list[Array] = []
    start = 0
    for block in cells.blocks():
        rows = slice(start, start + number_of_rows(block))
        places = {
            name: _places(column, block[name], told[name])
            for name, column in described_columns(schema).items()
        }
        counted = _counts(plan, places, None if weights is None else weights[rows])
        exact = [one + other for one, other in zip(exact, counted, strict=True)] if exact else counted
        start = rows.stop
    noisy = plan.mechanism.run(exact, randomness)
    subject = {
        "described": ", ".join(told),
        "dataset": schema.name,
        "schema_sha256": schema.digest,
        **({"bought": schema.to_dict()["bought"]} if schema.bought else {}),
        "about_sha256": digest_of(json_bytes(plan.about)),
        "persons": schema.person is not None,
    }
    certificate = CountsCertificate.issue(plan.mechanism, randomness, subject)
    return Description(noisy, plan.about, certificate)


def _counts(plan: DescriptionPlan, places: dict[str, Cell], weights: Array | None) -> list[Array]:
    """PRIVATE: all tables of some rows; exact, so that sums of them are the tables of all rows."""
    told = plan.about["columns"]
    columns = [count(place, len(middles_of(told[name])) + 2, weights) for name, place in places.items()]
    return [*columns, *(_products(plan, places, one, other, weights) for one, other in plan.about["pairs"])]


def _products(
    plan: DescriptionPlan, places: dict[str, Cell], one: str, other: str, weights: Array | None
) -> Array:
    """PRIVATE: sums of the positive and of the negative products; a row is in one cell, with a weight of at most 1."""
    values = [
        np.append(middles_of(plan.about["columns"][name]), [0.0, 0.0])[places[name]] for name in (one, other)
    ]
    products = values[0] * values[1]
    sizes = np.abs(products) if weights is None else np.abs(products) * weights
    return count((products < 0).astype(np.int64), 2, sizes)


def _cells(name: str, column: Described, cells: Any) -> NDArray[Any]:
    """PRIVATE: each row's listed value by its place, or its number; days for dates."""
    label = f"column {name!r}"
    if isinstance(column, CategoryColumn | OrdinalColumn):
        return codes(cells, column.values, label)
    if isinstance(column, DateColumn):
        return days(cells, label) - float((column.lower - _EPOCH).days)
    return numbers(cells, label)


def _places(column: Described, cells: NDArray[Any], told: dict[str, Any]) -> Cell:
    """PRIVATE: each row's cell of the column's table."""
    if isinstance(column, CategoryColumn | OrdinalColumn):
        size = len(column.values)
        found = cells.astype(np.int64)
        return np.where(found == MISSING, size + 1, np.where(found < 0, size, found))
    edges = edges_of(told)
    bins = len(edges) - 1
    place = np.searchsorted(edges[1:-1], cells, side="right").astype(np.int64)
    return np.where(np.isnan(cells), bins + 1, np.minimum(place, bins - 1))
