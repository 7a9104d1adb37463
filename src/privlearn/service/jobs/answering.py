"""Sessions as this process holds them: what they answer from is read once and kept while it is asked."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from privlearn.errors import LedgerError, SessionError
from privlearn.release.artifact import Release
from privlearn.release.model import RegressionModel
from privlearn.service.holder.datasets import Catalog
from privlearn.service.jobs import results
from privlearn.service.jobs.recipes import kernel_learner
from privlearn.service.jobs.requests import Predictions, ResultInfo
from privlearn.service.jobs.training import reason_of
from privlearn.sessions import InteractivePredictor
from privlearn.sessions.shared import SharedStore

MOST_OPEN = 32
"""Sessions held at a time; one that was let go is read again when it is asked."""


_log = logging.getLogger("privlearn.service")


class Answering(Protocol):
    """What a session answers from."""

    def predict(self, rows: pa.Table) -> Predictions: ...
    def close(self) -> None: ...


class FromModel:
    """A private model that stays here: its noise was drawn once, so a point has one answer, up to rounding."""

    def __init__(self, release: Release) -> None:
        self._model: Any = release.model

    def predict(self, rows: pa.Table) -> Predictions:
        model = self._model
        if isinstance(model, RegressionModel):
            predictions = scores = model.predict(rows)
        else:
            scores = model.decision_function(rows)
            predictions = model.labels(scores)
        return Predictions(predictions, scores, np.full(len(predictions), "model"))

    def close(self) -> None:
        """Nothing is held."""


class FromKernelMachine:
    """An exact kernel machine behind `InteractivePredictor`, which writes every answer down before it leaves."""

    def __init__(self, predictor: InteractivePredictor) -> None:
        self._predictor = predictor

    def predict(self, rows: pa.Table) -> Predictions:
        answers = self._predictor.decide(rows)
        return Predictions(answers.predictions, answers.scores, answers.sources)

    def close(self) -> None:
        self._predictor.close()


class OpenSessions:
    """The sessions that this process has at hand, the least recently asked let go first."""

    def __init__(self, store: str, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._held: OrderedDict[str, Answering] = OrderedDict()
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}

    def predict(self, session: ResultInfo, rows: pa.Table) -> Predictions:
        return self._get(session).predict(rows)

    def let_go(self, session_id: str) -> None:
        with self._lock:
            held = self._held.pop(session_id, None)
        if held is not None:
            held.close()

    def _get(self, session: ResultInfo) -> Answering:
        with self._lock:
            held = self._held.get(session.id)
            if held is not None:
                self._held.move_to_end(session.id)
                return held
            opening = self._opening.setdefault(session.id, threading.Lock())
        with opening:  # reading rows takes its time: others go on meanwhile, and only one reads
            with self._lock:
                held = self._held.get(session.id)
            if held is None:
                held = self._open(session)
                self._keep(session.id, held)
        return held

    def _keep(self, session_id: str, answering: Answering) -> None:
        with self._lock:
            self._held[session_id] = answering
            self._opening.pop(session_id, None)
            if len(self._held) > MOST_OPEN:
                self._held.popitem(last=False)

    def _open(self, session: ResultInfo) -> Answering:
        if session.mechanism == "model":
            return FromModel(Release.from_bytes(results.content_of(self._store, session.id)))
        try:
            return FromKernelMachine(self._reopened(session))
        except LedgerError:
            raise
        except Exception as error:
            _log.error("session %s cannot go on: %s", session.id, reason_of(error))
        # Raised only now, so that it does not carry along what the rows were found to be.
        raise SessionError(_STOPPED)

    def _reopened(self, session: ResultInfo) -> InteractivePredictor:
        offered = self._catalog.named(session.dataset)
        used = offered.made_up if session.trial else offered
        learner = kernel_learner(used.learners[session.learner], used.schema, session.guarantee)
        learner.read(used.read_rows())
        return InteractivePredictor.reopen(SharedStore(self._store, session.id), learner)


_STOPPED = (
    "this session cannot go on: what it was opened with has changed on the holder's side, who finds the reason in the "
    "log. Ask the holder to put it back, or open another session"
)
