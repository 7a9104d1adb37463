"""Pages of jobs, their results and releases: progress, download, evaluation and verification."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache

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
from privlearn.server.http.capacity import run_heavy
from privlearn.server.http.media_types import reading
from privlearn.server.job_kinds.evaluate import EVALUATE, fits
from privlearn.server.job_kinds.job_kind import BYTES, JOB_KINDS, download_link
from privlearn.server.job_kinds.training import GIVE_OUT_RELEASE
from privlearn.server.jobs import results
from privlearn.server.jobs.requests import Job, JobRequest, ResultInfo
from privlearn.server.pages.formatting import as_sentence, number_in
from privlearn.server.pages.page import (
    Before,
    Form,
    ListPage,
    PageId,
    Visit,
    check_form_token,
    download,
    list_page,
    new_form_token,
    page_router,
    text_of,
)
from privlearn.server.pages.signing import Analyst, ReleaseForm, Visitor
from privlearn.server.refusals import Conflict, NotFound, TooMany

router = page_router()

_HEADINGS = {
    "waiting_for_approval": "Waiting for approval",
    "waiting": "Waiting for its turn",
    "running": "Under way",
    "done": "Finished",
    "failed": "Failed",
    "declined": "Declined",
}
_STAGES = {"waiting": "Waiting for its turn", "running": "Under way on the holder's side"}
_APPROVAL = {"waiting_for_approval": "Waiting for a second person's approval"}

_TYPED = ("dataset", "by", "epsilon", "delta", "note", "purpose", "legal_basis")
"""Fields of the form that requests an evaluation of a release."""


@router.get("/jobs/{id}")
async def job(visit: Visitor, id: PageId) -> Response:
    return await visit.run_heavy(_job_page, id)


def _job_page(visit: Visit, id: str) -> Response:
    service, caller = visit.service, visit.caller
    found = service.job(caller, id)
    title, described = _describe(found)
    return visit.render(
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
        meaning=_meaning(visit, found),
        part=_part(service.store, found.id, found.kind) if _may_fetch(caller, found) else "",
    )


@router.post("/jobs/{id}/cancel")
def cancel(visit: Visitor, id: PageId) -> Response:
    with suppress(Conflict):  # the job had ended already: its page shows how
        visit.service.cancel(visit.caller, id)
    return RedirectResponse(f"/jobs/{id}", 303)


@router.get("/jobs/{id}/result")
def result(visit: Visitor, id: PageId) -> Response:
    found, content = visit.service.fetch(visit.caller, id)
    return download(content, found.media_type, _file_name(found))


@router.get("/releases")
def releases(visit: Visitor, before: Before) -> Response:
    return visit.render("releases.html", releases=results_of(visit, GIVE_OUT_RELEASE.name, before))


def results_of(visit: Visit, kind: str, before: str | None) -> ListPage[ResultInfo]:
    """Return one page of the results of a kind of job."""
    return list_page(
        lambda limit: visit.service.results(visit.caller, kind, limit=limit, before=before), before
    )


@router.get("/releases/{id}")
def release(visit: Visitor, id: PageId) -> Response:
    return _release_page(visit, id)


@router.post("/releases/{id}/evaluate")
def evaluate(visit: Analyst, id: PageId, form: Form) -> Response:
    """Request an evaluation of the release; if it is refused, show the form again with the typed values."""
    typed = {name: text_of(form, name) for name in (*_TYPED, "once")}
    typed["delta"] = typed["delta"] or "0"
    act = "pay" if text_of(form, "act") == "pay" else "try"
    try:
        check_form_token(typed["once"])
        job_request = JobRequest(
            dataset=typed["dataset"],
            kind=EVALUATE.name,
            epsilon=number_in(typed, "epsilon"),
            delta=number_in(typed, "delta"),
            trial=act == "try",
            note=typed["note"],
            fields={"release": id, "by": [typed["by"]] if typed["by"] else []},
            purpose=typed["purpose"],
            legal_basis=typed["legal_basis"],
        )
        job = visit.service.ask(visit.caller, job_request, f"{typed['once']} {act}")
        return RedirectResponse(f"/jobs/{job.id}", 303)
    except (BudgetExceeded, Conflict, InvalidParameter, NotFound, TooMany) as error:
        return _release_page(visit, id, typed, {"": as_sentence(error)})


def _release_page(
    visit: Visit, id: str, typed: Mapping[str, str] | None = None, errors: Mapping[str, str] | None = None
) -> Response:
    service, caller = visit.service, visit.caller
    found = service.result(caller, id, GIVE_OUT_RELEASE.name)
    content = results.content_of(service.store, id)
    fitting: list[OfferedDataSet] = []
    if found.analyst == caller.name:
        own = Release.from_bytes(content)
        fitting = [offered for offered in service.datasets(caller) if fits(own, offered)]
    return visit.render(
        "release.html",
        422 if errors else 200,
        release=found,
        proven=verify_bytes(content),
        commands=_commands(str(visit.request.base_url), id, _file_name(found)),
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


def _group_columns(schema: Schema) -> list[str]:
    return [name for name, column in schema.columns.items() if getattr(column, "values", None)]


@router.get("/verify")
def choose_file(visit: Visitor) -> Response:
    return visit.render("verify.html", proven=None)


@router.post("/verify")
async def verify(visit: Visitor, form: ReleaseForm) -> Response:
    content = await run_in_threadpool(content_of, form, "file")
    try:
        async with reading(visit.request, content):
            proven = await run_heavy(visit.request, verify_bytes, content)
    except ReleaseError as error:
        return visit.render("verify.html", 422, proven=None, errors={"file": as_sentence(error)})
    return visit.render("verify.html", proven=proven)


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
            f"This server no longer has the kind {found.kind}. Its holder can add it to owner.toml again, under "
            "extensions."
        )
    fields = kind.read(found.fields)
    return kind.heading(fields), kind.describe(fields)


def _meaning(visit: Visit, found: Job) -> Meaning | None:
    """Return what the guarantee means; None for a trial, and for a data set that is not offered any more."""
    offered = [one for one in visit.service.datasets(visit.caller) if one.name == found.dataset]
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
    suffix = ".privlearn" if found.media_type == BYTES else ""
    return f"{found.dataset}-{found.learner or found.kind}-{found.id[:8]}{suffix}"


def _commands(address: str, release: str, name: str) -> str:
    server = address.rstrip("/")
    return f"""\
privlearn ask --server {server} download {release} --out {name}
privlearn verify {name}
privlearn predict {name} new.csv --out predictions.csv

from privlearn import Release                  # in Python
Release.load("{name}").model.predict(table)"""
