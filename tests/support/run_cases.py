"""A small plan with keys, its parties and its coordinator in one process, and a wire that tests can tamper with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from privlearn import Ledger
from privlearn.data import census_schema, simulated_census
from privlearn.parties import JointTraining
from privlearn.parties.run import CoordinatorRun, Identity, Parts, PartyRun, RunBudget, Stage
from privlearn.parties.run.identity import COORDINATOR_NAME

SIZES = {"north": 600, "south": 800, "west": 1000}
IDENTITIES = {name: Identity.generate() for name in (COORDINATOR_NAME, *SIZES)}
KEYS = {name: str(identity.public) for name, identity in IDENTITIES.items()}
TABLES = {name: simulated_census(size, seed=size) for name, size in SIZES.items()}
SCHEMA = census_schema().model_copy(
    update={"columns": {name: census_schema().columns[name] for name in ("hours", "capital_income", "sex")}}
)


def agreement_of(**changes: Any) -> JointTraining:
    settings: dict[str, Any] = {
        "epsilon": 2.0,
        "delta": 1e-5,
        "rounds": 2,
        "keys": KEYS,
        "accept_curious_parties": True,
    }
    return JointTraining(schema=SCHEMA, parties=SIZES, **settings | changes)


class Wire:
    """Parties by name, and an exchange between them and a coordinator.

    ``tamper`` may change what a party's reply is on its way: it gets the stage, the party's name and the reply, and
    returns what arrives, or None if nothing does.
    """

    def __init__(self, agreement: JointTraining, ledger: Ledger | None = None) -> None:
        self.agreement = agreement
        self.told: list[str] = []
        self.heard: dict[str, list[str]] = {name: [] for name in SIZES}
        self.traffic: list[bytes] = []
        self.tamper: Callable[[Stage, str, Parts | str], Parts | str | None] = lambda stage, name, reply: (
            reply
        )
        self.parties = {
            name: PartyRun(
                agreement,
                name,
                IDENTITIES[name],
                agreement.read_party(name, TABLES[name]),
                RunBudget(agreement, name, ledger),
                self.heard[name].append,
            )
            for name in SIZES
        }
        self.coordinator = CoordinatorRun(
            agreement, IDENTITIES[COORDINATOR_NAME], self.exchange, self.told.append
        )

    def exchange(self, stage: Stage, parts: Mapping[int, Parts]) -> Mapping[int, Parts | str]:
        replies: dict[int, Parts | str] = {}
        for number, own in parts.items():
            name = list(SIZES)[number]
            self.traffic += own
            reply = self.tamper(stage, name, self.parties[name].reply(stage, own))
            if reply is not None:
                self.traffic += [reply.encode()] if isinstance(reply, str) else reply
                replies[number] = reply
        return replies
