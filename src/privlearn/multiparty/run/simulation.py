"""All parties and the coordinator in one process, with the messages of a real run: for rehearsals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from privlearn.multiparty.run.conversation import Parts, Stage, Tell
from privlearn.multiparty.run.coordinator_run import CoordinatorRun
from privlearn.multiparty.run.identity import COORDINATOR_NAME, Identity
from privlearn.multiparty.run.joint_plan import JointPlan
from privlearn.multiparty.run.party_run import PartyRun
from privlearn.multiparty.run.plan import MultipartyPlan
from privlearn.multiparty.run.purse import Purse
from privlearn.multiparty.run.training import Answers, Party
from privlearn.release.artifact import Release
from privlearn.release.outcome import Outcome


def simulate(plan: MultipartyPlan, tables: Mapping[str, Any], tell: Tell = lambda line: None) -> Release:
    """Run the plan with keys made for the occasion; this process sees every party's rows.

    Parameters
    ----------
    plan : MultipartyPlan
    tables : dict of str to table
        Each party's rows by its name in the plan, target column included.
    tell : callable, optional
        Is given each line of the coordinator's progress.

    Examples
    --------
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> plan = MultipartyPlan(
    ...     schema=census_schema(), parties={"north": 500, "south": 2500}, epsilon=2.0, delta=1e-5
    ... )
    >>> tables = {"north": simulated_census(500, seed=1), "south": simulated_census(2500, seed=2)}
    >>> print(simulate(plan, tables).certificate.guarantee)
    (epsilon = 2, delta = 1e-05)-differential privacy, neighbours: replace_one
    """
    plan.check_tables(tables)
    answers = {name: Party.from_table(plan, name, table) for name, table in tables.items()}
    return cast(Release, rehearsed(plan, answers, tell))


def rehearsed(plan: JointPlan, answers: Mapping[str, Answers], tell: Tell) -> Outcome:
    """Any plan, with keys made for the occasion and each party's rows as its run asks them."""
    identities = {name: Identity.generate() for name in (COORDINATOR_NAME, *plan.parties)}
    plan = plan.with_keys({name: str(identity.public) for name, identity in identities.items()})
    parties = [
        PartyRun(plan, name, identities[name], answers[name], Purse(plan, name, ledger=None), _quiet)
        for name in plan.parties
    ]

    def exchange(stage: Stage, parts: Mapping[int, Parts]) -> dict[int, Parts | str]:
        return {number: parties[number].reply(stage, own) for number, own in parts.items()}

    return CoordinatorRun(plan, identities[COORDINATOR_NAME], exchange, tell).train()


def _quiet(line: str) -> None:
    """A simulated party has no screen."""
