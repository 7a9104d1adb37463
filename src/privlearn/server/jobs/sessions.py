"""The sessions that this process has open: what a session answers from is read once and cached while it is used."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from privlearn.data.sources.passes import available_cores
from privlearn.data.sources.table import safely
from privlearn.errors import LedgerError, SessionError
from privlearn.release.artifact import Release
from privlearn.release.encoders import FourierEncoder, KernelEncoder
from privlearn.release.model import RegressionModel, probabilities_of
from privlearn.server.holder.catalog import Catalogs
from privlearn.server.holder.recipes import kernel_learner
from privlearn.server.jobs import results
from privlearn.server.jobs.requests import Predictions, ResultInfo, Row, by_class, join_predictions
from privlearn.server.jobs.running import reason_of
from privlearn.sessions.interactive import Admission, InteractivePredictor
from privlearn.sessions.state import SharedStore

MAX_OPEN = 32
MAX_MEMORY = 128 << 20
"""Limits of the cache: number of sessions and their bytes. A discarded session is read again when it is used."""
MAX_SMALL = 1 << 20
"""Bytes of a model that answers a few rows on the event loop."""
MIN_SPLIT_ROWS = 512
CORES = min(available_cores(), 8)
_THREADS = ThreadPoolExecutor(max(CORES - 1, 1), "privlearn-parts")

_log = logging.getLogger("privlearn.service")


class Answering(Protocol):
    """The part of a session that computes its answers."""

    @property
    def memory(self) -> int:
        """Approximate size in bytes."""

    def predict(self, rows: pa.Table | Row, admission: Admission | None) -> Predictions: ...
    def close(self) -> None: ...


class FromModel:
    """A private model: its noise was drawn once, so a point always has the same answer, up to rounding."""

    def __init__(self, content: bytes) -> None:
        self.memory = len(content)
        self._model: Any = Release.from_bytes(content).model
        self._for_one = self._model
        if isinstance(self._model.encoder, KernelEncoder):
            self._for_one = replace(self._model, encoder=self._model.encoder.row_by_row())
        # Without a kernel, reading the columns of each part takes longer than computing its answers.
        self._is_divided = isinstance(self._model.encoder, KernelEncoder | FourierEncoder)

    def predict(self, rows: pa.Table | Row, admission: Admission | None) -> Predictions:
        """Return the answers; a large batch of a kernel model is computed in parts, one for each core."""
        if isinstance(rows, dict):
            return self._predict(self._for_one, rows, 1)
        if rows.num_rows == 1:  # read without Arrow, which is faster for one row
            return self._predict(self._for_one, safely(rows.to_pydict, _NO_TIME), 1)
        count = CORES if self._is_divided and rows.num_rows >= MIN_SPLIT_ROWS else 1
        size = -(-rows.num_rows // count)
        parts = [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
        later = [_THREADS.submit(self._predict, self._model, part, part.num_rows) for part in parts[1:]]
        first = self._predict(self._model, parts[0], parts[0].num_rows)
        return join_predictions([first, *(one.result() for one in later)])

    def _predict(self, model: Any, data: pa.Table | Row, count: int) -> Predictions:
        sources = np.full(count, "model")
        if isinstance(model, RegressionModel):
            numbers = model.predict(data)
            return Predictions(numbers, numbers, sources)
        scores, probabilities = model.decisions_and_probabilities(data)
        return Predictions(model.labels(scores), scores, sources, by_class(model.classes, probabilities))

    def close(self) -> None:
        """Do nothing: a model holds no resources."""


class FromKernelMachine:
    """An exact kernel machine behind `InteractivePredictor`, which stores every answer before it leaves."""

    def __init__(self, predictor: InteractivePredictor, classes: tuple[Any, ...]) -> None:
        self._predictor = predictor
        self._classes = classes

    @property
    def memory(self) -> int:
        return 4 * self._predictor.answer_count**2  # half of a square matrix from which the noise is drawn

    def predict(self, rows: pa.Table | Row, admission: Admission | None) -> Predictions:
        answers, link = self._predictor.decide(rows, admission), self._predictor.certificate.task.loss.link
        scores = answers.scores.reshape(len(answers.scores), -1)
        probabilities = None if link == "none" else probabilities_of(scores, link)
        by_name = by_class(self._classes, probabilities)
        return Predictions(answers.predictions, answers.scores, answers.sources, by_name)

    def close(self) -> None:
        self._predictor.close()


class OpenSessions:
    """A cache of open sessions; the least recently used is discarded first."""

    def __init__(self, store: str, catalogs: Catalogs) -> None:
        self._store = store
        self._catalogs = catalogs
        self._cached: OrderedDict[str, Answering] = OrderedDict()
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}

    def is_small(self, session_id: str) -> bool:
        """Return whether the session answers a few rows within milliseconds: from a small model that is in memory."""
        held = self._cached.get(session_id)
        return isinstance(held, FromModel) and held.memory <= MAX_SMALL

    def predict(
        self, session: ResultInfo, rows: pa.Table | Row, admission: Admission | None = None
    ) -> Predictions:
        """Return the session's answers at the rows."""
        try:
            return self._get(session).predict(rows, admission)
        finally:
            self._discard_excess()

    def discard(self, session_id: str) -> None:
        """Close a session and drop it from the cache."""
        with self._lock:
            held = self._cached.pop(session_id, None)
        if held is not None:
            held.close()

    def _get(self, session: ResultInfo) -> Answering:
        with self._lock:
            held = self._cached.get(session.id)
            if held is not None:
                self._cached.move_to_end(session.id)
                return held
            opening = self._opening.setdefault(session.id, threading.Lock())
        with opening:  # reading rows is slow: one thread reads, and other sessions continue
            with self._lock:
                held = self._cached.get(session.id)
            if held is None:
                held = self._open(session)
                self._store_open(session.id, held)
        return held

    def _store_open(self, session_id: str, answering: Answering) -> None:
        with self._lock:
            self._cached[session_id] = answering
            self._opening.pop(session_id, None)

    def _discard_excess(self) -> None:
        """Discard sessions beyond the limits. One in use is freed when its answer is ready."""
        with self._lock:
            while len(self._cached) > 1 and (
                len(self._cached) > MAX_OPEN
                or sum(held.memory for held in self._cached.values()) > MAX_MEMORY
            ):
                self._cached.popitem(last=False)

    def _open(self, session: ResultInfo) -> Answering:
        try:
            if session.mechanism == "model":
                return FromModel(results.content_of(self._store, session.id))
            return self._reopen(session)
        except LedgerError:
            raise
        except Exception as error:
            _log.error("session %s cannot continue: %s", session.id, reason_of(error))
        # Raised outside of the handler, so that the rows' error is not attached to it as a cause.
        raise SessionError(_STOPPED)

    def _reopen(self, session: ResultInfo) -> FromKernelMachine:
        offered = self._catalogs.now.find(session.dataset, session.version)
        used = offered.trial_dataset if session.trial else offered
        learner = kernel_learner(used.learners[session.learner], used.schema, session.guarantee)
        learner.read(used.read_rows())
        predictor = InteractivePredictor.reopen(SharedStore(self._store, session.id), learner)
        target = used.schema.target
        return FromKernelMachine(predictor, () if target is None else target.classes)


_NO_TIME = "the row has a date or a time that does not exist. Correct it."
_STOPPED = (
    "this session cannot continue, because its data or settings have changed; the reason is in the holder's log. "
    "Ask the holder to restore them, or open another session."
)
