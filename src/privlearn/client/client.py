"""The methods of a server, one for each route of its HTTP interface."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import pyarrow as pa

from privlearn.budget.pending import RequestedJob, remember_job
from privlearn.client.connection import Connection
from privlearn.client.job import RemoteJob, RemoteResult, fetch_result
from privlearn.client.session import ARROW, RemoteSession, from_arrow, rows_of, to_arrow
from privlearn.guarantee import Guarantee

if TYPE_CHECKING:
    from privlearn.release.artifact import Release
    from privlearn.statistics.evaluation import Evaluation

Record = dict[str, Any]

_PAGE = 1000
"""Maximum number of items that a server returns at a time."""


class Client:
    """A privlearn server, as `privlearn serve` runs it.

    Parameters
    ----------
    url : str
        Its address. Plain HTTP is accepted for this machine only.
    key : str, optional
        As `privlearn keys create` printed it; default: the environment variable ``PRIVLEARN_KEY``. It never appears in
        a message, representation or pickle.
    verify : path, optional
        The certificate (PEM) of the authority that signed the server's certificate, if it is a private one.
    plain_http : bool, default=False
        Allow ``http://`` to another machine, if something else encrypts the connection.
    timeout : float, default=60
        Seconds to keep trying if the server does not answer or is busy. A repeated request is never charged twice.

    Examples
    --------
    >>> Client("http://learner.example", key="pl_1_x")
    Traceback (most recent call last):
        ...
    privlearn.errors.InvalidParameter: http:// would send the key readable over the network. Use https://, ...
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
        timeout: float = 60.0,
    ) -> None:
        self._connection = Connection(url, key, verify=verify, plain_http=plain_http, timeout=timeout)

    # --- public information ---

    def me(self) -> Record:
        """Return the key's id, role, person and data sets."""
        return self._record("/me")

    def datasets(self) -> list[Record]:
        """Return the data sets that this key may use."""
        return self._list("/datasets")

    def dataset(self, name: str) -> Record:
        """Return a data set's public description: schema, number of records, learners."""
        return self._record(_path("/datasets", name))

    def budget(self, name: str, before: str | None = None) -> Record:
        """Return what is spent, reserved and left of a data set's budget and of your share, and the newest 100 entries.

        Parameters
        ----------
        name : str
        before : str, optional
            Id of a reservation: the entries before it instead.
        """
        return self._record(_path("/datasets", name, "budget"), before=before)

    def kinds(self) -> list[Record]:
        """Return the kinds of job that the server runs, with their fields."""
        return self._list("/kinds")

    def estimate(
        self, name: str, *, epsilon: float, delta: float = 0.0, kind: str = "session", **fields: Any
    ) -> Record:
        """Return the cost of a job and, for a training, how noisy the model would be. Free: uses public parameters
        only.

        Parameters
        ----------
        name, epsilon, delta
            As in `ask`.
        kind : str, default="session"
            A release has the same model.
        fields
            The kind's own fields, such as ``learner``.
        """
        body = _body(kind, name, Guarantee(epsilon, delta), fields)
        return dict(self._connection.send("POST", "/estimates", json=body).json())

    def synthetic(self, name: str, rows: int = 100, seed: int | None = None) -> pa.Table:
        """Return synthetic rows from the schema, including the target. Free: they are about no real person."""
        path = _path("/datasets", name, "synthetic")
        return from_arrow(self._connection.get(path, accept=ARROW, rows=rows, seed=seed).content)

    # --- jobs, which cost budget ---

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
        """Request a job of any kind without waiting: ``client.ask("release", "census", epsilon=1).result()`` waits.

        Parameters
        ----------
        kind : str
            One of `kinds`.
        name : str
            The data set.
        epsilon, delta : float
            The cost.
        trial : bool, default=False
            Use synthetic rows, free of charge, to try the call.
        public_points : table or "schema", optional
            Your own points (semi-interactive): the model is good near them. They will be in the release. With "schema"
            the server generates them.
        idempotency_key : str, optional
            A request repeated with the same key returns the same job, charged once. Default: a new key for each call;
            pass your own to continue a wait that was interrupted.
        note : str, optional
            One line for the ledger and the holder.
        purpose, legal_basis : str, optional
            The purpose of the result and its legal basis, each in one line. Required if a second person must approve
            the request; waiting for the job then includes the approval.
        fields
            The kind's own fields: trainings take ``learner``, one of the data set's learners (default: the first), and
            sessions ``mechanism``.

        Raises
        ------
        BudgetExceeded
            Before anything is computed or spent.
        """
        guarantee = Guarantee(epsilon, delta)  # refuses what no server would accept
        texts = {"note": note, "purpose": purpose, "legal_basis": legal_basis}
        body = _body(kind, name, guarantee, fields | texts | {"trial": trial})
        requested = RequestedJob()
        remember_job(requested)
        return RemoteJob(self._connection, self._submit(body, public_points, idempotency_key), requested)

    def release(self, name: str, *, epsilon: float, delta: float = 0.0, **options: Any) -> Release:
        """Train, wait, and return the released model, verified; the options are those of `ask`."""
        return self.download(self.train(name, "release", epsilon=epsilon, delta=delta, **options))

    def open_session(
        self, name: str, *, epsilon: float, delta: float = 0.0, mechanism: str = "model", **options: Any
    ) -> RemoteSession:
        """Train, wait, and open a session that answers points under one guarantee.

        Parameters
        ----------
        name, epsilon, delta
            As in `ask`, and so are the options.
        mechanism : {"model", "function_release", "pinp"}
            ``model``: a private model that stays on the server; any number of answers. The others answer from an
            exact kernel machine with noise at each point.
        """
        session_id = self.train(name, "session", epsilon=epsilon, delta=delta, mechanism=mechanism, **options)
        return self.session(session_id)

    def train(
        self,
        name: str,
        kind: Literal["release", "session"],
        *,
        progress: Callable[[str], None] | None = None,
        **options: Any,
    ) -> str:
        """Train a model, wait for it, and return the id of the release or session.

        Parameters
        ----------
        name : str
            The data set.
        kind : {"release", "session"}
        progress : callable, optional
            Called with each stage's name while waiting.
        options
            As in `ask`, and required like there.

        Raises
        ------
        BudgetExceeded
            Before anything is computed or spent.
        TrainingFailed
            If it was accepted and failed; the message states whether the cost stands.
        """
        return self.ask(kind, name, **options).wait(progress).id

    def evaluate(
        self,
        name: str,
        release_id: str,
        *,
        by: Sequence[str] = (),
        progress: Callable[[str], None] | None = None,
        **options: Any,
    ) -> Evaluation:
        """Evaluate one of your releases on a data set, wait, and return the evaluation, verified.

        Parameters
        ----------
        name : str
            The data set. If the release was trained on it, both costs add up.
        release_id : str
            One of `releases`.
        by : sequence of str, optional
            Columns whose groups are evaluated separately.
        progress : callable, optional
            As in `train`.
        options
            As in `ask`, and required like there.
        """
        from privlearn.statistics.evaluation import Evaluation

        job = self.ask("evaluate", name, release=release_id, by=list(by), **options)
        return Evaluation.from_bytes(job.result(progress).content)

    # --- results and jobs ---

    def sessions(self) -> list[Record]:
        """Return your sessions, open and closed."""
        return self.results("session")

    def session(self, session_id: str) -> RemoteSession:
        """Return a session that was opened before, by this client or another."""
        return RemoteSession(self._connection, self._record(_path("/results", session_id)))

    def releases(self) -> list[Record]:
        """Return your releases."""
        return self.results("release")

    def download(self, release_id: str) -> Release:
        """Return a released model. Every byte and constant is checked here, without trusting the server."""
        from privlearn.release.artifact import Release

        return Release.from_bytes(self.result(release_id).content)

    def results(self, kind: str | None = None) -> list[Record]:
        """Return the results of jobs of one kind, or of all."""
        return self._all("/results", kind=kind)

    def result(self, result_id: str) -> RemoteResult:
        """Return a result with its content."""
        return fetch_result(self._connection, quote(result_id, safe=""))

    def jobs(self) -> list[Record]:
        """Return your jobs, running and past."""
        return self._all("/jobs")

    def job(self, job_id: str) -> Record:
        """Return one job."""
        return self._record(_path("/jobs", job_id))

    def cancel(self, job_id: str) -> Record:
        """End a waiting or running job; what it has reserved stays spent. The holder's key may end any job."""
        return dict(self._connection.send("DELETE", _path("/jobs", job_id)).json())

    def approvals(self) -> list[Record]:
        """Return the requests that wait for approval. For a key of an approver, an auditor or the holder."""
        return self._all("/approvals")

    def approval(self, job_id: str) -> Record:
        """Return one request with its estimate, the remaining budget, and other requests of its analyst."""
        return self._record(_path("/approvals", job_id))

    def decide(self, job_id: str, decision: Literal["approve", "decline"], reason: str = "") -> Record:
        """Approve or decline a request of another person. For an approver's key; declining needs a reason."""
        body = {"decision": decision, "reason": reason}
        return dict(self._connection.send("POST", _path("/approvals", job_id), json=body).json())

    def events(self, limit: int = 100, before: int | None = None) -> list[Record]:
        """Return the audit log, newest first. For the holder's or an auditor's key."""
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
        """Return all pages of a list."""
        items: list[Record] = []
        while True:
            answer = self._connection.get(path, limit=_PAGE, **parameters)
            page = answer.json()
            items += page
            if "next" not in answer.links:
                return items
            parameters["before"] = page[-1]["id"]

    def _submit(self, body: Record, points: Any, idempotency_key: str | None) -> Record:
        headers = {"Idempotency-Key": idempotency_key or secrets.token_hex(16)}
        if points is None or isinstance(points, str):
            content: Record = {"json": body if points is None else body | {"public_points": points}}
        else:
            file = ("points.arrow", to_arrow(rows_of(points)[0]), ARROW)
            content = {"data": {"request": json.dumps(body)}, "files": {"points": file}}
        return dict(self._connection.send("POST", "/jobs", headers=headers, **content).json())


def _body(kind: str, name: str, guarantee: Guarantee, fields: Record) -> Record:
    """Return the body of a request, without the fields that were omitted."""
    given = {name: value for name, value in fields.items() if value is not None}
    return given | {"kind": kind, "dataset": name, "epsilon": guarantee.epsilon, "delta": guarantee.delta}


def _path(*parts: str) -> str:
    """Return a path with quoted names, so that a name cannot lead to another address."""
    return "/".join([parts[0], *(quote(part, safe="") for part in parts[1:])])
