"""Buy the bounds and lists that a draft of a schema marks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privlearn.data.encode.column_cells import MISSING, distinct, numbers, owners
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.encode.packed_cells import PackedCells
from privlearn.data.schema.draft import Bound, SchemaDraft, as_draft
from privlearn.data.schema.public import Value
from privlearn.data.schema.purchases import Purchase, with_purchases
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.files import open_table
from privlearn.data.sources.gaps import read_block
from privlearn.data.sources.row_source import joined, read_each
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
    table : pandas, polars or pyarrow table, dict of arrays, or RowSource
        The private rows, also as `open_records` makes them of files, however large; all columns of the draft, its
        target included, are checked before anything is paid.
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
    columns = MarkedColumns(table, draft)
    plan = Discovery.calibrate(
        guarantee,
        records=guarantee.relation.total(columns.records, expected_records),
        rows_per_person=draft.stand_in.rows_per_person,
        bounds=len(draft.bounds),
        anchors=len(draft.centres) + len({bound.column for bound in draft.bounds}),
        lists=len(draft.lists),
    )
    charge = Charge(
        ledger=ledger,
        cost=Cost(plan.guarantee, None if plan.lists else plan.renyi),
        promise=with_purchases(plan.guarantee, draft.stand_in.bought),
        records=plan.records,
        purpose=f"discover: {plan.bounds} bounds, {plan.lists} lists",
        schema_digest=draft.digest,
        secure=randomness.secure,
        accept_weak_privacy=accept_weak_privacy,
    )
    bounds, lists = charge.pay_for(lambda: _bought(columns, draft, plan, randomness))
    return draft.complete(bounds, lists, _receipt(draft, plan, randomness))


Bought = tuple[dict[Bound, float], dict[str, list[Value]]]


class MarkedColumns(TableOracle):
    """PRIVATE: the marked columns' cells, read once and packed; a column is unpacked when it is asked for.

    Every row could be encoded once there is one of these: what would stop the training later must not be paid for now.
    """

    def __init__(self, table: Any, draft: SchemaDraft) -> None:
        self._draft, self._schema = draft, draft.stand_in
        self._encoder = SchemaEncoder(self._schema)
        self._cells = PackedCells()
        self._values: dict[str, dict[Value, int]] = {name: {} for name in draft.lists}
        persons: list[Any] = []
        roles = (self._schema.target.name if self._schema.target else None, self._schema.person)
        wanted = [*self._schema.columns, *(name for name in roles if name is not None)]
        for read in read_each(
            open_table(table, self._schema, wanted),
            lambda block: self._read(read_block(block, wanted, self._schema.file)),
        ):
            persons.append(read)
        self._rows = len(self._cells)
        self._first = None if self._schema.person is None else _first_rows(persons, self._schema.person)

    @property
    def records(self) -> int:
        """Number of rows, or of persons."""
        return self._rows if self._first is None else int(np.count_nonzero(self._first))

    def numbers(self, column: str) -> Cells:
        return Cells(self._column(column))

    def histogram(self, column: str) -> Histogram:
        places = self._column(column)
        counts = np.bincount(places[places >= 0], minlength=len(self._values[column]))
        occurring = [
            (value, count) for value, count in zip(self._values[column], counts, strict=True) if count
        ]
        return Histogram(
            [value for value, _ in occurring], np.array([count for _, count in occurring], np.int64)
        )

    def _column(self, name: str) -> Any:
        """Each record's cell: of a person the first row's, so that a person counts once."""
        cells = np.concatenate([block[name] for block in self._cells.blocks()])
        return cells if self._first is None else cells[self._first]

    def _read(self, block: pa.Table) -> Any:
        """Check and keep some rows; their persons."""
        self._encoder.cells(block)
        target, person = self._schema.target, self._schema.person
        if target is not None:
            encode = self._encoder.encode_labels if target.classes else self._encoder.encode_targets
            encode(block.column(target.name))
        marked: dict[str, Any] = {
            name: numbers(block.column(name), f"column {name!r}") for name, _ in self._draft.bounds
        }
        for name, kind in self._draft.lists.items():
            marked[name] = self._numbered(name, *distinct(block.column(name), kind, f"column {name!r}"))
        self._cells.add(marked)
        return None if person is None else block.column(person)

    def _numbered(self, name: str, values: list[Value], places: NDArray[np.int64]) -> NDArray[np.int64]:
        """A block's places as places among all values that occurred so far."""
        known = self._values[name]
        numbers_of = np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)
        return np.where(places >= 0, np.append(numbers_of, MISSING)[places], MISSING)


def _first_rows(columns: list[Any], name: str) -> NDArray[np.bool_]:
    """PRIVATE: whether each row is its person's first."""
    owner = owners(joined(pa.table({name: column}) for column in columns).column(0), f"column {name!r}")
    first = np.zeros(len(owner), dtype=bool)
    first[np.unique(owner, return_index=True)[1]] = True
    return first


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
        person=draft.stand_in.person or False,
        quantile_epsilon=plan.quantile_epsilon or None,
        noise_scale=plan.noise_scale or None,
        threshold=plan.threshold or None,
        randomness=randomness.description,
        secure=randomness.secure,
    )
