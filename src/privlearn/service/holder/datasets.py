"""Data sets that the holder offers: schema, rows, learners, and the budget of each analyst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from privlearn.data.encode.encoder import SchemaEncoder, weights_of_persons
from privlearn.data.schema.purchases import bought_beside, with_purchases
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.files import open_records
from privlearn.data.sources.gaps import without_codes
from privlearn.data.sources.row_source import RowSource, TableRows, joined, read_each
from privlearn.data.sources.table import as_table
from privlearn.errors import BudgetExceeded, DataError, InvalidParameter, SchemaError
from privlearn.estimators.cluster.rows import Cluster, ClusterRows
from privlearn.guarantee import Guarantee, weakness
from privlearn.ledger.composition import exact, only_delta_lacks
from privlearn.ledger.ledger import Ledger
from privlearn.planning.stand_in import synthetic_table
from privlearn.release.meaning import Meaning, meaning_of
from privlearn.service.access.keys import HOLDER, Caller
from privlearn.service.holder.made import NOTHING, Made, beside
from privlearn.service.holder.settings import DataSet, Owner
from privlearn.service.holder.sources import open_query
from privlearn.service.jobs.recipes import Recipe, default_recipes, estimator
from privlearn.service.refusals import Forbidden, NotFound


def check_room(
    offered: OfferedDataSet, account: str, wanted: Guarantee, share_name: str = "your share"
) -> None:
    """Refuse at once what cannot fit; whether it does is decided when the training reserves its cost."""
    standing = offered.ledger_of(account).standing()
    lefts = {share_name: standing.share.left} if standing.share else {}
    if standing.composition == "basic":  # in the other, many small costs take less than their sum
        lefts["the data set's budget"] = standing.left
    for name, left in lefts.items():
        if exact(wanted.epsilon) > exact(left.epsilon) or exact(wanted.delta) > exact(left.delta):
            raise BudgetExceeded(
                f"{name} has no room for {wanted}: {left} is left. Ask for no more than that. Nothing was spent"
                f"{only_delta_lacks(wanted, left)}"
            )


TRIAL_ROWS = 2000


@dataclass(frozen=True, eq=False)
class OfferedDataSet:
    """One data set as the service knows it.

    Attributes
    ----------
    name : str
        In the ledger, in addresses, for analysts.
    settings : DataSet
    schema : Schema
        Public.
    learners : dict of str to Recipe
        Public.
    records : int
        Public: the number of records, or of persons if the schema has a person column. Read once; where it is private,
        the number that the holder expects.
    """

    name: str
    settings: DataSet = field(repr=False)
    schema: Schema = field(repr=False)
    learners: dict[str, Recipe]
    owner: Owner = field(repr=False)
    counted: int | None = None
    """The number of records, for a process to whom the server has told it."""
    version: int = 1
    """Of its table, which the console may have refreshed: the same people, the same budget."""

    @cached_property
    def records(self) -> int:
        counted = self._read_and_check() if self.counted is None else self.counted
        return self.settings.guarantee.relation.total(counted, self.settings.expected_records)

    @property
    def size(self) -> str:
        """Public: the number of records in words."""
        expected = "" if self.settings.guarantee.relation.count_is_public else "expected "
        return f"{self.records:,} {expected}records"

    def open_rows(self) -> RowSource[pa.Table]:
        """PRIVATE: the rows, with the types that the schema states, a block at a time."""
        settings = self.settings
        if settings.table is not None:
            return open_records(settings.place, self.schema)
        return open_query(str(settings.database), str(settings.query), self.schema)

    def read_rows(self) -> pa.Table:
        """PRIVATE: the same, all at once."""
        return joined(self.open_rows().blocks())

    @contextmanager
    def rows_to_train(self, on_cluster: bool, in_blocks: bool = True) -> Iterator[Any]:
        """PRIVATE: the rows as estimators take them; if the holder names a cluster, its workers read a table."""
        training = self.owner.training
        if not on_cluster or training.cluster is None or self.settings.table is None:
            yield self.open_rows() if in_blocks else self.read_rows()
            return
        with Cluster(
            training.cluster,
            ca=training.cluster_ca,
            certificate=training.cluster_certificate,
            key=training.cluster_key,
        ) as cluster:
            yield cluster.open_records(self.settings.place)

    def synthetic(self, rows: int, seed: int = 0) -> pa.Table:
        """Made-up rows with a target, from the schema alone."""
        return synthetic_table(self.schema, rows, seed)

    @cached_property
    def made_up(self) -> OfferedDataSet:
        """What a trial works on instead: made-up rows, under a name that says so."""
        schema = self.schema.model_copy(update={"name": f"{self.schema.name} (made-up rows)"})
        return MadeUpDataSet(
            self.name, self.settings, schema, self.learners, self.owner, version=self.version
        )

    def recipe(self, learner: str) -> Recipe:
        """What one of the offered learners is made of."""
        if learner not in self.learners:
            raise NotFound(
                f"data set {self.name!r} offers no such learner: take one of {', '.join(self.learners)}"
            )
        return self.learners[learner]

    def weakness(self, guarantee: Guarantee) -> str | None:
        """Why a promise about these records, with what was bought of their schema, is hardly private."""
        return weakness(with_purchases(guarantee, self.schema.bought), self.records)

    def meaning(self, guarantee: Guarantee) -> Meaning | None:
        """What such a promise means to an attacker, by what is known of every mechanism that keeps it."""
        schema = self.schema
        return meaning_of(
            guarantee,
            beside=bought_beside(guarantee, schema.bought),
            rows_per_person=schema.rows_per_person if schema.person is None else None,
        )

    def ledger_of(self, analyst: str) -> Ledger:
        """The budget as far as it is an analyst's: the share in the holder's file, or everything for `HOLDER`."""
        share = self.owner.share(analyst, self.name)
        if share is None and analyst != HOLDER:
            raise Forbidden(
                f"{analyst} has no share of data set {self.name!r} any more: ask its holder for one"
            )
        return Ledger(self.owner.server.store, self.name).of_account(analyst, share)

    def _read_and_check(self) -> int:
        """Encode all rows once: they must fit the schema. What is wrong with them names columns, never cells."""
        with self.rows_to_train(on_cluster=True) as rows:
            if isinstance(rows, ClusterRows):
                return rows.training_rows(self.schema, True, lambda schema, persons: None).total
            return self._read_and_check_here(rows)

    def _read_and_check_here(self, rows: RowSource[pa.Table]) -> int:
        encoder, target, person = SchemaEncoder(self.schema), self.schema.target, self.schema.person
        persons: list[pa.Table] = []

        def read(block: pa.Table) -> int:
            if target is None or target.name not in block.column_names:
                raise DataError("the rows have no target column: add it to the table and to the schema")
            block = without_codes(block, self.schema.file)
            encoder.cells(block)
            read_answers = encoder.encode_labels if target.classes else encoder.encode_targets
            read_answers(block.column(target.name))
            persons.extend(as_table(block, [name]) for name in (person,) if name is not None)
            return int(block.num_rows)

        records = sum(read_each(rows, read))
        if person is None:
            return records
        return weights_of_persons(joined(persons).column(0), person)[1]


class MadeUpDataSet(OfferedDataSet):
    """One about nobody: reading it costs nothing."""

    def open_rows(self) -> RowSource[pa.Table]:
        return TableRows(self.synthetic(TRIAL_ROWS))

    @contextmanager
    def rows_to_train(self, on_cluster: bool, in_blocks: bool = True) -> Iterator[Any]:
        with super().rows_to_train(False, in_blocks) as rows:
            yield rows


class Catalog:
    """All data sets of a holder; making one reads their schemas, not their rows.

    Parameters
    ----------
    owner : Owner
    counted : mapping from names to numbers of records, optional
        As the server found them; without it each is counted when it is first asked for.
    made : Made, optional
        What the console has made beside the holder's file.
    """

    def __init__(self, owner: Owner, counted: Mapping[str, int] | None = None, made: Made = NOTHING) -> None:
        self.owner = beside(owner, made)
        """The file, with what was made beside it."""
        self._made = {name: one for name, one in made.datasets.items() if name not in owner.datasets}
        self._offered = {name: _offer(self.owner, name, (counted or {}).get(name)) for name in owner.datasets}
        self._offered |= {name: self._offer_made(name) for name in self._made}

    def check(self) -> dict[str, int]:
        """Refuse learners and rows that do not fit their schema, before anybody asks; count the records."""
        for name, offered in self._offered.items():
            for learner, recipe in offered.learners.items():
                with _named(f"{name}.learners.{learner}"):
                    check_recipe(recipe, offered.schema)
            with _named(name):
                offered.records  # noqa: B018 - reads the rows
        return {name: offered.records for name, offered in self._offered.items()}

    def of(self, caller: Caller) -> list[OfferedDataSet]:
        """What the caller may see."""
        return [offered for offered in self._offered.values() if self._sees(caller, offered.name)]

    def get(self, caller: Caller, name: str) -> OfferedDataSet:
        """One data set; NotFound if there is none of that name, or none that the caller may see."""
        if not self._sees(caller, name):
            raise NotFound(
                "there is no such data set, or your key is not for it: list those that you may use"
            )
        return self._offered[name]

    def named(self, name: str, version: int | None = None) -> OfferedDataSet:
        """One data set, for the service's own work; of one that the console refreshed, perhaps an older version."""
        if name not in self._offered:
            raise NotFound(f"data set {name!r} is not offered any more: put it back into the holder's file")
        current = self._offered[name]
        if name not in self._made or version in (None, current.version):
            return current
        return self._offer_made(name, version)

    def __contains__(self, name: str) -> bool:
        return name in self._offered

    def _offer_made(self, name: str, number: int | None = None) -> OfferedDataSet:
        """With the schema and the count that were read when the version was made."""
        version = self._made[name].version(number)
        schema = Schema.from_dict(version.schema)
        settings = self._made[name].at(version, self.owner.console)
        learners = settings.learners or default_recipes(schema)
        return OfferedDataSet(name, settings, schema, learners, self.owner, version.records, version.number)

    def _sees(self, caller: Caller, name: str) -> bool:
        if name not in self._offered or (caller.datasets is not None and name not in caller.datasets):
            return False
        return caller.sees_requests or self.owner.share(caller.analyst, name) is not None


def _offer(owner: Owner, name: str, counted: int | None) -> OfferedDataSet:
    settings = owner.datasets[name]
    with _named(name):
        schema = Schema.load(settings.schema_file)
        with_purchases(settings.guarantee, schema.bought)  # refuses other neighbours before anybody asks
        learners = settings.learners or default_recipes(schema)
    return OfferedDataSet(name, settings, schema, learners, owner, counted)


def check_recipe(recipe: Recipe, schema: Schema) -> None:
    """Plan it on two made-up rows; they serve as public points too, without which some kernels cannot be released."""
    rows = synthetic_table(schema, 2, seed=0)
    points = None if recipe.model == "logistic" and recipe.kernel == "linear" else rows
    promise = Guarantee(1.0, 1e-6)
    estimator(recipe, schema, promise, public_points=points).prepare(rows, None, private=True).plan(promise)


@contextmanager
def _named(dataset: str) -> Iterator[None]:
    """Say whose fault it is."""
    try:
        yield
    except (DataError, SchemaError, InvalidParameter) as error:
        raise type(error)(f"datasets.{dataset}: {error}") from None
