"""Sessions as this process holds them: what they answer from is read once and kept while it is asked."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from privlearn.errors import LedgerError, SessionError
from privlearn.release.artifact import Release
from privlearn.release.encoders import KernelEncoder
from privlearn.release.model import RegressionModel, probabilities_of
from privlearn.service.holder.catalogs import Catalogs
from privlearn.service.jobs import results
from privlearn.service.jobs.recipes import kernel_learner
from privlearn.service.jobs.requests import Predictions, ResultInfo, by_class
from privlearn.service.jobs.training import reason_of
from privlearn.sessions import InteractivePredictor
from privlearn.sessions.shared import SharedStore

MOST_OPEN = 32
MOST_MEMORY = 128 << 20
"""Sessions held at a time, and bytes of them; one that was let go is read again when it is asked."""

Admit = Callable[[int, int], None]
"""Is told how many points are new and how many were answered before, and refuses by raising."""


_log = logging.getLogger("privlearn.service")


class Answering(Protocol):
    """What a session answers from."""

    @property
    def memory(self) -> int:
        """Bytes that it takes here, about."""

    def predict(self, rows: pa.Table, admit: Admit | None) -> Predictions: ...
    def close(self) -> None: ...


class FromModel:
    """A private model that stays here: its noise was drawn once, so a point has one answer, up to rounding."""

    def __init__(self, content: bytes) -> None:
        self.memory = len(content)
        self._model: Any = Release.from_bytes(content).model
        self._for_one = self._model
        if isinstance(self._model.encoder, KernelEncoder):
            self._for_one = replace(self._model, encoder=self._model.encoder.one_by_one())

    def predict(self, rows: pa.Table, admit: Admit | None) -> Predictions:
        single = rows.num_rows == 1  # its cells are read without Arrow, and by itself
        model, data = (self._for_one, rows.to_pydict()) if single else (self._model, rows)
        sources = np.full(rows.num_rows, "model")
        if isinstance(model, RegressionModel):
            numbers = model.predict(data)
            return Predictions(numbers, numbers, sources)
        scores, probabilities = model.decisions_and_probabilities(data)
        return Predictions(model.labels(scores), scores, sources, by_class(model.classes, probabilities))

    def close(self) -> None:
        """Nothing is held."""


class FromKernelMachine:
    """An exact kernel machine behind `InteractivePredictor`, which writes every answer down before it leaves."""

    def __init__(self, predictor: InteractivePredictor, classes: tuple[Any, ...]) -> None:
        self._predictor = predictor
        self._classes = classes

    @property
    def memory(self) -> int:
        return 4 * self._predictor.answered**2  # one half of a square matrix, which the noise is drawn with

    def predict(self, rows: pa.Table, admit: Admit | None) -> Predictions:
        answers, link = self._predictor.decide(rows, admit), self._predictor.certificate.task.loss.link
        scores = answers.scores.reshape(len(answers.scores), -1)
        probabilities = None if link == "none" else probabilities_of(scores, link)
        of_classes = by_class(self._classes, probabilities)
        return Predictions(answers.predictions, answers.scores, answers.sources, of_classes)

    def close(self) -> None:
        self._predictor.close()


class OpenSessions:
    """The sessions that this process has at hand, the least recently asked let go first."""

    def __init__(self, store: str, catalogs: Catalogs) -> None:
        self._store = store
        self._catalogs = catalogs
        self._held: OrderedDict[str, Answering] = OrderedDict()
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}

    def predict(self, session: ResultInfo, rows: pa.Table, admit: Admit | None = None) -> Predictions:
        try:
            return self._get(session).predict(rows, admit)
        finally:
            self._make_room()

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

    def _make_room(self) -> None:
        """One that is let go while another thread asks it is freed when that has its answer."""
        with self._lock:
            while len(self._held) > 1 and (
                len(self._held) > MOST_OPEN or sum(held.memory for held in self._held.values()) > MOST_MEMORY
            ):
                self._held.popitem(last=False)

    def _open(self, session: ResultInfo) -> Answering:
        try:
            if session.mechanism == "model":
                return FromModel(results.content_of(self._store, session.id))
            return self._reopened(session)
        except LedgerError:
            raise
        except Exception as error:
            _log.error("session %s cannot go on: %s", session.id, reason_of(error))
        # Raised only now, so that it does not carry along what the rows were found to be.
        raise SessionError(_STOPPED)

    def _reopened(self, session: ResultInfo) -> FromKernelMachine:
        offered = self._catalogs.now.named(session.dataset, session.version)
        used = offered.made_up if session.trial else offered
        learner = kernel_learner(used.learners[session.learner], used.schema, session.guarantee)
        learner.read(used.read_rows())
        predictor = InteractivePredictor.reopen(SharedStore(self._store, session.id), learner)
        target = used.schema.target
        return FromKernelMachine(predictor, () if target is None else target.classes)


_STOPPED = (
    "this session cannot go on: what it was opened with has changed on the holder's side, who finds the reason in the "
    "log. Ask the holder to put it back, or open another session"
)
