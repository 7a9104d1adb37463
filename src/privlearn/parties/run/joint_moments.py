"""JointMoments: many regressions from one noisy sum of second moments, for any target and any regularization."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.schema.columns import NumberColumn
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.estimators.reading import read_number_table
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.summed.summed import NoisySums, pack
from privlearn.mechanisms.summed.summed_moments import SummedMoments, even_shares
from privlearn.mechanisms.task import Task
from privlearn.parties.run.agreement import Agreement, Name
from privlearn.parties.run.answers import CountedParty
from privlearn.randomness import Randomness
from privlearn.release.moments_file import Moments, schema_for
from privlearn.solvers.losses import ClippedSquare
from privlearn.statistics.layout import CountsLayout

MAX_MOMENTS = 2**21
"""Maximum number of coordinates of the sum: about 2,000 features."""


class JointMoments(Agreement):
    """One noisy sum of second moments, from which regressions of all targets follow, for any regularization.

    With m features and t targets the sum has m (m + 1) / 2 + m t coordinates.

    Parameters
    ----------
    schema : Schema
        Without a target; the targets are among its columns.
    targets : tuple of str
        Columns of numbers; they are predicted from all other columns.
    parties, epsilon, delta, neighbours, parties_per_person, dropouts, colluding, accept_weak_privacy, keys
        As in `Agreement`.

    Examples
    --------
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> from privlearn.parties import simulate
    >>> schema = census_schema().model_copy(update={"target": None})
    >>> tables = {name: simulated_census(5_000, seed=seed) for seed, name in enumerate(("north", "south"))}
    >>> agreement = JointMoments(
    ...     schema=schema,
    ...     targets=("hours", "education_years"),
    ...     parties=dict.fromkeys(tables, 5_000),
    ...     epsilon=2.0,
    ...     delta=1e-6,
    ... )
    >>> moments = simulate(agreement, tables)
    >>> hours, smoother = moments.model("hours"), moments.model("hours", regularization=0.5)
    >>> hours.predict(tables["north"]).shape
    (5000,)
    """

    targets: Annotated[tuple[Name, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> JointMoments:
        if self.table_schema.target is not None:
            raise ValueError("schema.target: list the targets among the columns, and name them in targets")
        if self.table_schema.weight is not None:
            raise ValueError("schema.weight: second moments have no weights. Remove it, or train by descent")
        columns = self.table_schema.columns
        for name in self.targets:
            column = columns.get(name)
            if not isinstance(column, NumberColumn) or column.missing != "refuse":
                raise ValueError(f"targets: {name} must be a column of numbers without gaps")
        if len(set(self.targets)) < len(self.targets) or len(self.targets) >= len(columns):
            raise ValueError("targets: name different columns, and leave some to predict them from")
        if self.mechanism.cells[0] > MAX_MOMENTS:
            raise ValueError("the schema has too many features for a sum of second moments. Train by descent")
        self.check_feasible()
        return self

    @cached_property
    def mechanism(self) -> SummedMoments:
        """The calibrated second moments."""
        features = SchemaEncoder(schema_for(self.table_schema, self.targets, self.targets[0])).dimension
        parties, shares = self.members.values()
        mechanism = SummedMoments.calibrate(
            Guarantee(self.epsilon, self.delta, self.neighbours),
            records=self.total,
            rows_per_person=self.table_schema.rows_per_person,
            cells=(features * (features + 1) // 2, features * len(self.targets)),
            weights=even_shares(len(self.targets)),
            parties=parties,
            noise_shares=shares,
            parties_per_person=self.parties_per_person,
        )
        assert isinstance(mechanism, SummedMoments)
        return mechanism

    def outcome(self, sums: NoisySums, randomness: Randomness) -> Moments:
        """Return the release of the noisy moments."""
        mechanism, answer = self.mechanism, sums.ask(self.mechanism.question(0))
        about = {
            "kind": Moments.kind,
            "schema": self.table_schema.to_dict(),
            "targets": list(self.targets),
            "shapes": [[cells] for cells in mechanism.cells],
            "in_sum": mechanism.in_sum(answer.parties, answer.total),
        }
        layout = CountsLayout(about, mechanism)
        certificate = layout.certify(self.table_schema, randomness, targets=list(self.targets))
        return Moments(mechanism.tables(answer), about, certificate)

    def read_party(self, name: str, table: Any) -> CountedParty:
        """PRIVATE: return one party's second moments; refuse a table that does not fit."""
        oracles = [self._oracle(name, target, table) for target in self.targets]
        # the derivative of (0 - y)^2 / 2 is -y, so a gradient at 0 is the negative sum of x y
        zero = np.zeros((1, self.mechanism.features))
        crossed = np.concatenate([-oracle.gradients(zero).ravel() for oracle in oracles])
        vector = self.mechanism.answer([pack(oracles[0].second_moments()), crossed])
        return CountedParty(vector, self.parties[name] / self.total)

    def _oracle(self, name: str, target: str, table: Any) -> MemoryOracle:
        schema = schema_for(self.table_schema, self.targets, target)
        rows = read_number_table(schema, table, None, fit_intercept=True)
        self.check_declared(name, rows.total)
        task = Task(
            loss=ClippedSquare(width=1.0),
            total=self.total,
            dimension=self.mechanism.features,
            problems=1,
            regularization=1.0,
            tolerance=0.0,
            neighbours=self.neighbours,
            averaged=schema.person is not None,
        )
        return MemoryOracle(rows, task)
