"""JointDiscovery: bounds and lists of a schema, estimated privately from one noisy sum of all parties' histograms."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, InstanceOf, model_validator

from privlearn.data.schema.draft import SchemaDraft, as_draft
from privlearn.data.schema.public import Value
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.statistics.discovery import MAX_SHARE
from privlearn.mechanisms.summed.summed import NoisySums, surplus
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.parties.run.agreement import Agreement, Name
from privlearn.parties.run.answers import CountedParty
from privlearn.randomness import Randomness
from privlearn.release.archive import digest_of, json_bytes
from privlearn.release.counts_file import CountsCertificate
from privlearn.statistics.discovery.measuring import MarkedColumns
from privlearn.statistics.discovery.summed import Candidates, DiscoveredSchema


class JointDiscovery(Agreement):
    """Bounds and lists that are not publicly known, estimated by all parties together (docs/theory/multiparty.md).

    Parameters
    ----------
    draft : SchemaDraft
        Marks with ``estimate`` what to estimate; it replaces the schema.
    candidates : dict of str to list of values
        For each list to estimate, the values that may be on it: public knowledge. Nothing else is counted, since a
        secure sum must know its coordinates beforehand.
    between : dict of str to (float, float), optional
        Columns of numbers whose bounds are known to lie between two numbers: estimated in equal steps from one to the
        other; other columns to a sixteenth of a power of two.
    parties, epsilon, delta, neighbours, parties_per_person, dropouts, colluding, accept_weak_privacy, keys
        As in `Agreement`.

    Examples
    --------
    >>> from privlearn.data.datasets import simulated_census
    >>> from privlearn.parties import simulate
    >>> draft = {"name": "census", "columns": {"age": {"type": "number", "lower": "estimate", "upper": "estimate"}}}
    >>> tables = {name: simulated_census(10_000, seed=seed) for seed, name in enumerate(("north", "south"))}
    >>> agreement = JointDiscovery.from_dict(
    ...     {
    ...         "draft": draft,
    ...         "between": {"age": (0, 120)},
    ...         "parties": dict.fromkeys(tables, 10_000),
    ...         "epsilon": 1.0,
    ...         "delta": 1e-6,
    ...     }
    ... )
    >>> age = simulate(agreement, tables).schema.columns["age"]
    >>> 0 <= age.lower < 30 and 60 < age.upper <= 120
    True
    """

    draft: Annotated[InstanceOf[SchemaDraft], Field(exclude=True)]
    candidates: dict[Name, tuple[Value, ...]] = Field(default={})
    between: dict[Name, tuple[float, float]] = Field(default={})

    @model_validator(mode="before")
    @classmethod
    def _with_stand_in(cls, content: Any) -> Any:
        """Take the draft's stand-in as the schema with which tables are read."""
        if not isinstance(content, Mapping) or "draft" not in content:
            return content
        if "schema" in content:
            raise ValueError("schema: the draft replaces it. Remove one of the two")
        draft = as_draft(content["draft"])
        return {**content, "draft": draft, "schema": draft.stand_in}

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> JointDiscovery:
        try:
            self._refuse_noise()
        except InvalidParameter as error:
            raise ValueError(str(error)) from None
        self.check_feasible()
        return self

    @classmethod
    def resolve_files(cls, content: dict[str, Any], directory: Path) -> dict[str, Any]:
        """Return the content of an agreement's file with the draft's file read."""
        if isinstance(content.get("draft"), str):
            content["draft"] = SchemaDraft.load(directory / content["draft"])
        return content

    def to_dict(self) -> dict[str, Any]:
        """Return every setting, the draft included, as plain JSON values."""
        return super().to_dict() | {"draft": self.draft.to_dict()}

    @cached_property
    def cells(self) -> Candidates:
        """The cells of the histograms."""
        return Candidates(self.draft, self.candidates, self.between)

    @cached_property
    def mechanism(self) -> SummedCounts:
        """The calibrated histograms."""
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
        """Return the schema with the bounds and lists that follow from the noisy histograms."""
        mechanism, answer = self.mechanism, sums.ask(self.mechanism.question(0))
        about = self.cells.to_dict() | {
            "kind": DiscoveredSchema.kind,
            "shapes": [[cells] for cells in mechanism.cells],
            "in_sum": mechanism.in_sum(answer.parties, answer.total),
        }
        return DiscoveredSchema(mechanism.tables(answer), about, self._certificate(about, randomness))

    def read_party(self, name: str, table: Any) -> CountedParty:
        """PRIVATE: return one party's histograms of the marked columns; refuse a table that does not fit."""
        columns = MarkedColumns(table, self.draft)
        self.check_declared(name, columns.records)
        vector = self.mechanism.answer(self.cells.count(columns))
        return CountedParty(vector, self.parties[name] / self.total)

    def _certificate(self, about: Mapping[str, Any], randomness: Randomness) -> CountsCertificate:
        schema = self.table_schema
        subject = {
            "estimated_here": [*map(str, self.draft.bounds), *self.draft.lists],
            "dataset": schema.name,
            "schema_sha256": schema.digest,
            **({"private_bounds": schema.to_dict()["private_bounds"]} if schema.private_bounds else {}),
            "about_sha256": digest_of(json_bytes(about)),
            "persons": schema.person is not None,
        }
        return CountsCertificate.issue(self.mechanism, randomness, subject)

    def _refuse_noise(self) -> None:
        """Refuse bounds and lists that would be worthless, as public numbers already show."""
        all_shares = surplus(**self.members)
        needed = self.cells.min_records([all_shares * deviation for deviation in self.mechanism.deviations])
        if needed > MAX_SHARE * self.total:
            raise InvalidParameter(
                f"{self.mechanism.guarantee} is too little for {self.total} records: up to {needed:.0f} of them would "
                "lie beyond a bound, or have no value of a list. Spend more, mark less, or state public bounds"
            )
