"""What became of jobs: their progress, and what they made."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

from privlearn.data.schema.schema import Schema
from privlearn.errors import BudgetExceeded, InvalidParameter, ReleaseError
from privlearn.explain.column_effects import effects
from privlearn.explain.page import page_part
from privlearn.release.artifact import Release
from privlearn.release.meaning import Meaning
from privlearn.release.verification import verify_bytes
from privlearn.service.access.keys import Caller
from privlearn.service.holder.datasets import OfferedDataSet
from privlearn.service.http.callers import Served
from privlearn.service.http.forms import content_of
from privlearn.service.http.limits import aside
from privlearn.service.http.media_types import reading
from privlearn.service.job_kinds.evaluate import EVALUATE, fits
from privlearn.service.job_kinds.job_kind import JOB_KINDS, download_link
from privlearn.service.job_kinds.release import GIVE_OUT_RELEASE
from privlearn.service.jobs import results
from privlearn.service.jobs.requests import Job, JobRequest, ResultInfo
from privlearn.service.pages.choices import fresh, is_once, sentence
from privlearn.service.pages.commands import release_commands
from privlearn.service.pages.page import (
    Before,
    Form,
    Listed,
    PageId,
    download,
    listed,
    page_router,
    render,
    text_of,
)
from privlearn.service.pages.signing import Analyst, ReleaseForm, Visitor
from privlearn.service.refusals import Conflict, NotFound, TooMany
from privlearn.service.service import Service

router = page_router()

_HEADINGS = {
    "waiting_for_approval": "Waiting for approval",
    "waiting": "Waiting for its turn",
    "running": "Under way",
    "done": "Finished",
    "failed": "It did not work out",
    "declined": "Declined",
}
_STAGES = {"waiting": "Waiting for its turn", "running": "Under way on the holder's side"}
_APPROVAL = {"waiting_for_approval": "Waiting for a second person's approval"}

_TYPED = ("dataset", "by", "epsilon", "delta", "note", "purpose", "legal_basis")
"""Into the form that has a release measured."""


@router.get("/jobs/{id}")
async def job(request: Request, service: Served, caller: Visitor, id: PageId) -> Response:
    return await aside(request, _job_page, request, service, caller, id)


def _job_page(request: Request, service: Service, caller: Caller, id: str) -> Response:
    found = service.job(caller, id)
    title, described = _told(found)
    return render(
        request,
        caller,
        "job.html",
        job=found,
        heading=_HEADINGS[found.state],
        unfinished=not found.is_over,
        seconds=10 if found.state in _APPROVAL else 1,
        may_cancel=caller.role in ("analyst", "holder"),
        stages=_stages(found),
        title=title,
        described=described,
        meaning=_meaning(service, caller, found),
        part=_part(service.store, found.id, found.kind) if _may_fetch(caller, found) else "",
    )


@router.post("/jobs/{id}/cancel")
def cancel(service: Served, caller: Visitor, id: PageId) -> Response:
    with suppress(Conflict):  # it was over before: the page says how it ended
        service.cancel(caller, id)
    return RedirectResponse(f"/jobs/{id}", 303)


@router.get("/jobs/{id}/result")
def result(service: Served, caller: Visitor, id: PageId) -> Response:
    found, content = service.fetch(caller, id)
    return download(content, found.media_type, f"{found.dataset}-{found.kind}-{found.id[:8]}")


@router.get("/releases")
def releases(request: Request, service: Served, caller: Visitor, before: Before) -> Response:
    return render(
        request,
        caller,
        "releases.html",
        releases=results_of(service, caller, GIVE_OUT_RELEASE.name, before),
    )


def results_of(service: Service, caller: Caller, kind: str, before: str | None) -> Listed[ResultInfo]:
    """A page of what jobs of one kind have made."""
    return listed(
        lambda most: service.results(caller, kind, most=most, before=before), before, lambda found: found.id
    )


@router.get("/releases/{id}")
def release(request: Request, service: Served, caller: Visitor, id: PageId) -> Response:
    return _release_page(request, service, caller, id)


@router.post("/releases/{id}/evaluate")
def evaluate(request: Request, service: Served, caller: Analyst, id: PageId, form: Form) -> Response:
    """Have it measured; what cannot be done leads back to the form with everything typed."""
    typed = {name: text_of(form, name) for name in (*_TYPED, "once")}
    act = "pay" if text_of(form, "act") == "pay" else "try"
    try:
        if not is_once(typed["once"]):
            raise InvalidParameter("this form was not made here: look at it again, then press")
        wanted = JobRequest(
            dataset=typed["dataset"],
            kind=EVALUATE.name,
            epsilon=_number(typed["epsilon"], "epsilon"),
            delta=_number(typed["delta"] or "0", "delta"),
            trial=act == "try",
            note=typed["note"],
            fields={"release": id, "by": [typed["by"]] if typed["by"] else []},
            purpose=typed["purpose"],
            legal_basis=typed["legal_basis"],
        )
        asked = service.ask(caller, wanted, f"{typed['once']} {act}")
        return RedirectResponse(f"/jobs/{asked.id}", 303)
    except (BudgetExceeded, Conflict, InvalidParameter, NotFound, TooMany) as error:
        return _release_page(request, service, caller, id, typed, {"": sentence(error)})


def _release_page(
    request: Request,
    service: Service,
    caller: Caller,
    id: str,
    typed: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
) -> Response:
    found = service.result(caller, id, GIVE_OUT_RELEASE.name)
    content = results.content_of(service.store, id)
    places = _places(service, caller, Release.from_bytes(content)) if found.analyst == caller.name else []
    return render(
        request,
        caller,
        "release.html",
        422 if errors else 200,
        release=found,
        proven=verify_bytes(content),
        commands=release_commands(str(request.base_url), id, _file_name(found)),
        places=[offered.name for offered in places],
        with_approval=any(offered.settings.approval is not None for offered in places),
        columns=_group_columns(places[0].schema) if places else [],
        typed=typed or dict.fromkeys(_TYPED, ""),
        errors=errors or {},
        once=fresh(),
        learnt=_learnt(service.store, id),
    )


@lru_cache(maxsize=64)  # a drawing takes a second, and what was released does not change
def _learnt(store: str, id: str) -> Markup:
    """Public: effects of the columns, from the released file alone; or why there are none to show."""
    try:
        return Markup(page_part(effects(Release.from_bytes(results.content_of(store, id)))))
    except InvalidParameter as error:
        return Markup("<p>{}</p>").format(sentence(error))


def _places(service: Service, caller: Caller, release: Release) -> list[OfferedDataSet]:
    """The data sets whose records it reads."""
    return [offered for offered in service.datasets(caller) if fits(release, offered)]


def _group_columns(schema: Schema) -> list[str]:
    return [name for name, column in schema.columns.items() if getattr(column, "values", None)]


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(f"{name} must be a number, such as 0.5") from None


@router.get("/releases/{id}/file")
def release_file(service: Served, caller: Visitor, id: PageId) -> Response:
    found, content = service.fetch(caller, id, GIVE_OUT_RELEASE.name)
    return download(content, found.media_type, _file_name(found))


@router.get("/verify")
def choose_file(request: Request, caller: Visitor) -> Response:
    return render(request, caller, "verify.html", proven=None)


@router.post("/verify")
async def verify(request: Request, caller: Visitor, form: ReleaseForm) -> Response:
    content = await run_in_threadpool(content_of, form, "file")
    try:
        async with reading(request, content):
            proven = await aside(request, verify_bytes, content)
    except ReleaseError as error:
        return render(request, caller, "verify.html", 422, proven=None, errors={"file": sentence(error)})
    return render(request, caller, "verify.html", proven=proven)


def _stages(found: Job) -> list[tuple[str, str]]:
    """Each stage's class and text."""
    stages = (_APPROVAL if found.decide_by else {}) | _STAGES
    now = list(stages).index(found.state) if found.state in stages else len(stages)
    styles = ["past" if place < now else "now" if place == now else "" for place in range(len(stages))]
    return list(zip(styles, stages.values(), strict=True))


def _may_fetch(caller: Caller, found: Job) -> bool:
    """Approvers and auditors see requests, not what was made."""
    return found.state == "done" and caller.role in ("analyst", "holder")


def _told(found: Job) -> tuple[str, str]:
    """Heading and description, by the job's kind if the server still has it."""
    kind = JOB_KINDS.get(found.kind)
    if kind is None:
        return f"A job of kind {found.kind}", (
            f"This server does not know the kind {found.kind} any more: its holder can put it back into owner.toml, "
            "under extensions."
        )
    fields = kind.read(found.fields)
    return kind.heading(fields), kind.describe(fields)


def _meaning(service: Service, caller: Caller, found: Job) -> Meaning | None:
    """Of a trial there is none, nor where the holder does not offer the data set any more."""
    offered = [offered for offered in service.datasets(caller) if offered.name == found.dataset]
    return offered[0].meaning(found.guarantee) if offered and not found.trial else None


@lru_cache(maxsize=64)  # intervals take seconds, and what a job has made does not change
def _part(store: str, job_id: str, kind_name: str) -> Markup:
    """What the job's kind shows of its result; without the kind, a way to fetch it."""
    made = results.find(store, None, job_id)
    kind = JOB_KINDS.get(kind_name)
    if kind is None:
        return download_link(made)
    return kind.page_part(made, results.content_of(store, job_id))


def _file_name(found: ResultInfo) -> str:
    return f"{found.dataset}-{found.learner}-{found.id[:8]}.privlearn"
