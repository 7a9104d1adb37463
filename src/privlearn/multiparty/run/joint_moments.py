"""Many regressions from one noisy sum of second moments: any of the declared targets, any regularization."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.schema.columns import NumberColumn
from privlearn.erm.losses import ClippedSquare
from privlearn.estimators.inputs import read_number_table
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.summed.summed import NoisySums, packed
from privlearn.mechanisms.summed.summed_moments import SummedMoments, even_shares
from privlearn.mechanisms.task import Task
from privlearn.multiparty.run.conversation import Tell
from privlearn.multiparty.run.joint_plan import JointPlan, Name
from privlearn.multiparty.run.simulation import rehearsed
from privlearn.multiparty.run.training import CountedParty
from privlearn.randomness import Randomness
from privlearn.release.archive import digest_of, json_bytes
from privlearn.release.counts_file import CountsCertificate
from privlearn.release.moments_file import Moments, schema_for

MOST_MOMENTS = 2**21
"""Numbers in the sum: about 2,000 features."""


class JointMoments(JointPlan):
    """One noisy sum of second moments, from which regressions of all targets follow, for any regularization.

    Parameters
    ----------
    schema : Schema
        With the targets among its columns, and no target of its own.
    targets : tuple of str
        Columns of numbers; what they are predicted from is all other columns.
    parties, epsilon, delta, neighbours, parties_per_person, dropouts, colluding, accept_weak_privacy, keys
        As in `JointPlan`.

    Examples
    --------
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> schema = census_schema().model_copy(update={"target": None})
    >>> tables = {name: simulated_census(5_000, seed=seed) for seed, name in enumerate(("north", "south"))}
    >>> plan = JointMoments(
    ...     schema=schema,
    ...     targets=("hours", "education_years"),
    ...     parties=dict.fromkeys(tables, 5_000),
    ...     epsilon=2.0,
    ...     delta=1e-6,
    ... )
    >>> moments = moments_together(plan, tables)
    >>> hours, smoother = moments.model("hours"), moments.model("hours", regularization=0.5)
    >>> hours.predict(tables["north"]).shape
    (5000,)
    """

    targets: Annotated[tuple[Name, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> JointMoments:
        if self.table_schema.target is not None:
            raise ValueError("schema.target: list the targets among the columns, and name them in targets")
        columns = self.table_schema.columns
        for name in self.targets:
            column = columns.get(name)
            if not isinstance(column, NumberColumn) or column.missing != "refuse":
                raise ValueError(f"targets: {name} is no column of numbers without gaps")
        if len(set(self.targets)) < len(self.targets) or len(self.targets) >= len(columns):
            raise ValueError("targets: name different columns, and leave some to predict them from")
        if self.mechanism.cells[0] > MOST_MOMENTS:
            raise ValueError("the schema has too many features for a sum of second moments: train by descent")
        self.check_promise()
        return self

    @cached_property
    def mechanism(self) -> SummedMoments:
        features = SchemaEncoder(schema_for(self.table_schema, self.targets, self.targets[0])).dimension
        parties, shares = self.members.values()
        made = SummedMoments.calibrate(
            Guarantee(self.epsilon, self.delta, self.neighbours),
            records=self.total,
            rows_per_person=self.table_schema.rows_per_person,
            cells=(features * (features + 1) // 2, features * len(self.targets)),
            weights=even_shares(len(self.targets)),
            parties=parties,
            noise_shares=shares,
            parties_per_person=self.parties_per_person,
        )
        assert isinstance(made, SummedMoments)
        return made

    def outcome(self, sums: NoisySums, randomness: Randomness) -> Moments:
        mechanism, answer, schema = self.mechanism, sums.ask(self.mechanism.question(0)), self.table_schema
        about = {
            "kind": Moments.kind,
            "schema": schema.to_dict(),
            "targets": list(self.targets),
            "shapes": [[cells] for cells in mechanism.cells],
            "in_sum": mechanism.in_sum(answer.parties, answer.total),
        }
        subject = {
            "targets": list(self.targets),
            "dataset": schema.name,
            "schema_sha256": schema.digest,
            **({"bought": schema.to_dict()["bought"]} if schema.bought else {}),
            "about_sha256": digest_of(json_bytes(about)),
            "persons": schema.person is not None,
        }
        certificate = CountsCertificate.issue(mechanism, randomness, subject)
        return Moments(mechanism.tables(answer), about, certificate)


class MomentsParty(CountedParty):
    """PRIVATE: one party's second moments."""

    @classmethod
    def from_table(cls, plan: JointMoments, name: str, table: Any) -> MomentsParty:
        """The plan's party of that name with its table; whatever does not fit is an error on its own screen."""
        oracles = [_oracle(plan, name, target, table) for target in plan.targets]
        # the slope of (0 - y)^2 / 2 is -y, so a gradient at 0 is the sum of x y with its sign changed
        at = np.zeros((1, plan.mechanism.features))
        crossed = np.concatenate([-oracle.gradients(at).ravel() for oracle in oracles])
        vector = plan.mechanism.answer([packed(oracles[0].second_moments()), crossed])
        return cls(vector, plan.parties[name] / plan.total)


def _oracle(plan: JointMoments, name: str, target: str, table: Any) -> MemoryOracle:
    schema = schema_for(plan.table_schema, plan.targets, target)
    rows = read_number_table(schema, table, None, fit_intercept=True)
    plan.check_declared(name, rows.total)
    task = Task(
        loss=ClippedSquare(width=1.0),
        total=plan.total,
        dimension=plan.mechanism.features,
        problems=1,
        regularization=1.0,
        tolerance=0.0,
        neighbours=plan.neighbours,
        averaged=schema.person is not None,
    )
    return MemoryOracle(rows, task)


def moments_together(
    plan: JointMoments, tables: Mapping[str, Any], tell: Tell = lambda line: None
) -> Moments:
    """Rehearse it in this process, which sees every party's rows, with keys made for the occasion."""
    plan.check_tables(tables)
    answers = {name: MomentsParty.from_table(plan, name, table) for name, table in tables.items()}
    found = rehearsed(plan, answers, tell)
    assert isinstance(found, Moments)
    return found
