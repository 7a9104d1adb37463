"""The verbs of the service."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import pyarrow as pa

from privlearn.charged import AskedJob, remember_asked
from privlearn.client.connection import Connection
from privlearn.client.job import RemoteJob, RemoteResult, fetched
from privlearn.client.session import ARROW, RemoteSession, from_arrow, rows_of, to_arrow
from privlearn.guarantee import Guarantee

if TYPE_CHECKING:
    from privlearn.evaluation import Evaluation
    from privlearn.release.artifact import Release

Record = dict[str, Any]

_PAGE = 1000
"""As many as a server gives at a time."""


class Client:
    """A trusted learner on the network, as `privlearn serve` runs it.

    Parameters
    ----------
    url : str
        Its address. Without TLS only this machine's own is taken.
    key : str, optional
        As `privlearn keys create` printed it; left out, the environment's ``PRIVLEARN_KEY``. It is in no message,
        representation or pickle.
    verify : path, optional
        The certificate (PEM) of the authority that signed the server's, if it is a private one.
    plain_http : bool, default=False
        Allow ``http://`` to another machine: only where something else encrypts the connection.
    patience : float, default=60
        Seconds to keep trying if the server does not answer or is busy. What is tried again is never paid twice.

    Examples
    --------
    >>> Client("http://learner.example", key="pl_1_x")
    Traceback (most recent call last):
        ...
    privlearn.errors.InvalidParameter: http:// would send the key readable over the network: use https://, ...
    >>> Client("https://learner.example", key="pl_1_x")
    <Client of https://learner.example>
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        verify: str | Path | None = None,
        plain_http: bool = False,
        patience: float = 60.0,
    ) -> None:
        self._connection = Connection(url, key, verify=verify, plain_http=plain_http, patience=patience)

    # --- what there is ---

    def me(self) -> Record:
        """Whose key this is."""
        return self._record("/me")

    def datasets(self) -> list[Record]:
        """The data sets that this key may ask about."""
        return self._list("/datasets")

    def dataset(self, name: str) -> Record:
        """A data set's public side: schema, number of records, learners on offer."""
        return self._record(_path("/datasets", name))

    def budget(self, name: str, before: str | None = None) -> Record:
        """What is spent, reserved and left of a data set's budget and of one's share, and the newest 100 entries.

        Parameters
        ----------
        name : str
        before : str, optional
            Id of a reservation: the entries before it instead.
        """
        return self._record(_path("/datasets", name, "budget"), before=before)

    def kinds(self) -> list[Record]:
        """The kinds of job that the server does, and what each is asked with."""
        return self._list("/kinds")

    def estimate(
        self, name: str, *, epsilon: float, delta: float = 0.0, kind: str = "session", **fields: Any
    ) -> Record:
        """What a job would cost and, of a training, how noisy it would be. Free: it is computed from public facts.

        Parameters
        ----------
        name, epsilon, delta
            As in `ask`.
        kind : str, default="session"
            Whose model is that of a release too.
        fields
            What the kind is asked with, such as ``learner``.
        """
        body = _body(kind, name, Guarantee(epsilon, delta), fields)
        return dict(self._connection.send("POST", "/estimates", json=body).json())

    def synthetic(self, name: str, rows: int = 100, seed: int | None = None) -> pa.Table:
        """Rows made up from the schema, the target included. Free, and about nobody."""
        path = _path("/datasets", name, "synthetic")
        return from_arrow(self._connection.get(path, accept=ARROW, rows=rows, seed=seed).content)

    # --- what costs budget ---

    def ask(
        self,
        kind: str,
        name: str,
        *,
        epsilon: float,
        delta: float = 0.0,
        trial: bool = False,
        public_points: Any = None,
        idempotency_key: str | None = None,
        note: str | None = None,
        purpose: str | None = None,
        legal_basis: str | None = None,
        **fields: Any,
    ) -> RemoteJob:
        """Have a job of any kind done, and do not wait: ``client.ask("release", "census", epsilon=1).result()`` does.

        Parameters
        ----------
        kind : str
            One of `kinds`.
        name, epsilon, delta, trial, public_points, idempotency_key, note, purpose, legal_basis
            As in `train`.
        fields
            What the kind is asked with.

        Raises
        ------
        BudgetExceeded
            Before anything is computed or spent.
        """
        promise = Guarantee(epsilon, delta)  # refuses what no server would take
        words = {"note": note, "purpose": purpose, "legal_basis": legal_basis}
        body = _body(kind, name, promise, fields | words | {"trial": trial})
        asked = AskedJob()
        remember_asked(asked)
        return RemoteJob(self._connection, self._submit(body, public_points, idempotency_key), asked)

    def release(self, name: str, *, epsilon: float, delta: float = 0.0, **options: Any) -> Release:
        """Train, wait, and fetch the released model, verified; the options are those of `train`."""
        return self.download(self.train(name, "release", epsilon=epsilon, delta=delta, **options))

    def open_session(
        self, name: str, *, epsilon: float, delta: float = 0.0, mechanism: str = "model", **options: Any
    ) -> RemoteSession:
        """Train, wait, and open a session that answers point after point under one promise.

        Parameters
        ----------
        name, epsilon, delta
            As in `train`, and so are the options.
        mechanism : {"model", "function_release", "pinp"}
            ``model``: a private model that stays on the server; any number of answers. The others answer from an
            exact kernel machine with noise at each point.
        """
        made = self.train(name, "session", epsilon=epsilon, delta=delta, mechanism=mechanism, **options)
        return self.session(made)

    def train(
        self,
        name: str,
        kind: Literal["release", "session"],
        *,
        epsilon: float,
        delta: float = 0.0,
        learner: str | None = None,
        mechanism: str | None = None,
        public_points: Any = None,
        trial: bool = False,
        progress: Callable[[str], None] | None = None,
        idempotency_key: str | None = None,
        note: str | None = None,
        purpose: str | None = None,
        legal_basis: str | None = None,
    ) -> str:
        """Have a model trained, wait for it, and get the id of the release or session.

        Parameters
        ----------
        name : str
            The data set.
        kind : {"release", "session"}
        epsilon, delta : float
            What it may cost.
        learner : str, optional
            One of those on offer; left out, the first.
        mechanism : str, optional
            Of a session, see `open_session`.
        public_points : table or "schema", optional
            Points that you bring (semi-interactive): the model is good near them. They will be in the release. With the
            word the server makes them up from the schema.
        trial : bool, default=False
            Train on made-up rows, for nothing: to try the call.
        progress : callable, optional
            Called with each stage's name while waiting.
        idempotency_key : str, optional
            Ask for the same thing with the same key and you get the same result, paid once. Made anew for each call
            if left out; give your own to take up a wait that was interrupted.
        note : str, optional
            One line of your own, for the ledger and the holder.
        purpose, legal_basis : str, optional
            What the result is for, and what allows it, each in one line. Needed where a second person must approve the
            request; then the wait lasts until they have.

        Raises
        ------
        BudgetExceeded
            Before anything is computed or spent.
        TrainingFailed
            If it was accepted and failed; the message says whether the cost stands.
        """
        job = self.ask(
            kind,
            name,
            epsilon=epsilon,
            delta=delta,
            trial=trial,
            public_points=public_points,
            idempotency_key=idempotency_key,
            note=note,
            purpose=purpose,
            legal_basis=legal_basis,
            learner=learner,
            mechanism=mechanism,
        )
        return job.wait(progress).id

    def evaluate(
        self,
        name: str,
        release_id: str,
        *,
        epsilon: float,
        delta: float = 0.0,
        by: Sequence[str] = (),
        trial: bool = False,
        progress: Callable[[str], None] | None = None,
        idempotency_key: str | None = None,
        purpose: str | None = None,
        legal_basis: str | None = None,
    ) -> Evaluation:
        """Have a release of yours measured on a data set, wait, and fetch the evaluation, verified.

        Parameters
        ----------
        name : str
            The data set. If the release learnt from it, both costs add up.
        release_id : str
            One of `releases`.
        by : sequence of str, optional
            Columns whose groups are told apart.
        epsilon, delta, trial, progress, idempotency_key, purpose, legal_basis
            As in `train`.
        """
        from privlearn.evaluation import Evaluation

        job = self.ask(
            "evaluate",
            name,
            epsilon=epsilon,
            delta=delta,
            trial=trial,
            idempotency_key=idempotency_key,
            purpose=purpose,
            legal_basis=legal_basis,
            release=release_id,
            by=list(by),
        )
        return Evaluation.from_bytes(job.result(progress).content)

    # --- what was made ---

    def sessions(self) -> list[Record]:
        return self._all("/sessions")

    def session(self, session_id: str) -> RemoteSession:
        """A session that was opened before, by this client or another."""
        return RemoteSession(self._connection, self._record(_path("/sessions", session_id)))

    def releases(self) -> list[Record]:
        return self._all("/releases")

    def download(self, release_id: str) -> Release:
        """A released model. Every byte and constant is checked here; the server's word is not taken for it."""
        from privlearn.release.artifact import Release

        return Release.from_bytes(
            self._connection.get(_path("/releases", release_id, "file"), accept="*/*").content
        )

    def results(self, kind: str | None = None) -> list[Record]:
        """What jobs of one kind, or of all, have made."""
        return self._all("/results", kind=kind)

    def result(self, result_id: str) -> RemoteResult:
        """What a job has made, with its content."""
        return fetched(self._connection, quote(result_id, safe=""))

    def jobs(self) -> list[Record]:
        """Trainings, running and past."""
        return self._all("/jobs")

    def job(self, job_id: str) -> Record:
        return self._record(_path("/jobs", job_id))

    def cancel(self, job_id: str) -> Record:
        """End a job that waits or runs; what it had reserved stays spent. The holder's key may end anybody's."""
        return dict(self._connection.send("DELETE", _path("/jobs", job_id)).json())

    def approvals(self) -> list[Record]:
        """Requests that wait for approval. For a key of an approver, an auditor or the holder."""
        return self._all("/approvals")

    def approval(self, job_id: str) -> Record:
        """One of them with its estimate, what is left of the budget, and what else its analyst asked for."""
        return self._record(_path("/approvals", job_id))

    def decide(self, job_id: str, decision: Literal["approve", "decline"], reason: str = "") -> Record:
        """Approve or decline a request of another person. For an approver's key; to decline needs a reason."""
        body = {"decision": decision, "reason": reason}
        return dict(self._connection.send("POST", _path("/approvals", job_id), json=body).json())

    def events(self, limit: int = 100, before: int | None = None) -> list[Record]:
        """The audit log, newest first. For the holder's or an auditor's key."""
        return self._list("/events", limit=limit, before=before)

    def close(self) -> None:
        """Close the connection; leaving a ``with`` block does it too. Sessions on the server stay open."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self._connection.url}>"

    def _record(self, path: str, **parameters: Any) -> Record:
        return dict(self._connection.get(path, **parameters).json())

    def _list(self, path: str, **parameters: Any) -> list[Record]:
        return list(self._connection.get(path, **parameters).json())

    def _all(self, path: str, **parameters: Any) -> list[Record]:
        """A list that comes in pages, whole."""
        found: list[Record] = []
        while True:
            answer = self._connection.get(path, limit=_PAGE, **parameters)
            page = answer.json()
            found += page
            if "next" not in answer.links:
                return found
            parameters["before"] = page[-1]["id"]

    def _submit(self, body: Record, points: Any, idempotency_key: str | None) -> Record:
        headers = {"Idempotency-Key": idempotency_key or secrets.token_hex(16)}
        if points is None or isinstance(points, str):
            content: Record = {"json": body if points is None else body | {"public_points": points}}
        else:
            file = ("points.arrow", to_arrow(rows_of(points)[0]), ARROW)
            content = {"data": {"request": json.dumps(body)}, "files": {"points": file}}
        return dict(self._connection.send("POST", "/jobs", headers=headers, **content).json())


def _body(kind: str, name: str, promise: Guarantee, fields: Record) -> Record:
    """A request; what was left out is not said."""
    given = {name: value for name, value in fields.items() if value is not None}
    return given | {"kind": kind, "dataset": name, "epsilon": promise.epsilon, "delta": promise.delta}


def _path(*parts: str) -> str:
    """Names come from people: none may lead to another place."""
    return "/".join([parts[0], *(quote(part, safe="") for part in parts[1:])])
