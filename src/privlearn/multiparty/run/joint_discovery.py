"""Bounds and lists that several holders buy together: histograms of their columns, as one noisy sum."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, InstanceOf, model_validator

from privlearn.data.schema.draft import SchemaDraft, as_draft
from privlearn.data.schema.public import Value
from privlearn.discovery.buying import MarkedColumns
from privlearn.discovery.summed import Candidates, DiscoveredSchema
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.statistics.discovery import LARGEST_SHARE
from privlearn.mechanisms.summed.summed import NoisySums, surplus
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.multiparty.run.conversation import Tell
from privlearn.multiparty.run.joint_plan import JointPlan, Name
from privlearn.multiparty.run.simulation import rehearsed
from privlearn.multiparty.run.training import CountedParty
from privlearn.randomness import Randomness
from privlearn.release.archive import digest_of, json_bytes
from privlearn.release.counts_file import CountsCertificate


class JointDiscovery(JointPlan):
    """What nobody knows publicly of a schema, bought by all parties together (docs/theory/multiparty.md).

    Parameters
    ----------
    draft : SchemaDraft
        Marks with ``buy`` what is bought; it takes the place of the schema.
    candidates : dict of str to list of values
        For each list that is bought, the values that may be on it: public knowledge. Nothing else is counted, since a
        secure sum needs to know beforehand what it sums.
    between : dict of str to (float, float), optional
        Columns of numbers whose bounds are known to lie between two numbers: found in equal steps from one to the
        other, where otherwise they are found to a sixteenth of a power of two.
    parties, epsilon, delta, neighbours, parties_per_person, dropouts, colluding, accept_weak_privacy, keys
        As in `JointPlan`.

    Examples
    --------
    >>> from privlearn.data.datasets import simulated_census
    >>> draft = {"name": "census", "columns": {"age": {"type": "number", "lower": "buy", "upper": "buy"}}}
    >>> tables = {name: simulated_census(10_000, seed=seed) for seed, name in enumerate(("north", "south"))}
    >>> plan = JointDiscovery.from_dict(
    ...     {
    ...         "draft": draft,
    ...         "between": {"age": (0, 120)},
    ...         "parties": dict.fromkeys(tables, 10_000),
    ...         "epsilon": 1.0,
    ...         "delta": 1e-6,
    ...     }
    ... )
    >>> age = discover_together(plan, tables).schema.columns["age"]
    >>> 0 <= age.lower < 30 and 60 < age.upper <= 120
    True
    """

    draft: Annotated[InstanceOf[SchemaDraft], Field(exclude=True)]
    candidates: dict[Name, tuple[Value, ...]] = Field(default={})
    between: dict[Name, tuple[float, float]] = Field(default={})

    @model_validator(mode="before")
    @classmethod
    def _with_stand_in(cls, content: Any) -> Any:
        """The draft's stand-in is the schema that tables are read with."""
        if not isinstance(content, Mapping) or "draft" not in content:
            return content
        if "schema" in content:
            raise ValueError("schema: the draft takes its place: remove one of the two")
        draft = as_draft(content["draft"])
        return {**content, "draft": draft, "schema": draft.stand_in}

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> JointDiscovery:
        try:
            self._refuse_noise()
        except InvalidParameter as error:
            raise ValueError(str(error)) from None
        self.check_promise()
        return self

    @classmethod
    def resolved(cls, content: dict[str, Any], folder: Path) -> dict[str, Any]:
        if isinstance(content.get("draft"), str):
            content["draft"] = SchemaDraft.load(folder / content["draft"])
        return content

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"draft": self.draft.to_dict()}

    @cached_property
    def cells(self) -> Candidates:
        """What is counted."""
        return Candidates(self.draft, self.candidates, self.between)

    @cached_property
    def mechanism(self) -> SummedCounts:
        parties, shares = self.members.values()
        return SummedCounts.calibrate(
            Guarantee(self.epsilon, self.delta, self.neighbours),
            records=self.total,
            rows_per_person=self.table_schema.rows_per_person,
            cells=self.cells.cells,
            weights=self.cells.weights,
            parties=parties,
            noise_shares=shares,
            parties_per_person=self.parties_per_person,
        )

    def outcome(self, sums: NoisySums, randomness: Randomness) -> DiscoveredSchema:
        mechanism, answer = self.mechanism, sums.ask(self.mechanism.question(0))
        about = self.cells.to_dict() | {
            "kind": DiscoveredSchema.kind,
            "shapes": [[cells] for cells in mechanism.cells],
            "in_sum": mechanism.in_sum(answer.parties, answer.total),
        }
        return DiscoveredSchema(mechanism.tables(answer), about, self._certified(about, randomness))

    def _certified(self, about: Mapping[str, Any], randomness: Randomness) -> CountsCertificate:
        schema = self.table_schema
        subject = {
            "bought_here": [*map(str, self.draft.bounds), *self.draft.lists],
            "dataset": schema.name,
            "schema_sha256": schema.digest,
            **({"bought": schema.to_dict()["bought"]} if schema.bought else {}),
            "about_sha256": digest_of(json_bytes(about)),
            "persons": schema.person is not None,
        }
        return CountsCertificate.issue(self.mechanism, randomness, subject)

    def _refuse_noise(self) -> None:
        """Bounds and lists that public facts already show to be worthless are not sold."""
        all_shares = surplus(**self.members)
        needed = self.cells.needed([all_shares * deviation for deviation in self.mechanism.deviations])
        if needed > LARGEST_SHARE * self.total:
            raise InvalidParameter(
                f"{self.total} records and {self.mechanism.guarantee} buy noise: up to {needed:.0f} records would lie "
                "beyond a bound, or have no value of a list. Spend more, mark less, or state it from public knowledge"
            )


class DiscoveringParty(CountedParty):
    """PRIVATE: one party's histograms of the marked columns."""

    @classmethod
    def from_table(cls, plan: JointDiscovery, name: str, table: Any) -> DiscoveringParty:
        """The plan's party of that name with its table; whatever does not fit is an error on its own screen."""
        columns = MarkedColumns(table, plan.draft)
        plan.check_declared(name, columns.records)
        vector = plan.mechanism.answer(plan.cells.counted(columns))
        return cls(vector, plan.parties[name] / plan.total)


def discover_together(
    plan: JointDiscovery, tables: Mapping[str, Any], tell: Tell = lambda line: None
) -> DiscoveredSchema:
    """Rehearse a joint purchase in this process, which sees every party's rows, with keys made for the occasion."""
    plan.check_tables(tables)
    answers = {name: DiscoveringParty.from_table(plan, name, table) for name, table in tables.items()}
    found = rehearsed(plan, answers, tell)
    assert isinstance(found, DiscoveredSchema)
    return found
