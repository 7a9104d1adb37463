"""`InteractivePredictor`: predictions for points sent one after another, without releasing records or model.

Answers are durable before they leave, and the noise of new points is drawn given all answers so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.budget.charge import Budget
from privlearn.data.sources.table import safely
from privlearn.errors import InvalidParameter, PrivlearnError, SessionError
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.function_release import FunctionRelease
from privlearn.mechanisms.session.pinp import PaperPINP, TightPINP
from privlearn.mechanisms.session.task import SessionMechanism
from privlearn.randomness import Randomness, randomness_from
from privlearn.release.base_certificate import library_versions
from privlearn.release.model import probabilities_of
from privlearn.release.session_certificate import SessionCertificate
from privlearn.sessions.machines import FrozenLearner, FunctionSession, PinpSession, SessionLearner
from privlearn.sessions.opening import calibrate, charge_of, freeze, new_state, restore_mechanism
from privlearn.sessions.records import Answer, Answers, Record, points_for
from privlearn.sessions.state import FileStore, SharedState, SharedStore

POINTS_PER_LOCK = 64
"""New points that are answered before the lock is released to other processes: a transaction may take 30 seconds."""


@dataclass(frozen=True)
class Admission:
    """Limits on the new points of a session, shared by all its processes; refuse by raising an error of privlearn.

    Parameters
    ----------
    check : callable
        Called with the number of new points and the number of points answered before. The first call is before the
        points wait. The second is inside the transaction that stores their answers, after the answers of other
        processes were read, so that all processes together respect the limit. It must have no side effects.
    charge : callable
        Called once with the number of new points, before they wait.
    """

    check: Callable[[int, int], None]
    charge: Callable[[int], None] = lambda new: None


class InteractivePredictor:
    """A session that answers an analyst's points, adaptively chosen, under one guarantee for all answers together.

    The ledger is charged once, when the session is created. Every answer is durable before it leaves; the same point
    always gets the same answer; after a crash, `reopen` continues the session exactly where it stopped.

    Parameters
    ----------
    learner : KernelLearner
        Stays on the trusted side. Give it the records with `KernelLearner.read`: the session solves, once the ledger is
        charged. The functions of a fitted learner are taken as they are. The session keeps what the learner holds now;
        fitting the learner again or setting its parameters changes no session.
    guarantee : Guarantee, optional
        Guarantee of all answers together; delta must be above 0. Or pass ``epsilon``, ``delta`` and ``neighbours``.
    mechanism : {"function_release", "pinp"}, default="function_release"
        ``function_release``: noise of the same size in every answer, for any number. ``pinp``: JT13 Algorithm 1.
    state : path or SharedStore
        File for the session's state, which must not exist; or a `SharedStore` in the ledger's store. Several processes
        may `reopen` the session; a lock orders their answers. Keep the state private: it holds the noise.
    ledger : Ledger, optional
        Budget to charge.
    accept_weak_privacy : bool, default=False
        Allows an epsilon above 20 or a delta of at least 1/n.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests, and the certificate is marked "not private".
    mode : {"tight", "paper"}, default="tight"
        ``paper`` is JT13's PINP with its printed constants, corrected.
    queries : int, optional
        PINP: number of different points that its threshold is calibrated for, by default 10,000. In paper mode no
        more are answered from the private function.
    failure : float, optional
        PINP: probability that the noise of these tests exceeds what the threshold allows for, by default 0.05.
        Neither is part of the guarantee.

    Attributes
    ----------
    certificate : SessionCertificate
        Theorem, constants, and what epsilon covers.
    exhausted : bool
        True once PINP answers from its public part alone, by the answers that this process has read.
    """

    def __init__(
        self,
        learner: SessionLearner,
        guarantee: Guarantee | None = None,
        mechanism: str = "function_release",
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        neighbours: str = "replace_one",
        state: str | Path | SharedStore,
        ledger: Budget | None = None,
        accept_weak_privacy: bool = False,
        random_state: int | np.random.Generator | None = None,
        mode: str = "tight",
        queries: int | None = None,
        failure: float | None = None,
    ) -> None:
        if (guarantee is None) == (epsilon is None):
            raise InvalidParameter("pass epsilon=... and delta=..., or a Guarantee, and not both")
        guarantee = guarantee or Guarantee(epsilon or 0.0, delta, neighbours)
        frozen = freeze(learner)
        randomness = randomness_from(random_state)
        requested = {"queries": queries, "failure": failure}
        sizes = {name: value for name, value in requested.items() if value is not None}
        calibrated = calibrate(frozen, guarantee, mechanism, mode, sizes)
        store = _as_store(state)
        store.check_free()
        charge = charge_of(
            frozen, calibrated, randomness, ledger=ledger, accept_weak_privacy=accept_weak_privacy
        )
        opened, solved = charge.pay_for(lambda: new_state(store, frozen, calibrated, randomness, sizes))
        self._start(opened, solved, calibrated, randomness)

    @classmethod
    def open_reserved(
        cls, learner: SessionLearner, mechanism: SessionMechanism, state: SharedStore
    ) -> InteractivePredictor:
        """Return a new session whose cost the caller has already reserved; for the server."""
        session, randomness = cls.__new__(cls), randomness_from(None)
        opened, solved = new_state(state, freeze(learner), mechanism, randomness)
        session._start(opened, solved, mechanism, randomness)
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

        A learner that has only read the records, by `KernelLearner.read`, is enough: the state has the function.

        Raises
        ------
        SessionError
            If there is no state, or it was created with another learner.
        """
        frozen = freeze(learner)
        opened = _as_store(state).open()
        try:
            mechanism = restore_mechanism(opened, frozen)
            randomness = randomness_from(random_state)
            if opened.header["randomness"]["secure"] and not randomness.secure:
                raise SessionError("this session draws secure bits. Reopen it without random_state")
            session = cls.__new__(cls)
            session._start(opened, frozen.restore_function(opened.function), mechanism, randomness)
        except BaseException:
            opened.close()
            raise
        return session

    def predict(self, z: Any) -> Any:
        """Return the label or number of one point, or an array for many points.

        Parameters
        ----------
        z : array of shape (features,) or (n, features), mapping from columns to values, or table
            As the learner's encoder takes them. Where its kernel reads objects: an object, or a list of them (pass an
            object that is itself a list as a list of one).
        """
        return self.decide(z).predictions

    def predict_proba(self, z: Any) -> Array:
        """Return the probabilities of the classes at one point, or a row for each of many; needs loss="logistic".

        They are functions of the answers' scores, at no further cost.
        """
        link = self.certificate.task.loss.link
        if link == "none":
            raise InvalidParameter(
                "this session's scores have no probabilities: KernelLearner(loss='logistic') has them"
            )
        answers, single = self._answers_to(z)
        probabilities = probabilities_of(np.array([answer.scores for answer in answers]), link)
        return probabilities[0] if single else probabilities

    def decide(self, z: Any, admission: Admission | None = None) -> Answers:
        """Return scores, predictions, and the source of each answer.

        Parameters
        ----------
        z
            As in `predict`.
        admission : Admission, optional
            Limits on new points. What it raises before the first answer refuses all points. Points beyond the limit
            because of other processes are refused later, and those stored until then stay answered.
        """
        answers, single = self._answers_to(z, admission)
        return Answers.of(answers, self._learner.predict, single=single)

    def _answers_to(self, z: Any, admission: Admission | None = None) -> tuple[list[Answer], bool]:
        """Return durable answers, and whether the query was a single point."""
        data, single = _as_objects(z) if self._learner.takes_objects else _as_rows(z)
        return self._answer(self._learner.encode(data), admission), single

    @property
    def exhausted(self) -> bool:
        """Return whether PINP answers from its public part alone."""
        return self._session.exhausted

    def close(self) -> None:
        """Close the session; leaving a ``with`` block does it too."""
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
            "a session holds private values and cannot be copied or pickled. Reopen it from its state"
        )

    def _start(
        self, state: SharedState, learner: FrozenLearner, mechanism: SessionMechanism, randomness: Randomness
    ) -> None:
        self._state = state
        self._learner = learner
        self._lock, self._admission = Lock(), Lock()
        self._broken = False
        self._key = points_for(learner.keeps_objects).key
        self._known: dict[bytes, Answer] = {}
        self._waiting: dict[bytes, tuple[Any, bool]] = {}  # each point, and whether it has an admission
        source = state.header["randomness"]
        self.certificate = SessionCertificate(
            mechanism, source["source"], source["secure"], learner.describe(), library_versions()
        )
        self._session: FunctionSession | PinpSession
        if isinstance(mechanism, TightPINP | PaperPINP):
            self._session = PinpSession(mechanism, learner, randomness, state.header["threshold"])
        else:
            self._session = FunctionSession(cast(FunctionRelease, mechanism), learner, randomness)
        self._remember(state.records())

    @property
    def answer_count(self) -> int:
        """Return the number of answers that this process has read or given."""
        return len(self._known)

    def _answer(self, points: Sequence[Any], admission: Admission | None) -> list[Answer]:
        self._state.check_open()
        keys = [self._key(point) for point in points]
        queried = dict(zip(keys, points, strict=True))
        self._admit(queried, admission)
        try:
            with self._lock:
                self._answer_new(queried, admission)
        finally:
            with self._admission:
                for key in queried:
                    self._waiting.pop(key, None)
        return [self._known[key] for key in keys]

    def _admit(self, queried: dict[bytes, Any], admission: Admission | None) -> None:
        """Let points wait if they are admitted in addition to waiting ones: concurrent callers share one limit."""
        with self._admission:
            if admission is not None:
                others = {key for key in self._waiting if key not in self._known}
                new = sum(key not in self._known and key not in others for key in queried)
                admission.check(new, len(self._known) + len(others))
                admission.charge(new)
            self._waiting.update({key: (point, admission is not None) for key, point in queried.items()})

    def _answer_new(self, queried: dict[bytes, Any], admission: Admission | None) -> None:
        """Answer one caller's points together with those of callers that wait: they share the commit."""
        size = min(self._session.max_batch, POINTS_PER_LOCK)
        own = [point for key, point in queried.items() if key not in self._known]
        for start in range(0, len(own), size):
            some = own[start : start + size]
            later = own[start + size :]
            others = [
                point
                for key, (point, limited) in list(self._waiting.items())
                if key not in queried and limited == (admission is not None)
            ]
            others = others[: size - len(some)]
            try:
                self._answer_locked([*some, *others], later, admission)
            except PrivlearnError:
                if not others:
                    raise
                # The refusal may be due to another caller's point.
                self._answer_locked(some, later, admission)

    def _answer_locked(self, points: list[Any], later: list[Any], admission: Admission | None) -> None:
        """Answer new points under the lock, if the limit admits them and the caller's remaining points."""
        if self._broken:
            raise SessionError(
                "answers could not be made durable. Close the session and reopen it from its state"
            )
        with self._state.lock() as locked:
            # Noise is drawn given all earlier draws, so those of other processes are read first.
            self._remember(locked.records_after(len(self._known)))
            unknown = [point for point in points if self._key(point) not in self._known]
            if admission is not None:
                following = sum(self._key(point) not in self._known for point in later)
                admission.check(len(unknown) + following, len(self._known))
            records = self._session.answer(unknown) if unknown else []
            locked.append(records)  # after a failure, the next lock reads whether they are durable
        # Only after the block: until the commit a crash would undo the answers, and no caller may have them.
        self._remember(records)

    def _remember(self, records: Iterable[Record]) -> None:
        """Take durable answers into memory, in order; an interruption breaks the session: noise depends on them."""
        self._broken = True
        for record in records:
            self._known[record.point] = Answer(record.scores, record.source)
            self._session.recall(record)
        self._broken = False


def _as_store(state: str | Path | SharedStore) -> FileStore | SharedStore:
    return state if isinstance(state, SharedStore) else FileStore(state)


def _as_rows(z: Any) -> tuple[Any, bool]:
    """Return points as a table or matrix, and whether it was a single one."""
    if isinstance(z, Mapping):
        single = all(np.ndim(value) == 0 for value in z.values())
        return ({name: [value] for name, value in z.items()} if single else z), single
    if not isinstance(z, np.ndarray | list | tuple):
        return z, False
    points = safely(
        lambda: np.asarray(z), "the points have different lengths. Give one number for each feature"
    )
    one = points.ndim == 1 and points.dtype.kind not in "SU"  # the learner refuses texts as a row
    return (points[np.newaxis], True) if one else (points, False)


def _as_objects(z: Any) -> tuple[Any, bool]:
    """Return a list of objects, and whether it was a single one: a list or a column is many points."""
    column = hasattr(z, "to_pylist") or (hasattr(z, "tolist") and not isinstance(z, np.ndarray | np.generic))
    return (z, False) if isinstance(z, list) or column else ([z], True)
