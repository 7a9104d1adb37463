"""Buy the bounds and lists that a draft of a schema marks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from privlearn.data.encode.column_cells import numbers, owners, tally
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.schema.draft import Bound, SchemaDraft, as_draft
from privlearn.data.schema.public import Value
from privlearn.data.schema.schema import Purchase, Schema
from privlearn.data.sources.files import refuse_unclear_persons
from privlearn.data.sources.table import as_table, column_names
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Budget, Charge
from privlearn.ledger.composition import Cost
from privlearn.mechanisms.oracle import Cells, Histogram, TableOracle
from privlearn.mechanisms.statistics.discovery import Discovery
from privlearn.randomness import Randomness, randomness_from


def discover(
    table: Any,
    draft: SchemaDraft | Mapping[str, Any] | str | Path,
    *,
    epsilon: float,
    delta: float = 0.0,
    neighbours: str = "replace_one",
    expected_records: int | None = None,
    ledger: Budget | None = None,
    accept_weak_privacy: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Schema:
    """Buy everything that a draft marks ``buy``: one price for all columns, charged before anything is computed.

    A lower and an upper bound are private quantiles, as near to the ends as the price allows; cells outside are
    clamped, as always. A list holds the values that many people share; all others together become the value "other",
    and rows whose label is not listed weigh nothing. See docs/theory/discovery.md.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or dict of arrays
        The private rows; all columns of the draft, its target included, are checked before anything is paid.
    draft : SchemaDraft
    epsilon : float
        The price of all bounds and lists together.
    delta : float, default=0.0
        Above 0 it makes bounds more accurate; lists need it.
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
    expected_records : int, optional
        With ``add_remove``: how many records, or persons, there are about, from public knowledge.
    ledger : Ledger, optional
        Budget to charge. A Renyi ledger takes bounds only, not lists.
    accept_weak_privacy : bool, default=False
        The word that an epsilon above 20 or a delta of at least 1/n needs.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests, and the schema says "not secure".

    Returns
    -------
    Schema
        Complete, with a receipt in ``bought``: certificates of models trained with it state its price.

    Examples
    --------
    >>> from privlearn.data.datasets import simulated_census
    >>> draft = SchemaDraft.from_dict({
    ...     "name": "census",
    ...     "columns": {"age": {"type": "number", "lower": "buy", "upper": "buy"}},
    ... })
    >>> schema = discover(simulated_census(20_000, seed=1), draft, epsilon=0.5)
    >>> 17 < schema.columns["age"].lower < 24 and 75 < schema.columns["age"].upper < 92
    True
    >>> print(schema.bought[0].guarantee)
    (epsilon = 0.5)-differential privacy, neighbours: replace_one
    """
    guarantee, randomness = Guarantee(epsilon, delta, neighbours), randomness_from(random_state)
    draft = as_draft(draft)
    if draft.is_complete:
        raise InvalidParameter(
            "nothing is marked: write `buy` where a bound or a list is not known, e.g. lower: buy"
        )
    guarantee.relation.check_expected(expected_records)
    records = _one_row_a_person(_checked(table, draft), draft.stand_in)
    plan = Discovery.calibrate(
        guarantee,
        records=guarantee.relation.total(records.num_rows, expected_records),
        rows_per_person=draft.stand_in.rows_per_person,
        bounds=len(draft.bounds),
        anchors=len(draft.centres) + len({bound.column for bound in draft.bounds}),
        lists=len(draft.lists),
    )
    charge = Charge(
        ledger=ledger,
        cost=Cost(plan.guarantee, None if plan.lists else plan.renyi),
        promise=plan.guarantee,
        records=plan.records,
        purpose=f"discover: {plan.bounds} bounds, {plan.lists} lists",
        schema_digest=draft.digest,
        secure=randomness.secure,
        accept_weak_privacy=accept_weak_privacy,
    )
    columns = _Columns(records, draft)
    bounds, lists = charge.pay_for(lambda: _bought(columns, draft, plan, randomness))
    return draft.complete(bounds, lists, _receipt(draft, plan, randomness))


Bought = tuple[dict[Bound, float], dict[str, list[Value]]]


def _checked(table: Any, draft: SchemaDraft) -> pa.Table:
    """The table, once every row could be encoded: what would stop the training later must not be paid for now."""
    wanted = draft.stand_in
    roles = [wanted.target.name if wanted.target else None, wanted.person]
    rows = as_table(table, [*wanted.columns, *(name for name in roles if name is not None)])
    refuse_unclear_persons(wanted, column_names(table))
    encoder = SchemaEncoder(wanted)
    for _ in encoder.encoded(rows).blocks():
        pass
    if wanted.target is not None:
        encode = encoder.encode_labels if wanted.target.classes else encoder.encode_targets
        encode(rows.column(wanted.target.name))
    return rows


def _one_row_a_person(rows: pa.Table, schema: Schema) -> pa.Table:
    """Each person's first row, where a column tells persons apart: a person then counts once."""
    if schema.person is None:
        return rows
    owner = owners(rows.column(schema.person), f"column {schema.person!r}")
    return rows.take(np.unique(owner, return_index=True)[1])


class _Columns(TableOracle):
    """The marked columns in memory; all of them could be read once there is one of these."""

    def __init__(self, records: pa.Table, draft: SchemaDraft) -> None:
        self._numbers = {
            name: Cells(numbers(records.column(name), f"column {name!r}")) for name, _ in draft.bounds
        }
        self._histograms = {
            name: Histogram(*tally(records.column(name), kind, f"column {name!r}"))
            for name, kind in draft.lists.items()
        }

    def numbers(self, column: str) -> Cells:
        return self._numbers[column]

    def histogram(self, column: str) -> Histogram:
        return self._histograms[column]


def _bought(columns: TableOracle, draft: SchemaDraft, plan: Discovery, randomness: Randomness) -> Bought:
    """Touch the data: column by column, first the bounds and then the lists."""
    bounds: dict[Bound, float] = {}
    for name in dict.fromkeys(bound.column for bound in draft.bounds):
        column = columns.numbers(name)
        sides = [bound for bound in draft.bounds if bound.column == name]
        public = draft.public_bound(sides[0])
        origin = plan.centre(column, randomness) if public is None else public
        spread = plan.spread(column, origin, randomness)
        bounds |= {bound: plan.bound(column, bound.side, origin, spread, randomness) for bound in sides}
    return bounds, {name: plan.listed(columns.histogram(name), randomness) for name in draft.lists}


def _receipt(draft: SchemaDraft, plan: Discovery, randomness: Randomness) -> Purchase:
    return Purchase(
        bounds=tuple(map(str, draft.bounds)),
        anchors=plan.anchors,
        lists=tuple(draft.lists),
        **plan.guarantee.to_dict(),
        records=plan.records,
        rows_per_person=plan.rows_per_person,
        quantile_epsilon=plan.quantile_epsilon or None,
        noise_scale=plan.noise_scale or None,
        threshold=plan.threshold or None,
        randomness=randomness.description,
        secure=randomness.secure,
    )
