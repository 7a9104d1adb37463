"""Opening and reopening of a session: its mechanism, its charge, and the header by which it is recognized."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from privlearn.budget.charge import Budget, Charge
from privlearn.budget.composition import Cost
from privlearn.errors import InvalidParameter, SessionError
from privlearn.guarantee import Guarantee, check_guarantee
from privlearn.mechanisms.session.pinp import PINP
from privlearn.mechanisms.session.task import SessionMechanism, session_mechanism
from privlearn.randomness import Randomness
from privlearn.sessions.machines import FrozenLearner, SessionLearner
from privlearn.sessions.state import FileStore, SharedState, SharedStore


def freeze(learner: SessionLearner) -> FrozenLearner:
    """Return what the session is calibrated, charged and answered from; later changes of the learner do not matter."""
    if not hasattr(learner, "freeze"):
        raise InvalidParameter(
            "learner must be a KernelLearner with its records: KernelLearner(...).read(table)"
        )
    return learner.freeze()


Sizes = Mapping[str, Any]
"""Requested sizes of PINP: ``queries`` and ``failure``."""


def calibrate(
    learner: FrozenLearner, guarantee: Guarantee, mechanism: str, mode: str, sizes: Sizes | None = None
) -> SessionMechanism:
    """Return the session's mechanism for a guarantee."""
    kind = session_mechanism(mechanism, mode)
    check_guarantee(guarantee)
    if sizes and not issubclass(kind, PINP):
        raise InvalidParameter(
            "queries and failure size PINP's threshold. Leave them out, or use mechanism='pinp'"
        )
    calibrated: SessionMechanism = kind.calibrate(
        learner.kernel_task(guarantee.neighbours), guarantee, **(sizes or {})
    )
    return calibrated


def make_header(
    learner: FrozenLearner, mechanism: SessionMechanism, randomness: Randomness
) -> dict[str, Any]:
    """Return the header of a session's state: public parameters, and a private digest of the training rows."""
    return {
        "mechanism": mechanism.name,
        "mode": mechanism.mode,
        "guarantee": mechanism.guarantee.to_dict(),
        "randomness": {"source": randomness.description, "secure": randomness.secure},
        "fingerprint": _fingerprint(learner, mechanism),
        "training": learner.training_digest(),
    }


def _fingerprint(learner: FrozenLearner, mechanism: SessionMechanism) -> str:
    """Return a digest of kernel, encoding, labels, number of records, regularization, loss, guarantee and noise."""
    task = mechanism.kernel_task.task
    public_parameters = [
        learner.describe(), mechanism.name, mechanism.mode, mechanism.guarantee.to_dict(), mechanism.constants(),
        task.loss.to_dict(), task.total, task.regularization,
    ]  # fmt: skip
    return sha256(json.dumps(public_parameters, sort_keys=True).encode()).hexdigest()


def charge_of(
    learner: FrozenLearner,
    mechanism: SessionMechanism,
    randomness: Randomness,
    *,
    ledger: Budget | None,
    accept_weak_privacy: bool,
) -> Charge:
    """Return the charge for all answers of the session together."""
    return Charge(
        ledger=ledger,
        cost=Cost(mechanism.guarantee, mechanism.renyi),
        schema=learner.records_schema,
        part=learner.records_part,
        records=mechanism.kernel_task.task.total,
        purpose=f"InteractivePredictor, {mechanism.name}",
        secure=randomness.secure,
        accept_weak_privacy=accept_weak_privacy,
    )


def new_state(
    store: FileStore | SharedStore,
    learner: FrozenLearner,
    mechanism: SessionMechanism,
    randomness: Randomness,
    sizes: Sizes | None = None,
) -> tuple[SharedState, FrozenLearner]:
    """Touch the data: solve, store the initial state, return it with the solved learner; call it after the charge."""
    header = make_header(learner, mechanism, randomness)
    header["id"] = secrets.token_hex(16)  # so that states of different sessions are never confused
    header["threshold"] = mechanism.draw_threshold(randomness)
    if sizes:
        header["sizes"] = dict(sizes)
    solved = learner.solve()
    return store.create(header, solved.function_bytes()), solved


def restore_mechanism(state: SharedState, learner: FrozenLearner) -> SessionMechanism:
    """Return the mechanism of a stored session; refuse a learner other than the session's."""
    header = state.header
    guarantee = Guarantee(**header["guarantee"])
    mechanism = calibrate(learner, guarantee, header["mechanism"], header["mode"], header.get("sizes"))
    if _fingerprint(learner, mechanism) != header["fingerprint"]:
        raise SessionError(
            "this learner is not the session's: it must have the same encoding, kernel, labels, number of records, "
            "regularization and loss, and the same version of privlearn"
        )
    if learner.training_digest() != header["training"]:
        raise SessionError(
            "this learner was fitted on other records than the session's. Fit it on those, or open a new session"
        )
    return mechanism
