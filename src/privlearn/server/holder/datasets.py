"""Data sets that the holder offers: schema, rows, learners, and the budget of each analyst."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from privlearn.budget.composition import delta_hint, exact
from privlearn.budget.ledger import Ledger
from privlearn.data.encoding.encoder import SchemaEncoder, weights_of_persons
from privlearn.data.encoding.resolution import Resolution
from privlearn.data.schema.private_bounds import add_private_bounds, private_bounds_cost
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.files import open_records
from privlearn.data.sources.read_columns import read_block
from privlearn.data.sources.row_source import RowSource, TableRows, concatenate_tables, read_each
from privlearn.data.sources.table import as_table
from privlearn.errors import BudgetExceeded, DataError
from privlearn.estimators.forecast.stand_ins import synthetic_table
from privlearn.guarantee import Guarantee, weakness
from privlearn.release.meaning import Meaning, meaning_of
from privlearn.server.access.keys import HOLDER
from privlearn.server.holder.dataset_settings import DataSet
from privlearn.server.holder.query_rows import open_query
from privlearn.server.holder.recipes import Recipe
from privlearn.server.holder.settings import Owner
from privlearn.server.refusals import Forbidden, NotFound
from privlearn.server.timing import default_slot


def check_budget_left(
    offered: OfferedDataSet, account: str, requested: Guarantee, share_name: str = "your share"
) -> None:
    """Raise BudgetExceeded if the request cannot fit; the training decides finally when it reserves its cost."""
    standing = offered.ledger_of(account).standing()
    lefts = {share_name: standing.share.left} if standing.share else {}
    if standing.composition == "basic":  # under Renyi composition, many costs add up to less than their sum
        lefts["the data set's budget"] = standing.left
    for name, left in lefts.items():
        if exact(requested.epsilon) > exact(left.epsilon) or exact(requested.delta) > exact(left.delta):
            raise BudgetExceeded(
                f"{name} is too small for {requested}: {left} is left. Request at most that. Nothing was spent"
                f"{delta_hint(requested, left)}"
            )


TRIAL_ROWS = 2000


@dataclass(frozen=True, eq=False)
class OfferedDataSet:
    """A data set as the server offers it.

    Attributes
    ----------
    name : str
        Its name in the ledger and in addresses.
    settings : DataSet
    schema : Schema
        Public.
    learners : dict of str to Recipe
        Public.
    record_count : int, optional
        The number of records, if it was counted before.
    version : int
        Version of its table. All versions are about the same people and share one budget.
    records : int
        Public: the number of records, or of persons if the schema has a person column. Read once; where it is private,
        the number that the holder expects.
    """

    name: str
    settings: DataSet = field(repr=False)
    schema: Schema = field(repr=False)
    learners: dict[str, Recipe]
    owner: Owner = field(repr=False)
    record_count: int | None = None
    version: int = 1

    @cached_property
    def records(self) -> int:
        count = self._read_and_check() if self.record_count is None else self.record_count
        return self.settings.guarantee.relation.total(count, self.settings.expected_records)

    @property
    def size(self) -> str:
        """Public: the number of records, or of persons, as text."""
        expected = "" if self.settings.guarantee.relation.count_is_public else "expected "
        return f"{self.records:,} {expected}{self.schema.count_noun}"

    def open_rows(self) -> RowSource[pa.Table]:
        """PRIVATE: return the rows in blocks, with the types of the schema."""
        settings = self.settings
        if settings.table is not None:
            return open_records(settings.table_location, self.schema)
        return open_query(str(settings.database), str(settings.query), self.schema)

    def read_rows(self) -> pa.Table:
        """PRIVATE: return all rows as one table."""
        return concatenate_tables(self.open_rows().blocks())

    @contextmanager
    def rows_to_train(self, on_cluster: bool, in_blocks: bool = True) -> Iterator[Any]:
        """PRIVATE: yield the rows as estimators accept them; on a cluster, the workers read the table."""
        training = self.owner.training
        if not on_cluster or training.cluster is None or self.settings.table is None:
            yield self.open_rows() if in_blocks else self.read_rows()
            return
        from privlearn.estimators.cluster.rows import Cluster

        with Cluster(
            training.cluster,
            ca=training.cluster_ca,
            certificate=training.cluster_certificate,
            key=training.cluster_key,
        ) as cluster:
            yield cluster.open_records(self.settings.table_location)

    def synthetic(self, rows: int, seed: int = 0) -> pa.Table:
        """Return synthetic rows with a target, made from the schema alone."""
        return synthetic_table(self.schema, rows, seed)

    @cached_property
    def trial_dataset(self) -> OfferedDataSet:
        """The data set that a trial uses instead: synthetic rows, which its name states."""
        schema = self.schema.model_copy(update={"name": f"{self.schema.name} (made-up rows)"})
        return TrialDataSet(self.name, self.settings, schema, self.learners, self.owner, version=self.version)

    def recipe(self, learner: str) -> Recipe:
        """Return the recipe of an offered learner."""
        if learner not in self.learners:
            raise NotFound(f"data set {self.name!r} has no such learner. Use {', '.join(self.learners)}")
        return self.learners[learner]

    def first_slot(self, learner: str) -> float:
        """Public: return the seconds after which the end of a job becomes visible, unless it takes longer."""
        with_kernel = learner in self.learners and self.learners[learner].kernel != "linear"
        return self.settings.training_seconds or default_slot(self.records, with_kernel)

    def weakness(self, guarantee: Guarantee) -> str | None:
        """Return why a guarantee for these records, private bounds included, protects hardly anyone; else None."""
        return weakness(add_private_bounds(guarantee, self.schema.private_bounds), self.records)

    def meaning(self, guarantee: Guarantee) -> Meaning | None:
        """Return what the guarantee means to an attacker, for any mechanism that satisfies it."""
        schema = self.schema
        return meaning_of(
            guarantee,
            additional=private_bounds_cost(schema.private_bounds),
            rows_per_person=schema.rows_per_person if schema.person is None else None,
        )

    def ledger_of(self, analyst: str) -> Ledger:
        """Return the ledger limited to the analyst's share; without a limit for `HOLDER`."""
        share = self.owner.share(analyst, self.name)
        if share is None and analyst != HOLDER:
            raise Forbidden(f"{analyst} has no share of data set {self.name!r} any more. Ask its holder")
        return Ledger(self.owner.server.store, self.name).of_account(analyst, share)

    def _read_and_check(self) -> int:
        """Encode all rows once and return their number; errors name columns, never cells."""
        from privlearn.estimators.cluster.rows import ClusterRows

        with self.rows_to_train(on_cluster=True) as rows:
            if isinstance(rows, ClusterRows):
                return rows.training_rows(self.schema, True, lambda schema, persons: Resolution()).total
            return self._read_and_check_here(rows)

    def _read_and_check_here(self, rows: RowSource[pa.Table]) -> int:
        encoder, target, person = SchemaEncoder(self.schema), self.schema.target, self.schema.person
        persons: list[pa.Table] = []

        def read(block: pa.Table) -> int:
            if target is None or target.name not in block.column_names:
                raise DataError("the rows have no target column. Add it to the table and to the schema")
            block = read_block(block, block.column_names, self.schema)
            encoder.cells(block)
            read_answers = encoder.encode_labels if target.classes else encoder.encode_targets
            read_answers(block.column(target.name))
            persons.extend(as_table(block, [name]) for name in (person,) if name is not None)
            return int(block.num_rows)

        records = sum(read_each(rows, read))
        if person is None:
            return records
        return weights_of_persons(concatenate_tables(persons).column(0), person)[1]


class TrialDataSet(OfferedDataSet):
    """A data set of synthetic rows, which contain no person's data: reading it costs nothing."""

    def open_rows(self) -> RowSource[pa.Table]:
        return TableRows(self.synthetic(TRIAL_ROWS))

    @contextmanager
    def rows_to_train(self, on_cluster: bool, in_blocks: bool = True) -> Iterator[Any]:
        with super().rows_to_train(False, in_blocks) as rows:
            yield rows
