"""How a session begins, and how it is known again: its mechanism, its header, its cost."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from privlearn.data.schema.purchases import with_purchases
from privlearn.errors import InvalidParameter, SessionError
from privlearn.guarantee import Guarantee, check_guarantee
from privlearn.ledger.charge import Budget, Charge
from privlearn.ledger.composition import Cost
from privlearn.mechanisms.session.pinp import PINP
from privlearn.mechanisms.session.task import SessionMechanism, session_mechanism
from privlearn.randomness import Randomness
from privlearn.release.certified import read_receipts
from privlearn.sessions.durable import State, StateStore
from privlearn.sessions.machines import SessionLearner


def check_learner(learner: object) -> None:
    if not hasattr(learner, "training_digest"):
        raise InvalidParameter(
            "learner must be a KernelLearner with its records: KernelLearner(...).read(table)"
        )


Sizes = Mapping[str, Any]
"""What a session was sized for, where that was asked: ``queries`` and ``failure`` of PINP."""


def calibrated(
    learner: SessionLearner, guarantee: Guarantee, mechanism: str, mode: str, sizes: Sizes | None = None
) -> SessionMechanism:
    kind = session_mechanism(mechanism, mode)
    check_guarantee(guarantee)
    if sizes and not issubclass(kind, PINP):
        raise InvalidParameter(
            "queries and failure size PINP's threshold: leave them out, or take mechanism='pinp'"
        )
    plan: SessionMechanism = kind.calibrate(learner.facts(guarantee.neighbours), guarantee, **(sizes or {}))
    return plan


def public_header(learner: SessionLearner, plan: SessionMechanism, randomness: Randomness) -> dict[str, Any]:
    return {
        "mechanism": plan.name,
        "mode": plan.mode,
        "guarantee": plan.guarantee.to_dict(),
        "randomness": {"source": randomness.description, "secure": randomness.secure},
        "fingerprint": _fingerprint(learner, plan),
        "training": learner.training_digest(),
    }


def _fingerprint(learner: SessionLearner, plan: SessionMechanism) -> str:
    """A digest of the public facts: kernel, encoding, labels, records, regularization, loss, guarantee, noise."""
    task = plan.facts.task
    facts = [
        learner.describe(), plan.name, plan.mode, plan.guarantee.to_dict(), plan.constants(),
        task.loss.to_dict(), task.total, task.regularization,
    ]  # fmt: skip
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def charge_of(
    learner: SessionLearner,
    plan: SessionMechanism,
    randomness: Randomness,
    *,
    ledger: Budget | None,
    accept_weak_privacy: bool,
) -> Charge:
    """What all answers of the session cost together."""
    return Charge(
        ledger=ledger,
        cost=Cost(plan.guarantee, plan.renyi),
        promise=with_purchases(plan.guarantee, read_receipts(learner.describe())),
        records=plan.facts.task.total,
        purpose=f"InteractivePredictor, {plan.name}",
        secure=randomness.secure,
        accept_weak_privacy=accept_weak_privacy,
    )


def new_state(
    store: StateStore,
    learner: SessionLearner,
    plan: SessionMechanism,
    randomness: Randomness,
    sizes: Sizes | None = None,
) -> State:
    """Touch the data, once that is paid for: solve, and write down what the session starts from."""
    header = public_header(learner, plan, randomness)
    header["id"] = secrets.token_hex(16)  # no two sessions' states are taken for one another
    header["threshold"] = plan.draw_threshold(randomness)
    if sizes:
        header["sizes"] = dict(sizes)
    learner.solve()
    return store.create(header, learner.function_bytes())


def recorded_plan(state: State, learner: SessionLearner) -> SessionMechanism:
    header = state.header
    guarantee = Guarantee(**header["guarantee"])
    plan = calibrated(learner, guarantee, header["mechanism"], header["mode"], header.get("sizes"))
    if _fingerprint(learner, plan) != header["fingerprint"]:
        raise SessionError(
            "this learner is not the session's: it must have the same encoding, kernel, labels, number of records, "
            "regularization and loss, and the same version of privlearn"
        )
    if learner.training_digest() != header["training"]:
        raise SessionError(
            "this learner was fitted on other records: the session's noise protects the records it was opened with. "
            "Fit it on those, or open a new session"
        )
    return plan
