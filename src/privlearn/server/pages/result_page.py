"""Pages of jobs, their results and releases: progress, download, evaluation and verification."""

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
from privlearn.server.access.keys import Caller
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.http.bodies import content_of
from privlearn.server.http.callers import Served
from privlearn.server.http.limits import run_heavy
from privlearn.server.http.media_types import reading
from privlearn.server.job_kinds.evaluate import EVALUATE, fits
from privlearn.server.job_kinds.job_kind import JOB_KINDS, download_link
from privlearn.server.job_kinds.training import GIVE_OUT_RELEASE
from privlearn.server.jobs import results
from privlearn.server.jobs.requests import Job, JobRequest, ResultInfo
from privlearn.server.pages.choices import as_sentence, is_form_token, new_form_token
from privlearn.server.pages.formatting import release_commands
from privlearn.server.pages.page import (
    Before,
    Form,
    ListPage,
    PageId,
    download,
    list_page,
    page_router,
    render,
    text_of,
)
from privlearn.server.pages.signing import Analyst, ReleaseForm, Visitor
from privlearn.server.refusals import Conflict, NotFound, TooMany
from privlearn.server.service import Service

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
"""Fields of the form that requests an evaluation of a release."""


@router.get("/jobs/{id}")
async def job(request: Request, service: Served, caller: Visitor, id: PageId) -> Response:
    return await run_heavy(request, _job_page, request, service, caller, id)


def _job_page(request: Request, service: Service, caller: Caller, id: str) -> Response:
    found = service.job(caller, id)
    title, described = _describe(found)
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
        reason=service.failure_reason(caller, found),
        meaning=_meaning(service, caller, found),
        part=_part(service.store, found.id, found.kind) if _may_fetch(caller, found) else "",
    )


@router.post("/jobs/{id}/cancel")
def cancel(service: Served, caller: Visitor, id: PageId) -> Response:
    with suppress(Conflict):  # the job had ended already: its page shows how
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


def results_of(service: Service, caller: Caller, kind: str, before: str | None) -> ListPage[ResultInfo]:
    """Return one page of the results of a kind of job."""
    return list_page(
        lambda limit: service.results(caller, kind, limit=limit, before=before),
        before,
        lambda found: found.id,
    )


@router.get("/releases/{id}")
def release(request: Request, service: Served, caller: Visitor, id: PageId) -> Response:
    return _release_page(request, service, caller, id)


@router.post("/releases/{id}/evaluate")
def evaluate(request: Request, service: Served, caller: Analyst, id: PageId, form: Form) -> Response:
    """Request an evaluation of the release; if it is refused, show the form again with the typed values."""
    typed = {name: text_of(form, name) for name in (*_TYPED, "once")}
    act = "pay" if text_of(form, "act") == "pay" else "try"
    try:
        if not is_form_token(typed["once"]):
            raise InvalidParameter(
                "this form is not from this server. Open the page again, check it, then press the button."
            )
        job_request = JobRequest(
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
        job = service.ask(caller, job_request, f"{typed['once']} {act}")
        return RedirectResponse(f"/jobs/{job.id}", 303)
    except (BudgetExceeded, Conflict, InvalidParameter, NotFound, TooMany) as error:
        return _release_page(request, service, caller, id, typed, {"": as_sentence(error)})


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
    fitting = (
        _fitting_datasets(service, caller, Release.from_bytes(content))
        if found.analyst == caller.name
        else []
    )
    return render(
        request,
        caller,
        "release.html",
        422 if errors else 200,
        release=found,
        proven=verify_bytes(content),
        commands=release_commands(str(request.base_url), id, _file_name(found)),
        datasets=[offered.name for offered in fitting],
        with_approval=any(offered.settings.approval is not None for offered in fitting),
        columns=_group_columns(fitting[0].schema) if fitting else [],
        typed=typed or dict.fromkeys(_TYPED, ""),
        errors=errors or {},
        once=new_form_token(),
        learnt=_effects_part(service.store, id),
    )


@lru_cache(maxsize=64)  # drawing takes a second, and a release does not change
def _effects_part(store: str, id: str) -> Markup:
    """Public: return the columns' effects, from the released file alone, or why they cannot be shown."""
    try:
        return Markup(page_part(effects(Release.from_bytes(results.content_of(store, id)))))
    except InvalidParameter as error:
        return Markup("<p>{}</p>").format(as_sentence(error))


def _fitting_datasets(service: Service, caller: Caller, release: Release) -> list[OfferedDataSet]:
    """Return the data sets on which the release can be evaluated."""
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
            proven = await run_heavy(request, verify_bytes, content)
    except ReleaseError as error:
        return render(request, caller, "verify.html", 422, proven=None, errors={"file": as_sentence(error)})
    return render(request, caller, "verify.html", proven=proven)


def _stages(found: Job) -> list[tuple[str, str]]:
    """Return the style class and the text of each stage."""
    stages = (_APPROVAL if found.decide_by else {}) | _STAGES
    now = list(stages).index(found.state) if found.state in stages else len(stages)
    styles = ["past" if index < now else "now" if index == now else "" for index in range(len(stages))]
    return list(zip(styles, stages.values(), strict=True))


def _may_fetch(caller: Caller, found: Job) -> bool:
    """Return whether the caller may see the result: approvers and auditors see requests only."""
    return found.state == "done" and caller.role in ("analyst", "holder")


def _describe(found: Job) -> tuple[str, str]:
    """Return heading and description from the job's kind, if the server still has it."""
    kind = JOB_KINDS.get(found.kind)
    if kind is None:
        return f"A job of kind {found.kind}", (
            f"This server does not know the kind {found.kind} any more: its holder can put it back into owner.toml, "
            "under extensions."
        )
    fields = kind.read(found.fields)
    return kind.heading(fields), kind.describe(fields)


def _meaning(service: Service, caller: Caller, found: Job) -> Meaning | None:
    """Return what the guarantee means; None for a trial, and for a data set that is not offered any more."""
    offered = [offered for offered in service.datasets(caller) if offered.name == found.dataset]
    return offered[0].meaning(found.guarantee) if offered and not found.trial else None


@lru_cache(maxsize=64)  # intervals take seconds, and a result does not change
def _part(store: str, job_id: str, kind_name: str) -> Markup:
    """Return the view of the result by the job's kind; without the kind, a link to download it."""
    made = results.find(store, None, job_id)
    kind = JOB_KINDS.get(kind_name)
    if kind is None:
        return download_link(made)
    return kind.page_part(made, results.content_of(store, job_id))


def _file_name(found: ResultInfo) -> str:
    return f"{found.dataset}-{found.learner}-{found.id[:8]}.privlearn"
