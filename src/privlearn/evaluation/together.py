"""How good a model is on the records of several holders: the counts of an evaluation, as one noisy sum."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pydantic import Field, InstanceOf, StrictBool, StrictStr, model_validator

from privlearn.errors import InvalidParameter
from privlearn.evaluation.evaluation import Evaluation
from privlearn.evaluation.measuring import certified, read_cells
from privlearn.evaluation.plan import EvaluationPlan, Groups, groups_of, plan_evaluation
from privlearn.evaluation.subject import Subject, schema_of, subject_of
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.summed.summed import NoisySums
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.multiparty.run.conversation import Tell
from privlearn.multiparty.run.joint_discovery import DiscoveringParty, JointDiscovery
from privlearn.multiparty.run.joint_moments import JointMoments, MomentsParty
from privlearn.multiparty.run.joint_plan import JointPlan, read_plan_file
from privlearn.multiparty.run.plan import MultipartyPlan
from privlearn.multiparty.run.simulation import rehearsed
from privlearn.multiparty.run.training import Answers, CountedParty, Party
from privlearn.randomness import Randomness
from privlearn.release.artifact import Release

PARTY = "party"
"""What the groups of the parties are called in a result."""


class JointEvaluation(JointPlan):
    """One release, evaluated on the records of several holders, which should not be those that it learnt from.

    Parameters
    ----------
    release : Release
        Public: every party has its file, and the plan has its digest.
    by : tuple of str
        Columns of listed values: errors for each of their groups too.
    by_party : bool, default=True
        Errors for each party's records too.
    schema, parties, epsilon, delta, neighbours, dropouts, colluding, accept_weak_privacy, keys
        As in `JointPlan`; in a file the schema may be left out, which means the release's.
    """

    release: InstanceOf[Release] = Field(exclude=True)
    by: tuple[StrictStr, ...] = ()
    by_party: StrictBool = True

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> JointEvaluation:
        if self.by_party and PARTY in self.by:
            raise ValueError(f"by: a column {PARTY!r} would be taken for the parties: set by_party = false")
        self.check_promise()
        return self

    @classmethod
    def resolved(cls, content: dict[str, Any], folder: Path) -> dict[str, Any]:
        content = super().resolved(content, folder)
        if isinstance(content.get("release"), str):
            content["release"] = Release.load(folder / content["release"])
            content.setdefault("schema", schema_of(content["release"], None))
        return content

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"release_sha256": self.release.digest}

    @property
    def mechanism(self) -> SummedCounts:
        return self._counts[1]

    @property
    def tables(self) -> EvaluationPlan:
        """Which tables are counted."""
        return self._counts[0]

    @cached_property
    def subject(self) -> Subject:
        target = self.table_schema.target
        if target is None:
            raise InvalidParameter("schema.target: say what was learnt: list its classes, or give its bounds")
        return subject_of(self.release, None, target, None)

    @property
    def groups(self) -> Groups:
        """Of columns; the parties are not among them."""
        return groups_of(self.table_schema, self.by)

    def outcome(self, sums: NoisySums, randomness: Randomness) -> Evaluation:
        mechanism, answer = self.mechanism, sums.ask(self.mechanism.question(0))
        about = self.tables.about | {"in_sum": mechanism.in_sum(answer.parties, answer.total)}
        tables = [
            table.reshape(shape)
            for table, shape in zip(mechanism.tables(answer), self.tables.shapes, strict=True)
        ]
        return Evaluation(tables, about, certified(about, mechanism, self.table_schema, randomness))

    @cached_property
    def _counts(self) -> tuple[EvaluationPlan, SummedCounts]:
        parties, shares = self.members.values()
        calibrate = partial(
            SummedCounts.calibrate,
            parties=parties,
            noise_shares=shares,
            parties_per_person=self.parties_per_person,
        )
        groups = dict(self.groups) | ({PARTY: tuple(self.parties)} if self.by_party else {})
        promise = Guarantee(self.epsilon, self.delta, self.neighbours)
        made = plan_evaluation(
            self.subject, self.table_schema, groups, promise, self.total, calibrate=calibrate
        )
        assert isinstance(made.mechanism, SummedCounts)
        return made, made.mechanism


class CountingParty(CountedParty):
    """PRIVATE: one party's tables of an evaluation."""

    @classmethod
    def from_table(cls, plan: JointEvaluation, name: str, table: Any) -> CountingParty:
        """The plan's party of that name with its table; whatever does not fit is an error on its own screen."""
        counted, weights, persons = read_cells(plan.subject, plan.table_schema, plan.groups, table)
        plan.check_declared(name, persons)
        shared = [list(plan.parties).index(name)] if plan.by_party else []
        vector = plan.mechanism.answer(counted.tables(plan.tables, weights, shared))
        return cls(vector, plan.parties[name] / plan.total)


def load_plan(path: str | Path) -> JointPlan:
    """A plan from its file: a ``release`` to evaluate, a ``draft`` to complete, moments of ``targets``, or training."""
    kinds: dict[str, type[JointPlan]] = {
        "release": JointEvaluation,
        "draft": JointDiscovery,
        "targets": JointMoments,
    }
    content = read_plan_file(path)
    return next((kind for key, kind in kinds.items() if key in content), MultipartyPlan).load(path)


def answers_of(plan: JointPlan, name: str, table: Any) -> Answers:
    """PRIVATE: the rows of the plan's party of that name, as its run asks them."""
    if isinstance(plan, JointEvaluation):
        return CountingParty.from_table(plan, name, table)
    if isinstance(plan, JointDiscovery):
        return DiscoveringParty.from_table(plan, name, table)
    if isinstance(plan, JointMoments):
        return MomentsParty.from_table(plan, name, table)
    assert isinstance(plan, MultipartyPlan)
    return Party.from_table(plan, name, table)


def evaluate_together(
    plan: JointEvaluation, tables: Mapping[str, Any], tell: Tell = lambda line: None
) -> Evaluation:
    """Rehearse a joint evaluation in this process, which sees every party's rows, with keys made for the occasion.

    Examples
    --------
    >>> from privlearn import PrivateLogisticRegression
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> model = PrivateLogisticRegression(epsilon=2.0, delta=1e-6, schema=census_schema())
    >>> release = model.fit(simulated_census(5000, seed=1)).release_
    >>> tables = {"north": simulated_census(1000, seed=2), "south": simulated_census(3000, seed=3)}
    >>> sizes = {name: table.num_rows for name, table in tables.items()}
    >>> plan = JointEvaluation(
    ...     release=release, schema=census_schema(), parties=sizes, epsilon=1.0, delta=1e-6
    ... )
    >>> [group.group for group in evaluate_together(plan, tables).groups]
    ['north', 'south']
    """
    plan.check_tables(tables)
    answers = {name: CountingParty.from_table(plan, name, table) for name, table in tables.items()}
    found = rehearsed(plan, answers, tell)
    assert isinstance(found, Evaluation)
    return found
