"""Estimate privately the bounds and lists of values that a draft of a schema marks with ``estimate``.

The order is that of every statistic: read and check all rows, calibrate, reserve the cost, then touch the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privlearn.budget.charge import Budget
from privlearn.budget.composition import Cost
from privlearn.data.encoding.column_cells import MISSING, distinct, numbers, owners
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.packed_cells import PackedCells
from privlearn.data.parts import part_of, without_part
from privlearn.data.schema.draft import Bound, SchemaDraft, as_draft
from privlearn.data.schema.private_bounds import PrivateBounds
from privlearn.data.schema.public import Value
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.files import open_table
from privlearn.data.sources.read_columns import read_block
from privlearn.data.sources.row_source import concatenate_tables, read_each
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.oracle import Cells, Histogram, TableOracle
from privlearn.mechanisms.statistics.discovery import Discovery
from privlearn.randomness import Randomness, randomness_from
from privlearn.statistics.layout import CountsRequest


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
    """Return the schema with everything that a draft marks ``estimate``, estimated privately for one charge.

    A lower and an upper bound are private quantiles, as near to the ends as the budget allows; cells outside are
    clamped. A list holds the values that many people share; all others together become the value "other", and rows
    whose label is not listed have weight 0. See docs/theory/discovery.md.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, dict of arrays, or RowSource
        The private rows, also as returned by `open_records` for files of any size; all columns of the draft, its
        target included, are checked before anything is charged.
    draft : SchemaDraft
    epsilon : float
        Privacy loss of all bounds and lists together.
    delta : float, default=0.0
        A value above 0 makes bounds more accurate; lists need it.
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
    expected_records : int, optional
        With ``add_remove``: the approximate number of records, or persons, from public knowledge.
    ledger : Ledger, optional
        Budget to charge. A Renyi ledger accepts bounds, but not lists.
    accept_weak_privacy : bool, default=False
        Required for an epsilon above 20 or a delta of at least 1/n.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure random bits. Other values are for tests; the schema then states "not secure".

    Returns
    -------
    Schema
        Complete, with a receipt in ``private_bounds``: certificates of models trained with it state this cost.

    Examples
    --------
    >>> from privlearn.data.datasets import simulated_census
    >>> draft = SchemaDraft.from_dict({
    ...     "name": "census",
    ...     "columns": {"age": {"type": "number", "lower": "estimate", "upper": "estimate"}},
    ... })
    >>> schema = discover(simulated_census(20_000, seed=1), draft, epsilon=2)
    >>> 17 < schema.columns["age"].lower < 24 and 75 < schema.columns["age"].upper < 92
    True
    >>> print(schema.private_bounds[0].guarantee)
    (epsilon = 2)-differential privacy, neighbours: replace_one
    """
    guarantee, randomness = Guarantee(epsilon, delta, neighbours), randomness_from(random_state)
    draft = as_draft(draft)
    if draft.is_complete:
        raise InvalidParameter(
            "nothing is marked. Write `estimate` where a bound or a list is not known, such as lower: estimate."
        )
    request = CountsRequest(guarantee, expected_records, ledger, accept_weak_privacy, randomness)
    columns = MarkedColumns(without_part(table), draft)
    mechanism = Discovery.calibrate(
        guarantee,
        records=request.total(columns.records),
        rows_per_person=draft.stand_in.rows_per_person,
        bounds=len(draft.bounds),
        anchors=len(draft.centres) + len({bound.column for bound in draft.bounds}),
        lists=len(draft.lists),
    )
    charge = request.charge(
        Cost(guarantee, None if mechanism.lists else mechanism.renyi),
        mechanism.records,
        draft.stand_in,
        part_of(table),
        f"discover: {mechanism.bounds} bounds, {mechanism.lists} lists",
        draft.digest,
    )
    bounds, lists = charge.pay_for(lambda: _estimate(columns, draft, mechanism, randomness))
    return draft.complete(bounds, lists, _receipt(draft, mechanism, randomness))


class MarkedColumns(TableOracle):
    """PRIVATE: the cells of the marked columns, read once and packed; a column is unpacked on request.

    Reading also encodes every row, so that rows that would stop a later training are refused before the charge.
    """

    def __init__(self, table: Any, draft: SchemaDraft) -> None:
        self._draft, self._schema = draft, draft.stand_in
        self._encoder = SchemaEncoder(self._schema)
        self._cells = PackedCells()
        self._values: dict[str, dict[Value, int]] = {name: {} for name in draft.lists}
        persons: list[Any] = []
        roles = (self._schema.target.name if self._schema.target else None, self._schema.person)
        names = [*self._schema.columns, *(name for name in roles if name is not None)]
        for owners_of_block in read_each(
            open_table(table, self._schema, names),
            lambda block: self._read(read_block(block, names, self._schema)),
        ):
            persons.append(owners_of_block)
        self._rows = len(self._cells)
        self._first = None if self._schema.person is None else _first_rows(persons, self._schema.person)

    @property
    def records(self) -> int:
        """Return the number of rows, or of persons."""
        return self._rows if self._first is None else int(np.count_nonzero(self._first))

    def numbers(self, column: str) -> Cells:
        return Cells(self._column(column))

    def histogram(self, column: str) -> Histogram:
        indices, values = self._column(column), list(self._values[column])
        counts = np.bincount(indices[indices >= 0], minlength=len(values))
        occurring = np.flatnonzero(counts)
        return Histogram([values[index] for index in occurring], counts[occurring].astype(np.int64))

    def _column(self, name: str) -> Any:
        """Return the cell of each record; for a person that of the first row, so that a person counts once."""
        cells = np.concatenate([block[name] for block in self._cells.blocks()])
        return cells if self._first is None else cells[self._first]

    def _read(self, block: pa.Table) -> Any:
        """Check some rows, store their marked cells, and return their persons."""
        self._encoder.cells(block)
        target, person = self._schema.target, self._schema.person
        if target is not None:
            encode = self._encoder.encode_labels if target.classes else self._encoder.encode_targets
            encode(block.column(target.name))
        marked: dict[str, Any] = {
            name: numbers(block.column(name), f"column {name!r}") for name, _ in self._draft.bounds
        }
        for name, kind in self._draft.lists.items():
            marked[name] = self._value_indices(name, *distinct(block.column(name), kind, f"column {name!r}"))
        self._cells.add(marked)
        return None if person is None else block.column(person)

    def _value_indices(self, name: str, values: list[Value], indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the indices of a block's cells among all values that occurred so far."""
        known = self._values[name]
        overall = np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)
        return np.where(indices >= 0, np.append(overall, MISSING)[indices], MISSING)


def _first_rows(columns: list[Any], name: str) -> NDArray[np.bool_]:
    """PRIVATE: return for each row whether it is the first of its person."""
    owner = owners(
        concatenate_tables(pa.table({name: column}) for column in columns).column(0), f"column {name!r}"
    )
    first = np.zeros(len(owner), dtype=bool)
    first[np.unique(owner, return_index=True)[1]] = True
    return first


def _estimate(
    columns: TableOracle, draft: SchemaDraft, mechanism: Discovery, randomness: Randomness
) -> tuple[dict[Bound, float], dict[str, list[Value]]]:
    """Touch the data: return the bounds, column by column, and the lists."""
    bounds: dict[Bound, float] = {}
    for name in dict.fromkeys(bound.column for bound in draft.bounds):
        column = columns.numbers(name)
        sides = [bound for bound in draft.bounds if bound.column == name]
        public = draft.public_bound(sides[0])
        origin = mechanism.centre(column, randomness) if public is None else public
        spread = mechanism.scale(column, origin, randomness)
        bounds |= {bound: mechanism.bound(column, bound.side, origin, spread, randomness) for bound in sides}
    return bounds, {
        name: mechanism.frequent_values(columns.histogram(name), randomness) for name in draft.lists
    }


def _receipt(draft: SchemaDraft, mechanism: Discovery, randomness: Randomness) -> PrivateBounds:
    return PrivateBounds(
        bounds=tuple(map(str, draft.bounds)),
        anchors=mechanism.anchors,
        lists=tuple(draft.lists),
        **mechanism.guarantee.to_dict(),
        records=mechanism.records,
        rows_per_person=mechanism.rows_per_person,
        person=draft.stand_in.person or False,
        quantile_epsilon=mechanism.quantile_epsilon or None,
        noise_scale=mechanism.noise_scale or None,
        threshold=mechanism.threshold or None,
        randomness=randomness.description,
        secure=randomness.secure,
    )
