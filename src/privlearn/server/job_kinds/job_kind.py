"""The interface of a kind of job: its fields, its price, how it runs, its result and its part of a page.

    read, calibrate, estimate (public parameters) -> the cost is reserved -> run (touches the rows) -> one result

`JOB_KINDS` is the one registry; the queue, the store, the HTTP interface, the pages and the client look kinds up there.
Charging, time slots, failure messages and "one result per job" are the same for every kind: see `server.jobs.running`.
"""

from __future__ import annotations

import importlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from inspect import signature
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from privlearn.errors import DataError, InvalidParameter, SchemaError
from privlearn.guarantee import Guarantee
from privlearn.release.archive import SignedArchive
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.holder.signing import signing_key
from privlearn.server.job_kinds.person_rows import PersonRows
from privlearn.server.jobs.requests import JobRequest, Points, Result, ResultInfo
from privlearn.server.refusals import NotFound

BYTES = "application/octet-stream"


class JobFields(BaseModel):
    """The fields of a request that belong to its kind; each needs a description."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Mechanism(Protocol):
    """A mechanism calibrated from public parameters; its cost is reserved before a row is read."""

    @property
    def name(self) -> str: ...
    @property
    def guarantee(self) -> Guarantee: ...
    def renyi(self, order: float, /) -> float: ...


Fields = TypeVar("Fields", bound=JobFields)
Calibrated = TypeVar("Calibrated", bound=Mechanism)


@dataclass(frozen=True, eq=False)
class JobContext(Generic[Fields]):
    """Public: everything that a kind may use before the cost is reserved.

    Parameters
    ----------
    store : str
        The server's store, to find other results of the analyst, such as a release.
    analyst : str
    offered : OfferedDataSet
        For a trial: the data set of synthetic rows.
    guarantee : Guarantee
        The highest cost that the job may have.
    fields : JobFields
    points : pyarrow.Table or "schema", optional
        The analyst's public points, for kinds that take them; "schema" has the server generate them.
    """

    store: str
    analyst: str
    offered: OfferedDataSet
    guarantee: Guarantee
    fields: Fields
    points: Points | None = None

    def sign(self, archive: SignedArchive) -> bytes:
        """Return the bytes of a file that may leave, signed if the server has a key."""
        key = signing_key(self.offered.owner.server)
        return (archive if key is None else archive.signed(key)).to_bytes()

    def file_result(self, archive: Any) -> Result:
        """Return a file with its certificate as the job's result."""
        return Result(archive.certificate.to_dict(), self.sign(archive), BYTES)

    def total(self, counted: int) -> int:
        """Return the public number of records or persons: the expected one where the counted one is private."""
        return self.guarantee.relation.total(counted, self.offered.settings.expected_records)


class JobKind(ABC, Generic[Fields, Calibrated]):
    """Base class of the kinds of job.

    Attributes
    ----------
    name : str
        Used in requests, in the store and in the log.
    title : str
        With its article: "a release".
    about : str
        One sentence for people.
    fields : type of JobFields
    example : mapping
        Example values of the fields, for the OpenAPI description.
    takes_points : bool
        Whether a request may bring a table of public points.
    reads_blocks : bool
        Whether `run` reads the rows once, in blocks.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    fields: type[Fields]
    example: ClassVar[Mapping[str, JsonValue]] = {}
    takes_points: ClassVar[bool] = False
    reads_blocks: ClassVar[bool] = False

    @abstractmethod
    def calibrate(self, context: JobContext[Fields]) -> Calibrated:
        """Public: return the mechanism that will run, calibrated to the guarantee; raise if it must be refused."""

    def on_cluster(self, context: JobContext[Fields]) -> bool:
        """Public: return whether the holder's cluster, if there is one, may hold the rows for `run`."""
        return False

    @abstractmethod
    def run(
        self, context: JobContext[Fields], mechanism: Calibrated, persons: PersonRows, job_id: str
    ) -> Result:
        """Touch the data: return the result of the mechanism that was charged, and of no other.

        ``persons`` counts the rows with weights that sum to at most 1 for each person (`PersonRows.count`).
        Exceptions are written to the holder's log; the analyst gets a fixed sentence. After a `StoreUnusable` the job
        is tried again, so that exception must not depend on the rows.
        """

    def read(self, fields: Mapping[str, JsonValue]) -> Fields:
        """Return the validated fields of a request."""
        try:
            return self.fields.model_validate(fields)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False, include_context=False)
        reasons = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors]
        raise InvalidParameter(f"the fields of {self.title} are invalid. Correct them: {'; '.join(reasons)}")

    def fill_defaults(self, fields: Fields, offered: OfferedDataSet) -> Fields:
        """Return the fields with the data set's defaults where the request has none."""
        return fields

    def input_results(self, fields: Fields) -> Mapping[str, str]:
        """Return the ids and kinds of earlier results that the job reads; the analyst must have access to them."""
        return {}

    def estimate(self, context: JobContext[Fields]) -> dict[str, Any]:
        """Public: return the cost as JSON values; a kind may add more."""
        mechanism = self.calibrate(context)
        return {
            "rows": context.offered.records,
            "guarantee": mechanism.guarantee.to_dict(),
            "mechanism": mechanism.name,
            "weakness": context.offered.weakness(mechanism.guarantee),
        }

    def digest(self, request: JobRequest) -> str:
        """Return a digest that tells a repeated request from a different one under the same idempotency key."""
        common = (request.dataset, request.kind, request.epsilon, request.delta, request.trial)
        identity = json.dumps([*common, request.fields], sort_keys=True)
        return sha256(identity.encode() + (request.points_bytes() or b"")).hexdigest()

    def purpose(self, fields: Fields) -> str:
        """Return the purpose for the ledger's entry."""
        return self.name

    def heading(self, fields: Fields) -> str:
        """Return the heading of the job's page, without the data set's name."""
        return f"{self.title[:1].upper()}{self.title[1:]}"

    def describe(self, fields: Fields) -> str:
        """Return one sentence about what was requested."""
        return self.about

    def page_part(self, result: ResultInfo, content: bytes) -> Markup:
        """Return what the job's page shows once the job is done: by default a link to the content."""
        return download_link(result)


def download_link(result: ResultInfo) -> Markup:
    """Return a link to the content for a page; nothing if the content stays on the server."""
    if not result.media_type:
        return Markup()
    link = Markup('<p class="actions"><a class="button" href="/jobs/{}/result">Download the result</a></p>')
    return link.format(result.id)


def check_same(mechanism: Mechanism, charged: Mechanism) -> None:
    """Raise DataError unless the mechanism is the one that was charged.

    They can differ only in the number of records, which is public.
    """
    if mechanism != charged:
        raise DataError(
            "the table's number of records has changed since the server started. Restart the server."
        )


AnyJobKind = JobKind[Any, Any]

JOB_KINDS: dict[str, AnyJobKind] = {}
"""Every registered kind, by name."""

_COMMON_FIELDS = {
    *("kind", "dataset", "epsilon", "delta", "trial", "public_points", "job"),
    *("note", "purpose", "legal_basis"),
}
_RUN_PARAMETERS = ["context", "mechanism", "persons", "job_id"]
Kind = TypeVar("Kind", bound=AnyJobKind)


def register_job_kind(kind: Kind) -> Kind:
    """Add a kind to `JOB_KINDS` and return it; refuse one that does not follow the interface."""
    class_name = type(kind).__name__
    missing = [name for name in ("name", "title", "about", "fields") if not hasattr(kind, name)]
    if missing:
        raise InvalidParameter(f"{class_name} has no {', '.join(missing)}. Define these class attributes.")
    if list(signature(kind.run).parameters) != _RUN_PARAMETERS:
        raise InvalidParameter(
            f"{class_name}.run must take ({', '.join(_RUN_PARAMETERS)}). It receives no bare rows: count with "
            "persons.count(...), in which every person weighs at most 1."
        )
    if not re.fullmatch("[a-z][a-z_]{0,19}", kind.name):
        raise InvalidParameter(f"{kind.name!r} is not a valid name. Use up to 20 lower-case letters and _.")
    if reserved := _COMMON_FIELDS & set(kind.fields.model_fields):
        raise InvalidParameter(f"every job has the fields {', '.join(sorted(reserved))}. Use other names.")
    registered = JOB_KINDS.setdefault(kind.name, kind)
    if type(registered) is not type(kind):
        raise InvalidParameter(f"there is already a kind of job {kind.name!r}. Use a different name.")
    return kind


def job_kind(name: str) -> AnyJobKind:
    """Return the kind with this name."""
    if name not in JOB_KINDS:
        raise NotFound(f"this server does not do this kind of job. Use one of {', '.join(JOB_KINDS)}.")
    return JOB_KINDS[name]


def load_job_kinds(locations: Iterable[str]) -> None:
    """Register the kinds named in the holder's file as ``module:class``; called by every process of a server."""
    for location in locations:
        module, _, name = location.partition(":")
        try:
            kind = getattr(importlib.import_module(module), name)()
            if not isinstance(kind, JobKind):
                raise InvalidParameter("it is not a subclass of JobKind")
            register_job_kind(kind)
        except Exception as error:  # third-party code may raise anything
            raise SchemaError(
                f"extensions.job_kinds: {location} cannot be loaded: {type(error).__name__}: {error}"
            ) from None
