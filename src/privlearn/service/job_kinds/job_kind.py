"""What a kind of job is: what it is asked with, what it costs, how it is run, what it makes and what a page shows.

    read, check, plan, estimate (public facts) -> the cost is reserved -> run (touches the rows) -> one result

There is one list of them, `JOB_KINDS`. Queue, store, interface, pages and client ask the kind; none of them asks for
its name. The order of paying, the slots, the one sentence for all failures and the one result per job are not the
kind's business: `service.jobs.training` keeps them for every kind.
"""

from __future__ import annotations

import importlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from privlearn.errors import InvalidParameter, SchemaError
from privlearn.guarantee import Guarantee
from privlearn.release.archive import SignedArchive
from privlearn.service.holder.datasets import OfferedDataSet
from privlearn.service.holder.signing import signing_key
from privlearn.service.jobs.requests import JobRequest, Points, Result, ResultInfo
from privlearn.service.refusals import NotFound


class JobFields(BaseModel):
    """What a kind is asked with beyond data set, epsilon, delta and trial; each field has a description."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Plan(Protocol):
    """A calibrated mechanism: it follows from public facts, and what it costs is reserved before a row is read."""

    @property
    def name(self) -> str: ...
    @property
    def guarantee(self) -> Guarantee: ...
    def renyi(self, order: float, /) -> float: ...


Fields = TypeVar("Fields", bound=JobFields)
Planned = TypeVar("Planned", bound=Plan)


@dataclass(frozen=True, eq=False)
class Asked(Generic[Fields]):
    """Public: everything that a kind may look at before the cost is reserved.

    Parameters
    ----------
    store : str
        The server's: what else it holds of the analyst's, such as a release, is found there.
    analyst : str
    offered : OfferedDataSet
        Of a trial a made-up one.
    guarantee : Guarantee
        What the job may cost.
    fields : JobFields
    points : pyarrow.Table or "schema", optional
        The analyst's public points, for kinds that take them; the word has them made up.
    """

    store: str
    analyst: str
    offered: OfferedDataSet
    guarantee: Guarantee
    fields: Fields
    points: Points | None = None

    def signed(self, made: SignedArchive) -> bytes:
        """A file that leaves, with the server's signature if it has a key."""
        key = signing_key(self.offered.owner.server)
        return (made if key is None else made.signed(key)).to_bytes()


class JobKind(ABC, Generic[Fields, Planned]):
    """What every kind says and does.

    Attributes
    ----------
    name : str
        In requests, in the store, in the log.
    title : str
        With its article: "a release".
    about : str
        A sentence for people.
    fields : type of JobFields
    example : mapping
        Values of the fields, for the description of the interface.
    takes_points : bool
        Whether a table of the analyst's public points may come with a request.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    fields: type[Fields]
    example: ClassVar[Mapping[str, JsonValue]] = {}
    takes_points: ClassVar[bool] = False
    reads_blocks: ClassVar[bool] = False

    @abstractmethod
    def plan(self, asked: Asked[Fields]) -> Planned:
        """Public: what will run, calibrated to the promise; raises what can be refused."""

    def on_cluster(self, asked: Asked[Fields]) -> bool:
        """Public: whether a cluster, if the holder has one, may hold the rows for `run`."""
        return False

    @abstractmethod
    def run(self, asked: Asked[Fields], plan: Planned, rows: Any, job_id: str) -> Result:
        """Touch the data: make the result with the plan that is paid for, and no other.

        ``rows`` are a table, or for a kind that ``reads_blocks`` a source that may be read once.

        What it raises is in the holder's log; the analyst reads one sentence. After a `StoreUnusable` the job is
        tried again, so it must not follow from the rows.
        """

    def read(self, fields: Mapping[str, JsonValue]) -> Fields:
        """The fields of a request, checked by themselves."""
        try:
            return self.fields.model_validate(fields)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False, include_context=False)
        wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found]
        raise InvalidParameter(f"{self.title} cannot be asked for like this: {'; '.join(wrong)}")

    def completed(self, fields: Fields, offered: OfferedDataSet) -> Fields:
        """With what the data set says where a request says nothing."""
        return fields

    def reads(self, fields: Fields) -> Mapping[str, str]:
        """Earlier results that it works on, each id with its kind: whoever may not see one cannot ask for the job."""
        return {}

    def estimate(self, asked: Asked[Fields]) -> dict[str, Any]:
        """Public: what it would cost, as plain JSON values; a kind that knows more says more."""
        plan = self.plan(asked)
        return {
            "rows": asked.offered.records,
            "guarantee": plan.guarantee.to_dict(),
            "mechanism": plan.name,
            "weakness": asked.offered.weakness(plan.guarantee),
        }

    def identity(self, request: JobRequest) -> str:
        """Equal for equal requests, apart from their points."""
        common = (request.dataset, request.kind, request.epsilon, request.delta, request.trial)
        return json.dumps([*common, request.fields], sort_keys=True)

    def digest(self, request: JobRequest) -> str:
        """A retried request is told by it from another under the same key."""
        return sha256(self.identity(request).encode() + (request.points_bytes() or b"")).hexdigest()

    def purpose(self, fields: Fields) -> str:
        """For the ledger's entry."""
        return self.name

    def heading(self, fields: Fields) -> str:
        """Of the job's page; the data set's name follows."""
        return f"{self.title[:1].upper()}{self.title[1:]}"

    def describe(self, fields: Fields) -> str:
        """A sentence on what was asked for."""
        return self.about

    def page_part(self, result: ResultInfo, content: bytes) -> Markup:
        """What the job's page shows once it is done."""
        return download_link(result)


def download_link(result: ResultInfo) -> Markup:
    """For a page: where the content is, if it may leave."""
    if not result.media_type:
        return Markup()
    link = Markup('<p class="actions"><a class="button" href="/jobs/{}/result">Download the result</a></p>')
    return link.format(result.id)


AnyJobKind = JobKind[Any, Any]
"""Of the list, whose members differ in their fields and plans."""

JOB_KINDS: dict[str, AnyJobKind] = {}
"""Every kind that this process knows, by name."""

_COMMON = {
    *("kind", "dataset", "epsilon", "delta", "trial", "public_points", "job"),
    *("note", "purpose", "legal_basis"),
}
Kind = TypeVar("Kind", bound=AnyJobKind)


def register_job_kind(kind: Kind) -> Kind:
    """Make a kind of job known by its name, everywhere at once."""
    missing = [fact for fact in ("name", "title", "about", "fields") if not hasattr(kind, fact)]
    if missing:
        raise InvalidParameter(
            f"{type(kind).__name__} does not state its {', '.join(missing)}: give them all"
        )
    if not re.fullmatch("[a-z][a-z_]{0,19}", kind.name):
        raise InvalidParameter(
            f"the name {kind.name!r} is none for a kind of job: take up to 20 letters and _"
        )
    if taken := _COMMON & set(kind.fields.model_fields):
        raise InvalidParameter(f"every job has {', '.join(sorted(taken))} already: name the fields otherwise")
    known = JOB_KINDS.setdefault(kind.name, kind)
    if type(known) is not type(kind):
        raise InvalidParameter(f"there is a kind of job {kind.name!r} already: take another name")
    return kind


def job_kind(name: str) -> AnyJobKind:
    """One kind, by its name."""
    if name not in JOB_KINDS:
        raise NotFound(f"this server does no such kind of job: take one of {', '.join(JOB_KINDS)}")
    return JOB_KINDS[name]


def load_job_kinds(places: Iterable[str]) -> None:
    """Register the kinds that the holder's file names, each as ``module:class``; every process of a server does it."""
    for place in places:
        module, _, name = place.partition(":")
        try:
            kind = getattr(importlib.import_module(module), name)()
            if not isinstance(kind, JobKind):
                raise InvalidParameter("it is no JobKind, name a class that extends it")
            register_job_kind(kind)
        except Exception as error:  # it is another's code, and may raise anything
            raise SchemaError(
                f"extensions.job_kinds: {place} cannot be loaded: {type(error).__name__}: {error}"
            ) from None
