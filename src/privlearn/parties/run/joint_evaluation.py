"""JointEvaluation: the errors of a model on the records of several holders, from one noisy sum of counts.

`load_agreement` reads an agreement of any kind from its file.
"""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pydantic import Field, InstanceOf, StrictBool, StrictStr, model_validator

from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.summed.summed import NoisySums
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.parties.run.agreement import Agreement, read_agreement_file
from privlearn.parties.run.answers import CountedParty
from privlearn.parties.run.joint_discovery import JointDiscovery
from privlearn.parties.run.joint_moments import JointMoments
from privlearn.parties.run.joint_training import JointTraining
from privlearn.randomness import Randomness
from privlearn.release.artifact import Release
from privlearn.statistics.evaluation.evaluation import Evaluation
from privlearn.statistics.evaluation.layout import Groups, evaluation_layout, groups_of
from privlearn.statistics.evaluation.measuring import certify, read_cells
from privlearn.statistics.evaluation.subject import Subject, schema_of, subject_of
from privlearn.statistics.layout import CountsLayout

PARTY = "party"
"""Name of the groups of the parties in a result."""


class JointEvaluation(Agreement):
    """One release, evaluated on the records of several holders; it should not have learnt from these records.

    Parameters
    ----------
    release : Release
        Public: every party has its file, and the agreement contains its digest.
    by : tuple of str
        Columns with a list of values: errors for each of their groups too.
    by_party : bool, default=True
        Errors for each party's records too.
    schema, parties, epsilon, delta, neighbours, dropouts, colluding, accept_weak_privacy, keys
        As in `Agreement`; in a file the schema may be omitted, which means the release's.

    Examples
    --------
    >>> from privlearn import PrivateLogisticRegression
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> from privlearn.parties import simulate
    >>> model = PrivateLogisticRegression(epsilon=2.0, delta=1e-6, schema=census_schema())
    >>> release = model.fit(simulated_census(5000, seed=1)).release_
    >>> tables = {"north": simulated_census(1000, seed=2), "south": simulated_census(3000, seed=3)}
    >>> sizes = {name: table.num_rows for name, table in tables.items()}
    >>> agreement = JointEvaluation(
    ...     release=release, schema=census_schema(), parties=sizes, epsilon=1.0, delta=1e-6
    ... )
    >>> [group.group for group in simulate(agreement, tables).groups]
    ['north', 'south']
    """

    release: InstanceOf[Release] = Field(exclude=True)
    by: tuple[StrictStr, ...] = ()
    by_party: StrictBool = True

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> JointEvaluation:
        if self.by_party and PARTY in self.by:
            raise ValueError(f"by: the column {PARTY!r} names the parties' groups. Set by_party = false")
        self.check_feasible()
        return self

    @classmethod
    def resolve_files(cls, content: dict[str, Any], directory: Path) -> dict[str, Any]:
        """Return the content of an agreement's file with the schema's and the release's files read."""
        content = super().resolve_files(content, directory)
        if isinstance(content.get("release"), str):
            content["release"] = Release.load(directory / content["release"])
            content.setdefault("schema", schema_of(content["release"], None))
        return content

    def to_dict(self) -> dict[str, Any]:
        """Return every setting, with the release's digest, as plain JSON values."""
        return super().to_dict() | {"release_sha256": self.release.digest}

    @property
    def mechanism(self) -> SummedCounts:
        """The calibrated counts."""
        return self._counts[1]

    @property
    def tables(self) -> CountsLayout:
        """The tables to count."""
        return self._counts[0]

    @cached_property
    def subject(self) -> Subject:
        """The model and the target that it predicts."""
        target = self.table_schema.target
        if target is None:
            raise InvalidParameter("schema.target: missing. List the target's classes, or give its bounds")
        return subject_of(self.release, None, target, None)

    @property
    def groups(self) -> Groups:
        """Groups of columns; the parties are not among them."""
        return groups_of(self.table_schema, self.by)

    def outcome(self, sums: NoisySums, randomness: Randomness) -> Evaluation:
        """Return the evaluation computed from the noisy counts."""
        mechanism, answer = self.mechanism, sums.ask(self.mechanism.question(0))
        about = self.tables.about | {"in_sum": mechanism.in_sum(answer.parties, answer.total)}
        tables = [
            table.reshape(shape)
            for table, shape in zip(mechanism.tables(answer), self.tables.shapes, strict=True)
        ]
        layout = CountsLayout(about, mechanism)
        return Evaluation(tables, about, certify(layout, self.table_schema, randomness))

    def read_party(self, name: str, table: Any) -> CountedParty:
        """PRIVATE: return one party's counts; refuse a table that does not fit."""
        counted, weights, persons = read_cells(self.subject, self.table_schema, self.groups, table)
        self.check_declared(name, persons)
        shared = [list(self.parties).index(name)] if self.by_party else []
        vector = self.mechanism.answer(counted.tables(self.tables, weights, shared))
        return CountedParty(vector, self.parties[name] / self.total)

    @cached_property
    def _counts(self) -> tuple[CountsLayout, SummedCounts]:
        parties, shares = self.members.values()
        calibrate = partial(
            SummedCounts.calibrate,
            parties=parties,
            noise_shares=shares,
            parties_per_person=self.parties_per_person,
        )
        groups = dict(self.groups) | ({PARTY: tuple(self.parties)} if self.by_party else {})
        guarantee = Guarantee(self.epsilon, self.delta, self.neighbours)
        layout = evaluation_layout(
            self.subject, self.table_schema, groups, guarantee, self.total, calibrate=calibrate
        )
        assert isinstance(layout.mechanism, SummedCounts)
        return layout, layout.mechanism


def load_agreement(path: str | Path) -> Agreement:
    """Read an agreement; the keys ``release``, ``draft`` and ``targets`` decide its kind, by default training."""
    kinds: dict[str, type[Agreement]] = {
        "release": JointEvaluation,
        "draft": JointDiscovery,
        "targets": JointMoments,
    }
    content = read_agreement_file(path)
    return next((kind for key, kind in kinds.items() if key in content), JointTraining).load(path)
