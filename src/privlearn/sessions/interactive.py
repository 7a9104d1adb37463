"""Predictions for points sent one after another; the records never leave, and neither does the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn

import numpy as np

from privlearn.data.quiet import quietly
from privlearn.errors import InvalidParameter, SessionError
from privlearn.guarantee import Guarantee, check_guarantee
from privlearn.ledger import Cost, Ledger
from privlearn.mechanisms.function_release import FunctionRelease
from privlearn.mechanisms.pinp import PINP
from privlearn.randomness import Randomness, randomness_from
from privlearn.release.certified import installed_versions
from privlearn.release.session_certificate import SessionCertificate, SessionMechanism
from privlearn.sessions.answers import Answer, Answers
from privlearn.sessions.function_session import FunctionSession
from privlearn.sessions.learner import Array, Learner
from privlearn.sessions.pinp_session import PinpSession
from privlearn.sessions.points import numbers_to_bytes
from privlearn.sessions.state import Record, SessionState, check_free

MECHANISMS = ("function_release", "pinp")


class InteractivePredictor:
    """A session that answers an analyst's points, adaptively chosen, under one promise for all answers together.

    The ledger is charged once, when the session is created. Every answer is durable before it leaves; the same point
    always gets the same answer; a session that crashed goes on with `reopen` exactly where it was.

    Parameters
    ----------
    learner : KernelLearner
        Fitted; stays on the trusted side.
    guarantee : Guarantee
        What all answers together promise; delta must be above 0.
    mechanism : {"function_release", "pinp"}, default="function_release"
        ``function_release``: noise of one size in every answer, however many. ``pinp``: JT13 Algorithm 1.
    state : path
        File for the session's state. It must not exist, and it must not leave: it holds the noise.
    ledger : Ledger, optional
        Budget to charge.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests, and the certificate says "not private".
    mode : {"tight", "paper"}, default="tight"
        ``paper`` is JT13's PINP with its printed constants, corrected.

    Attributes
    ----------
    certificate : SessionCertificate
        Theorem, constants, and what epsilon covers.
    exhausted : bool
        True once PINP answers from its public part alone.
    """

    def __init__(
        self,
        learner: Learner,
        guarantee: Guarantee,
        mechanism: str = "function_release",
        *,
        state: str | Path,
        ledger: Ledger | None = None,
        random_state: int | np.random.Generator | None = None,
        mode: str = "tight",
    ) -> None:
        _check_learner(learner)
        randomness = randomness_from(random_state)
        plan = _plan(learner, guarantee, mechanism, mode)
        check_free(state)
        header = _header(learner, plan, randomness)
        # The threshold is drawn before the charge, the file written after it: a crash between wastes the cost.
        header["threshold"] = plan.draw_threshold(randomness) if not isinstance(plan, FunctionRelease) else 0
        self._start(_charged_state(state, header, learner, plan, ledger), learner, plan, randomness)

    @classmethod
    def reopen(
        cls, state: str | Path, learner: Learner, *, random_state: int | np.random.Generator | None = None
    ) -> InteractivePredictor:
        """Continue a session, after a crash or a pause, with a learner fitted on the same records.

        Raises
        ------
        SessionError
            If there is no state, another process holds it, or the learner is not the one it was made with.
        """
        _check_learner(learner)
        opened = SessionState(state)
        try:
            plan = _recorded_plan(opened, learner)
            randomness = randomness_from(random_state)
            if opened.header["randomness"]["secure"] and not randomness.secure:
                raise SessionError("this session draws secure bits: reopen it without random_state")
            learner.restore_function(opened.function)
            session = cls.__new__(cls)
            session._start(opened, learner, plan, randomness)
        except BaseException:
            opened.close()
            raise
        return session

    def predict(self, z: Any) -> Any:
        """The label or number of one point, or an array of those of many.

        Parameters
        ----------
        z : array of shape (features,) or (n, features), mapping from columns to values, or table
            As the learner's encoder takes them.
        """
        return self.decide(z).predictions

    def decide(self, z: Any) -> Answers:
        """Scores, predictions, and where each answer comes from."""
        data, single = _as_rows(z)
        points = self._learner.encode(data)
        with self._lock:
            return Answers.of(self._answer(points), self._learner.predicted, single=single)

    @property
    def exhausted(self) -> bool:
        return self._session.exhausted

    def close(self) -> None:
        """Let another process have the session; leaving a ``with`` block does it too."""
        self._state.close()

    def __enter__(self) -> InteractivePredictor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        mechanism = self.certificate.mechanism
        return f"<InteractivePredictor {mechanism.name}, {mechanism.guarantee}, {len(self._known)} answers>"

    def __reduce__(self) -> NoReturn:
        raise SessionError(
            "a session holds private values and cannot be copied or pickled: reopen it from its state"
        )

    def _start(
        self, state: SessionState, learner: Learner, plan: SessionMechanism, randomness: Randomness
    ) -> None:
        self._state = state
        self._learner = learner
        self._lock = Lock()
        self._broken = False
        self._known: dict[bytes, Answer] = {}
        source = state.header["randomness"]
        self.certificate = SessionCertificate(
            plan, source["source"], source["secure"], learner.describe(), installed_versions()
        )
        self._session: FunctionSession | PinpSession
        if isinstance(plan, FunctionRelease):
            self._session = FunctionSession(plan, learner, randomness)
        else:
            self._session = PinpSession(plan, learner, randomness, state.header["threshold"])
        for record in state.records():
            self._recall(record)

    def _answer(self, points: Array) -> list[Answer]:
        self._state.check_open()
        if self._broken:
            raise SessionError(
                "answers could not be made durable: close the session and reopen it from its state"
            )
        keys = [numbers_to_bytes(point) for point in points]
        new = {key: place for place, key in enumerate(keys) if key not in self._known}
        places = sorted(new.values())
        size = self._session.largest_batch
        for start in range(0, len(places), size):
            self._answer_new(points[places[start : start + size]])
        return [self._known[key] for key in keys]

    def _answer_new(self, points: Array) -> None:
        records = self._session.answer(points)
        self._broken = True  # if writing fails, what is on disk is no longer known
        self._state.append(records)
        for record in records:
            self._recall(record)
        self._broken = False

    def _recall(self, record: Record) -> None:
        self._known[record.point] = Answer(record.scores, record.source)
        self._session.recall(record)


def _check_learner(learner: Any) -> None:
    if not hasattr(learner, "training_digest"):
        raise InvalidParameter("learner must be a fitted KernelLearner: KernelLearner(...).fit(table)")


def _plan(learner: Learner, guarantee: Guarantee, mechanism: str, mode: str) -> SessionMechanism:
    if mechanism not in MECHANISMS:
        raise InvalidParameter(f"mechanism must be one of {MECHANISMS}, not {mechanism!r}")
    if mode not in PINP:
        raise InvalidParameter(f"mode must be one of {tuple(PINP)}, not {mode!r}")
    check_guarantee(guarantee)
    facts = learner.facts(guarantee.neighbours)
    if mechanism == "pinp":
        return PINP[mode].calibrate(facts, guarantee)
    if mode != "tight":
        raise InvalidParameter("function release has no paper mode: leave mode out, or take mechanism='pinp'")
    return FunctionRelease.calibrate(facts, guarantee)


def _header(learner: Learner, plan: SessionMechanism, randomness: Randomness) -> dict[str, Any]:
    return {
        "mechanism": plan.name,
        "mode": plan.mode,
        "guarantee": plan.guarantee.to_dict(),
        "randomness": {"source": randomness.description, "secure": randomness.secure},
        "fingerprint": _fingerprint(learner, plan),
        "training": learner.training_digest(),
    }


def _fingerprint(learner: Learner, plan: SessionMechanism) -> str:
    """A digest of the public facts: kernel, encoding, labels, records, regularization, loss, guarantee, noise."""
    task = plan.facts.task
    facts = [
        learner.describe(), plan.name, plan.mode, plan.guarantee.to_dict(), plan.constants(),
        task.loss.to_dict(), task.total, task.regularization,
    ]  # fmt: skip
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _charged_state(
    path: str | Path, header: dict[str, Any], learner: Learner, plan: SessionMechanism, ledger: Ledger | None
) -> SessionState:
    """Reserve, write the state, commit: no answer can leave before the cost is durable."""
    if ledger is None:
        return SessionState.create(path, header, learner.function_bytes())
    cost = Cost(plan.guarantee, plan.renyi)
    with ledger.reserve(cost, f"InteractivePredictor, {plan.name}") as reservation:
        state = SessionState.create(path, header, learner.function_bytes())
        reservation.commit()
    return state


def _recorded_plan(state: SessionState, learner: Learner) -> SessionMechanism:
    header = state.header
    plan = _plan(learner, Guarantee(**header["guarantee"]), header["mechanism"], header["mode"])
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


def _as_rows(z: Any) -> tuple[Any, bool]:
    """Points as a table or matrix, and whether it was a single one."""
    if isinstance(z, Mapping):
        single = all(np.ndim(value) == 0 for value in z.values())
        return ({name: [value] for name, value in z.items()} if single else z), single
    if not isinstance(z, np.ndarray | list | tuple):
        return z, False
    points = quietly(
        lambda: np.asarray(z), "the points have different lengths: give one number for each feature"
    )
    return (points[np.newaxis], True) if points.ndim == 1 else (points, False)
