"""Predictions for points sent one after another; the records never leave, and neither does the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.data.sources.table import safely
from privlearn.errors import InvalidParameter, PrivlearnError, SessionError
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Budget
from privlearn.mechanisms.session.function_release import FunctionRelease
from privlearn.mechanisms.session.pinp import PaperPINP, TightPINP
from privlearn.mechanisms.session.task import SessionMechanism
from privlearn.randomness import Randomness, randomness_from
from privlearn.release.certified import installed_versions
from privlearn.release.model import probabilities_of
from privlearn.release.session_certificate import SessionCertificate
from privlearn.sessions.durable import Answer, Answers, Record, State, StateStore
from privlearn.sessions.machines import FunctionSession, PinpSession, SessionLearner
from privlearn.sessions.opening import calibrated, charge_of, check_learner, new_state, recorded_plan
from privlearn.sessions.points import points_for
from privlearn.sessions.shared import SharedStore
from privlearn.sessions.state import FileStore

POINTS_PER_TURN = 64
"""So many new points are answered before other processes get their turn: a store gives a transaction 30 seconds."""


class InteractivePredictor:
    """A session that answers an analyst's points, adaptively chosen, under one promise for all answers together.

    The ledger is charged once, when the session is created. Every answer is durable before it leaves; the same point
    always gets the same answer; a session that crashed goes on with `reopen` exactly where it was.

    Parameters
    ----------
    learner : KernelLearner
        Stays on the trusted side. Give it the records with `KernelLearner.read`, and it is fitted here, once the ledger
        is charged; one that was fitted before is taken as it is.
    guarantee : Guarantee
        What all answers together promise; delta must be above 0.
    mechanism : {"function_release", "pinp"}, default="function_release"
        ``function_release``: noise of one size in every answer, however many. ``pinp``: JT13 Algorithm 1.
    state : path or SharedStore
        File for the session's state, which must not exist; or a place in the ledger's store. Several processes may
        `reopen` the session and answer in turns. Neither may leave: it holds the noise.
    ledger : Ledger, optional
        Budget to charge.
    accept_weak_privacy : bool, default=False
        The word that an epsilon above 20 or a delta of at least 1/n needs.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests, and the certificate says "not private".
    mode : {"tight", "paper"}, default="tight"
        ``paper`` is JT13's PINP with its printed constants, corrected.
    queries : int, optional
        PINP: how many different points its threshold is made for, 10,000 unless given. In paper mode no more are
        answered from the private function.
    failure : float, optional
        PINP: probability with which the noise of so many tests may exceed what the threshold allows for, 0.05 unless
        given. Neither is part of the guarantee.

    Attributes
    ----------
    certificate : SessionCertificate
        Theorem, constants, and what epsilon covers.
    exhausted : bool
        True once PINP answers from its public part alone, as far as this process knows.
    """

    def __init__(
        self,
        learner: SessionLearner,
        guarantee: Guarantee,
        mechanism: str = "function_release",
        *,
        state: str | Path | SharedStore,
        ledger: Budget | None = None,
        accept_weak_privacy: bool = False,
        random_state: int | np.random.Generator | None = None,
        mode: str = "tight",
        queries: int | None = None,
        failure: float | None = None,
    ) -> None:
        check_learner(learner)
        randomness = randomness_from(random_state)
        asked = {"queries": queries, "failure": failure}
        sizes = {name: value for name, value in asked.items() if value is not None}
        plan = calibrated(learner, guarantee, mechanism, mode, sizes)
        store = _as_store(state)
        store.check_free()
        charge = charge_of(learner, plan, randomness, ledger=ledger, accept_weak_privacy=accept_weak_privacy)
        opened = charge.pay_for(lambda: new_state(store, learner, plan, randomness, sizes))
        self._start(opened, learner, plan, randomness)

    @classmethod
    def paid(
        cls, learner: SessionLearner, plan: SessionMechanism, state: SharedStore
    ) -> InteractivePredictor:
        """A new session whose cost the caller has reserved already, under an id of its own: the service's."""
        session, randomness = cls.__new__(cls), randomness_from(None)
        session._start(new_state(state, learner, plan, randomness), learner, plan, randomness)
        return session

    @classmethod
    def reopen(
        cls,
        state: str | Path | SharedStore,
        learner: SessionLearner,
        *,
        random_state: int | np.random.Generator | None = None,
    ) -> InteractivePredictor:
        """Continue a session, after a crash or a pause, with a learner fitted on the same records.

        The learner may also have been given the records alone, by `KernelLearner.read`: the state has the function.

        Raises
        ------
        SessionError
            If there is no state, or the learner is not the one it was made with.
        """
        check_learner(learner)
        opened = _as_store(state).open()
        try:
            plan = recorded_plan(opened, learner)
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
            As the learner's encoder takes them. Where its kernel reads objects: an object, or a list of them (an object
            that is itself a list is asked as a list of one).
        """
        return self.decide(z).predictions

    def predict_proba(self, z: Any) -> Array:
        """Probabilities of the classes at one point, or a row for each of many: of a learner with loss="logistic".

        They are functions of the answers' scores, and cost nothing beside them.
        """
        link = self.certificate.task.loss.link
        if link == "none":
            raise InvalidParameter(
                "this session's scores have no probabilities: KernelLearner(loss='logistic') has them"
            )
        answers, single = self._answers_to(z)
        found = probabilities_of(np.array([answer.scores for answer in answers]), link)
        return found[0] if single else found

    def decide(self, z: Any, admit: Callable[[int, int], None] | None = None) -> Answers:
        """Scores, predictions, and where each answer comes from.

        Parameters
        ----------
        z
            As in `predict`.
        admit : callable, optional
            Told how many of the points are new and how many were answered before them, ahead of the first answer; what
            it raises refuses them all.
        """
        answers, single = self._answers_to(z, admit)
        return Answers.of(answers, self._learner.predicted, single=single)

    def _answers_to(
        self, z: Any, admit: Callable[[int, int], None] | None = None
    ) -> tuple[list[Answer], bool]:
        """Durable answers, and whether it was a single point."""
        data, single = _as_objects(z) if self._learner.takes_objects else _as_rows(z)
        return self._answer(self._learner.encode(data), admit), single

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
        self, state: State, learner: SessionLearner, plan: SessionMechanism, randomness: Randomness
    ) -> None:
        self._state = state
        self._learner = learner
        self._lock, self._admission = Lock(), Lock()
        self._broken = False
        self._key = points_for(learner.keeps_objects).key
        self._known: dict[bytes, Answer] = {}
        self._waiting: dict[bytes, Any] = {}
        source = state.header["randomness"]
        self.certificate = SessionCertificate(
            plan, source["source"], source["secure"], learner.describe(), installed_versions()
        )
        self._session: FunctionSession | PinpSession
        if isinstance(plan, TightPINP | PaperPINP):
            self._session = PinpSession(plan, learner, randomness, state.header["threshold"])
        else:
            self._session = FunctionSession(cast(FunctionRelease, plan), learner, randomness)
        self._take_up(state.records())

    @property
    def answered(self) -> int:
        """Points that this process knows the answers of."""
        return len(self._known)

    def _answer(self, points: Sequence[Any], admit: Callable[[int, int], None] | None) -> list[Answer]:
        self._state.check_open()
        keys = [self._key(point) for point in points]
        asked = dict(zip(keys, points, strict=True))
        self._let_wait(asked, admit)
        try:
            with self._lock:
                self._answer_new(asked)
        finally:
            with self._admission:
                for key in asked:
                    self._waiting.pop(key, None)
        return [self._known[key] for key in keys]

    def _let_wait(self, asked: dict[bytes, Any], admit: Callable[[int, int], None] | None) -> None:
        """If they are admitted beside those that wait already: several callers at once get no more than one."""
        with self._admission:
            if admit is not None:
                others = {key for key in self._waiting if key not in self._known}
                new = sum(key not in self._known and key not in others for key in asked)
                admit(new, len(self._known) + len(others))
            self._waiting.update(asked)

    def _answer_new(self, asked: dict[bytes, Any]) -> None:
        """One caller's points, and those of callers that wait for the lock meanwhile: they share the commit."""
        size = min(self._session.largest_batch, POINTS_PER_TURN)
        own = [point for key, point in asked.items() if key not in self._known]
        for start in range(0, len(own), size):
            some = own[start : start + size]
            others = [point for key, point in list(self._waiting.items()) if key not in asked]
            others = others[: size - len(some)]
            try:
                self._take_turn([*some, *others])
            except PrivlearnError:
                if not others:
                    raise
                self._take_turn(some)  # nobody is refused for another caller's point

    def _take_turn(self, points: list[Any]) -> None:
        if self._broken:
            raise SessionError(
                "answers could not be made durable: close the session and reopen it from its state"
            )
        with self._state.turn() as turn:
            self._take_up(turn.missed(len(self._known)))
            unknown = [point for point in points if self._key(point) not in self._known]
            records = self._session.answer(unknown) if unknown else []
            turn.append(records)  # if that fails, what became of it is read in the next turn
        self._take_up(records)

    def _take_up(self, records: Iterable[Record]) -> None:
        """Durable answers, in their order; if that is interrupted, later noise could not be drawn given all of them."""
        self._broken = True
        for record in records:
            self._known[record.point] = Answer(record.scores, record.source)
            self._session.recall(record)
        self._broken = False


def _as_store(state: str | Path | SharedStore) -> StateStore:
    return state if isinstance(state, SharedStore) else FileStore(state)


def _as_rows(z: Any) -> tuple[Any, bool]:
    """Points as a table or matrix, and whether it was a single one."""
    if isinstance(z, Mapping):
        single = all(np.ndim(value) == 0 for value in z.values())
        return ({name: [value] for name, value in z.items()} if single else z), single
    if not isinstance(z, np.ndarray | list | tuple):
        return z, False
    points = safely(
        lambda: np.asarray(z), "the points have different lengths: give one number for each feature"
    )
    one = points.ndim == 1 and points.dtype.kind not in "SU"  # texts are no row, and the learner says so
    return (points[np.newaxis], True) if one else (points, False)


def _as_objects(z: Any) -> tuple[Any, bool]:
    """A list is many points; anything else is one object, unless it is a column of them."""
    column = hasattr(z, "to_pylist") or (hasattr(z, "tolist") and not isinstance(z, np.ndarray | np.generic))
    return (z, False) if isinstance(z, list) or column else ([z], True)
